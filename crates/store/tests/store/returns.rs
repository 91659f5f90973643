//! Returns: each stored once, with its run, its event and, for what a minion did by itself, its job.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{
    ALL, BAD, GOOD, ack, action, all_tags, at, body, claim, event, every_job, jid, minion, minions, queued, returned,
    run, stored, transition, under, verb, work,
};
use saltern_core::action::{Policy, Retry, RetryWhen};
use saltern_core::run::{Input, Outcome, Reason, RunState, WaitingFor};
use saltern_store::{Attempt, Counts, NewReturn, Recorded, Return};
use std::sync::Arc;

on_both_databases! {
    a_return_reads_back_as_it_was_stored,
    a_good_return_completes_its_run,
    a_bad_return_fails_its_run_and_says_why,
    a_return_ends_a_run_that_was_never_acknowledged,
    a_duplicate_is_absorbed,
    of_many_duplicates_at_once_one_is_news,
    a_return_logs_its_own_event_first,
    a_standalone_return_brings_its_job,
    a_duplicate_of_a_standalone_return_makes_no_second_job,
    two_minions_that_make_up_the_same_job_id_are_both_kept,
    a_return_that_does_not_settle_picks_the_run_up,
    a_return_for_an_older_attempt_is_kept_and_marked_late,
    a_return_after_a_cancel_leaves_it_cancelled_and_late,
    a_return_that_does_not_settle_and_does_not_count_is_late_too,
    a_run_that_was_given_up_yields_to_its_return,
    a_bad_return_of_a_repeatable_action_queues_another_attempt,
    a_return_of_an_action_that_is_gone_is_kept,
    returns_come_in_pages_by_minion,
}

async fn a_return_reads_back_as_it_was_stored(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &["web1"])).await.unwrap();
    let bytes = vec![0x82, 0, 0xff, 0xfe];
    let new = NewReturn {
        verdict: BAD,
        body: Arc::new(saltern_store::Body { encoding: 7, bytes }),
        fun: "cmd.run,test.ping".into(),
        ..returned(1, Some(action), "web1")
    };
    assert!(store.record_return(new.clone()).await.unwrap().news);
    let stored = Return {
        jid: jid(1),
        minion: minion("web1"),
        at: at(21),
        fun: new.fun,
        retcode: 3,
        success: false,
        body: (*new.body).clone(),
    };
    assert_eq!(store.returns(jid(1), "", ALL).await.unwrap(), [stored]);
}

async fn a_good_return_completes_its_run(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &["web1"])).await.unwrap();
    store.record_return(returned(1, Some(action), "web1")).await.unwrap();
    let ended = run(&store, action).await;
    assert_eq!((ended.state, ended.reason), (RunState::Completed, None));
    assert_eq!((ended.ended, ended.retcode), (Some(at(21)), Some(0)));
}

async fn a_bad_return_fails_its_run_and_says_why(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &["web1"])).await.unwrap();
    let bad = NewReturn { verdict: BAD, ..returned(1, Some(action), "web1") };
    store.record_return(bad).await.unwrap();
    let ended = run(&store, action).await;
    assert_eq!((ended.state, ended.reason), (RunState::Failed, Some(Reason::ReturnedError)));
    assert_eq!((ended.ended, ended.retcode), (Some(at(21)), Some(3)));
}

async fn a_return_ends_a_run_that_was_never_acknowledged(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &["web1"])).await.unwrap();
    assert_eq!(run(&store, action).await.state, RunState::Sent);
    store.record_return(returned(1, Some(action), "web1")).await.unwrap();
    let ended = run(&store, action).await;
    assert_eq!((ended.state, ended.picked_up), (RunState::Completed, None));
}

async fn a_duplicate_is_absorbed(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &["web1"])).await.unwrap();
    assert!(store.record_return(returned(1, Some(action), "web1")).await.unwrap().news);
    let (ended, kept) = (run(&store, action).await, store.returns(jid(1), "", ALL).await.unwrap());

    let again = NewReturn {
        at: at(500),
        verdict: BAD,
        body: Arc::new(body("another")),
        events: vec![event("more")],
        ..returned(1, Some(action), "web1")
    };
    assert_eq!(store.record_return(again).await.unwrap(), Recorded { news: false, outcome: None });
    assert_eq!(run(&store, action).await, ended);
    assert_eq!(store.returns(jid(1), "", ALL).await.unwrap(), kept);
    assert_eq!(all_tags(&store).await, ["job/1/new", "job/1/ret/web1"]);
}

async fn of_many_duplicates_at_once_one_is_news(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &["web1"])).await.unwrap();
    let sent = (0..40).map(|_| store.record_return(returned(1, Some(action), "web1")));
    let news = futures_util::future::try_join_all(sent).await.unwrap();
    assert_eq!(news.iter().filter(|recorded| recorded.news).count(), 1);
    assert_eq!(all_tags(&store).await, ["job/1/new", "job/1/ret/web1"]);
}

async fn a_return_logs_its_own_event_first(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &["web1"])).await.unwrap();
    let new = NewReturn { events: vec![event("then"), event("last")], ..returned(1, Some(action), "web1") };
    store.record_return(new).await.unwrap();
    assert_eq!(all_tags(&store).await, ["job/1/new", "job/1/ret/web1", "then", "last"]);
}

async fn a_standalone_return_brings_its_job(database: Database) {
    let store = database.open().await;
    let new = NewReturn { standalone: Some(Box::new(action(1))), ..returned(1, None, "web1") };
    assert!(store.record_return(new).await.unwrap().news);
    let stored = store.job(jid(1)).await.unwrap().unwrap();
    assert_eq!((stored.minions, stored.created), (minions(&["web1"]), at(1)));
    let action = store.action(stored.action).await.unwrap().unwrap();
    assert_eq!((action.jid, action.ended, action.counts), (Some(jid(1)), Some(at(21)), Counts::default()));
    assert_eq!(
        store.runs(stored.action, "", ALL).await.unwrap(),
        [],
        "nobody asked for it, so there is nothing to run"
    );
    assert_eq!(store.returns(jid(1), "", ALL).await.unwrap().len(), 1);
    assert_eq!(all_tags(&store).await, ["job/1/ret/web1"]);
}

async fn a_duplicate_of_a_standalone_return_makes_no_second_job(database: Database) {
    let store = database.open().await;
    let new = NewReturn { standalone: Some(Box::new(action(1))), ..returned(1, None, "web1") };
    assert_eq!(new.verdict, GOOD);
    assert!(store.record_return(new.clone()).await.unwrap().news);
    assert!(!store.record_return(new).await.unwrap().news);
    assert_eq!(store.jobs(&every_job()).await.unwrap().len(), 1);
    assert_eq!(all_tags(&store).await.len(), 1);
}

async fn two_minions_that_make_up_the_same_job_id_are_both_kept(database: Database) {
    let store = database.open().await;
    let sent = ["web1", "web2", "web3"]
        .map(|id| store.record_return(NewReturn { standalone: Some(Box::new(action(1))), ..returned(1, None, id) }));
    for recorded in futures_util::future::try_join_all(sent).await.unwrap() {
        assert!(recorded.news);
    }
    assert_eq!(store.jobs(&every_job()).await.unwrap().len(), 1);
    assert_eq!(store.returns(jid(1), "", ALL).await.unwrap().len(), 3);
}

async fn a_return_that_does_not_settle_picks_the_run_up(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &["web1"])).await.unwrap();
    let accepted = NewReturn { settles: false, ..returned(1, Some(action), "web1") };
    let recorded = store.record_return(accepted).await.unwrap();
    assert!(matches!(recorded.outcome, Some(Outcome::Change(_))), "{recorded:?}");
    let now = run(&store, action).await;
    assert_eq!((now.state, now.picked_up, now.ended), (RunState::PickedUp, Some(at(21)), None));
    assert_eq!((now.retcode, now.late), (Some(0), false));

    let settled = transition(50, action, "web1", Input::Settled(true));
    store.transit(vec![settled]).await.unwrap();
    let ended = run(&store, action).await;
    assert_eq!((ended.state, ended.ended, ended.retcode), (RunState::Completed, Some(at(50)), Some(0)));
}

async fn a_return_for_an_older_attempt_is_kept_and_marked_late(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &["web1"])).await.unwrap();
    store.transit(vec![transition(5, action, "web1", Input::Fail)]).await.unwrap();
    store.apply(verb(6, action, Input::Retry)).await.unwrap();
    store.claim(claim(7, action, &["web1"])).await.unwrap();

    let recorded = store.record_return(returned(1, Some(action), "web1")).await.unwrap();
    assert_eq!(recorded, Recorded { news: true, outcome: Some(Outcome::Late) });
    let now = run(&store, action).await;
    assert_eq!((now.state, now.jid, now.retcode, now.late), (RunState::Sent, Some(jid(7)), None, true));
    assert_eq!(store.returns(jid(1), "", ALL).await.unwrap().len(), 1);
}

async fn a_return_after_a_cancel_leaves_it_cancelled_and_late(database: Database) {
    let store = database.open().await;
    let action = store.create(queued(1, &["web1"])).await.unwrap();
    store.apply(verb(2, action, Input::Cancel)).await.unwrap();
    let recorded = store.record_return(returned(1, Some(action), "web1")).await.unwrap();
    assert_eq!(recorded.outcome, Some(Outcome::Late));
    let now = run(&store, action).await;
    assert_eq!((now.state, now.reason, now.late), (RunState::Cancelled, Some(Reason::Cancelled), true));
}

async fn a_return_that_does_not_settle_and_does_not_count_is_late_too(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &["web1"])).await.unwrap();
    store.transit(vec![transition(5, action, "web1", Input::Fail)]).await.unwrap();
    let accepted = NewReturn { settles: false, ..returned(1, Some(action), "web1") };
    store.record_return(accepted).await.unwrap();
    let now = run(&store, action).await;
    assert_eq!((now.state, now.late), (RunState::Failed, true));
}

async fn a_run_that_was_given_up_yields_to_its_return(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &["web1"])).await.unwrap();
    store.transit(vec![transition(5, action, "web1", Input::Deadline)]).await.unwrap();
    assert_eq!(run(&store, action).await.reason, Some(Reason::NotDelivered));
    let before = stored(&store, action).await;
    assert_eq!((before.counts.failed, before.counts.unreachable, before.ended), (1, 1, Some(at(5))));

    store.record_return(returned(1, Some(action), "web1")).await.unwrap();
    let now = run(&store, action).await;
    assert_eq!((now.state, now.reason, now.retcode, now.late), (RunState::Completed, None, Some(0), false));
    let after = stored(&store, action).await;
    assert_eq!(after.counts, Counts { total: 1, completed: 1, ..Counts::default() });
    assert_eq!(after.ended, before.ended, "it was over since then");
}

async fn a_bad_return_of_a_repeatable_action_queues_another_attempt(database: Database) {
    let store = database.open().await;
    let retry = Retry { when: RetryWhen::Always, ..Retry::default() };
    let policy = Policy { retry, ..Policy::default() };
    let action = store.create(under(policy, work(1, &["web1"]))).await.unwrap();
    store.record_ack(ack(1, action, "web1")).await.unwrap();
    store.record_return(NewReturn { verdict: BAD, ..returned(1, Some(action), "web1") }).await.unwrap();

    let now = run(&store, action).await;
    assert_eq!((now.state, now.waiting_for), (RunState::Queued, Some(WaitingFor::Backoff)));
    assert_eq!(now.due, Some(at(21).plus(retry.pause_after(1))));
    assert_eq!((now.sent, now.picked_up, now.ended, now.retcode, now.message), (None, None, None, None, None));
    let first = Attempt {
        number: 1,
        jid: Some(jid(1)),
        sent: Some(at(1)),
        picked_up: Some(at(11)),
        ended: Some(at(21)),
        reason: Some(Reason::ReturnedError),
        retcode: Some(3),
        message: None,
    };
    assert_eq!(store.attempts(action, &minion("web1")).await.unwrap(), [first]);
    assert_eq!(stored(&store, action).await.counts, Counts { total: 1, queued: 1, ..Counts::default() });
}

async fn a_return_of_an_action_that_is_gone_is_kept(database: Database) {
    let store = database.open().await;
    let recorded = store.record_return(returned(1, Some(saltern_core::ids::ActionId(404)), "web1")).await.unwrap();
    assert!(recorded.news);
    assert_eq!(store.returns(jid(1), "", ALL).await.unwrap().len(), 1);
}

async fn returns_come_in_pages_by_minion(database: Database) {
    let store = database.open().await;
    let action = store.create(work(1, &["d", "b", "a", "E", "c"])).await.unwrap();
    for id in ["c", "E", "a", "d", "b"] {
        store.record_return(returned(1, Some(action), id)).await.unwrap();
    }
    let page = async |after| {
        let returns = store.returns(jid(1), after, 2).await.unwrap();
        returns.into_iter().map(|one| one.minion).collect::<Vec<_>>()
    };
    assert_eq!(page("").await, minions(&["E", "a"]));
    assert_eq!(page("a").await, minions(&["b", "c"]));
    assert_eq!(page("c").await, minions(&["d"]));
    assert_eq!(page("d").await, []);
}
