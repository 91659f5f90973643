//! Actions: what was asked for reads back, and is found again in lists.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{
    ALL, action, all_audit, at, audit, claim, jid, minion, queued, returned, run, stored, transition, verb, work,
};
use saltern_core::action::{Offline, Policy};
use saltern_core::ids::ActionId;
use saltern_core::run::{Input, RunState, WaitingFor};
use saltern_store::{Action, ActionFilter, ActionPage, Counts, Error, NewAction, NewRun, NewWork, Paused, Store};

on_both_databases! {
    an_action_reads_back_as_it_was_stored,
    an_action_without_runs_has_ended,
    what_is_still_queued_has_no_job,
    a_run_that_cannot_begin_so_is_refused,
    actions_come_newest_first_in_pages,
    lists_can_be_narrowed,
    archived_actions_are_listed_apart,
    housekeeping_is_listed_only_on_demand,
    open_actions_come_oldest_first_in_pages,
    overdue_actions_come_in_the_order_of_their_deadlines,
    a_paused_action_says_who_and_why,
    a_paused_action_is_not_claimed_until_it_is_resumed,
    runs_that_wait_for_a_paused_action_are_due_when_it_is_resumed,
    what_has_ended_cannot_be_paused,
    a_rescheduled_action_moves_what_was_never_sent,
    archiving_is_undone_by_archiving_nothing,
    what_changes_nothing_is_not_audited,
}

async fn an_action_reads_back_as_it_was_stored(database: Database) {
    let store = database.open().await;
    assert_eq!(store.action(ActionId(1)).await.unwrap(), None);
    let policy = Policy { offline: Offline::Hold, interactive: true, ..Policy::default() };
    let new = NewAction {
        policy,
        metadata: Some(r#"{"ticket":"’7’"}"#.into()),
        ret: "postgres".into(),
        late: true,
        internal: true,
        ..action(1)
    };
    let id = store.create(NewWork { action: new.clone(), ..work(1, &["web1", "web2"]) }).await.unwrap();
    let counts = Counts { total: 2, running: 2, ..Counts::default() };
    let whole = Action { id, new, jid: Some(jid(1)), paused: None, archived: None, ended: None, counts };
    assert_eq!(store.action(id).await.unwrap(), Some(whole));
}

async fn an_action_without_runs_has_ended(database: Database) {
    let store = database.open().await;
    let id = store.create(work(1, &[])).await.unwrap();
    let empty = stored(&store, id).await;
    assert_eq!((empty.ended, empty.counts), (Some(at(1)), Counts::default()));
    assert_eq!(ids(store.open_actions(ActionId(0), ALL).await.unwrap()), [0; 0]);
}

async fn what_is_still_queued_has_no_job(database: Database) {
    let store = database.open().await;
    let id = store.create(queued(1, &["web1"])).await.unwrap();
    let waiting = run(&store, id).await;
    assert_eq!((waiting.state, waiting.waiting_for), (RunState::Queued, Some(WaitingFor::Due)));
    assert_eq!((waiting.due, waiting.attempt, waiting.deliveries), (Some(at(1)), 0, 0));
    assert_eq!((waiting.jid, waiting.sent), (None, None));
    assert_eq!(stored(&store, id).await.jid, None);
    assert!(store.jobs_of(id).await.unwrap().is_empty());
}

async fn a_run_that_cannot_begin_so_is_refused(database: Database) {
    let store = database.open().await;
    let began = |state, new: NewWork| {
        let runs = new.runs.into_iter().map(|run| NewRun { state, ..run }).collect();
        NewWork { runs, job: new.job, action: new.action, events: new.events, audit: new.audit, fire: new.fire }
    };
    let sent_by_nobody = began(RunState::Sent, queued(1, &["web1"]));
    for new in [sent_by_nobody, began(RunState::Completed, work(2, &["web1"]))] {
        let refused = store.create(new).await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    }
    assert_eq!(store.action(ActionId(1)).await.unwrap(), None);
}

async fn actions_come_newest_first_in_pages(database: Database) {
    let store = database.open().await;
    for n in 1..=5 {
        store.create(work(n, &["web1"])).await.unwrap();
    }
    let page = |before| ActionPage { before, limit: 2, ..ActionPage::default() };
    assert_eq!(listed(&store, page(None)).await, [5, 4]);
    assert_eq!(listed(&store, page(Some(ActionId(4)))).await, [3, 2]);
    assert_eq!(listed(&store, page(Some(ActionId(2)))).await, [1]);
    assert_eq!(listed(&store, page(Some(ActionId(1)))).await, [0; 0]);
}

async fn lists_can_be_narrowed(database: Database) {
    let store = database.open().await;
    // 1 open, 2 completed, 3 failed, 4 failed and open, 5 cancelled by another user.
    for (n, runs) in [(1, &["web1"][..]), (2, &["web2"]), (3, &["web1"]), (4, &["web1", "web2"])] {
        store.create(work(n, runs)).await.unwrap();
    }
    let theirs = NewAction { initiator: "eve".into(), ..action(5) };
    store.create(NewWork { action: theirs, ..queued(5, &["web3"]) }).await.unwrap();
    store.record_return(returned(2, Some(ActionId(2)), "web2")).await.unwrap();
    for n in [3, 4] {
        store.transit(vec![transition(9, ActionId(n), "web1", Input::Fail)]).await.unwrap();
    }
    store.apply(verb(9, ActionId(5), Input::Cancel)).await.unwrap();

    let all = || ActionPage { limit: ALL, ..ActionPage::default() };
    let filtered = |filter| ActionPage { filter, ..all() };
    assert_eq!(listed(&store, all()).await, [5, 4, 3, 2, 1]);
    assert_eq!(listed(&store, filtered(ActionFilter::Open)).await, [4, 1]);
    assert_eq!(listed(&store, filtered(ActionFilter::Failed)).await, [4, 3]);
    assert_eq!(listed(&store, filtered(ActionFilter::Completed)).await, [5, 2], "ended without a failure");

    let of = |id: &str| ActionPage { minion: Some(minion(id)), ..all() };
    let by = |who: &str| ActionPage { initiator: Some(who.into()), ..all() };
    assert_eq!(listed(&store, of("web1")).await, [4, 3, 1]);
    assert_eq!(listed(&store, of("web9")).await, [0; 0]);
    assert_eq!(listed(&store, by("eve")).await, [5]);
    assert_eq!(listed(&store, ActionPage { limit: 1, before: Some(ActionId(4)), ..of("web1") }).await, [3]);
    let both = ActionPage { filter: ActionFilter::Open, initiator: Some("root".into()), ..of("web2") };
    assert_eq!(listed(&store, both).await, [4]);
}

async fn archived_actions_are_listed_apart(database: Database) {
    let store = database.open().await;
    for n in 1..=4 {
        store.create(work(n, &["web1"])).await.unwrap();
    }
    store.transit(vec![transition(9, ActionId(2), "web1", Input::Fail)]).await.unwrap();
    for n in [2, 3] {
        assert!(store.archive(ActionId(n), Some(at(10)), None).await.unwrap());
    }
    let page = |archived, filter| ActionPage { archived, filter, limit: ALL, ..ActionPage::default() };
    assert_eq!(listed(&store, page(false, ActionFilter::All)).await, [4, 1]);
    assert_eq!(listed(&store, page(true, ActionFilter::All)).await, [3, 2]);
    assert_eq!(listed(&store, page(true, ActionFilter::Failed)).await, [2]);
    assert_eq!(listed(&store, page(true, ActionFilter::Open)).await, [3]);
    assert_eq!(listed(&store, page(false, ActionFilter::Failed)).await, [0; 0]);
}

async fn housekeeping_is_listed_only_on_demand(database: Database) {
    let store = database.open().await;
    store.create(work(1, &["web1"])).await.unwrap();
    let own = NewAction { internal: true, ..action(2) };
    store.create(NewWork { action: own, ..work(2, &["web1"]) }).await.unwrap();
    for filter in [ActionFilter::All, ActionFilter::Open] {
        let page = |internal| ActionPage { internal, filter, limit: ALL, ..ActionPage::default() };
        assert_eq!(listed(&store, page(false)).await, [1]);
        assert_eq!(listed(&store, page(true)).await, [2, 1]);
    }
}

async fn open_actions_come_oldest_first_in_pages(database: Database) {
    let store = database.open().await;
    for n in 1..=5 {
        let id = store.create(work(n, &["web1"])).await.unwrap();
        if n == 2 {
            store.record_return(returned(n, Some(id), "web1")).await.unwrap();
        }
    }
    let page = async |after| ids(store.open_actions(ActionId(after), 2).await.unwrap());
    assert_eq!(page(0).await, [1, 3]);
    assert_eq!(page(3).await, [4, 5]);
    assert_eq!(page(5).await, [0; 0]);
}

async fn overdue_actions_come_in_the_order_of_their_deadlines(database: Database) {
    let store = database.open().await;
    for (n, deadline) in [(1, 300), (2, 100), (3, 200), (4, 999), (5, 150)] {
        let new = NewAction { deadline: at(deadline), ..action(n) };
        store.create(NewWork { action: new, ..work(n, &["web1"]) }).await.unwrap();
    }
    store.record_return(returned(5, Some(ActionId(5)), "web1")).await.unwrap();
    assert_eq!(ids(store.overdue_actions(at(300), ALL).await.unwrap()), [2, 3, 1], "and not what has ended");
    assert_eq!(ids(store.overdue_actions(at(300), 1).await.unwrap()), [2]);
    assert_eq!(ids(store.overdue_actions(at(99), ALL).await.unwrap()), [0; 0]);
}

async fn a_paused_action_says_who_and_why(database: Database) {
    let store = database.open().await;
    let id = store.create(queued(1, &["web1"])).await.unwrap();
    assert!(store.pause(id, held(5), Some(audit("action.pause"))).await.unwrap());
    assert_eq!(stored(&store, id).await.paused, Some(held(5)));
    assert!(!store.pause(id, held(6), None).await.unwrap(), "it is held already");
    assert_eq!(stored(&store, id).await.paused, Some(held(5)));
    assert!(store.resume(id, at(7), Some(audit("action.resume"))).await.unwrap());
    assert_eq!(stored(&store, id).await.paused, None);
    assert!(!store.resume(id, at(8), None).await.unwrap());
    assert!(!store.pause(ActionId(404), held(5), None).await.unwrap());
    let entries = all_audit(&store).await;
    assert_eq!(entries, [(2, audit("action.resume")), (1, audit("action.pause"))]);
}

async fn a_paused_action_is_not_claimed_until_it_is_resumed(database: Database) {
    let store = database.open().await;
    let id = store.create(queued(1, &["web1"])).await.unwrap();
    store.pause(id, held(5), None).await.unwrap();
    assert_eq!(store.claim(claim(6, id, &["web1"])).await.unwrap(), []);
    assert!(store.job(jid(6)).await.unwrap().is_none());
    store.resume(id, at(7), None).await.unwrap();
    assert_eq!(store.claim(claim(8, id, &["web1"])).await.unwrap(), [minion("web1")]);
}

async fn runs_that_wait_for_a_paused_action_are_due_when_it_is_resumed(database: Database) {
    let store = database.open().await;
    let id = store.create(queued(1, &["a", "b", "c"])).await.unwrap();
    store.pause(id, held(5), None).await.unwrap();
    let wait = |id_of, what, until| transition(6, id, id_of, Input::Wait(what, until));
    let waits = vec![wait("a", WaitingFor::Paused, None), wait("b", WaitingFor::Slot, Some(at(500)))];
    store.transit(waits).await.unwrap();
    store.transit(vec![wait("c", WaitingFor::Paused, Some(at(900)))]).await.unwrap();
    store.resume(id, at(20), None).await.unwrap();
    let due = async |name| store.run(id, &minion(name)).await.unwrap().unwrap().due;
    assert_eq!((due("a").await, due("b").await, due("c").await), (Some(at(20)), Some(at(500)), Some(at(900))));
}

async fn what_has_ended_cannot_be_paused(database: Database) {
    let store = database.open().await;
    let id = store.create(work(1, &["web1"])).await.unwrap();
    store.record_return(returned(1, Some(id), "web1")).await.unwrap();
    assert!(!store.pause(id, held(5), None).await.unwrap());
    assert_eq!(stored(&store, id).await.paused, None);
}

async fn a_rescheduled_action_moves_what_was_never_sent(database: Database) {
    let store = database.open().await;
    let id = store.create(queued(1, &["a", "b", "c"])).await.unwrap();
    store.claim(claim(2, id, &["a", "b"])).await.unwrap();
    store.transit(vec![transition(3, id, "b", Input::Redeliver)]).await.unwrap();
    assert_eq!(store.reschedule(id, at(700), at(900), at(4), Some(audit("action.move"))).await.unwrap(), 1);
    let moved = stored(&store, id).await.new;
    assert_eq!((moved.due, moved.deadline), (at(700), at(900)));
    let due = async |name| store.run(id, &minion(name)).await.unwrap().unwrap().due;
    assert_eq!((due("a").await, due("b").await, due("c").await), (None, Some(at(3)), Some(at(700))));
    assert_eq!(store.claim(claim(5, id, &["c"])).await.unwrap(), [], "it is not due any more");
    assert_eq!(all_audit(&store).await.len(), 1);
}

async fn archiving_is_undone_by_archiving_nothing(database: Database) {
    let store = database.open().await;
    let id = store.create(work(1, &["web1"])).await.unwrap();
    assert!(store.archive(id, Some(at(5)), None).await.unwrap());
    assert!(!store.archive(id, Some(at(6)), None).await.unwrap());
    assert_eq!(stored(&store, id).await.archived, Some(at(5)));
    assert!(store.archive(id, None, None).await.unwrap());
    assert!(!store.archive(id, None, None).await.unwrap());
    assert_eq!(stored(&store, id).await.archived, None);
}

async fn what_changes_nothing_is_not_audited(database: Database) {
    let store = database.open().await;
    let id = store.create(work(1, &["web1"])).await.unwrap();
    assert!(!store.resume(id, at(5), Some(audit("action.resume"))).await.unwrap());
    assert!(!store.archive(id, None, Some(audit("action.archive"))).await.unwrap());
    assert!(!store.pause(ActionId(404), held(5), Some(audit("action.pause"))).await.unwrap());
    assert_eq!(all_audit(&store).await, []);
}

fn held(n: i64) -> Paused {
    Paused { at: at(n), by: "root".into(), why: "a look at the first ten".into() }
}

async fn listed(store: &Store, page: ActionPage) -> Vec<i64> {
    ids(store.actions(&page).await.unwrap())
}

fn ids(actions: Vec<Action>) -> Vec<i64> {
    actions.into_iter().map(|action| action.id.0).collect()
}
