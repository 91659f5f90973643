//! Users: entered, changed and removed with all that is theirs.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{api_token, at, audit, audited, group, hash, session, token_ids, user, webhook};
use saltern_store::{ANY_VERSION, Begun, Error, Store, User, Written};

on_both_databases! {
    a_user_reads_back_as_he_was_entered,
    a_user_is_changed_by_who_has_seen_him,
    what_is_granted_is_kept_once_and_in_order,
    a_grant_names_a_group_that_is_there,
    a_grant_is_one_line,
    sessions_end_when_rights_or_password_change,
    sessions_go_on_when_nothing_of_that_changes,
    a_removed_user_leaves_nothing_behind,
    only_one_of_two_servers_enters_a_user,
    a_grant_and_the_removal_of_its_group_do_not_miss_each_other,
}

async fn a_user_reads_back_as_he_was_entered(database: Database) {
    let store = database.open().await;
    let external = User { auth: "ldap".into(), password: None, disabled: true, ..user("bob", &[]) };
    let admin = user("alice", &["server-admin"]);
    assert_eq!(put(&store, external.clone(), None).await, Written::Done(1));
    assert_eq!(put(&store, admin.clone(), None).await, Written::Done(1));
    let (admin, external) = (User { version: 1, ..admin }, User { version: 1, ..external });
    assert_eq!(store.user("alice").await.unwrap(), Some(admin.clone()));
    assert_eq!(store.user("Alice").await.unwrap(), None);
    assert_eq!(store.users().await.unwrap(), [admin, external]);
}

async fn a_user_is_changed_by_who_has_seen_him(database: Database) {
    let store = database.open().await;
    assert_eq!(put(&store, user("alice", &[]), Some(1)).await, Written::Missing);
    assert_eq!(put(&store, user("alice", &[]), None).await, Written::Done(1));
    assert_eq!(put(&store, user("alice", &["reader"]), None).await, Written::Exists);
    assert_eq!(put(&store, user("alice", &["reader"]), Some(7)).await, Written::Stale(1));
    assert_eq!(store.user("alice").await.unwrap().unwrap().grants, [""; 0], "nothing of that was done");

    let renamed = User { full_name: "A.".into(), auth: "pam".into(), created: at(99), ..user("alice", &["reader"]) };
    assert_eq!(put(&store, renamed.clone(), Some(1)).await, Written::Done(2));
    let changed = User { created: at(4), version: 2, ..renamed };
    assert_eq!(store.user("alice").await.unwrap(), Some(changed));
    assert_eq!(put(&store, user("alice", &[]), Some(ANY_VERSION)).await, Written::Done(3));
    assert_eq!(delete(&store, "alice", Some(2)).await, Written::Stale(3));
    assert_eq!(delete(&store, "alice", Some(3)).await, Written::Done(3));
    assert_eq!(delete(&store, "alice", None).await, Written::Missing);
    assert_eq!(audited(&store).await, ["user.put", "user.put", "user.put", "user.delete"]);
}

async fn what_is_granted_is_kept_once_and_in_order(database: Database) {
    let store = database.open().await;
    for name in ["web", "db", "a:b"] {
        store.put_group(group(name, &[]), None, audit("x")).await.unwrap();
    }
    let grants = ["operator:web", "reader", "operator:db", "reader", "operator:a:b"];
    put(&store, user("alice", &grants), None).await;
    let kept = store.user("alice").await.unwrap().unwrap().grants;
    assert_eq!(kept, ["operator:a:b", "operator:db", "operator:web", "reader"]);
}

async fn a_grant_names_a_group_that_is_there(database: Database) {
    let store = database.open().await;
    let refused = store.put_user(user("alice", &["operator:gone"]), None, audit("x")).await;
    assert!(matches!(refused, Err(Error::Invalid(what)) if what.contains("no such group")), "{refused:?}");
    assert_eq!(store.users().await.unwrap(), []);
}

async fn a_grant_is_one_line(database: Database) {
    let store = database.open().await;
    for grant in ["", "reader\nserver-admin"] {
        let refused = store.put_user(user("alice", &[grant]), None, audit("x")).await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{grant:?}: {refused:?}");
    }
}

async fn sessions_end_when_rights_or_password_change(database: Database) {
    let store = database.open().await;
    let first = user("alice", &["reader"]);
    put(&store, first.clone(), None).await;
    let changes = [
        User { password: Some("$other".into()), ..first.clone() },
        User { password: None, ..first.clone() },
        User { disabled: true, ..first.clone() },
        User { grants: vec!["reader".into(), "org-admin".into()], ..first.clone() },
        User { grants: vec![], ..first.clone() },
    ];
    for change in changes {
        put(&store, first.clone(), Some(ANY_VERSION)).await;
        for token in [session("s", "alice"), api_token("t", "alice"), session("b", "bob")] {
            store.put_token(token, audit("x")).await.unwrap();
        }
        put(&store, change, Some(ANY_VERSION)).await;
        assert_eq!(token_ids(&store).await, ["b", "t"], "API tokens and others' sessions stay");
        for id in ["b", "t"] {
            store.delete_token(id.into(), audit("x")).await.unwrap();
        }
    }
}

async fn sessions_go_on_when_nothing_of_that_changes(database: Database) {
    let store = database.open().await;
    let first = user("alice", &["reader", "org-admin"]);
    put(&store, first.clone(), None).await;
    store.put_token(session("s", "alice"), audit("x")).await.unwrap();
    let grants = vec!["org-admin".into(), "reader".into(), "reader".into()];
    put(&store, User { full_name: "A.".into(), grants, ..first.clone() }, Some(1)).await;
    assert_eq!(put(&store, User { disabled: true, ..first }, Some(1)).await, Written::Stale(2));
    assert_eq!(token_ids(&store).await, ["s"]);
}

async fn a_removed_user_leaves_nothing_behind(database: Database) {
    let store = database.open().await;
    for name in ["alice", "bob"] {
        put(&store, user(name, &["server-admin"]), None).await;
        for (n, token) in [session("", name), api_token("", name)].into_iter().enumerate() {
            let id = format!("{name}{n}");
            let token = saltern_store::Token { hash: hash(&id), id, ..token };
            store.put_token(token, audit("x")).await.unwrap();
        }
        store.create_webhook(webhook("w", name), audit("x")).await.unwrap();
        store.begin_request(name.into(), "key".into(), hash("r"), at(1)).await.unwrap();
    }
    assert_eq!(delete(&store, "alice", None).await, Written::Done(1));
    assert_eq!(store.users().await.unwrap().len(), 1);
    assert_eq!(token_ids(&store).await, ["bob0", "bob1"]);
    let active: Vec<_> = store.webhooks().await.unwrap().into_iter().map(|hook| (hook.active, hook.version)).collect();
    assert_eq!(active, [(false, 2), (true, 1)]);
    let begun = async |name: &str| store.begin_request(name.into(), "key".into(), hash("r"), at(2)).await.unwrap();
    assert_eq!((begun("alice").await, begun("bob").await), (Begun::New, Begun::Running));

    put(&store, User { grants: vec![], ..user("alice", &[]) }, None).await;
    assert_eq!(
        store.user("alice").await.unwrap().unwrap().grants,
        [""; 0],
        "the next of that name begins with nothing"
    );
}

async fn only_one_of_two_servers_enters_a_user(database: Database) {
    let stores = [database.open().await, database.open().await];
    for round in 0..20 {
        let (one, other) = (user(&format!("u{round}"), &["reader"]), user(&format!("u{round}"), &["org-admin"]));
        let (one, other) = tokio::join!(put(&stores[0], one, None), put(&stores[1], other, None));
        assert!([(Written::Done(1), Written::Exists), (Written::Exists, Written::Done(1))].contains(&(one, other)));
    }
    for user in stores[0].users().await.unwrap() {
        assert_eq!(user.grants.len(), 1, "and nothing of the other's is there");
    }
}

async fn a_grant_and_the_removal_of_its_group_do_not_miss_each_other(database: Database) {
    let stores = [database.open().await, database.open().await];
    for round in 0..20 {
        let name = format!("g{round}");
        stores[0].put_group(group(&name, &[]), None, audit("x")).await.unwrap();
        let granted = user(&format!("u{round}"), &[&format!("operator:{name}")]);
        let (gone, entered) = tokio::join!(
            stores[0].delete_group(name.clone(), None, audit("x")),
            stores[1].put_user(granted, None, audit("x"))
        );
        assert_eq!(gone.unwrap(), Written::Done(1));
        assert!(matches!(entered, Ok(Written::Done(1)) | Err(Error::Invalid(_))), "{entered:?}");
    }
    for user in stores[0].users().await.unwrap() {
        assert_eq!(user.grants, [""; 0], "no grant on a group that is gone");
    }
}

#[test]
fn a_password_is_never_shown() {
    assert!(!format!("{:?}", user("alice", &[])).contains("argon2"));
}

async fn put(store: &Store, user: User, expected: Option<i64>) -> Written {
    store.put_user(user, expected, audit("user.put")).await.unwrap()
}

async fn delete(store: &Store, name: &str, expected: Option<i64>) -> Written {
    store.delete_user(name.into(), expected, None, audit("user.delete")).await.unwrap()
}
