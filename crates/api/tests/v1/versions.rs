//! `ETag`, `If-Match`, `If-None-Match`.

use super::House;
use serde_json::json;

async fn house_with_acme() -> House {
    let house = House::open().await;
    let made = house.ask("POST /api/v1/organisations").json(&json!({ "name": "acme" })).answer().await;
    assert_eq!((made.status, made.header("etag")), (201, Some("\"1\"")), "{made:?}");
    house
}

#[tokio::test]
async fn a_change_needs_the_version_it_is_meant_for() {
    let house = house_with_acme().await;
    let change = |text: &str| house.ask("PUT /api/v1/organisations/acme").json(&json!({ "description": text }));
    assert_eq!(change("a").answer().await.problem(), (428, "precondition_required".into()));
    let changed = change("b").with("if-match", "\"1\"").answer().await;
    assert_eq!((changed.status, changed.header("etag")), (200, Some("\"2\"")), "{changed:?}");
    assert_eq!(change("c").with("if-match", "\"1\"").answer().await.problem(), (412, "stale".into()));
    let whatever = change("d").with("if-match", "*").answer().await;
    assert_eq!(whatever.header("etag"), Some("\"3\""));
    let shown = house.ask("GET /api/v1/organisations/acme").answer().await.ok();
    assert_eq!((&shown["description"], &shown["version"]), (&json!("d"), &json!(3)));
    house.close().await;
}

#[tokio::test]
async fn what_is_removed_has_to_be_known_too() {
    let house = house_with_acme().await;
    let remove = || house.ask("DELETE /api/v1/organisations/acme");
    assert_eq!(remove().answer().await.problem().0, 428);
    assert_eq!(remove().with("if-match", "\"9\"").answer().await.problem().0, 412);
    assert_eq!(remove().with("if-match", "\"1\"").answer().await.status, 204);
    assert_eq!(remove().with("if-match", "*").answer().await.problem().0, 404);
    house.close().await;
}

#[tokio::test]
async fn who_has_it_already_is_spared() {
    let house = house_with_acme().await;
    let read = || house.ask("GET /api/v1/organisations/acme");
    let spared = read().with("if-none-match", "\"1\"").answer().await;
    assert_eq!((spared.status, spared.text.as_str(), spared.header("etag")), (304, "", Some("\"1\"")));
    assert_eq!(read().with("if-none-match", "\"2\"").answer().await.status, 200);
    // A list has no version.
    let list = house.ask("GET /api/v1/organisations").with("if-none-match", "*").answer().await;
    assert_eq!((list.status, list.header("etag")), (200, None));
    house.close().await;
}

#[tokio::test]
async fn users_and_groups_have_versions() {
    let house = House::open().await;
    let user = json!({ "name": "ann", "password": "correct horse battery" });
    let made = house.ask("POST /api/v1/users").json(&user).answer().await;
    let tag = made.header("etag").unwrap().to_owned();
    let change = house.ask("PATCH /api/v1/users/ann").json(&json!({ "full_name": "Ann" }));
    let changed = change.with("if-match", &tag).answer().await;
    assert_eq!(changed.ok()["full_name"], "Ann");
    assert_ne!(changed.header("etag"), Some(tag.as_str()));
    let made = house.ask("POST /api/v1/groups").json(&json!({ "name": "web" })).answer().await;
    let change = house.ask("PUT /api/v1/groups/web").json(&json!({ "target": "web*", "tgt_type": "glob" }));
    let changed = change.with("if-match", made.header("etag").unwrap()).answer().await;
    assert_eq!(changed.ok()["target"], "web*");
    house.close().await;
}
