//! The reference page of the configuration is the one made from the table of settings.

#[test]
fn the_configuration_reference_is_fresh() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/configuration.md");
    let page = saltern_server::config::reference_page();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), page, "run it again with UPDATE=1");
}
