//! Groups: members by name and by expression, and what is granted on them.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{at, audit, audited, group, minions, user};
use saltern_store::{ANY_VERSION, Group, Store, Written};

on_both_databases! {
    a_group_reads_back_as_it_was_made,
    a_group_is_changed_by_who_has_seen_it,
    members_are_replaced_as_a_whole,
    a_large_group_reads_back_whole,
    a_removed_group_takes_its_grants_along,
    only_one_of_two_servers_makes_a_group,
}

async fn a_group_reads_back_as_it_was_made(database: Database) {
    let store = database.open().await;
    let named = group("web", &["web2", "web1", "web2"]);
    let target = Some(("compound".to_owned(), "G@os:Debian and not web*".to_owned()));
    let matched = Group { target, ..group("debian", &[]) };
    assert_eq!(put(&store, named.clone(), None).await, Written::Done(1));
    assert_eq!(put(&store, matched.clone(), None).await, Written::Done(1));
    let named = Group { members: minions(&["web1", "web2"]), version: 1, ..named };
    let matched = Group { version: 1, ..matched };
    assert_eq!(store.group("web").await.unwrap(), Some(named.clone()));
    assert_eq!(store.group("gone").await.unwrap(), None);
    assert_eq!(store.groups().await.unwrap(), [matched, named]);
}

async fn a_group_is_changed_by_who_has_seen_it(database: Database) {
    let store = database.open().await;
    assert_eq!(put(&store, group("web", &[]), Some(1)).await, Written::Missing);
    assert_eq!(put(&store, group("web", &["a"]), None).await, Written::Done(1));
    assert_eq!(put(&store, group("web", &["b"]), None).await, Written::Exists);
    assert_eq!(put(&store, group("web", &["b"]), Some(2)).await, Written::Stale(1));
    assert_eq!(store.group("web").await.unwrap().unwrap().members, minions(&["a"]), "nothing of that was done");
    assert_eq!(put(&store, group("web", &["b"]), Some(ANY_VERSION)).await, Written::Done(2));
    assert_eq!(delete(&store, "web", Some(1)).await, Written::Stale(2));
    assert_eq!(delete(&store, "web", Some(2)).await, Written::Done(2));
    assert_eq!(delete(&store, "web", None).await, Written::Missing);
    assert_eq!(audited(&store).await, ["group.put", "group.put", "group.delete"]);
}

async fn members_are_replaced_as_a_whole(database: Database) {
    let store = database.open().await;
    put(&store, group("other", &["a", "b"]), None).await;
    put(&store, group("web", &["a", "b"]), None).await;
    let target = Some(("glob".into(), "web*".into()));
    let change = Group { target, description: "new".into(), created: at(99), ..group("web", &["c", "b"]) };
    put(&store, change.clone(), Some(1)).await;
    let changed = Group { members: minions(&["b", "c"]), created: at(5), version: 2, ..change };
    assert_eq!(store.group("web").await.unwrap(), Some(changed));
    assert_eq!(store.group("other").await.unwrap().unwrap().members, minions(&["a", "b"]));

    delete(&store, "web", None).await;
    put(&store, group("web", &[]), None).await;
    assert_eq!(store.group("web").await.unwrap().unwrap().members, [], "the next of that name begins empty");
}

async fn a_large_group_reads_back_whole(database: Database) {
    let store = database.open().await;
    let ids: Vec<String> = (0..5000).map(|n| format!("minion-{n:05}.example.org")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    put(&store, group("all", &ids), None).await;
    assert_eq!(store.group("all").await.unwrap().unwrap().members, minions(&ids));
}

async fn a_removed_group_takes_its_grants_along(database: Database) {
    let store = database.open().await;
    put(&store, group("web", &[]), None).await;
    put(&store, group("db", &[]), None).await;
    let both = user("alice", &["operator:web", "group-admin:web", "operator:db", "reader"]);
    store.put_user(both, None, audit("x")).await.unwrap();
    store.put_user(user("bob", &["operator:db"]), None, audit("x")).await.unwrap();
    assert_eq!(delete(&store, "web", None).await, Written::Done(1));
    let left: Vec<_> = store.users().await.unwrap().into_iter().map(|user| (user.grants, user.version)).collect();
    assert_eq!(left[0], (vec!["operator:db".into(), "reader".into()], 2), "and whoever has seen her sees her anew");
    assert_eq!(left[1], (vec!["operator:db".into()], 1));
    put(&store, group("web", &[]), None).await;
    assert_eq!(store.user("alice").await.unwrap().unwrap().grants.len(), 2, "another group of that name is another");
}

async fn only_one_of_two_servers_makes_a_group(database: Database) {
    let stores = [database.open().await, database.open().await];
    for round in 0..20 {
        let (one, other) = (group(&format!("g{round}"), &["a"]), group(&format!("g{round}"), &["b"]));
        let (one, other) = tokio::join!(put(&stores[0], one, None), put(&stores[1], other, None));
        assert!([(Written::Done(1), Written::Exists), (Written::Exists, Written::Done(1))].contains(&(one, other)));
    }
    for group in stores[0].groups().await.unwrap() {
        assert_eq!(group.members.len(), 1, "and nothing of the other's is there");
    }
}

async fn put(store: &Store, group: Group, expected: Option<i64>) -> Written {
    store.put_group(group, expected, audit("group.put")).await.unwrap()
}

async fn delete(store: &Store, name: &str, expected: Option<i64>) -> Written {
    store.delete_group(name.into(), expected, audit("group.delete")).await.unwrap()
}
