//! Light minions against a master of few words: what they do when things go wrong.

mod chains;

use crate::fake_master::{FakeMaster, LONG};
use crate::{Entry, Options, Patience, Swarm};
use saltern_core::value::{Map, Value};
use saltern_testkit::wait;
use std::time::Duration;

const JID: &str = "20261115200427443183";

/// A swarm that is up and listens.
async fn swarm(master: &FakeMaster, options: Options) -> Swarm {
    let count = options.count;
    let options = Options { ret_port: master.ret_port, pillar: false, ..options };
    let swarm = Swarm::start(options).await.unwrap();
    assert!(swarm.all_ready(LONG).await, "{:?}", swarm.report());
    master.subscribed(count).await;
    swarm
}

fn alone() -> Options {
    Options { count: 1, ..Options::default() }
}

/// What the swarm knows of the job under `JID` on its only minion.
fn entry(swarm: &Swarm) -> Entry {
    swarm.ledger().find(|entry| entry.jid == JID).unwrap()
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    wait::until(what, LONG, || std::future::ready(is_so())).await;
}

async fn begun(swarm: &Swarm) {
    until("the job to begin", || swarm.progress().running == 1).await;
}

#[tokio::test]
async fn a_return_without_an_answer_is_sent_again_until_there_is_one() {
    let master = FakeMaster::start().await;
    let swarm = swarm(&master, alone()).await;
    master.leave_unanswered(3);
    master.publish(JID, "test.ping", &[]);
    until("the job to be returned in vain", || master.returns(JID).len() >= 2).await;
    assert!(!entry(&swarm).confirmed);
    assert!(swarm.job_finished(JID, LONG).await);
    let report = swarm.stop().await;
    assert_eq!((master.returns(JID).len(), report.returns.repeated), (4, 3));
    assert_eq!((report.returns.sent, report.returns.confirmed, report.jobs.executions), (1, 1, 1));
    assert_eq!(report.errors.get("return_overdue"), Some(&1));
}

#[tokio::test]
async fn a_return_that_found_no_master_is_there_when_it_is_back() {
    let mut master = FakeMaster::start().await;
    let swarm = swarm(&master, Options { work: Duration::from_millis(200), ..alone() }).await;
    master.publish(JID, "cmd.run", &[]);
    begun(&swarm).await;
    until("the acknowledgement", || master.events(&format!("{JID}/ack/swarm-1")) == 1).await;
    master.stop().await;
    until("the job to end", || swarm.progress().unconfirmed == 1).await;
    assert_eq!(swarm.progress().running, 0);
    master.come_back().await;
    assert!(swarm.job_finished(JID, LONG).await, "{:?}", swarm.report());
    let found = entry(&swarm);
    assert_eq!((found.executed, found.confirmed, found.action, found.attempt), (1, true, Some(7), Some(1)));
}

#[tokio::test]
async fn a_minion_comes_back_to_a_master_that_was_away_and_knows_its_jobs() {
    let mut master = FakeMaster::start().await;
    let swarm = swarm(&master, Options { hang: 1, ..alone() }).await;
    master.publish(JID, "cmd.run", &[]);
    begun(&swarm).await;
    master.stop().await;
    until("the minion to find nobody", || swarm.report().errors.contains_key("connection_refused")).await;
    master.come_back().await;
    master.subscribed(1).await;

    master.publish(JID, "cmd.run", &[]);
    let found = master.ask("20261115200427443184", "saltutil.find_job", JID).await;
    assert_eq!(found.get("jid"), Some(&JID.into()));
    let report = swarm.stop().await;
    assert_eq!((report.jobs.repeated, report.jobs.double_executions, report.jobs.most_at_once), (1, 0, 1));
    // It was not started again, so it does not say so, and its session is as good as before.
    assert_eq!((master.events("minion/swarm-1/start"), master.sign_ins()), (1, 1));
}

#[tokio::test]
async fn a_minion_whose_session_is_refused_signs_in_again_and_its_return_is_there() {
    let mut master = FakeMaster::start().await;
    // Who takes a master that is gone for one that does not answer would come back in an hour.
    let patience = Patience { per_try: Duration::from_secs(2), tries: 1, pause: Duration::from_secs(3600) };
    let swarm = swarm(&master, Options { patience, ..alone() }).await;
    master.stop().await;
    master.forget_sessions();
    master.come_back().await;
    master.subscribed(1).await;
    assert_eq!(master.sign_ins(), 1);
    master.publish(JID, "test.ping", &[]);
    assert!(swarm.job_finished(JID, LONG).await, "{:?}", swarm.report());
    assert_eq!((master.events("minion/swarm-1/start"), master.sign_ins()), (1, 2));
}

#[tokio::test]
async fn a_minion_that_loses_its_connections_goes_on_with_its_job() {
    let master = FakeMaster::start().await;
    let swarm = swarm(&master, Options { churn: 20.0, work: Duration::from_secs(1), ..alone() }).await;
    wait::until("the job to reach the minion", LONG, || async {
        master.publish(JID, "cmd.run", &[]);
        swarm.progress().running == 1
    })
    .await;
    let before = swarm.report().churned;
    assert!(swarm.job_finished(JID, LONG).await, "{:?}", swarm.report());
    assert!(swarm.report().churned > before);
    assert_eq!((entry(&swarm).executed, master.events("minion/swarm-1/start"), master.sign_ins()), (1, 1, 1));
}

#[tokio::test]
async fn a_minion_that_hangs_acknowledges_and_says_that_it_is_at_it() {
    let master = FakeMaster::start().await;
    let swarm = swarm(&master, Options { hang: 1, fail_rate: 1.0, ..alone() }).await;
    master.publish(JID, "cmd.run", &[]);
    let found = master.ask("20261115200427443184", "saltutil.find_job", JID).await;
    assert_eq!((found.get("jid"), found.get("fun")), (Some(&JID.into()), Some(&"cmd.run".into())));
    let none = master.ask("20261115200427443185", "saltutil.find_job", "20261115200427443199").await;
    assert_eq!(none, Value::Map(Map::new()));
    assert_eq!(master.events(&format!("{JID}/ack/swarm-1")), 1);
    assert!(master.returns(JID).is_empty());
    assert!(!entry(&swarm).failed);
}

#[tokio::test]
async fn a_killed_job_ends_without_a_return() {
    let master = FakeMaster::start().await;
    let swarm = swarm(&master, Options { work: Duration::from_secs(3600), ..alone() }).await;
    master.publish(JID, "cmd.run", &[]);
    begun(&swarm).await;
    let said = master.ask("20261115200427443184", "saltutil.kill_job", JID).await;
    assert!(said.as_str().unwrap().starts_with(&format!("Signal 9 sent to job {JID} at pid ")), "{said:?}");
    let found = master.ask("20261115200427443185", "saltutil.find_job", JID).await;
    assert_eq!(found, Value::Map(Map::new()));
    assert_eq!((swarm.progress().running, swarm.report().jobs.killed), (0, 1));
    assert!(master.returns(JID).is_empty());
    assert!(entry(&swarm).killed && !entry(&swarm).confirmed);
}

#[tokio::test]
async fn a_publication_that_was_lost_is_executed_when_it_comes_again() {
    let master = FakeMaster::start().await;
    let swarm = swarm(&master, Options { drop_publications: 0.5, ..alone() }).await;
    wait::until("a delivery that is not lost", LONG, || async {
        master.publish(JID, "test.ping", &[]);
        swarm.progress().returns == 1
    })
    .await;
    until("a delivery that is", || {
        master.publish(JID, "test.ping", &[]);
        swarm.report().jobs.dropped > 0
    })
    .await;
    let report = swarm.stop().await;
    assert_eq!((report.jobs.executions, master.returns(JID).len()), (1, 1));
    assert_eq!(report.jobs.deliveries, report.jobs.dropped + report.jobs.repeated + 1);
}

#[tokio::test]
async fn a_lost_return_is_never_sent_and_the_job_no_longer_runs() {
    let master = FakeMaster::start().await;
    let swarm = swarm(&master, Options { lose_returns: 1.0, ..alone() }).await;
    master.publish(JID, "cmd.run", &[]);
    until("the return to be lost", || swarm.report().returns.lost == 1).await;
    // What it is asked about itself it answers, or nobody would know that it is there.
    let found = master.ask("20261115200427443184", "saltutil.find_job", JID).await;
    assert_eq!(found, Value::Map(Map::new()));
    assert!(master.returns(JID).is_empty());
    assert!(entry(&swarm).lost && entry(&swarm).executed == 1);
}

#[tokio::test]
async fn the_ledger_says_what_was_returned() {
    let master = FakeMaster::start().await;
    let options = Options { count: 20, fail_rate: 0.5, ..Options::default() };
    let swarm = swarm(&master, options).await;
    master.publish(JID, "cmd.run", &[]);
    assert!(swarm.job_finished(JID, LONG).await);
    swarm.halt().await;
    let returns = master.returns(JID);
    let entries: Vec<Entry> = swarm.ledger().collect();
    assert_eq!((entries.len(), returns.len()), (20, 20));
    for entry in entries {
        let sent = returns.iter().find(|load| load.get("id").and_then(Value::as_str) == Some(&entry.minion)).unwrap();
        assert_eq!(sent.get("success"), Some(&(!entry.failed).into()), "{entry:?}");
        assert!(entry.confirmed && entry.executed == 1, "{entry:?}");
    }
    let report = swarm.report();
    assert_eq!((report.jobs.runs, report.jobs.run_double_executions), (20, 0));
    assert!(swarm.ledger().any(|entry| entry.failed) && swarm.ledger().any(|entry| !entry.failed));
}
