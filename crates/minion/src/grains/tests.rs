//! Grains against recorded machines and against stock Salt on this one.

use super::*;
use std::path::PathBuf;

/// A minion's configuration that keeps its data in `dir`.
fn config(dir: &Path, more: &[(&str, Value)]) -> Config {
    let mut settings = Map::new();
    settings.insert("id", "probe");
    settings.insert("data_dir", &*dir.to_string_lossy());
    for (name, value) in more {
        settings.insert(*name, value.clone());
    }
    Config::load(None, settings).unwrap()
}

#[test]
fn the_configuration_counts_more_than_the_file_and_the_file_more_than_the_machine() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("grains"), "role: web\nsite: a\nkernel: mine\n").unwrap();
    let grains = collect(&config(dir.path(), &[("grains", Value::map([("site", "b")]))]));
    let text = |name: &str| grains.get(name).and_then(Value::as_str).unwrap();
    assert_eq!((text("role"), text("site"), text("kernel")), ("web", "b", "mine"));
}

#[test]
fn a_broken_grains_file_costs_only_itself() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("grains"), "a: [").unwrap();
    assert_eq!(collect(&config(dir.path(), &[])).get("id"), Some(&"probe".into()));
}

#[test]
fn server_ids_are_salts() {
    assert_eq!(server_id("probe"), 734_552_213);
}

/// The stock Salt of this line, where the tests' set-up has put it.
fn stock_salt_call() -> Option<PathBuf> {
    let cache = std::env::var_os("SALTERN_CACHE")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache/saltern")))?;
    let (major, minor) = SALT_RELEASE;
    Some(cache.join(format!("salt-{major}.{minor}/bin/salt-call"))).filter(|path| path.exists())
}

#[test]
fn grains_equal_those_of_a_stock_minion_on_the_same_machine() {
    /// What differs between any two processes, or belongs to Python.
    const APART: &[&str] = &[
        "pid",
        "ca_truststore",
        "package",
        "pythonexecutable",
        "pythonpath",
        "pythonversion",
        "saltpath",
        "zmqversion",
        "num_gpus",
        "gpus",
        "lvm",
        "cwd",
        "locale_info",
        // Stock Salt asks the network for these, and we do not.
        "fqdn",
        "domain",
        "fqdns",
        "fqdn_ip4",
        "fqdn_ip6",
    ];
    let Some(salt_call) = stock_salt_call() else {
        eprintln!("SKIPPED: stock Salt is not installed, so grains were not compared with its own");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let conf = format!("id: probe\nroot_dir: {}\nfile_client: local\n", dir.path().display());
    std::fs::write(dir.path().join("minion"), conf).unwrap();
    let output = std::process::Command::new(salt_call)
        .args(["--local", "--out", "json", "--log-level", "quiet", "-c"])
        .arg(dir.path())
        .arg("grains.items")
        .output()
        .unwrap();
    let stock: Value = serde_json::from_slice(&output.stdout).unwrap();
    let stock = stock.get("local").and_then(Value::as_map).unwrap();
    let ours = collect(&config(dir.path(), &[]));
    let differing: Vec<String> = stock
        .iter()
        .filter(|(name, _)| !APART.contains(&&*name.key_text()))
        .filter(|(name, value)| ours.find(name) != Some(value))
        .map(|(name, value)| format!("{}: stock {value:?}, ours {:?}", name.key_text(), ours.find(name)))
        .collect();
    assert!(stock.len() > 50, "stock Salt gave {} grains", stock.len());
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}
