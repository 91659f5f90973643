//! Launches as they are stored and listed: with their steps, the runs of those and the plans of minions.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{
    ALL, PATIENCE, all_tags, at, audit, audited, event, jid, launch, launched, minion, minions, moving, standing,
    stored, transition,
};
use saltern_core::ids::{ActionId, ChainId, LaunchId};
use saltern_core::run::{Input, Reason, RunState, WaitingFor};
use saltern_store::{
    Counts, Error, Launch, LaunchCounts, LaunchMinion, LaunchPage, MinionState, NewLaunch, NewStepRun,
};

on_both_databases! {
    a_launch_reads_back_as_it_was_stored,
    steps_are_actions_that_wait,
    a_minion_begins_with_its_first_chunk,
    what_cannot_be_done_has_failed_from_the_beginning,
    a_launch_without_minions_has_ended,
    a_launch_with_a_key_or_a_job_that_is_taken_leaves_nothing,
    a_minion_needs_a_plan_that_is_there,
    equal_plans_are_kept_once,
    launches_come_newest_first,
    open_launches_come_in_the_order_of_ids,
    minions_of_a_launch_come_in_pages,
    steps_are_not_sent_themselves,
    a_step_that_begins_is_its_first_attempt,
    a_key_counts_as_a_job_id_that_was_given_out,
}

async fn a_launch_reads_back_as_it_was_stored(database: Database) {
    let store = database.open().await;
    let new = NewLaunch {
        chain: Some(ChainId(7)),
        steps: r#"[{"name":"’1’"}]"#.into(),
        events: Box::new(|launch, actions| vec![event(&format!("launch/{launch}/{actions:?}"))]),
        audit: Some(audit("chain.launch")),
        ..launch(1, 2, &["a", "b"])
    };
    let (id, actions) = store.create_launch(new).await.unwrap();
    let wanted = Launch {
        id,
        key: jid(100),
        chain: Some(ChainId(7)),
        name: "launch 1".into(),
        initiator: "root".into(),
        origin: "cli".into(),
        org: "main".into(),
        created: at(1),
        due: at(1),
        deadline: at(1 + PATIENCE),
        steps: r#"[{"name":"’1’"}]"#.into(),
        approvals: Vec::new(),
        cancelled: None,
        stopped: false,
        ended: None,
        counts: LaunchCounts { total: 2, open: 2, ..LaunchCounts::default() },
        recurring: None,
    };
    assert_eq!(store.launch(id).await.unwrap().as_ref(), Some(&wanted));
    assert_eq!(store.launch_with_key(jid(100)).await.unwrap(), Some(wanted));
    assert_eq!(store.launch(LaunchId(404)).await.unwrap(), None);
    assert_eq!(all_tags(&store).await, [format!("launch/{id}/{actions:?}")]);
    assert_eq!(audited(&store).await, ["chain.launch"]);
}

async fn steps_are_actions_that_wait(database: Database) {
    let store = database.open().await;
    let (id, actions) = store.create_launch(launch(1, 2, &["a", "b"])).await.unwrap();
    let steps = store.launch_actions(id).await.unwrap();
    let known: Vec<_> = steps.iter().map(|step| (step.id, step.new.launch, step.new.step, step.jid)).collect();
    let step = |n: i64, action| (action, Some(id), Some(n), Some(jid(100 + n)));
    assert_eq!(known, [step(1, actions[0]), step(2, actions[1])]);
    assert_eq!(steps[0].counts, Counts { total: 2, queued: 2, ..Counts::default() });
    let run = store.run(actions[1], &minion("b")).await.unwrap().unwrap();
    assert_eq!((run.state, run.waiting_for, run.due), (RunState::Queued, Some(WaitingFor::EarlierStep), None));
    assert_eq!((run.attempt, run.deliveries, run.jid), (0, 0, Some(jid(102))));
    assert_eq!(store.job(jid(102)).await.unwrap().unwrap().action, actions[1]);
}

async fn a_minion_begins_with_its_first_chunk(database: Database) {
    let store = database.open().await;
    let (id, _) = store.create_launch(launch(1, 1, &["a"])).await.unwrap();
    let wanted = LaunchMinion {
        launch: id,
        minion: minion("a"),
        plan: "plan1".into(),
        chunk: 1,
        state: MinionState::Waiting,
        holds: false,
        failed: false,
        carrier: None,
        since: at(1),
        boot_id: None,
        asked: 0,
        outcome: None,
        message: None,
    };
    assert_eq!(standing(&store, id, "a").await, wanted);
    assert_eq!(store.plan("plan1").await.unwrap().as_deref(), Some("body of 1"));
    assert_eq!(store.plan("plan2").await.unwrap(), None);
}

async fn what_cannot_be_done_has_failed_from_the_beginning(database: Database) {
    let store = database.open().await;
    let mut new = launch(1, 2, &["a", "b"]);
    let refuse = |run: &mut NewStepRun| run.refused = Some((Reason::Refused, "no state engine".into()));
    new.actions[0].runs.iter_mut().for_each(refuse);
    refuse(&mut new.actions[1].runs[0]);
    let (_, actions) = store.create_launch(new).await.unwrap();
    let run = store.run(actions[0], &minion("a")).await.unwrap().unwrap();
    assert_eq!((run.state, run.reason, run.ended), (RunState::Failed, Some(Reason::Refused), Some(at(1))));
    assert_eq!((run.waiting_for, run.message.as_deref()), (None, Some("no state engine")));
    let first = stored(&store, actions[0]).await;
    assert_eq!((first.counts, first.ended), (Counts { total: 2, failed: 2, ..Counts::default() }, Some(at(1))));
    let second = stored(&store, actions[1]).await;
    assert_eq!((second.counts.failed, second.counts.queued, second.ended), (1, 1, None));
}

async fn a_launch_without_minions_has_ended(database: Database) {
    let store = database.open().await;
    let (id, _) = store.create_launch(launch(1, 1, &[])).await.unwrap();
    let empty = launched(&store, id).await;
    assert_eq!((empty.ended, empty.counts), (Some(at(1)), LaunchCounts::default()));
}

async fn a_launch_with_a_key_or_a_job_that_is_taken_leaves_nothing(database: Database) {
    let store = database.open().await;
    store.create_launch(launch(1, 1, &["a"])).await.unwrap();
    let same_key = NewLaunch { key: jid(100), ..launch(2, 1, &["b"]) };
    let mut same_job = launch(3, 2, &["c"]);
    same_job.actions[1].job.jid = jid(101);
    for taken in [same_key, same_job] {
        let refused = store.create_launch(taken).await;
        assert!(matches!(refused, Err(Error::JidTaken)), "{refused:?}");
    }
    assert_eq!(store.launches(&LaunchPage { limit: ALL, ..LaunchPage::default() }).await.unwrap().len(), 1);
    assert_eq!(store.plan("plan3").await.unwrap(), None);
    assert_eq!(store.open_runs_of(&minion("c")).await.unwrap(), []);
}

async fn a_minion_needs_a_plan_that_is_there(database: Database) {
    let store = database.open().await;
    let refused = store.create_launch(NewLaunch { plans: Vec::new(), ..launch(1, 1, &["a"]) }).await;
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
}

async fn equal_plans_are_kept_once(database: Database) {
    let store = database.open().await;
    store.create_launch(launch(1, 1, &["a"])).await.unwrap();
    let mut again = launch(2, 1, &["a"]);
    again.plans = vec![("plan1".into(), "body of 1".into()), ("plan1".into(), "body of 1".into())];
    again.minions[0].plan = "plan1".into();
    store.create_launch(again).await.unwrap();
    assert_eq!(store.plan("plan1").await.unwrap().as_deref(), Some("body of 1"));
}

async fn launches_come_newest_first(database: Database) {
    let store = database.open().await;
    for n in 1..=5_i64 {
        let chain = Some(ChainId(n % 2));
        let initiator = if n == 3 { "eve" } else { "root" }.to_owned();
        let ids: &[&str] = if n < 4 { &["a"] } else { &[] };
        store.create_launch(NewLaunch { chain, initiator, ..launch(n, 1, ids) }).await.unwrap();
    }
    let all = LaunchPage { limit: ALL, ..LaunchPage::default() };
    let page = async |page: LaunchPage| {
        store.launches(&page).await.unwrap().into_iter().map(|launch| launch.id.0).collect::<Vec<_>>()
    };
    assert_eq!(page(all.clone()).await, [5, 4, 3, 2, 1]);
    assert_eq!(page(LaunchPage { before: Some(LaunchId(4)), limit: 2, ..all.clone() }).await, [3, 2]);
    assert_eq!(page(LaunchPage { open: true, ..all.clone() }).await, [3, 2, 1]);
    assert_eq!(page(LaunchPage { chain: Some(ChainId(1)), ..all.clone() }).await, [5, 3, 1]);
    assert_eq!(page(LaunchPage { chain: Some(ChainId(1)), open: true, ..all.clone() }).await, [3, 1]);
    assert_eq!(page(LaunchPage { initiator: Some("eve".into()), ..all }).await, [3]);
}

async fn open_launches_come_in_the_order_of_ids(database: Database) {
    let store = database.open().await;
    for n in 1..=4 {
        store.create_launch(launch(n, 1, if n == 2 { &[] } else { &["a"] })).await.unwrap();
    }
    let open = async |after, limit| {
        let launches = store.open_launches(LaunchId(after), limit).await.unwrap();
        launches.into_iter().map(|launch| launch.id.0).collect::<Vec<_>>()
    };
    assert_eq!((open(0, 2).await, open(3, ALL).await), (vec![1, 3], vec![4]));
}

async fn minions_of_a_launch_come_in_pages(database: Database) {
    let store = database.open().await;
    let (id, _) = store.create_launch(launch(1, 1, &["a", "B", "c", "d"])).await.unwrap();
    let ending = moving(2, id, "c", MinionState::Waiting, MinionState::Ended);
    assert_eq!(store.move_minions(vec![ending]).await.unwrap(), [true]);
    let page = async |state, after, limit| {
        let found = store.launch_minions(id, state, after, limit).await.unwrap();
        found.into_iter().map(|one| one.minion).collect::<Vec<_>>()
    };
    assert_eq!(page(None, "", 2).await, minions(&["B", "a"]));
    assert_eq!(page(None, "a", ALL).await, minions(&["c", "d"]));
    assert_eq!(page(Some(MinionState::Waiting), "B", ALL).await, minions(&["a", "d"]));
    assert_eq!(page(Some(MinionState::Ended), "", ALL).await, minions(&["c"]));
}

async fn steps_are_not_sent_themselves(database: Database) {
    let store = database.open().await;
    let carrier = store.create(crate::fixtures::work(9, &["a"])).await.unwrap();
    let (_, actions) = store.create_launch(launch(1, 1, &["a"])).await.unwrap();
    let step = actions[0];
    let open: Vec<_> = store.open_actions(ActionId(0), ALL).await.unwrap().iter().map(|one| one.id).collect();
    assert_eq!(open, [carrier], "nobody dispatches a step");

    let offline = Input::Wait(WaitingFor::Offline, None);
    store.transit(vec![transition(3, step, "a", offline)]).await.unwrap();
    assert_eq!(store.release(minions(&["a"]), at(4)).await.unwrap(), [], "a step is not due by itself");
    store.transit(vec![transition(5, step, "a", Input::Ack(jid(101)))]).await.unwrap();
    let tracked: Vec<_> = store.runs_in_progress(None, ALL).await.unwrap().iter().map(|(action, _)| *action).collect();
    assert_eq!(tracked, [carrier], "its carrier is");
    let known: Vec<_> = store.open_runs_of(&minion("a")).await.unwrap().iter().map(|(action, _)| *action).collect();
    assert_eq!(known, [carrier, step], "but it is shown");
    let overdue: Vec<_> =
        store.overdue_actions(at(2 * PATIENCE), ALL).await.unwrap().iter().map(|one| one.id).collect();
    assert_eq!(overdue, [step, carrier], "and it has a deadline");
}

async fn a_step_that_begins_is_its_first_attempt(database: Database) {
    let store = database.open().await;
    let (_, actions) = store.create_launch(launch(1, 1, &["a"])).await.unwrap();
    store.transit(vec![transition(5, actions[0], "a", Input::Ack(jid(101)))]).await.unwrap();
    let run = store.run(actions[0], &minion("a")).await.unwrap().unwrap();
    assert_eq!((run.state, run.attempt, run.deliveries), (RunState::PickedUp, 1, 1));
}

async fn a_key_counts_as_a_job_id_that_was_given_out(database: Database) {
    let store = database.open().await;
    store.create_launch(NewLaunch { key: jid(999), ..launch(1, 1, &["a"]) }).await.unwrap();
    assert_eq!(store.newest_jid().await.unwrap(), Some(jid(999)));
}
