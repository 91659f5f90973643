//! Organisations: one is always there, and none goes while anything belongs to it.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{audit, audited, group, minion, organisation, user};
use saltern_store::{ANY_VERSION, DEFAULT_ORGANISATION, Error, Group, Organisation, Store, User, Written};

on_both_databases! {
    the_default_organisation_is_there_from_the_beginning,
    an_organisation_is_made_changed_and_removed,
    an_organisation_is_changed_by_who_has_seen_it,
    an_organisation_in_use_stays,
    the_default_organisation_stays,
    a_minion_is_moved_between_organisations,
    nothing_belongs_to_an_organisation_that_is_not_there,
    a_forgotten_minion_belongs_to_nobody,
    only_one_of_two_servers_makes_an_organisation,
    an_organisation_and_what_comes_to_belong_to_it_do_not_miss_each_other,
}

async fn the_default_organisation_is_there_from_the_beginning(database: Database) {
    let store = database.open().await;
    let all = store.organisations().await.unwrap();
    assert_eq!((all.len(), all[0].name.as_str(), all[0].version), (1, DEFAULT_ORGANISATION, 1));
    assert!(all[0].created.secs() > 1_700_000_000);
    store.close().await;
    assert_eq!(database.open().await.organisations().await.unwrap(), all, "and is not made anew");
}

async fn an_organisation_is_made_changed_and_removed(database: Database) {
    let store = database.open().await;
    assert_eq!(put(&store, "ops", None).await, Written::Done(1));
    let made = Organisation { version: 1, ..organisation("ops") };
    assert_eq!(named(&store, "ops").await, Some(made.clone()));

    let other = Organisation { description: "others".into(), created: crate::fixtures::at(99), ..made.clone() };
    assert_eq!(store.put_organisation(other, Some(1), audit("organisation.change")).await.unwrap(), Written::Done(2));
    let changed = Organisation { description: "others".into(), version: 2, ..made };
    assert_eq!(named(&store, "ops").await, Some(changed), "when it was made stays");

    assert_eq!(delete(&store, "ops", Some(2)).await, Written::Done(2));
    assert_eq!(named(&store, "ops").await, None);
    assert_eq!(audited(&store).await, ["organisation.put", "organisation.change", "organisation.delete"]);
}

async fn an_organisation_is_changed_by_who_has_seen_it(database: Database) {
    let store = database.open().await;
    assert_eq!(put(&store, "ops", Some(1)).await, Written::Missing);
    assert_eq!(put(&store, "ops", Some(ANY_VERSION)).await, Written::Missing);
    assert_eq!(put(&store, "ops", None).await, Written::Done(1));
    assert_eq!(put(&store, "ops", None).await, Written::Exists);
    assert_eq!(put(&store, "ops", Some(2)).await, Written::Stale(1));
    assert_eq!(put(&store, "ops", Some(ANY_VERSION)).await, Written::Done(2));
    assert_eq!(delete(&store, "ops", Some(1)).await, Written::Stale(2));
    assert_eq!(delete(&store, "nobody", None).await, Written::Missing);
    assert_eq!(delete(&store, "ops", None).await, Written::Done(2));
    assert_eq!(audited(&store).await.len(), 3, "only what was done is in the audit log");
}

async fn an_organisation_in_use_stays(database: Database) {
    let store = database.open().await;
    for name in ["a", "b", "c", "d"] {
        put(&store, name, None).await;
    }
    store.put_user(User { org: "a".into(), ..user("u", &[]) }, None, audit("x")).await.unwrap();
    store.put_group(Group { org: "b".into(), ..group("g", &[]) }, None, audit("x")).await.unwrap();
    store.set_minion_org(minion("web1"), "c".into(), audit("x")).await.unwrap();
    for name in ["a", "b", "c"] {
        assert_eq!(delete(&store, name, None).await, Written::Exists, "{name}");
    }
    assert_eq!(delete(&store, "d", None).await, Written::Done(1));
    store.set_minion_org(minion("web1"), "default".into(), audit("x")).await.unwrap();
    assert_eq!(delete(&store, "c", None).await, Written::Done(1));
}

async fn the_default_organisation_stays(database: Database) {
    let store = database.open().await;
    assert_eq!(delete(&store, DEFAULT_ORGANISATION, None).await, Written::Exists);
    assert_eq!(put(&store, DEFAULT_ORGANISATION, Some(1)).await, Written::Done(2), "but may be described");
}

async fn a_minion_is_moved_between_organisations(database: Database) {
    let store = database.open().await;
    put(&store, "a", None).await;
    put(&store, "b", None).await;
    let moved = async |id, org: &str| store.set_minion_org(minion(id), org.into(), audit("minion.move")).await.unwrap();
    moved("web2", "a").await;
    moved("web1", "a").await;
    moved("web2", "b").await;
    let orgs = [(minion("web1"), "a".to_owned()), (minion("web2"), "b".to_owned())];
    assert_eq!(store.minion_orgs().await.unwrap(), orgs);
    moved("web1", DEFAULT_ORGANISATION).await;
    assert_eq!(store.minion_orgs().await.unwrap(), orgs[1..]);
    assert_eq!(audited(&store).await.iter().filter(|what| *what == "minion.move").count(), 4);
}

async fn nothing_belongs_to_an_organisation_that_is_not_there(database: Database) {
    let store = database.open().await;
    let (user, group) =
        (User { org: "gone".into(), ..user("u", &[]) }, Group { org: "gone".into(), ..group("g", &[]) });
    let refused = [
        store.set_minion_org(minion("web1"), "gone".into(), audit("x")).await.err(),
        store.put_user(user, None, audit("x")).await.err(),
        store.put_group(group, None, audit("x")).await.err(),
    ];
    for error in refused {
        assert!(matches!(&error, Some(Error::Invalid(what)) if what.contains("no such organisation")), "{error:?}");
    }
    assert_eq!(store.minion_orgs().await.unwrap(), []);
    assert_eq!((store.users().await.unwrap(), store.groups().await.unwrap()), (vec![], vec![]));
    assert_eq!(audited(&store).await, [""; 0]);
}

async fn a_forgotten_minion_belongs_to_nobody(database: Database) {
    let store = database.open().await;
    put(&store, "a", None).await;
    store.set_minion_org(minion("web1"), "a".into(), audit("x")).await.unwrap();
    store.put_group(group("g", &["web1", "web2"]), None, audit("x")).await.unwrap();
    store.forget_minion(minion("web1")).await.unwrap();
    assert_eq!(store.minion_orgs().await.unwrap(), []);
    let left = store.group("g").await.unwrap().unwrap();
    assert_eq!((left.members, left.version), (vec![minion("web2")], 2), "and whoever has seen the group sees it anew");
}

async fn only_one_of_two_servers_makes_an_organisation(database: Database) {
    let stores = [database.open().await, database.open().await];
    for round in 0..20 {
        let name = format!("org{round}");
        let (one, other) = tokio::join!(put(&stores[0], &name, None), put(&stores[1], &name, None));
        assert!([(Written::Done(1), Written::Exists), (Written::Exists, Written::Done(1))].contains(&(one, other)));
    }
    assert_eq!(audited(&stores[0]).await.len(), 20);
}

async fn an_organisation_and_what_comes_to_belong_to_it_do_not_miss_each_other(database: Database) {
    let stores = [database.open().await, database.open().await];
    for round in 0..20 {
        let name = format!("org{round}");
        put(&stores[0], &name, None).await;
        let new = User { org: name.clone(), ..user(&format!("u{round}"), &[]) };
        let (gone, entered) =
            tokio::join!(delete(&stores[0], &name, None), stores[1].put_user(new, None, audit("user.put")));
        match entered {
            Ok(written) => assert_eq!((gone, written), (Written::Exists, Written::Done(1))),
            Err(error) => assert!(matches!((gone, &error), (Written::Done(1), Error::Invalid(_))), "{error:?}"),
        }
    }
}

async fn put(store: &Store, name: &str, expected: Option<i64>) -> Written {
    store.put_organisation(organisation(name), expected, audit("organisation.put")).await.unwrap()
}

async fn delete(store: &Store, name: &str, expected: Option<i64>) -> Written {
    store.delete_organisation(name.into(), expected, audit("organisation.delete")).await.unwrap()
}

async fn named(store: &Store, name: &str) -> Option<Organisation> {
    store.organisations().await.unwrap().into_iter().find(|organisation| organisation.name == name)
}
