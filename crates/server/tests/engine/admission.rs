//! The only door: every way in passes through it, and leaves its reasons.

use crate::house::{House, caller};
use crate::ward::{Hands, house, minion, ping, typed};
use saltern_core::action::Policy;
use saltern_core::run::{RunState, WaitingFor};
use saltern_core::value::Value;
use saltern_server::app::{ActionQuery, Door};
use saltern_store::ActionFilter;
use std::collections::BTreeSet;

/// The doors that the stored decisions name.
async fn doors(house: &House) -> BTreeSet<String> {
    let query = ActionQuery {
        before: None,
        limit: 100,
        internal: true,
        archived: false,
        filter: ActionFilter::All,
        initiator: None,
        minion: None,
    };
    let actions = house.app().actions(&caller(), &query).await.unwrap();
    let door = |decision: &str| {
        let decision: serde_json::Value = serde_json::from_str(decision).unwrap();
        assert!(decision["checks"].as_array().is_some_and(|checks| !checks.is_empty()), "{decision}");
        decision["door"].as_str().unwrap().to_owned()
    };
    actions.iter().map(|action| door(&action.new.decision)).collect()
}

#[tokio::test]
async fn every_way_in_leaves_its_decision() {
    let peer = Value::map([(".*", Value::list(["test.*"]))]);
    let house = House::with([("auto_accept", true.into()), ("job_ack", true.into()), ("peer", peer)]).await;
    // An older minion: the server sends it an executor, by itself.
    let mut a = crate::ward::minion_of(&house, "a", "3006.28").await;
    let sync = a.next_job().await;
    a.answer_house(&sync).await;
    house.ping(&["a"]).await;
    house.submit(ping(&["a"], Policy::default())).await;
    house.app().submit(&caller(), ping(&["a"], Policy::default()), Door::SaltApi).await.unwrap();
    let mut fields = saltern_core::value::Map::new();
    fields.push("fun", "test.ping");
    fields.push("arg", Value::List(vec![]));
    fields.push("tgt", "a");
    a.request("minion_pub", fields).await;
    crate::chains::launched(&house, "one", crate::chains::ping_on("a")).await;
    crate::recurring::run_once(&house, "a").await;
    let used = doors(&house).await;
    let all: BTreeSet<String> =
        Door::ALL.iter().map(|door| serde_json::to_value(door).unwrap().as_str().unwrap().to_owned()).collect();
    assert_eq!(used, all);
}

/// Whoever stores an action or publishes one does it in the engine, behind admission.
#[test]
fn there_is_no_side_door() {
    let mut found = Vec::new();
    let mut folders = vec![std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            for door in ["store.create(", "store.create_launch(", "store.claim(", "self.publish(", "Admitted {"] {
                if text.contains(door) {
                    found.push(format!("{} {door}", path.file_name().unwrap().to_str().unwrap()));
                }
            }
        }
    }
    found.sort();
    let expected = [
        "accept.rs Admitted {",
        "accept.rs store.create(",
        "admission.rs Admitted {",
        "deliver.rs self.publish(",
        "dispatch.rs store.claim(",
        "launch.rs Admitted {",
        "launch.rs store.create_launch(",
    ];
    assert_eq!(found, expected);
}

#[tokio::test]
async fn what_changes_a_minion_waits_while_it_is_in_blackout_and_the_decision_says_so() {
    let house = House::with([("auto_accept", true.into()), ("blackout", Value::list(["a*"]))]).await;
    let _a = minion(&house, "a").await;
    let action = house.submit(typed(&["a"], "states", [], Policy::default())).await.action;
    house.until(action, "a", |run| run.waiting_for == Some(WaitingFor::Window)).await;
    assert_eq!(house.state(action, "a").await.state, RunState::Queued);
    assert!(house.action(action).await.new.decision.contains("1 wait"));
}

#[tokio::test]
async fn bad_parameters_are_refused_and_nothing_is_stored() {
    let house = house().await;
    let _a = minion(&house, "a").await;
    let before = house.rows();
    for (kind, params) in [
        ("states", [("moods", Value::from("x"))]),
        ("nosuch", [("fun", Value::from("x"))]),
        ("function", [("fun", Value::from("ping"))]),
    ] {
        let refused = house.app().submit(&caller(), typed(&["a"], kind, params, Policy::default()), Door::Action).await;
        assert!(matches!(refused, Err(saltern_server::Error::Invalid(_))), "{kind}: {refused:?}");
    }
    assert_eq!(house.rows(), before);
}
