//! Recurring actions: one name on what they are done on, versions, and what is next; and what becomes of them when their
//! owner is removed, or what they are done on.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{
    ALL, all_tags, at, audit, audited, claim, event, group, launch, minion, moving, organisation, queued, recurring,
    recurs, user, work,
};
use saltern_core::ids::RecurringId;
use saltern_core::time::Timestamp;
use saltern_store::{ANY_VERSION, Heir, MinionState, NewAction, NewLaunch, NewWork, Recurring, Store, Written};

on_both_databases! {
    a_recurring_action_reads_back_as_it_was_stored,
    there_is_one_of_a_name_on_what_it_is_done_on,
    recurring_actions_come_in_pages,
    those_of_an_entity_come_by_name,
    a_change_needs_the_version_that_is_there,
    one_cannot_take_the_name_of_another,
    two_servers_cannot_give_two_one_name,
    what_is_not_active_has_no_next_instant,
    what_is_due_comes_in_the_order_of_instants,
    a_removed_one_is_gone_and_its_id_is_not_given_again,
    what_has_not_ended_is_pending_and_begun_or_not,
    a_minion_of_a_launch_is_pending_until_it_ends_there,
    what_a_removed_user_owned_passes_to_his_heir,
    without_an_heir_it_stops,
    what_recurs_on_a_group_or_minion_that_is_gone_stops,
    an_organisation_with_one_stays,
}

async fn get(store: &Store, id: RecurringId) -> Recurring {
    store.recurring(id).await.unwrap().unwrap()
}

async fn a_recurring_action_reads_back_as_it_was_stored(database: Database) {
    let store = database.open().await;
    let id = recurs(&store, "patch").await;
    assert_eq!(get(&store, id).await, Recurring { id, ..recurring("patch") });
    assert_eq!(store.recurring(RecurringId(404)).await.unwrap(), None);
    let bare = Recurring { deadline: None, next: None, skip_next: true, in_window: false, ..recurring("bare") };
    let id = store.create_recurring(bare.clone(), audit("x")).await.unwrap().unwrap();
    assert_eq!(get(&store, id).await, Recurring { id, ..bare });
    assert_eq!(audited(&store).await, ["recurring.create", "x"]);
}

async fn there_is_one_of_a_name_on_what_it_is_done_on(database: Database) {
    let store = database.open().await;
    let mut made = Vec::new();
    for (name, kind, entity) in [
        ("a", "group", "web"),
        ("a", "group", "web"),
        ("a", "minion", "web"),
        ("a", "group", "db"),
        ("b", "group", "web"),
    ] {
        let new = Recurring { entity_kind: kind.into(), entity: entity.into(), ..recurring(name) };
        made.push(store.create_recurring(new, audit("x")).await.unwrap().is_some());
    }
    assert_eq!(made, [true, false, true, true, true]);
    assert_eq!(audited(&store).await.len(), 4);
}

async fn recurring_actions_come_in_pages(database: Database) {
    let store = database.open().await;
    let ids = [recurs(&store, "c").await, recurs(&store, "a").await, recurs(&store, "b").await];
    let page = async |after, limit| {
        store.recurrings(after, limit).await.unwrap().into_iter().map(|one| one.id).collect::<Vec<_>>()
    };
    assert_eq!(page(RecurringId(0), 2).await, ids[..2]);
    assert_eq!(page(ids[1], ALL).await, ids[2..]);
}

async fn those_of_an_entity_come_by_name(database: Database) {
    let store = database.open().await;
    recurs(&store, "b").await;
    recurs(&store, "a").await;
    let other = Recurring { entity: "db".into(), ..recurring("c") };
    store.create_recurring(other, audit("x")).await.unwrap();
    let found = store.recurrings_of("group", "web").await.unwrap();
    assert_eq!(found.into_iter().map(|one| one.name).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(store.recurrings_of("minion", "web").await.unwrap(), []);
}

async fn a_change_needs_the_version_that_is_there(database: Database) {
    let store = database.open().await;
    let id = recurs(&store, "patch").await;
    let changed = Recurring {
        id,
        owner: "bob".into(),
        cron: "5 4 * * *".into(),
        changed: at(70),
        next: Some(at(500)),
        created: at(71),
        creator: "bob".into(),
        ..recurring("new")
    };
    assert_eq!(store.put_recurring(changed.clone(), 1, audit("2")).await.unwrap(), Written::Done(2));
    assert_eq!(store.put_recurring(changed.clone(), 1, audit("3")).await.unwrap(), Written::Stale(2));
    let missing = Recurring { id: RecurringId(404), ..changed.clone() };
    assert_eq!(store.put_recurring(missing, ANY_VERSION, audit("4")).await.unwrap(), Written::Missing);
    let wanted = Recurring { version: 2, created: at(8), creator: "ann".into(), ..changed };
    assert_eq!(get(&store, id).await, wanted);
    assert_eq!(audited(&store).await, ["recurring.create", "2"]);
}

async fn one_cannot_take_the_name_of_another(database: Database) {
    let store = database.open().await;
    recurs(&store, "patch").await;
    let id = recurs(&store, "other").await;
    let renamed = Recurring { id, ..recurring("patch") };
    assert_eq!(store.put_recurring(renamed, 1, audit("x")).await.unwrap(), Written::Exists);
    assert_eq!(get(&store, id).await.name, "other");
    let elsewhere = Recurring { id, entity: "db".into(), ..recurring("patch") };
    assert_eq!(store.put_recurring(elsewhere, 1, audit("x")).await.unwrap(), Written::Done(2));
}

async fn two_servers_cannot_give_two_one_name(database: Database) {
    let stores = [database.open().await, database.open().await];
    for round in 0..20 {
        let ids = [recurs(&stores[0], &format!("r{round}a")).await, recurs(&stores[0], &format!("r{round}b")).await];
        let rename = |n: usize| {
            let renamed = Recurring { id: ids[n], ..recurring(&format!("wanted{round}")) };
            stores[n].put_recurring(renamed, 1, audit("x"))
        };
        let (one, other) = tokio::join!(rename(0), rename(1));
        let mut both = [one.unwrap(), other.unwrap()];
        both.sort_by_key(|written| *written == Written::Exists);
        assert_eq!(both, [Written::Done(2), Written::Exists]);
    }
}

async fn what_is_not_active_has_no_next_instant(database: Database) {
    let store = database.open().await;
    let id = recurs(&store, "patch").await;
    let off = Recurring { id, active: false, ..recurring("patch") };
    store.put_recurring(off, 1, audit("x")).await.unwrap();
    assert_eq!(get(&store, id).await.next, None);
    assert_eq!(store.next_fire().await.unwrap(), None);
    assert_eq!(store.due_recurrings(at(1000), ALL).await.unwrap(), []);
}

async fn what_is_due_comes_in_the_order_of_instants(database: Database) {
    let store = database.open().await;
    assert_eq!(store.next_fire().await.unwrap(), None);
    for (name, next) in [("c", Some(300)), ("a", Some(100)), ("b", Some(200)), ("never", None)] {
        let new = Recurring { next: next.map(at), ..recurring(name) };
        store.create_recurring(new, audit("x")).await.unwrap();
    }
    let due = async |now, limit| {
        let due = store.due_recurrings(at(now), limit).await.unwrap();
        due.into_iter().map(|one| one.name).collect::<Vec<_>>()
    };
    assert_eq!(due(99, ALL).await, [""; 0]);
    assert_eq!(due(200, ALL).await, ["a", "b"]);
    assert_eq!(due(1000, 1).await, ["a"]);
    assert_eq!(store.next_fire().await.unwrap(), Some(at(100)));
}

async fn a_removed_one_is_gone_and_its_id_is_not_given_again(database: Database) {
    let store = database.open().await;
    let id = recurs(&store, "patch").await;
    assert_eq!(store.delete_recurring(id, 7, audit("2")).await.unwrap(), Written::Stale(1));
    assert_eq!(store.delete_recurring(id, 1, audit("3")).await.unwrap(), Written::Done(1));
    assert_eq!(store.delete_recurring(id, ANY_VERSION, audit("4")).await.unwrap(), Written::Missing);
    assert_eq!(store.recurring(id).await.unwrap(), None);
    assert_ne!(recurs(&store, "patch").await, id);
    assert_eq!(audited(&store).await, ["recurring.create", "3", "recurring.create"]);
}

fn of(recurring: RecurringId, work: NewWork) -> NewWork {
    NewWork { action: NewAction { recurring: Some(recurring), ..work.action }, ..work }
}

async fn what_has_not_ended_is_pending_and_begun_or_not(database: Database) {
    let store = database.open().await;
    let id = recurs(&store, "patch").await;
    let (a, b) = (minion("a"), minion("b"));
    assert_eq!(store.pending_of(id).await.unwrap(), []);
    let first = store.create(of(id, queued(1, &["a", "b"]))).await.unwrap();
    store.create(work(2, &["c"])).await.unwrap();
    assert_eq!(store.action(first).await.unwrap().unwrap().new.recurring, Some(id));
    assert_eq!(store.pending_of(id).await.unwrap(), [(a.clone(), false), (b.clone(), false)]);
    store.claim(claim(3, first, &["a"])).await.unwrap();
    assert_eq!(store.pending_of(id).await.unwrap(), [(a.clone(), true), (b.clone(), false)]);
    store.create(of(id, queued(4, &["a"]))).await.unwrap();
    assert_eq!(store.pending_of(id).await.unwrap(), [(a.clone(), false), (a, true), (b, false)]);
}

async fn a_minion_of_a_launch_is_pending_until_it_ends_there(database: Database) {
    let store = database.open().await;
    let id = recurs(&store, "patch").await;
    let new = NewLaunch { recurring: Some(id), ..launch(1, 2, &["a", "b"]) };
    let (launch, _) = store.create_launch(new).await.unwrap();
    assert_eq!(store.launch(launch).await.unwrap().unwrap().recurring, Some(id));
    assert_eq!(store.pending_of(id).await.unwrap(), [(minion("a"), false), (minion("b"), false)]);
    store.move_minions(vec![moving(2, launch, "a", MinionState::Waiting, MinionState::Sent)]).await.unwrap();
    assert_eq!(store.pending_of(id).await.unwrap(), [(minion("a"), true), (minion("b"), false)]);
    store.move_minions(vec![moving(3, launch, "a", MinionState::Sent, MinionState::Ended)]).await.unwrap();
    assert_eq!(store.pending_of(id).await.unwrap(), [(minion("b"), false)]);
}

async fn what_a_removed_user_owned_passes_to_his_heir(database: Database) {
    let store = database.open().await;
    store.put_user(user("ann", &[]), None, audit("1")).await.unwrap();
    let ids = [recurs(&store, "a").await, recurs(&store, "b").await];
    let other = Recurring { owner: "eve".into(), ..recurring("c") };
    let other = store.create_recurring(other, audit("x")).await.unwrap().unwrap();
    let heir = Heir {
        owner: "bob".into(),
        person: "{}".into(),
        events: Box::new(|ids| vec![event(&format!("inherited/{ids:?}"))]),
    };
    let gone = store.delete_user("ann".into(), None, Some(heir), audit("2")).await.unwrap();
    assert_eq!(gone, Written::Done(1));
    for (id, name) in ids.into_iter().zip(["a", "b"]) {
        let wanted = Recurring {
            id,
            owner: "bob".into(),
            person: "{}".into(),
            active: false,
            next: None,
            version: 2,
            ..recurring(name)
        };
        assert_eq!(get(&store, id).await, wanted);
    }
    assert_eq!(get(&store, other).await.owner, "eve");
    assert_eq!(all_tags(&store).await, [format!("inherited/{ids:?}")]);
}

async fn without_an_heir_it_stops(database: Database) {
    let store = database.open().await;
    store.put_user(user("ann", &[]), None, audit("1")).await.unwrap();
    let id = recurs(&store, "a").await;
    store.delete_user("ann".into(), None, None, audit("2")).await.unwrap();
    assert_stopped(&get(&store, id).await);
}

async fn what_recurs_on_a_group_or_minion_that_is_gone_stops(database: Database) {
    let store = database.open().await;
    store.put_group(group("web", &[]), None, audit("1")).await.unwrap();
    let on_group = recurs(&store, "a").await;
    let on_minion = Recurring { entity_kind: "minion".into(), ..recurring("a") };
    let on_minion = store.create_recurring(on_minion, audit("x")).await.unwrap().unwrap();
    store.delete_group("web".into(), None, audit("2")).await.unwrap();
    assert_stopped(&get(&store, on_group).await);
    assert!(get(&store, on_minion).await.active);
    store.forget_minion(minion("web")).await.unwrap();
    assert_stopped(&get(&store, on_minion).await);
}

fn assert_stopped(one: &Recurring) {
    assert_eq!((one.active, one.next, one.version), (false, None::<Timestamp>, 2));
}

async fn an_organisation_with_one_stays(database: Database) {
    let store = database.open().await;
    store.put_organisation(organisation("acme"), None, audit("1")).await.unwrap();
    let new = Recurring { org: "acme".into(), ..recurring("a") };
    let id = store.create_recurring(new, audit("x")).await.unwrap().unwrap();
    assert_eq!(store.delete_organisation("acme".into(), None, audit("2")).await.unwrap(), Written::Exists);
    store.delete_recurring(id, 1, audit("3")).await.unwrap();
    assert_eq!(store.delete_organisation("acme".into(), None, audit("4")).await.unwrap(), Written::Done(1));
}
