//! Planned instants: each is accounted for exactly once, with the work that is done then, whoever else tries.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{
    ALL, all_tags, at, audit, event, launch, moving, queued, recurring, recurs, returned, slot, work,
};
use saltern_core::ids::RecurringId;
use saltern_core::time::Timestamp;
use saltern_store::{
    Counts, Error, EventFilter, Fire, FireSlot, MinionState, NewEvent, NewLaunch, NewWork, Recurring, Store,
};

on_both_databases! {
    an_instant_is_stored_with_its_action,
    an_instant_is_stored_with_its_launch,
    who_comes_second_stores_nothing,
    who_comes_second_takes_no_neighbours_with_him,
    two_servers_fire_an_instant_once,
    instants_in_a_row_are_accounted_for_at_once,
    what_is_not_next_is_not_accounted_for,
    an_instant_that_has_a_row_is_passed_over,
    who_skips_and_who_fires_cannot_both,
    an_instant_that_is_left_out_uses_up_the_wish,
    instants_come_newest_first,
    an_end_is_told_once,
    the_end_of_a_launch_is_told,
    an_action_that_is_gone_has_ended,
    old_instants_go_a_few_at_a_time,
}

/// An action at this instant, which is followed by `next`.
fn firing(n: i64, slot: FireSlot) -> NewWork {
    NewWork { fire: Some(slot), ..work(n, &["a", "b"]) }
}

fn untold(_: &[bool]) -> Vec<NewEvent> {
    Vec::new()
}

async fn next(store: &Store, id: RecurringId) -> Option<Timestamp> {
    store.recurring(id).await.unwrap().unwrap().next
}

async fn fires(store: &Store, id: RecurringId) -> Vec<Fire> {
    store.fires(id, Timestamp(i64::MAX), ALL).await.unwrap()
}

/// What became of which instant, newest first.
async fn outcomes(store: &Store, id: RecurringId) -> Vec<(Timestamp, String)> {
    fires(store, id).await.into_iter().map(|fire| (fire.planned, fire.outcome)).collect()
}

async fn an_instant_is_stored_with_its_action(database: Database) {
    let store = database.open().await;
    let id = recurs(&store, "a").await;
    let detail = r#"{"c":"busy"}"#;
    let fired = FireSlot {
        why: "late by a minute".into(),
        skipped: 1,
        detail: detail.into(),
        late: true,
        ..slot(id, 100, Some(200))
    };
    let action = store.create(firing(150, fired)).await.unwrap();
    let wanted = Fire {
        recurring: id,
        planned: at(100),
        outcome: "fired".into(),
        why: "late by a minute".into(),
        at: at(150),
        action: Some(action),
        launch: None,
        minions: 2,
        skipped: 1,
        detail: detail.into(),
        late: true,
    };
    assert_eq!(fires(&store, id).await, [wanted]);
    let kept = store.recurring(id).await.unwrap().unwrap();
    assert_eq!((kept.next, kept.version), (Some(at(200)), 1));
}

async fn an_instant_is_stored_with_its_launch(database: Database) {
    let store = database.open().await;
    let id = recurs(&store, "a").await;
    let new = NewLaunch { recurring: Some(id), fire: Some(slot(id, 100, None)), ..launch(1, 2, &["a", "b"]) };
    let (made, _) = store.create_launch(new).await.unwrap();
    let fire = fires(&store, id).await.remove(0);
    assert_eq!((fire.action, fire.launch, fire.minions, fire.late), (None, Some(made), 2, false));
    assert_eq!(next(&store, id).await, None);
}

async fn who_comes_second_stores_nothing(database: Database) {
    let store = database.open().await;
    let id = recurs(&store, "a").await;
    store.create(firing(1, slot(id, 100, Some(200)))).await.unwrap();
    let again = store.create(firing(2, slot(id, 100, Some(200)))).await;
    assert!(matches!(again, Err(Error::FireTaken)), "{again:?}");
    let launched = NewLaunch { fire: Some(slot(id, 100, Some(200))), ..launch(3, 1, &["a"]) };
    let again = store.create_launch(launched).await;
    assert!(matches!(again, Err(Error::FireTaken)), "{again:?}");
    assert_eq!(fires(&store, id).await.len(), 1);
    assert_eq!(store.jobs(&crate::fixtures::every_job()).await.unwrap().len(), 1);
    assert_eq!(store.launch(saltern_core::ids::LaunchId(1)).await.unwrap(), None);
    assert_eq!(all_tags(&store).await, ["job/1/new"]);
    store.create(firing(4, slot(id, 200, Some(300)))).await.unwrap();
    assert_eq!(next(&store, id).await, Some(at(300)));
}

async fn who_comes_second_takes_no_neighbours_with_him(database: Database) {
    let store = database.open().await;
    let id = recurs(&store, "a").await;
    // So many at once that some share a commit; each even one is for the same instant.
    let writes = (0..40).map(|n| {
        let fire = (n % 2 == 0).then(|| slot(id, 100, Some(200)));
        store.create(NewWork { fire, ..work(n, &["a"]) })
    });
    let written = futures_util::future::join_all(writes).await;
    let fired = written.iter().step_by(2).filter(|one| one.is_ok()).count();
    assert_eq!(fired, 1);
    assert!(written.iter().skip(1).step_by(2).all(|one| one.is_ok()));
    assert_eq!(fires(&store, id).await.len(), 1);
    assert_eq!(store.events_after(0, &EventFilter::default(), ALL).await.unwrap().len(), 21);
}

async fn two_servers_fire_an_instant_once(database: Database) {
    let stores = [database.open().await, database.open().await];
    let id = recurs(&stores[0], "a").await;
    for round in 0..40 {
        let instant = 100 + round;
        let fire = |n: usize| {
            let number = 1000 * (n as i64 + 1) + round;
            stores[n].create(firing(number, slot(id, instant, Some(instant + 1))))
        };
        let (one, other) = tokio::join!(fire(0), fire(1));
        let lost = [&one, &other].into_iter().filter(|made| matches!(made, Err(Error::FireTaken))).count();
        assert_eq!((lost, one.is_ok() != other.is_ok()), (1, true), "{one:?} {other:?}");
    }
    assert_eq!(fires(&stores[0], id).await.len(), 40);
    assert_eq!(stores[0].jobs(&crate::fixtures::every_job()).await.unwrap().len(), 40);
    assert_eq!(next(&stores[1], id).await, Some(at(140)));
}

async fn instants_in_a_row_are_accounted_for_at_once(database: Database) {
    let store = database.open().await;
    let id = recurs(&store, "a").await;
    let slots = (100..1100).map(|n| (slot(id, n, Some(n + 1)), "missed")).collect();
    let events = |done: &[bool]| vec![event(&format!("missed/{}", done.iter().filter(|done| **done).count()))];
    let done = store.account_fires(slots, at(2000), Box::new(events)).await.unwrap();
    assert_eq!(done, [true; 1000]);
    assert_eq!(next(&store, id).await, Some(at(1100)));
    let kept = fires(&store, id).await;
    assert_eq!((kept.len(), kept[0].planned, kept[0].at), (1000, at(1099), at(2000)));
    assert!(kept.iter().all(|fire| fire.outcome == "missed" && fire.action.is_none() && fire.minions == 0));
    assert_eq!(all_tags(&store).await, ["missed/1000"]);
    assert_eq!(store.undigested_fires(ALL).await.unwrap(), [], "there is nothing more to tell of what was not done");
}

async fn what_is_not_next_is_not_accounted_for(database: Database) {
    let store = database.open().await;
    let id = recurs(&store, "a").await;
    let slots = vec![(slot(id, 99, Some(100)), "missed"), (slot(RecurringId(404), 100, None), "missed")];
    let told = |_: &[bool]| vec![event("told")];
    assert_eq!(store.account_fires(slots, at(1), Box::new(told)).await.unwrap(), [false, false]);
    assert_eq!((next(&store, id).await, fires(&store, id).await), (Some(at(100)), vec![]));
    assert_eq!(all_tags(&store).await, [""; 0]);
}

async fn an_instant_that_has_a_row_is_passed_over(database: Database) {
    let store = database.open().await;
    let id = recurs(&store, "a").await;
    let action = store.create(firing(1, slot(id, 100, Some(200)))).await.unwrap();
    // Somebody changed it in the very moment: the instant is next once more.
    store.put_recurring(Recurring { id, ..recurring("a") }, 1, audit("x")).await.unwrap();
    let again = store.create(firing(2, slot(id, 100, Some(200)))).await;
    assert!(matches!(again, Err(Error::FireTaken)), "{again:?}");
    assert_eq!(next(&store, id).await, Some(at(100)));
    let slots = vec![(slot(id, 100, Some(200)), "skipped")];
    assert_eq!(store.account_fires(slots, at(3), Box::new(untold)).await.unwrap(), [false]);
    assert_eq!(next(&store, id).await, Some(at(200)));
    let kept = fires(&store, id).await;
    assert_eq!((kept.len(), kept[0].action), (1, Some(action)));
}

async fn who_skips_and_who_fires_cannot_both(database: Database) {
    let stores = [database.open().await, database.open().await];
    let id = recurs(&stores[0], "a").await;
    for round in 0..20 {
        let instant = 100 + round;
        let planned = || slot(id, instant, Some(instant + 1));
        let fire = stores[0].create(firing(1000 + round, planned()));
        let skip = stores[1].account_fires(vec![(planned(), "skipped")], at(1), Box::new(untold));
        let (fired, skipped) = tokio::join!(fire, skip);
        assert_ne!(fired.is_ok(), skipped.unwrap()[0]);
    }
    assert_eq!(fires(&stores[0], id).await.len(), 20);
}

async fn an_instant_that_is_left_out_uses_up_the_wish(database: Database) {
    let store = database.open().await;
    let wished = Recurring { skip_next: true, ..recurring("a") };
    let id = store.create_recurring(wished, audit("x")).await.unwrap().unwrap();
    let skipped = FireSlot { clear_skip_next: true, ..slot(id, 100, Some(200)) };
    store.account_fires(vec![(skipped, "skipped")], at(1), Box::new(untold)).await.unwrap();
    let kept = store.recurring(id).await.unwrap().unwrap();
    assert_eq!((kept.skip_next, kept.next, kept.version), (false, Some(at(200)), 2));
    assert_eq!(outcomes(&store, id).await, [(at(100), "skipped".to_owned())]);
}

async fn instants_come_newest_first(database: Database) {
    let store = database.open().await;
    let (id, other) = (recurs(&store, "a").await, recurs(&store, "b").await);
    for instant in [100, 101, 102] {
        let slots = [id, other].map(|id| (slot(id, instant, Some(instant + 1)), "refused"));
        store.account_fires(slots.into(), at(instant), Box::new(untold)).await.unwrap();
    }
    let page = async |before: i64, limit| {
        let page = store.fires(id, at(before), limit).await.unwrap();
        page.into_iter().map(|fire| fire.planned).collect::<Vec<_>>()
    };
    assert_eq!(page(1000, 2).await, [at(102), at(101)]);
    assert_eq!(page(101, ALL).await, [at(100)]);
    store.delete_recurring(id, 1, audit("x")).await.unwrap();
    assert_eq!(page(1000, ALL).await.len(), 3, "they stay");
}

async fn an_end_is_told_once(database: Database) {
    let store = database.open().await;
    let id = recurs(&store, "a").await;
    let action = store.create(firing(1, slot(id, 100, Some(200)))).await.unwrap();
    store.record_return(returned(1, Some(action), "a")).await.unwrap();
    assert_eq!(store.undigested_fires(ALL).await.unwrap(), []);
    store.record_return(returned(1, Some(action), "b")).await.unwrap();
    let found = store.undigested_fires(ALL).await.unwrap();
    let counts = Counts { total: 2, completed: 2, ..Counts::default() };
    assert_eq!(found.iter().map(|(fire, counts)| (fire.action, *counts)).collect::<Vec<_>>(), [(Some(action), counts)]);
    let tell = async || store.mark_digested(id, at(100), vec![event("digest")]).await.unwrap();
    assert_eq!((tell().await, tell().await), (true, false));
    assert_eq!(store.undigested_fires(ALL).await.unwrap(), []);
    assert_eq!(all_tags(&store).await.iter().filter(|tag| *tag == "digest").count(), 1);
}

async fn the_end_of_a_launch_is_told(database: Database) {
    let store = database.open().await;
    let id = recurs(&store, "a").await;
    let new = NewLaunch { fire: Some(slot(id, 100, Some(200))), ..launch(1, 1, &["a"]) };
    let (launch, _) = store.create_launch(new).await.unwrap();
    assert_eq!(store.undigested_fires(ALL).await.unwrap(), []);
    store.move_minions(vec![moving(2, launch, "a", MinionState::Waiting, MinionState::Ended)]).await.unwrap();
    let (fire, counts) = store.undigested_fires(ALL).await.unwrap().remove(0);
    assert_eq!((fire.launch, counts), (Some(launch), Counts { total: 1, completed: 1, ..Counts::default() }));
}

async fn an_action_that_is_gone_has_ended(database: Database) {
    let store = database.open().await;
    let id = recurs(&store, "a").await;
    let action = store.create(NewWork { fire: Some(slot(id, 100, None)), ..queued(1, &[]) }).await.unwrap();
    store.purge_action(action, ALL).await.unwrap();
    let (fire, counts) = store.undigested_fires(ALL).await.unwrap().remove(0);
    assert_eq!((fire.action, counts), (Some(action), Counts::default()));
}

async fn old_instants_go_a_few_at_a_time(database: Database) {
    let store = database.open().await;
    let id = recurs(&store, "a").await;
    for instant in 100..105 {
        let slots = vec![(slot(id, instant, Some(instant + 1)), "missed")];
        store.account_fires(slots, at(1000 + instant), Box::new(untold)).await.unwrap();
    }
    assert_eq!(store.purge_fires(at(1103), 2).await.unwrap(), 2);
    assert_eq!(store.purge_fires(at(1103), 2).await.unwrap(), 1);
    assert_eq!(store.purge_fires(at(1103), 2).await.unwrap(), 0);
    assert_eq!(fires(&store, id).await.len(), 2);
}
