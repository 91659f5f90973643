//! Keys that are decided about by lists: read anew at each sign-in, so an operator edits them while the server runs.

use crate::house::House;
use saltern_core::value::{Map, Value};
use saltern_testkit::fake_minion::{FakeMinion, SignIn};
use saltern_wire::envelope::AuthReply;

/// A server whose lists are files in a folder of their own.
async fn house() -> (House, std::path::PathBuf) {
    let lists = tempfile::tempdir().unwrap().keep();
    std::fs::create_dir(lists.join("grains")).unwrap();
    for name in ["autosign", "autoreject"] {
        std::fs::write(lists.join(name), "# nobody yet\n").unwrap();
    }
    let path = |name: &str| Value::from(lists.join(name).to_str().unwrap());
    let settings = [
        ("autosign_file", path("autosign")),
        ("autoreject_file", path("autoreject")),
        ("autosign_grains_dir", path("grains")),
    ];
    (House::with(settings).await, lists)
}

async fn sign_in(house: &House, id: &str) -> SignIn {
    FakeMinion::connect(house.requests, id).await.auth().await
}

#[tokio::test]
async fn ids_are_accepted_and_rejected_by_patterns() {
    let (house, lists) = house().await;
    assert_eq!(sign_in(&house, "web1").await, SignIn::Pending);
    std::fs::write(lists.join("autosign"), "web*\n").unwrap();
    std::fs::write(lists.join("autoreject"), "evil-[0-9]+\n").unwrap();
    assert_eq!(sign_in(&house, "web1").await, SignIn::Accepted);
    assert_eq!(sign_in(&house, "evil-7").await, SignIn::Rejected);
    assert_eq!(sign_in(&house, "db1").await, SignIn::Pending);
    std::fs::remove_dir_all(lists).unwrap();
}

#[tokio::test]
async fn keys_are_accepted_by_grain_values() {
    let (house, lists) = house().await;
    std::fs::write(lists.join("grains/uuid"), "# allowed machines\n4711\n").unwrap();
    for (value, expected) in [(4711, true), (4712, false)] {
        let minion = FakeMinion::connect(house.requests, &format!("m{value}")).await;
        let mut load: Map = minion.auth_load();
        load.insert("autosign_grains", Value::map([("uuid", value)]));
        let reply = minion.auth_with(load, None).await.unwrap();
        assert_eq!(matches!(reply, AuthReply::Accepted(_)), expected, "{value}");
    }
    std::fs::remove_dir_all(lists).unwrap();
}
