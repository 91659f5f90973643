//! Actions over the API, from the request to the last row that is forgotten.

use super::{House, refusal, request};
use saltern_api::client::{ActionQuery, EventQuery, RunQuery};
use saltern_api::shape::{ActionRequest, ActionVerb, RunRequest, Time, VerbRequest};
use saltern_core::action::Policy;
use saltern_core::time::Timestamp;
use saltern_core::value::Value;
use saltern_server::clock;
use saltern_testkit::fake_minion::FakeMinion;
use std::time::Duration;

fn ping(target: &str) -> ActionRequest {
    ActionRequest {
        kind: "function".into(),
        params: Value::map([("fun", "test.ping")]),
        target: target.into(),
        tgt_type: "glob".into(),
        delimiter: None,
        name: None,
        policy: Policy::default(),
        due: None,
        deadline: None,
        metadata: Value::Nil,
        ret: String::new(),
        paused: false,
        in_window: false,
    }
}

fn on(id: i64) -> VerbRequest {
    VerbRequest { ids: vec![id], ..VerbRequest::default() }
}

fn in_an_hour() -> Timestamp {
    clock::now().plus(Duration::from_secs(3_600))
}

/// A server that knows the minion `web1`.
pub(super) async fn house_with_a_minion() -> (House, FakeMinion) {
    let house = House::with([("auto_accept", true.into())]).await;
    let minion = FakeMinion::start(house.server.return_address, "web1").await;
    (house, minion)
}

/// Follows the log until the action has ended.
async fn ended(house: &House, id: i64) {
    let tag = Some(format!("saltern/action/{id}/ended"));
    let query = EventQuery { since: Some(0), tag, ..EventQuery::default() };
    let mut events = house.client.events(&query).await.unwrap();
    events.next().await.unwrap().unwrap();
}

#[tokio::test]
async fn a_new_server_has_no_actions_and_knows_its_types() {
    let house = House::open().await;
    let client = &house.client;
    assert!(client.actions(&ActionQuery::default()).await.unwrap().actions.is_empty());
    assert!(client.dead_letters(None, None).await.unwrap().dead_letters.is_empty());
    let types = client.action_types().await.unwrap().types;
    assert!(types.iter().any(|kind| kind.name == "reboot"), "{types:?}");
    house.close().await;
}

#[tokio::test]
async fn an_action_that_is_not_there_is_not_found() {
    let house = House::open().await;
    let client = &house.client;
    let not_found = (404, "not_found".to_owned());
    assert_eq!(refusal(client.create_action(&ping("*")).await), not_found);
    assert_eq!(refusal(client.action(7).await), not_found);
    assert_eq!(refusal(client.runs(7, &RunQuery::default()).await), not_found);
    assert_eq!(refusal(client.run_of(7, "web1").await), not_found);
    assert_eq!(refusal(client.explain(7, "web1").await), not_found);
    assert_eq!(refusal(client.act(ActionVerb::Cancel, &on(7)).await), not_found);
    house.close().await;
}

#[tokio::test]
async fn an_action_that_makes_no_sense_is_invalid() {
    let (house, _minion) = house_with_a_minion().await;
    let client = &house.client;
    let invalid = (400, "invalid".to_owned());
    let odd_type = ActionRequest { kind: "magic".into(), ..ping("*") };
    let odd_param = ActionRequest { params: Value::map([("function", "test.ping")]), ..ping("*") };
    let odd_deadline = ActionRequest { deadline: Some(-1.0), ..ping("*") };
    for request in [odd_type, odd_param, odd_deadline] {
        assert_eq!(refusal(client.create_action(&request).await), invalid, "{request:?}");
    }
    assert_eq!(refusal(client.act(ActionVerb::Cancel, &VerbRequest::default()).await), invalid);
    let query = ActionQuery { state: Some("odd".into()), ..ActionQuery::default() };
    assert_eq!(refusal(client.actions(&query).await), invalid);
    house.close().await;
}

#[tokio::test]
async fn refusals_about_actions_are_json() {
    let house = House::open().await;
    let post = |path: &str, body: &str| {
        let length = body.len();
        format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
    };
    for (path, body, status) in [
        ("/api/v1/actions", r#"{"type": "reboot", "target": "*", "policy": {"offlien": "hold"}}"#, "400"),
        ("/api/v1/actions/7/explode", "{}", "404"),
        ("/api/v1/actions/x/cancel", "{}", "400"),
        ("/api/v1/actions/7/cancel", r#"{"ids": [8]}"#, "400"),
        ("/api/v1/actions/explode", r#"{"ids": [7]}"#, "404"),
        ("/api/v1/actions/7/runs", "{}", "405"),
    ] {
        let (line, answer) = house.raw(&post(path, body)).await;
        assert!(line.contains(status), "{path} {body} gave {line}");
        assert!(answer.starts_with(r#"{"type":"about:blank","title":"#), "{answer}");
    }
    house.close().await;
}

#[tokio::test]
async fn an_action_that_begins_paused_waits_and_says_why() {
    let (house, _minion) = house_with_a_minion().await;
    let client = &house.client;
    let created = client.create_action(&ActionRequest { paused: true, ..ping("*") }).await.unwrap();
    assert_eq!((created.jid.as_deref(), created.minions.as_slice()), (None, ["web1".to_owned()].as_slice()));
    let detail = client.action(created.id).await.unwrap();
    assert_eq!((detail.action.state.as_str(), detail.action.counts.queued), ("open", 1));
    assert!(detail.action.paused.is_some());
    assert_eq!(detail.params, Value::map([("fun", "test.ping")]));
    assert_eq!(detail.decision.get("door"), Some(&Value::from("action")));
    let runs = client.runs(created.id, &RunQuery::default()).await.unwrap().runs;
    assert_eq!((runs[0].minion.as_str(), runs[0].status.state.as_str()), ("web1", "queued"));
    let explanation = client.explain(created.id, "web1").await.unwrap();
    assert!(explanation.why.contains("paused") && explanation.next.contains("resume"), "{explanation:?}");
    let query = ActionQuery { state: Some("open".into()), minion: Some("web1".into()), ..ActionQuery::default() };
    assert_eq!(client.actions(&query).await.unwrap().actions.len(), 1);
    house.close().await;
}

#[tokio::test]
async fn what_was_cancelled_can_be_archived_and_then_deleted() {
    let (house, _minion) = house_with_a_minion().await;
    let client = &house.client;
    let id = client.create_action(&ActionRequest { paused: true, ..ping("*") }).await.unwrap().id;
    let done = client.act(ActionVerb::Cancel, &on(id)).await.unwrap().actions.remove(0);
    assert!(done.minions["web1"].done, "{done:?}");
    assert_eq!(done.minions["web1"].outcome, "cancelled");
    assert_eq!(client.action(id).await.unwrap().action.state, "cancelled");
    assert_eq!(refusal(client.act(ActionVerb::Delete, &on(id)).await), (409, "conflict".to_owned()));
    client.act(ActionVerb::Archive, &on(id)).await.unwrap();
    assert!(client.actions(&ActionQuery::default()).await.unwrap().actions.is_empty());
    let archived = ActionQuery { archived: true, ..ActionQuery::default() };
    assert_eq!(client.actions(&archived).await.unwrap().actions.len(), 1);
    client.act(ActionVerb::Delete, &on(id)).await.unwrap();
    assert_eq!(refusal(client.action(id).await).0, 404);
    house.close().await;
}

#[tokio::test]
async fn a_run_for_later_has_no_job_yet_and_can_be_moved() {
    let (house, _minion) = house_with_a_minion().await;
    let client = &house.client;
    let later = RunRequest { due: Some(Time(in_an_hour())), ..request("*", "test.ping") };
    let accepted = client.run(&later).await.unwrap();
    assert_eq!(accepted.jid, None);
    let due = in_an_hour().plus(Duration::from_secs(3_600));
    let moved = VerbRequest { due: Some(Time(due)), ..on(accepted.action) };
    client.act(ActionVerb::Reschedule, &moved).await.unwrap();
    assert_eq!(client.action(accepted.action).await.unwrap().action.due.0, due);
    house.close().await;
}

#[tokio::test]
async fn a_retry_keeps_the_attempt_before() {
    let (house, mut minion) = house_with_a_minion().await;
    let client = &house.client;
    let created = client.create_action(&ping("web1")).await.unwrap();
    let first = minion.next_job().await;
    assert_eq!(created.jid, Some(first.jid.to_string()));
    minion.return_for(&first, true).await;
    ended(&house, created.id).await;
    let detail = client.action(created.id).await.unwrap();
    assert_eq!((detail.action.state.as_str(), detail.action.counts.completed), ("completed", 1));
    assert_eq!(detail.jobs, [first.jid.to_string()]);

    let done = client.act(ActionVerb::Retry, &on(created.id)).await.unwrap().actions.remove(0);
    assert_eq!(done.minions["web1"].outcome, "queued");
    let second = minion.next_job().await;
    assert_ne!(second.jid, first.jid);
    let run = client.run_of(created.id, "web1").await.unwrap();
    assert_eq!((run.run.status.attempt, run.attempts.len()), (2, 1));
    assert_eq!(run.attempts[0].jid, Some(first.jid.to_string()));
    house.close().await;
}

#[tokio::test]
async fn what_has_ended_cannot_be_cancelled_and_the_answer_says_so() {
    let (house, mut minion) = house_with_a_minion().await;
    let client = &house.client;
    let id = client.create_action(&ping("web1")).await.unwrap().id;
    let job = minion.next_job().await;
    minion.return_for(&job, true).await;
    ended(&house, id).await;
    let named = VerbRequest { minions: Some(vec!["web1".into(), "web2".into()]), ..on(id) };
    let done = client.act(ActionVerb::Cancel, &named).await.unwrap().actions.remove(0);
    assert!(done.minions.values().all(|outcome| !outcome.done), "{done:?}");
    assert_eq!(done.minions["web1"].outcome, "has ended");
    house.close().await;
}

#[tokio::test]
async fn metrics_are_what_prometheus_reads() {
    let house = House::open().await;
    let text = house.client.metrics().await.unwrap();
    assert!(text.lines().any(|line| line.starts_with("# TYPE saltern_")), "{text}");
    house.close().await;
}
