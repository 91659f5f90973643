//! `cp.*` against a file tree in memory.

use super::*;
use crate::fileclient::testing;
use crate::functions::find;
use crate::functions::testing::Bench;

/// A call with its arguments bound, for code that takes the way to the master from the test.
fn bound(bench: &Bench, name: &str, args: &[&str], kwargs: &[(&str, Value)]) -> Call {
    let kwargs = kwargs.iter().map(|(key, value)| (Value::from(*key), value.clone())).collect();
    let args = args.iter().map(|arg| Value::from(*arg)).collect();
    Call::bind(find(name).unwrap(), bench.context.clone(), args, kwargs).unwrap()
}

#[tokio::test]
async fn a_file_goes_where_it_is_told() {
    let bench = Bench::new();
    let client = testing::client(&testing::tree(&[("web/index.html", "hi")]), &bench.context.data_dir);
    let dest = bench.at("");
    let call = bound(&bench, "cp.get_file", &["salt://web/index.html", &dest], &[]);
    let place = get_file(&call, &client).await.unwrap().value;
    assert_eq!(place, bench.at("index.html").into());
    assert_eq!(std::fs::read_to_string(bench.at("index.html")).unwrap(), "hi");
}

#[tokio::test]
async fn folders_are_made_only_when_asked_for() {
    let bench = Bench::new();
    let client = testing::client(&testing::tree(&[("f", "hi")]), &bench.context.data_dir);
    let dest = bench.at("a/b/f");
    let call = bound(&bench, "cp.get_file", &["salt://f", &dest], &[]);
    assert_eq!(get_file(&call, &client).await.unwrap().value, false.into());
    let call = bound(&bench, "cp.get_file", &["salt://f", &dest], &[("makedirs", true.into())]);
    assert_eq!(get_file(&call, &client).await.unwrap().value, dest.as_str().into());
    let call = bound(&bench, "cp.get_file", &["salt://nowhere", &dest], &[]);
    assert_eq!(get_file(&call, &client).await.unwrap().value, "".into());
}

#[tokio::test]
async fn a_folder_brings_its_own_name_and_not_its_neighbours() {
    let bench = Bench::new();
    let files = [("a/web/x", "1"), ("a/web/sub/y", "2"), ("a/webby/z", "3")];
    let client = testing::client(&testing::tree(&files), &bench.context.data_dir);
    let call = bound(&bench, "cp.get_dir", &["salt://a/web", &bench.at("d")], &[]);
    let places = get_dir(&call, &client).await.unwrap().value;
    assert_eq!(places, Value::list([bench.at("d/web/sub/y"), bench.at("d/web/x")]));
    assert_eq!(std::fs::read_to_string(bench.at("d/web/sub/y")).unwrap(), "2");
}

#[tokio::test]
async fn names_that_lead_out_of_the_folder_are_refused() {
    let bench = Bench::new();
    let client = testing::client(&testing::tree(&[("web/../../x", "1")]), &bench.context.data_dir);
    let call = bound(&bench, "cp.get_dir", &["salt://web", &bench.at("d")], &[]);
    assert!(get_dir(&call, &client).await.is_err());
    assert!(!bench.path().join("x").exists());
}

#[tokio::test]
async fn the_cache_can_be_listed_and_chosen_by_pattern() {
    let bench = Bench::new();
    let files = [("web/a.conf", "1"), ("web/b.txt", "2"), ("top.sls", ""), ("web/init.sls", "")];
    let client = testing::client(&testing::tree(&files), &bench.context.data_dir);
    let call = bound(&bench, "cp.cache_dir", &["salt://web"], &[("include_pat", "*.conf".into())]);
    let place = bench.at("data/cache/files/base/web/a.conf");
    assert_eq!(cache_folder(&call, &client).await.unwrap().value, Value::list([place.as_str()]));
    assert_eq!(bench.call("cp.list_minion", &[], &[]).await, Value::list([place.as_str()]));
    assert_eq!(bench.call("cp.is_cached", &["salt://web/a.conf".into()], &[]).await, place.as_str().into());
    assert_eq!(bench.call("cp.is_cached", &["salt://web/b.txt".into()], &[]).await, "".into());
    assert_eq!(bench.call("cp.cache_dest", &["salt://web/a.conf".into()], &[]).await, place.as_str().into());
    let call = bound(&bench, "cp.list_states", &[], &[]);
    assert_eq!(list_states(&call, &client).await.unwrap().value, Value::list(["top", "web"]));
}

#[tokio::test]
async fn paths_of_this_machine_are_their_own_copies() {
    let bench = Bench::new();
    std::fs::write(bench.at("f"), "abc").unwrap();
    let file = Value::from(bench.at("f"));
    assert_eq!(bench.call("cp.cache_file", std::slice::from_ref(&file), &[]).await, file);
    assert_eq!(bench.call("cp.get_file_str", std::slice::from_ref(&file), &[]).await, "abc".into());
    let hash = bench.call("cp.hash_file", &[file], &[]).await;
    assert_eq!(hash.get("hash_type"), Some(&"sha256".into()));
    assert_eq!(bench.call("cp.hash_file", &["/nowhere".into()], &[]).await, Value::Map(Map::new()));
}

#[tokio::test]
async fn other_addresses_are_refused_by_name() {
    let failed = Bench::new().fail("cp.get_url", &["https://example.org/x".into(), "/tmp/x".into()], &[]).await;
    assert_eq!(failed, "ERROR: https:// is not supported by this minion: only salt://, file:// and paths");
    let failed = Bench::new().fail("cp.cache_file", &["salt://x".into()], &[]).await;
    assert_eq!(failed, "ERROR: there is no master: this is a local call");
}
