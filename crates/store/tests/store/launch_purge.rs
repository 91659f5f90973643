//! Launches that ended long ago go with all that is theirs, and with nothing else.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{ALL, at, jid, launch, launched, minion, moving, returned, transition, work};
use saltern_core::ids::{ActionId, LaunchId};
use saltern_core::run::Input;
use saltern_store::{MinionMove, MinionState, NewAction, NewLaunch, NewWork, Store};

on_both_databases! {
    an_old_launch_goes_with_all_that_is_its,
    a_plan_stays_while_any_minion_has_it,
    a_launch_goes_a_few_rows_at_a_time,
    what_is_young_or_open_stays,
    the_steps_of_a_launch_that_goes_on_stay,
    a_plan_that_comes_into_use_is_not_removed_by_another_server,
}

/// A launch of two steps on these minions that is over at instant `n + 10`.
async fn over(store: &Store, n: i64, new: NewLaunch) -> (LaunchId, Vec<ActionId>) {
    let names: Vec<_> = new.minions.iter().map(|one| one.minion.clone()).collect();
    let (id, actions) = store.create_launch(new).await.unwrap();
    let end = |name: &str| MinionMove {
        transitions: actions.iter().map(|step| transition(n + 10, *step, name, Input::Prerequisite)).collect(),
        ..moving(n + 10, id, name, MinionState::Waiting, MinionState::Ended)
    };
    let moves = names.iter().map(|name| end(name.as_str())).collect();
    assert!(store.move_minions(moves).await.unwrap().into_iter().all(|moved| moved));
    (id, actions)
}

async fn an_old_launch_goes_with_all_that_is_its(database: Database) {
    let store = database.open().await;
    let (id, actions) = over(&store, 1, launch(1, 2, &["a", "b"])).await;
    let plain = work(50, &["a"]);
    let internal = NewAction { launch: Some(id), internal: true, ..plain.action };
    let carrier = store.create(NewWork { action: internal, ..plain }).await.unwrap();
    store.record_return(returned(50, Some(carrier), "a")).await.unwrap();
    let other = store.create(work(60, &["a"])).await.unwrap();

    while store.purge_launches(at(100), ALL).await.unwrap() > 0 {}
    assert_eq!(store.launch(id).await.unwrap(), None);
    assert_eq!(store.launch_minions(id, None, "", ALL).await.unwrap(), []);
    assert_eq!(store.plan("plan1").await.unwrap(), None);
    for action in [actions[0], actions[1], carrier] {
        assert_eq!(store.action(action).await.unwrap(), None);
        assert_eq!(store.runs(action, "", ALL).await.unwrap(), []);
    }
    assert_eq!(store.job(jid(101)).await.unwrap(), None);
    assert_eq!(store.returns(jid(50), "", ALL).await.unwrap(), []);
    assert!(store.action(other).await.unwrap().is_some(), "nothing of others");
}

async fn a_plan_stays_while_any_minion_has_it(database: Database) {
    let store = database.open().await;
    over(&store, 1, launch(1, 1, &["a"])).await;
    let mut same = launch(2, 1, &["a", "b"]);
    same.plans.push(("plan1".into(), "body of 1".into()));
    same.minions[1].plan = "plan1".into();
    let (other, _) = store.create_launch(same).await.unwrap();
    while store.purge_launches(at(100), ALL).await.unwrap() > 0 {}
    assert!(store.plan("plan1").await.unwrap().is_some() && store.plan("plan2").await.unwrap().is_some());
    store.cancel_launch(other, at(20), "ann".into(), false, None, None).await.unwrap();
    while store.purge_launches(at(100), ALL).await.unwrap() > 0 {}
    assert!(store.plan("plan1").await.unwrap().is_none() && store.plan("plan2").await.unwrap().is_none());
}

async fn a_launch_goes_a_few_rows_at_a_time(database: Database) {
    let store = database.open().await;
    let names: Vec<String> = (0..7).map(|n| format!("m{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (id, _) = over(&store, 1, launch(1, 2, &names)).await;
    let mut removed = Vec::new();
    loop {
        match store.purge_launches(at(100), 3).await.unwrap() {
            0 => break,
            rows => removed.push(rows),
        }
    }
    assert!(removed.iter().all(|rows| *rows <= 3), "{removed:?}");
    assert!(removed.len() > 7, "7 minions, 14 runs, 2 jobs, 2 actions: {removed:?}");
    assert_eq!((store.launch(id).await.unwrap(), store.plan("plan1").await.unwrap()), (None, None));
    assert_eq!(store.launch_actions(id).await.unwrap(), []);
}

async fn what_is_young_or_open_stays(database: Database) {
    let store = database.open().await;
    let (young, _) = over(&store, 90, launch(1, 1, &["a"])).await;
    let (open, _) = store.create_launch(launch(2, 1, &["a"])).await.unwrap();
    assert_eq!(store.purge_launches(at(100), ALL).await.unwrap(), 0);
    launched(&store, young).await;
    launched(&store, open).await;
}

async fn the_steps_of_a_launch_that_goes_on_stay(database: Database) {
    let store = database.open().await;
    let (id, actions) = store.create_launch(launch(1, 2, &["a"])).await.unwrap();
    store.transit(vec![transition(5, actions[0], "a", Input::Prerequisite)]).await.unwrap();
    assert!(store.action(actions[0]).await.unwrap().unwrap().ended.is_some());
    assert_eq!(store.finished_actions(at(100), ALL).await.unwrap(), []);

    let plain = work(50, &[]);
    let internal = NewAction { launch: Some(id), internal: true, ..plain.action };
    let carrier = store.create(NewWork { action: internal, job: None, ..plain }).await.unwrap();
    assert_eq!(store.finished_housekeeping(at(100), ALL).await.unwrap(), []);

    store.cancel_launch(id, at(60), "ann".into(), false, None, None).await.unwrap();
    assert_eq!(store.finished_actions(at(100), ALL).await.unwrap(), [actions[0], carrier, actions[1]]);
    assert_eq!(store.finished_housekeeping(at(100), ALL).await.unwrap(), [carrier]);
}

async fn a_plan_that_comes_into_use_is_not_removed_by_another_server(database: Database) {
    let stores = [database.open().await, database.open().await];
    for round in 1..30 {
        over(&stores[0], round, NewLaunch { plans: shared(), ..with_shared(round) }).await;
        let next = NewLaunch { plans: shared(), ..with_shared(1000 + round) };
        let (made, purged) = tokio::join!(stores[0].create_launch(next), stores[1].purge_launches(at(500), 1));
        let (id, _) = made.unwrap();
        purged.unwrap();
        let plan = stores[0].launch_minion(id, &minion("a")).await.unwrap().unwrap().plan;
        assert!(stores[0].plan(&plan).await.unwrap().is_some(), "round {round}");
        stores[0].cancel_launch(id, at(400), "ann".into(), false, None, None).await.unwrap();
        while stores[0].purge_launches(at(500), ALL).await.unwrap() > 0 {}
        assert_eq!(stores[0].plan(&plan).await.unwrap(), None);
    }
}

fn shared() -> Vec<(String, String)> {
    vec![("shared".into(), "body".into())]
}

fn with_shared(n: i64) -> NewLaunch {
    let mut new = launch(n, 1, &["a"]);
    new.minions[0].plan = "shared".into();
    new
}
