//! What one minion, or many strangers, can make the server keep.

use crate::house::House;
use saltern_core::value::{Map, Value};
use saltern_server::app::KeyVerb;
use saltern_testkit::fake_minion::{FakeMinion, Job, SignIn, key_named};

async fn job_for(house: &House, minion: &mut FakeMinion) -> Job {
    minion.subscribe().await;
    house.subscribed().await;
    house.ping(&[minion.id.as_str()]).await;
    minion.next_job().await
}

#[tokio::test]
async fn only_so_many_keys_may_wait() {
    let house = House::with([("max_pending_keys", 2.into())]).await;
    let sign_in =
        |id: &'static str| async { FakeMinion::connect_with(house.requests, id, key_named("new")).await.auth().await };
    assert_eq!(sign_in("a").await, SignIn::Pending);
    assert_eq!(sign_in("b").await, SignIn::Pending);
    assert_eq!(sign_in("c").await, SignIn::Full);
    assert_eq!(house.app().keys(&crate::house::caller()).len(), 2);
    // Those who wait are not told otherwise, and a decision makes room.
    assert_eq!(sign_in("a").await, SignIn::Pending);
    house.decide(KeyVerb::Accept, "a", &[]).await;
    assert_eq!(sign_in("c").await, SignIn::Pending);
    assert_eq!(sign_in("a").await, SignIn::Accepted);
}

#[tokio::test]
async fn a_batch_of_events_is_cut_at_its_limit_and_answered() {
    let house = House::open().await;
    let minion = FakeMinion::accepted(house.requests, "a").await;
    let entry = |number: i64| Value::map([("tag", Value::from(format!("custom/{number}"))), ("data", number.into())]);
    let before = house.rows()["events"];
    let answer = minion.request("_minion_event", [("events", Value::list((0..3_000).map(entry)))]).await;
    assert_eq!(answer, Value::Nil);
    assert_eq!(house.rows()["events"], before + 1_024);
}

#[tokio::test]
async fn a_return_that_is_too_large_is_cut_with_a_marker_and_answered() {
    let house = House::with([("auto_accept", true.into()), ("max_return_size", 4_096.into())]).await;
    let mut minion = FakeMinion::accepted(house.requests, "a").await;
    let job = job_for(&house, &mut minion).await;
    let value = Value::map([("stdout", Value::from("x".repeat(3 << 20))), ("pid", 7.into())]);
    let mut fields = minion.return_fields(&job, value);
    fields.insert("metadata", Value::map([("note", "y".repeat(1 << 20))]));
    assert_eq!(minion.request("_return", fields).await, Value::Nil);
    let returned = house.app().job(&crate::house::caller(), job.jid).await.unwrap().returns.remove(0);
    assert!(returned.success);
    assert_eq!(returned.value.get("pid"), Some(&Value::Int(7)));
    let text = returned.value.get("stdout").unwrap().as_str().unwrap();
    assert!(text.contains("cut by saltern") && text.len() < 4_300, "{}", text.len());
    let note = returned.load.get("metadata").unwrap().get("note").unwrap().as_str().unwrap();
    assert!(note.contains("cut by saltern") && note.len() < 4_300, "{}", note.len());
}

#[tokio::test]
async fn an_event_that_is_too_large_is_cut_and_answered() {
    let house = House::with([("auto_accept", true.into()), ("max_return_size", 4_096.into())]).await;
    let minion = FakeMinion::accepted(house.requests, "a").await;
    let last = house.last_event().await;
    minion.event("custom", "x".repeat(3 << 20)).await;
    let told = house.events_after(last).await;
    let text = told[0].data.get("data").unwrap().as_str().unwrap();
    assert!(text.contains("cut by saltern") && text.len() < 4_300, "{}", text.len());
}

#[tokio::test]
async fn a_return_that_comes_twice_is_one_return_and_one_event() {
    let house = House::open().await;
    let mut minion = FakeMinion::accepted(house.requests, "a").await;
    let job = job_for(&house, &mut minion).await;
    let last = house.last_event().await;
    minion.return_for(&job, "first").await;
    let before = house.rows();
    minion.return_for(&job, "second").await;
    assert_eq!(house.rows(), before);
    // The action ends with its only run, and ends once.
    assert_eq!(
        house.tags_after(last).await,
        [format!("salt/job/{}/ret/a", job.jid), "saltern/action/1/ended".to_owned()]
    );
    assert_eq!(house.app().job(&crate::house::caller(), job.jid).await.unwrap().returns[0].value, Value::from("first"));
}

#[tokio::test]
async fn a_return_of_a_minions_own_gets_a_job_id() {
    let house = House::open().await;
    let minion = FakeMinion::accepted(house.requests, "a").await;
    let last = house.last_event().await;
    minion.request("_return", crate::methods::fields("_return")).await;
    let told = house.events_after(last).await;
    assert_eq!(told.len(), 1);
    let jid = told[0].jid.unwrap();
    assert_eq!(told[0].tag, format!("salt/job/{jid}/ret/a"));
    let detail = house.app().job(&crate::house::caller(), jid).await.unwrap();
    assert_eq!((detail.job.fun.as_str(), detail.job.minions.len(), detail.returns.len()), ("test.ping", 1, 1));
}

#[tokio::test]
async fn a_return_that_is_not_to_be_kept_is_an_event_and_no_more() {
    let house = House::open().await;
    let minion = FakeMinion::accepted(house.requests, "a").await;
    let before = house.rows();
    let mut fields = crate::methods::fields("_return");
    fields.insert("jid", "nocache");
    minion.request("_return", fields).await;
    let after = house.rows();
    assert_eq!(after["events"], before["events"] + 1);
    for table in ["jobs", "returns", "actions", "runs"] {
        assert_eq!(after[table], before[table], "{table}");
    }
}

#[tokio::test]
async fn returns_of_a_wrong_shape_are_answered_and_forgotten() {
    let house = House::open().await;
    let minion = FakeMinion::accepted(house.requests, "a").await;
    let before = house.rows();
    for (field, value) in [
        ("jid", Value::from("../../etc/passwd")),
        ("jid", 7.into()),
        ("jid", Value::Nil),
        ("fun", 7.into()),
        ("fun", Value::Nil),
        ("fun_args", "x".into()),
    ] {
        let mut fields = crate::methods::fields("_return");
        fields.insert(field, value);
        assert_eq!(minion.request("_return", fields).await, Value::Nil, "{field}");
    }
    assert_eq!(minion.request("_return", Map::new()).await, Value::Nil);
    assert_eq!(house.rows(), before);
}

#[tokio::test]
async fn a_return_that_speaks_of_a_missing_executor_starts_no_endless_errand() {
    let house = House::with([("auto_accept", true.into()), ("job_ack", true.into())]).await;
    let mut minion = FakeMinion::accepted(house.requests, "a").await;
    let job = job_for(&house, &mut minion).await;
    let before = house.rows()["jobs"];
    minion.return_for(&job, "ERROR executing 'test.ping': Executor 'saltern_ack' is not available").await;
    minion.event("custom", "x").await;
    assert_eq!(house.rows()["jobs"], before);
}
