//! One minion's trouble is its own: those beside it are served as if it were not there.

use crate::frames::open;
use crate::house::House;
use saltern_core::value::Value;
use saltern_testkit::fake_minion::{FakeMinion, Forgery, PATIENCE, key_named};
use saltern_wire::zmtp::command::{Command, SocketType};
use saltern_wire::zmtp::frame;

#[tokio::test]
async fn a_subscriber_that_does_not_read_delays_no_other() {
    let house = House::open().await;
    let mut stalled = open(house.publications, SocketType::Sub).await;
    stalled.queue(Command::Subscribe(bytes::Bytes::new()).encode());
    stalled.flush().await.unwrap();
    let mut minion = FakeMinion::accepted(house.requests, "a").await;
    minion.subscribe().await;
    house.subscribers(2).await;
    // Far more than fits into the buffers of a connection.
    let payload = "x".repeat(256 << 10);
    for _ in 0..100 {
        let jid = house.run(&["a"], "test.echo", vec![payload.as_str().into()]).await;
        assert_eq!(minion.next_job().await.jid, jid);
    }
    drop(stalled);
}

#[tokio::test]
async fn a_requester_that_does_not_read_its_answers_delays_no_other() {
    let house = House::furnished(vec![("auto_accept".into(), true.into())], |dir| {
        std::fs::write(dir.join("files/big"), vec![7; 1 << 20]).unwrap();
    })
    .await;
    let greedy = FakeMinion::accepted(house.requests, "greedy").await;
    let mut stalled = open(house.requests, SocketType::Dealer).await;
    for _ in 0..64 {
        let wanted = [("path", Value::from("big")), ("saltenv", "base".into()), ("loc", 0.into())];
        let request = greedy.sealed("_serve_file", wanted, &Forgery::default());
        stalled.queue(frame::encode_message(&[b"", &request]));
    }
    stalled.flush().await.unwrap();
    house.serves().await;
    greedy.request("_file_envs", ()).await;
    drop(stalled);
}

#[tokio::test]
async fn a_request_that_waits_delays_no_other() {
    let peer = Value::map([(".*", Value::list([".*"]))]);
    let house = House::with([("auto_accept", true.into()), ("peer", peer)]).await;
    let waiting = FakeMinion::accepted(house.requests, "waiting").await;
    // Nobody will return it: the answer comes when its time is over, long after the others have theirs.
    let fields = [("tgt", Value::from("waiting")), ("fun", "test.ping".into()), ("tmo", 40.into())];
    let request = waiting.sealed("minion_publish", fields, &Forgery::default());
    let mut answer = Box::pin(waiting.try_raw_request(request, PATIENCE));
    let served = async {
        let other = FakeMinion::accepted(house.requests, "waiting").await;
        other.request("_file_envs", ()).await;
        house.serves().await;
    };
    tokio::select! {
        biased;
        answered = &mut answer => panic!("answered first: {answered:?}"),
        () = served => {}
    }
}

#[tokio::test]
async fn half_a_return_of_many_megabytes_delays_no_other() {
    let house = House::open().await;
    let mut slow = Vec::new();
    for _ in 0..8 {
        let mut connection = open(house.requests, SocketType::Req).await;
        let whole = frame::encode_message(&[b"", &vec![7; 30 << 20]]);
        connection.queue(whole.slice(..whole.len() / 2));
        connection.flush().await.unwrap();
        slow.push(connection);
    }
    house.serves().await;
}

#[tokio::test]
async fn a_crowd_that_signs_in_with_rubbish_does_not_keep_a_minion_out() {
    let house = House::open().await;
    let mut crowd = Vec::new();
    for number in 0..200 {
        let stranger = FakeMinion::connect_with(house.requests, "stranger", key_named("new")).await;
        crowd.push(tokio::spawn(async move {
            let mut load = stranger.auth_load();
            load.insert("id", format!("../{number}"));
            stranger.auth_with(load, None).await.unwrap();
        }));
    }
    house.serves().await;
    for stranger in crowd {
        stranger.await.unwrap();
    }
}
