//! `fields=`: only what is named is answered.

use super::House;
use serde_json::json;

#[tokio::test]
async fn of_a_list_each_entry_has_only_the_fields_that_are_named() {
    let house = House::open().await;
    let listed = house.ask("GET /api/v1/organisations?fields=name").answer().await.ok();
    assert_eq!(listed, json!({ "organisations": [{ "name": "default" }], "next": null }));
    house.close().await;
}

#[tokio::test]
async fn of_one_thing_only_the_fields_that_are_named_are_left() {
    let house = House::open().await;
    let status = house.ask("GET /api/v1/status?fields=accepted,publish_port.port").answer().await.ok();
    assert_eq!(status["accepted"], 0);
    assert!(status["publish_port"]["port"].is_u64());
    assert_eq!(status.as_object().unwrap().len(), 2);
    assert_eq!(status["publish_port"].as_object().unwrap().len(), 1);
    house.close().await;
}

#[tokio::test]
async fn a_name_that_is_none_is_refused() {
    let house = House::open().await;
    for bad in [
        "organisations?fields=nam",
        "organisations?fields=",
        "organisations?fields=name,,version",
        "organisations?fields=name.x",
        "organisations?fields=organisations",
        "organisations?fields=name&fields=version",
        "status?fields=publish_port.x",
        "jobs/20261115195631000000?fields=x",
        "docs?fields=x",
    ] {
        let answer = house.ask(&format!("GET /api/v1/{bad}")).answer().await;
        assert_eq!(answer.problem(), (400, "invalid".into()), "{bad}");
    }
    // What is not there is not there, whatever is wanted of it.
    let missing = house.ask("GET /api/v1/jobs/20261115195631000000?fields=jid,returns.web1.retcode").answer().await;
    assert_eq!(missing.problem().0, 404);
    house.close().await;
}

#[tokio::test]
async fn a_selection_goes_with_the_rest_of_the_query_and_with_versions() {
    let house = House::open().await;
    let listed = house.ask("GET /api/v1/organisations?limit=1&fields=version&order=desc").answer().await.ok();
    assert_eq!(listed["organisations"][0], json!({ "version": 1 }));
    let shown = house.ask("GET /api/v1/organisations/default?fields=name").answer().await;
    assert_eq!((shown.ok(), shown.header("etag")), (json!({ "name": "default" }), Some("\"1\"")));
    house.close().await;
}
