//! Lists come in pages without a gap and without a double.

use super::House;
use saltern_core::ids::MinionId;
use saltern_testkit::fake_minion::FakeMinion;
use serde_json::{Value, json};

/// Reads a list page by page; gives the names of all entries, and how many pages there were.
async fn read(house: &House, path: &str, list: &str, name: &str, cursor: &str) -> (Vec<Value>, usize) {
    let (mut seen, mut pages, mut next) = (Vec::new(), 0, Value::Null);
    loop {
        let from = match &next {
            Value::Null => String::new(),
            Value::String(text) => format!("&{cursor}={}", text.replace(' ', "%20")),
            other => format!("&{cursor}={other}"),
        };
        let page = house.ask(&format!("GET /api/v1/{path}{from}")).answer().await.ok();
        seen.extend(page[list].as_array().unwrap().iter().map(|entry| entry[name].clone()));
        pages += 1;
        next = page["next"].clone();
        if next.is_null() {
            return (seen, pages);
        }
    }
}

#[tokio::test]
async fn names_come_in_pages_in_both_orders() {
    let house = House::open().await;
    for at in 0..7 {
        let body = json!({ "name": format!("org{at}") });
        house.ask("POST /api/v1/organisations").json(&body).answer().await.ok();
    }
    let mut expected: Vec<Value> = vec![json!("default")];
    expected.extend((0..7).map(|at| json!(format!("org{at}"))));
    let (seen, pages) = read(&house, "organisations?limit=3", "organisations", "name", "after").await;
    assert_eq!((seen, pages), (expected.clone(), 3));
    expected.reverse();
    let (seen, _) = read(&house, "organisations?limit=3&order=desc", "organisations", "name", "after").await;
    assert_eq!(seen, expected);
    // Exactly full: the end is known.
    let (_, pages) = read(&house, "organisations?limit=4", "organisations", "name", "after").await;
    assert_eq!(pages, 2);
    house.close().await;
}

#[tokio::test]
async fn what_comes_between_two_pages_moves_nothing() {
    let house = House::open().await;
    let make = async |name: &str| {
        house.ask("POST /api/v1/organisations").json(&json!({ "name": name })).answer().await.ok();
    };
    make("b").await;
    make("e").await;
    let first = house.ask("GET /api/v1/organisations?limit=2").answer().await.ok();
    assert_eq!(first["next"], "default");
    make("a").await;
    let second = house.ask("GET /api/v1/organisations?limit=2&after=default").answer().await.ok();
    assert_eq!((&second["organisations"][0]["name"], &second["next"]), (&json!("e"), &Value::Null));
    house.close().await;
}

#[tokio::test]
async fn the_audit_log_comes_in_pages_newest_first() {
    let house = House::open().await;
    for at in 0..6 {
        let body = json!({ "name": format!("org{at}") });
        house.ask("POST /api/v1/organisations").json(&body).answer().await.ok();
    }
    let (seen, _) = read(&house, "audit?limit=2&what=organisation", "entries", "subject", "before").await;
    let expected: Vec<Value> = (0..6).rev().map(|at| json!(format!("org{at}"))).collect();
    assert_eq!(seen, expected);
    house.close().await;
}

#[tokio::test]
async fn jobs_actions_runs_minions_and_keys_come_in_pages() {
    let house = House::open().await;
    let mut minions = Vec::new();
    for at in 0..3 {
        minions.push(FakeMinion::start(house.server.return_address, &format!("web{at}")).await);
    }
    let names: Vec<Value> = (0..3).map(|at| json!(format!("web{at}"))).collect();
    assert_eq!(read(&house, "minions?limit=2", "minions", "id", "after").await.0, names);
    assert_eq!(read(&house, "keys?limit=1", "keys", "id", "after").await.0, names);
    let mut jids = Vec::new();
    for _ in 0..5 {
        let body = json!({ "target": "*", "fun": "test.ping" });
        let accepted = house.ask("POST /api/v1/run").json(&body).answer().await.ok();
        jids.push(accepted["jid"].clone());
    }
    jids.reverse();
    assert_eq!(read(&house, "jobs?limit=2", "jobs", "jid", "before").await.0, jids);
    let (actions, _) = read(&house, "actions?limit=2", "actions", "id", "before").await;
    assert_eq!(actions.len(), 5);
    assert!(actions.windows(2).all(|pair| pair[0].as_i64() > pair[1].as_i64()));
    let runs = format!("actions/{}/runs?limit=2", actions[0]);
    assert_eq!(read(&house, &runs, "runs", "minion", "after").await.0, names);
    house.close().await;
}

#[tokio::test]
async fn jobs_and_minions_are_filtered() {
    let house = House::open().await;
    let _web = FakeMinion::start(house.server.return_address, "web1").await;
    let _db = FakeMinion::start(house.server.return_address, "db1").await;
    for (target, fun) in [("web*", "test.ping"), ("db*", "test.version"), ("*", "grains.items")] {
        house.ask("POST /api/v1/run").json(&json!({ "target": target, "fun": fun })).answer().await.ok();
    }
    let count = async |path: &str, list: &str| {
        house.ask(&format!("GET /api/v1/{path}")).answer().await.ok()[list].as_array().unwrap().len()
    };
    assert_eq!(count("jobs?fun=test.*", "jobs").await, 2);
    assert_eq!(count("jobs?fun=test.ping,grains.*", "jobs").await, 2);
    assert_eq!(count("jobs?target=db1", "jobs").await, 2);
    assert_eq!(count("jobs?user=root", "jobs").await, 3);
    assert_eq!(count("jobs?user=eve", "jobs").await, 0);
    assert_eq!(count("jobs?until=2020-01-01T00:00:00Z", "jobs").await, 0);
    assert_eq!(count("jobs?since=2020-01-01T00:00:00Z", "jobs").await, 3);
    assert_eq!(count("minions?tgt=web*", "minions").await, 1);
    assert_eq!(count("minions?org=default", "minions").await, 2);
    assert_eq!(count("minions?org=other", "minions").await, 0);
    let members = json!({ "name": "dbs", "members": [MinionId::new("db1").unwrap().as_str()] });
    house.ask("POST /api/v1/groups").json(&members).answer().await.ok();
    assert_eq!(count("minions?group=dbs", "minions").await, 1);
    assert_eq!(house.ask("GET /api/v1/minions?group=none").answer().await.problem().0, 404);
    assert_eq!(house.ask("GET /api/v1/minions?presence=maybe").answer().await.problem().0, 400);
    house.close().await;
}

#[tokio::test]
async fn a_minion_is_given_to_an_organisation() {
    let house = House::open().await;
    let _web = FakeMinion::start(house.server.return_address, "web1").await;
    house.ask("POST /api/v1/organisations").json(&json!({ "name": "acme" })).answer().await.ok();
    let change = house.ask("PATCH /api/v1/minions/web1").json(&json!({ "org": "acme", "ack": false }));
    let changed = change.answer().await.ok();
    assert_eq!((&changed["org"], &changed["ack"]), (&json!("acme"), &json!(false)));
    let nothing = house.ask("PATCH /api/v1/minions/web1").json(&json!({})).answer().await;
    assert_eq!(nothing.problem().0, 400);
    assert_eq!(house.ask("GET /api/v1/minions/web1/grains?fields=id").answer().await.ok(), json!({ "id": "web1" }));
    house.close().await;
}
