//! The state catalogue: every version is kept, and assignments go with what they are about.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{all_tags, at, audit, audited, event, group, minions};
use saltern_store::{
    ANY_VERSION, Assigned, AssigneeKind, Counter, Error, KEPT_VERSIONS, State, StateAssignment, Store, Written,
};

on_both_databases! {
    a_state_reads_back_as_it_was_made,
    a_state_is_changed_by_who_has_seen_it,
    every_version_is_kept,
    very_old_versions_go,
    a_state_is_of_an_organisation_that_there_is,
    a_removed_state_takes_its_versions_and_assignments_along,
    a_state_is_assigned_once,
    assignments_go_with_their_minion_and_their_group,
    an_organisation_with_states_stays,
    every_change_is_counted_audited_and_told,
}

fn state(name: &str, content: &str) -> State {
    State {
        org: "default".into(),
        name: name.into(),
        description: "what it is".into(),
        content: content.into(),
        version: 0,
        created: at(5),
        changed: at(6),
        changed_by: "ann".into(),
    }
}

fn assignment(name: &str, kind: AssigneeKind, subject: &str) -> StateAssignment {
    StateAssignment { org: "default".into(), name: name.into(), kind, subject: subject.into() }
}

async fn put(store: &Store, state: State, expected: Option<i64>) -> Written {
    let told = |version: i64| event(&format!("put {version}"));
    store.put_state(state, expected, audit("state.put"), Box::new(told)).await.unwrap()
}

async fn delete(store: &Store, name: &str, expected: Option<i64>) -> Written {
    let which = ("default".to_owned(), name.to_owned());
    store.delete_state(which, expected, audit("state.delete"), event("delete")).await.unwrap()
}

async fn assign(store: &Store, wanted: &StateAssignment) -> Assigned {
    store.assign_state(wanted.clone(), audit("state.assign"), event("assign")).await.unwrap()
}

async fn a_state_reads_back_as_it_was_made(database: Database) {
    let store = database.open().await;
    assert_eq!(put(&store, state("web.nginx", "a: {}"), None).await, Written::Done(1));
    assert_eq!(put(&store, state("base", "b: {}"), None).await, Written::Done(1));
    let [base, web] = [state("base", "b: {}"), state("web.nginx", "a: {}")].map(|state| State { version: 1, ..state });
    assert_eq!(store.states().await.unwrap(), [base, web]);
}

async fn a_state_is_changed_by_who_has_seen_it(database: Database) {
    let store = database.open().await;
    assert_eq!(put(&store, state("web", "1: {}"), Some(1)).await, Written::Missing);
    assert_eq!(put(&store, state("web", "1: {}"), None).await, Written::Done(1));
    assert_eq!(put(&store, state("web", "2: {}"), None).await, Written::Exists);
    assert_eq!(put(&store, state("web", "2: {}"), Some(3)).await, Written::Stale(1));
    assert_eq!(store.states().await.unwrap()[0].content, "1: {}", "nothing of that was done");
    let change = State { created: at(99), changed: at(7), changed_by: "bob".into(), ..state("web", "2: {}") };
    assert_eq!(put(&store, change.clone(), Some(ANY_VERSION)).await, Written::Done(2));
    assert_eq!(store.states().await.unwrap(), [State { created: at(5), version: 2, ..change }]);
}

async fn every_version_is_kept(database: Database) {
    let store = database.open().await;
    put(&store, state("web", "1: {}"), None).await;
    put(&store, state("other", "x: {}"), None).await;
    put(&store, State { changed: at(8), changed_by: "bob".into(), ..state("web", "2: {}") }, Some(1)).await;
    let versions = store.state_versions("default", "web", i64::MAX, 10).await.unwrap();
    let told: Vec<_> = versions.iter().map(|version| (version.version, version.at, version.by.as_str())).collect();
    assert_eq!(told, [(2, at(8), "bob"), (1, at(6), "ann")]);
    assert_eq!(store.state_versions("default", "web", 2, 10).await.unwrap(), versions[1..]);
    assert_eq!(store.state_versions("default", "web", i64::MAX, 1).await.unwrap(), versions[..1]);
    let (_, text) = store.state_version("default", "web", 1).await.unwrap().unwrap();
    assert_eq!(text, "1: {}");
    assert_eq!(store.state_version("default", "web", 3).await.unwrap(), None);
    assert_eq!(store.state_version("north", "web", 1).await.unwrap(), None);
}

async fn very_old_versions_go(database: Database) {
    let store = database.open().await;
    put(&store, state("web", "1: {}"), None).await;
    for version in 1..=KEPT_VERSIONS {
        put(&store, state("web", "more: {}"), Some(version)).await;
    }
    assert_eq!(store.state_version("default", "web", 1).await.unwrap(), None);
    let kept = store.state_versions("default", "web", i64::MAX, usize::MAX >> 1).await.unwrap();
    assert_eq!(kept.len(), usize::try_from(KEPT_VERSIONS).unwrap());
}

async fn a_state_is_of_an_organisation_that_there_is(database: Database) {
    let store = database.open().await;
    let foreign = State { org: "north".into(), ..state("web", "a: {}") };
    let refused = store.put_state(foreign, None, audit("state.put"), Box::new(|_| event("x"))).await.unwrap_err();
    assert!(matches!(refused, Error::Invalid(_)), "{refused:?}");
    assert_eq!(store.states().await.unwrap(), []);
}

async fn a_removed_state_takes_its_versions_and_assignments_along(database: Database) {
    let store = database.open().await;
    put(&store, state("web", "1: {}"), None).await;
    put(&store, state("db", "1: {}"), None).await;
    assign(&store, &assignment("web", AssigneeKind::Minion, "m")).await;
    assign(&store, &assignment("db", AssigneeKind::Minion, "m")).await;
    assert_eq!(delete(&store, "web", Some(7)).await, Written::Stale(1));
    assert_eq!(delete(&store, "web", Some(1)).await, Written::Done(1));
    assert_eq!(delete(&store, "web", None).await, Written::Missing);
    assert_eq!(store.state_versions("default", "web", i64::MAX, 10).await.unwrap(), []);
    assert_eq!(store.state_assignments().await.unwrap(), [assignment("db", AssigneeKind::Minion, "m")]);
    assert_eq!(put(&store, state("web", "2: {}"), None).await, Written::Done(1), "the next of that name begins anew");
}

async fn a_state_is_assigned_once(database: Database) {
    let store = database.open().await;
    let wanted = assignment("web", AssigneeKind::Group, "g");
    assert_eq!(assign(&store, &wanted).await, Assigned::Missing);
    put(&store, state("web", "1: {}"), None).await;
    assert_eq!(assign(&store, &wanted).await, Assigned::Done);
    assert_eq!(assign(&store, &wanted).await, Assigned::Already);
    assert_eq!(store.state_assignments().await.unwrap(), std::slice::from_ref(&wanted));
    let unassign = async || store.unassign_state(wanted.clone(), audit("state.unassign"), event("x")).await.unwrap();
    assert_eq!(unassign().await, Assigned::Done);
    assert_eq!(unassign().await, Assigned::Already);
    assert_eq!(audited(&store).await, ["state.put", "state.assign", "state.unassign"]);
}

async fn assignments_go_with_their_minion_and_their_group(database: Database) {
    let store = database.open().await;
    store.put_group(group("web", &[]), None, audit("x")).await.unwrap();
    put(&store, state("web", "1: {}"), None).await;
    for kind in [AssigneeKind::Minion, AssigneeKind::Group, AssigneeKind::Org] {
        assign(&store, &assignment("web", kind, "web")).await;
    }
    let before = store.taken(Counter::State).await.unwrap();
    store.forget_minion(minions(&["web"]).remove(0)).await.unwrap();
    store.delete_group("web".into(), None, audit("x")).await.unwrap();
    assert_eq!(store.state_assignments().await.unwrap(), [assignment("web", AssigneeKind::Org, "web")]);
    assert_eq!(store.taken(Counter::State).await.unwrap(), before + 2, "other servers notice");
}

async fn an_organisation_with_states_stays(database: Database) {
    let store = database.open().await;
    let north =
        saltern_store::Organisation { name: "north".into(), description: String::new(), created: at(1), version: 0 };
    store.put_organisation(north, None, audit("x")).await.unwrap();
    put(&store, State { org: "north".into(), ..state("web", "1: {}") }, None).await;
    let delete = async || store.delete_organisation("north".into(), None, audit("x")).await.unwrap();
    assert_eq!(delete().await, Written::Exists);
    let which = ("north".to_owned(), "web".to_owned());
    store.delete_state(which, None, audit("x"), event("x")).await.unwrap();
    assert_eq!(delete().await, Written::Done(1));
}

async fn every_change_is_counted_audited_and_told(database: Database) {
    let store = database.open().await;
    put(&store, state("web", "1: {}"), None).await;
    put(&store, state("web", "2: {}"), Some(1)).await;
    put(&store, state("web", "2: {}"), Some(1)).await;
    assign(&store, &assignment("web", AssigneeKind::Minion, "m")).await;
    delete(&store, "web", None).await;
    assert_eq!(audited(&store).await, ["state.put", "state.put", "state.assign", "state.delete"]);
    assert_eq!(all_tags(&store).await, ["put 1", "put 2", "assign", "delete"]);
    assert_eq!(store.taken(Counter::State).await.unwrap(), 4);
}
