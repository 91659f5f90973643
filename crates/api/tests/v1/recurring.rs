//! What recurs: made, previewed, changed, run at once, left out once.

use super::{House, nobody};
use saltern_testkit::fake_minion::FakeMinion;
use serde_json::{Value, json};

/// Sunday mornings: nothing fires while a test runs, and no two of these expressions differ in words.
fn draft(name: &str) -> Value {
    json!({
        "name": name, "entity": { "kind": "minion", "subject": "web1" },
        "what": { "type": "states", "params": { "mods": ["nginx"], "test": true } },
        "cron": "30 2 * * SUN", "zone": "Europe/Prague",
    })
}

async fn house_with_minion() -> (House, FakeMinion) {
    let house = House::open().await;
    let minion = FakeMinion::start(house.server.return_address, "web1").await;
    (house, minion)
}

#[tokio::test]
async fn what_recurs_is_what_was_sent_with_its_times_in_words() {
    let (house, _minion) = house_with_minion().await;
    let made = house.ask("POST /api/v1/recurring").json(&draft("nightly")).answer().await;
    assert_eq!((made.status, made.header("etag")), (201, Some("\"1\"")), "{made:?}");
    let made = made.ok();
    for (name, expected) in [
        ("what", json!({ "type": "states", "params": { "mods": ["nginx"], "test": true } })),
        ("entity", json!({ "kind": "minion", "subject": "web1" })),
        ("words", json!("every Sunday at 02:30")),
        ("zone", json!("Europe/Prague")),
        ("overlap", json!("skip")),
        ("catch_up", json!("once")),
        ("catch_up_limit", json!(86_400)),
        ("active", json!(true)),
        ("changeable", json!(true)),
        ("owner", json!("root")),
        ("last", Value::Null),
    ] {
        assert_eq!(made[name], expected, "{name}");
    }
    assert!(made["next"].as_str().unwrap().contains(":30:00"), "{made}");
    let id = &made["id"];
    assert_eq!(house.ask(&format!("GET /api/v1/recurring/{id}")).answer().await.ok(), made);
    let hitting = house.ask("GET /api/v1/minions/web1/recurring").answer().await.ok();
    assert_eq!(hitting["recurring"][0]["id"], *id);
    let on_it = house.ask("GET /api/v1/recurring?kind=minion&subject=web1").answer().await.ok();
    assert_eq!(on_it["recurring"].as_array().unwrap().len(), 1);
    assert_eq!(house.ask("GET /api/v1/recurring?kind=minion").answer().await.problem().0, 400);
    house.close().await;
}

#[tokio::test]
async fn the_next_times_tell_whom_they_would_hit() {
    let (house, _minion) = house_with_minion().await;
    let previewed = house.ask("POST /api/v1/recurring/preview?count=2").json(&draft("nightly")).answer().await.ok();
    let fires = previewed["fires"].as_array().unwrap();
    assert_eq!((fires.len(), &fires[0]["minions"], &fires[0]["left_out"]), (2, &json!(["web1"]), &json!([])));
    assert_eq!(house.ask("GET /api/v1/recurring").answer().await.ok()["recurring"], json!([]));
    let id = house.ask("POST /api/v1/recurring").json(&draft("nightly")).answer().await.ok()["id"].clone();
    house.ask(&format!("POST /api/v1/recurring/{id}/skip-next")).answer().await.ok();
    let preview = house.ask(&format!("GET /api/v1/recurring/{id}/preview?count=2")).answer().await.ok();
    assert_eq!(preview["fires"][0]["minions"], json!([]), "it is to be skipped: {preview}");
    assert_eq!(preview["fires"][1]["minions"], json!(["web1"]));
    assert_eq!(house.ask(&format!("GET /api/v1/recurring/{id}/preview?count=101")).answer().await.problem().0, 400);
    house.close().await;
}

#[tokio::test]
async fn a_verb_is_done_once_however_often_it_is_said() {
    let (house, _minion) = house_with_minion().await;
    let id = house.ask("POST /api/v1/recurring").json(&draft("nightly")).answer().await.ok()["id"].clone();
    let act = async |verb: &str| house.ask(&format!("POST /api/v1/recurring/{id}/{verb}")).answer().await;
    let off = act("deactivate").await.ok();
    assert_eq!((&off["recurring"]["active"], &off["recurring"]["next"]), (&json!(false), &Value::Null));
    let again = act("deactivate").await.ok();
    assert_eq!(again["recurring"]["version"], off["recurring"]["version"]);
    assert!(act("activate").await.ok()["recurring"]["next"].is_string());
    assert_eq!(act("skip-next").await.ok()["recurring"]["skip_next"], json!(true));
    assert_eq!(act("unskip-next").await.ok()["recurring"]["skip_next"], json!(false));
    let run = act("run").await.ok();
    let action = house.ask(&format!("GET /api/v1/actions/{}", run["action"])).answer().await.ok();
    assert_eq!(action["name"], "Apply recurring states [nginx] (test)");
    assert_eq!(house.ask(&format!("GET /api/v1/recurring/{id}/fires")).answer().await.ok()["fires"], json!([]));
    assert_eq!(act("explode").await.problem(), (404, "not_found".into()));
    house.close().await;
}

#[tokio::test]
async fn a_change_needs_the_version_it_means() {
    let (house, _minion) = house_with_minion().await;
    let id = house.ask("POST /api/v1/recurring").json(&draft("nightly")).answer().await.ok()["id"].clone();
    let line = format!("PUT /api/v1/recurring/{id}");
    let mut changed = draft("nightly");
    changed["cron"] = json!("0 35 1 ? * 4");
    assert_eq!(house.ask(&line).json(&changed).answer().await.status, 428);
    let done = house.ask(&line).with("if-match", "\"1\"").json(&changed).answer().await.ok();
    assert_eq!((&done["words"], &done["version"]), (&json!("every Wednesday at 01:35"), &json!(2)));
    assert_eq!(house.ask(&line).with("if-match", "\"1\"").json(&changed).answer().await.status, 412);
    let gone = house.ask(&format!("DELETE /api/v1/recurring/{id}")).with("if-match", "\"2\"").answer().await;
    assert_eq!(gone.status, 204);
    house.close().await;
}

#[tokio::test]
async fn what_cannot_recur_is_refused_with_why() {
    let (house, _minion) = house_with_minion().await;
    let refused = async |name: &str, value: Value| {
        let mut bad = draft("nightly");
        bad[name] = value;
        let answer = house.ask("POST /api/v1/recurring").json(&bad).answer().await;
        (answer.status, answer.json()["detail"].as_str().unwrap().to_owned())
    };
    let (status, detail) = refused("cron", json!("61 * * * *")).await;
    assert!(status == 400 && detail.contains("minute") && detail.contains("column 1"), "{detail}");
    let (status, detail) = refused("zone", json!("Europe/Pragu")).await;
    assert!(status == 400 && detail.contains("Europe/Prague"), "{detail}");
    assert_eq!(refused("what", json!({ "type": "states", "params": { "mods": [] } })).await.0, 400);
    assert_eq!(refused("entity", json!({ "kind": "minion", "subject": "web9" })).await.0, 404);
    assert_eq!(refused("spread", json!(-1)).await.0, 400);
    house.ask("POST /api/v1/recurring").json(&draft("nightly")).answer().await.ok();
    let twice = house.ask("POST /api/v1/recurring").json(&draft("nightly")).answer().await;
    assert_eq!(twice.status, 409, "{twice:?}");
    let stranger = house.asked_by(nobody());
    assert_eq!(stranger.ask("POST /api/v1/recurring").json(&draft("mine")).answer().await.status, 404);
    house.close().await;
}
