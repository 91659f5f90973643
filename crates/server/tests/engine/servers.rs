//! Two servers on one database: each run has one sender, and what one leaves behind the other finishes.

use crate::house::House;
use crate::ward::{Hands, LONG, minion, ping};
use saltern_core::action::{Offline, Policy};
use saltern_core::run::RunState;
use saltern_core::value::Value;
use saltern_testkit::{postgres, wait};

/// Two servers that share a database and their keys.
async fn pair() -> Option<(House, House)> {
    let url = tokio::task::spawn_blocking(postgres::fresh_database).await.unwrap()?;
    let settings = |name: &str| {
        vec![
            ("database".to_owned(), Value::from(url.as_str())),
            ("id".to_owned(), name.into()),
            ("auto_accept".to_owned(), true.into()),
            ("job_ack".to_owned(), true.into()),
            ("ack_timeout".to_owned(), 1.into()),
        ]
    };
    let one = House::furnished(settings("one"), |_| {}).await;
    let pki = one.dir.path().join("data/pki");
    let other = House::furnished(settings("other"), |dir| {
        for entry in std::fs::read_dir(&pki).unwrap() {
            let path = entry.unwrap().path();
            std::fs::copy(&path, dir.join("data/pki").join(path.file_name().unwrap())).unwrap();
        }
    });
    let other = other.await;
    Some((one, other))
}

/// Waits until a server knows a minion, wherever it was accepted.
async fn knows(house: &House, id: &str) {
    wait::until("the key to be known", LONG, || async { !house.keys_of(id).is_empty() }).await;
}

#[tokio::test]
async fn scenario_29_each_minion_is_sent_its_run_once_by_the_server_it_is_connected_to() {
    let Some((one, other)) = pair().await else { return };
    let (mut a, mut b) = (minion(&one, "a").await, minion(&other, "b").await);
    knows(&one, "b").await;
    let action = one.submit(ping(&["a", "b"], Policy { offline: Offline::Hold, ..Policy::default() })).await.action;
    for minion in [&mut a, &mut b] {
        let job = minion.job("test.ping").await;
        minion.ack(&job).await;
        minion.return_for(&job, true).await;
    }
    for (id, house) in [("a", &other), ("b", &one)] {
        let run = house.becomes(action, id, RunState::Completed, None).await;
        assert_eq!((run.attempt, run.deliveries), (1, 1), "{id}");
    }
}

#[tokio::test]
async fn scenario_30_what_a_dead_server_had_claimed_is_finished_by_the_other() {
    let Some((mut one, other)) = pair().await else { return };
    let (mut a, mut b) = (minion(&one, "a").await, minion(&one, "b").await);
    knows(&other, "b").await;
    let hold = Policy { offline: Offline::Hold, ..Policy::default() };
    let action = one.submit(ping(&["a", "b"], hold)).await.action;
    // Both were claimed. The one that was reached has begun; the other one never saw it.
    let job = a.job("test.ping").await;
    a.ack(&job).await;
    let lost = b.job("test.ping").await;
    one.kill().await;
    // The agents find the other server; they were not restarted.
    let (mut a, mut b) = (arrives(&other, a.id.as_str()).await, arrives(&other, b.id.as_str()).await);
    a.return_for(&job, true).await;
    let again = b.job("test.ping").await;
    assert_eq!(again.jid, lost.jid);
    b.return_for(&again, true).await;
    for id in ["a", "b"] {
        other.becomes(action, id, RunState::Completed, None).await;
    }
    let _ = &mut a;
}

#[tokio::test]
async fn scenario_31_results_of_the_other_server_are_heard_of_without_any_message_between_them() {
    let Some((one, other)) = pair().await else { return };
    let mut b = minion(&other, "b").await;
    knows(&one, "b").await;
    let accepted = one.submit(ping(&["b"], Policy { offline: Offline::Hold, ..Policy::default() })).await;
    let answering = async {
        let job = b.job("test.ping").await;
        b.return_for(&job, true).await;
    };
    let mut events =
        one.app().events(&crate::house::caller(), &saltern_server::app::EventQuery::default()).await.unwrap();
    let hearing = async {
        loop {
            let event = events.next().await.unwrap().unwrap();
            if event.tag == format!("saltern/action/{}/ended", accepted.action) {
                return;
            }
        }
    };
    let both = async { tokio::join!(answering, hearing) };
    tokio::time::timeout(LONG, both).await.expect("the event of the other server arrives");
}

async fn arrives(house: &House, id: &str) -> saltern_testkit::fake_minion::FakeMinion {
    let before = house.app().status(&crate::house::caller()).await.unwrap().publish_port.connections;
    let mut minion = saltern_testkit::fake_minion::FakeMinion::accepted(house.requests, id).await;
    minion.subscribe().await;
    house.subscribers(before + 1).await;
    minion.request("_file_envs", ()).await;
    minion
}
