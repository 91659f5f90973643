//! Nobody gives more than he has.

use crate::house::caller;
use crate::town::{PASSWORD, Town};
use saltern_server::Error;
use saltern_server::app::{AuditQuery, UserChange};

fn with_roles(roles: &[&str]) -> UserChange {
    UserChange {
        password: Some(PASSWORD.into()),
        roles: Some(roles.iter().map(ToString::to_string).collect()),
        ..UserChange::default()
    }
}

#[tokio::test]
async fn an_organisation_is_looked_after_by_its_own_admin() {
    let town = Town::open().await;
    let app = town.house.app();
    let northboss = town.caller("northboss").await;
    let made = app.create_user(&northboss, "newcomer", with_roles(&["operator:north-all"])).await.unwrap();
    assert_eq!(made.org, "north");
    // No server admin, no role on a group of others, nobody in another organisation.
    let refused = app.create_user(&northboss, "x", with_roles(&["server-admin"])).await.unwrap_err();
    assert!(matches!(refused, Error::Forbidden(_)), "{refused}");
    let refused = app.create_user(&northboss, "x", with_roles(&["operator:web"])).await.unwrap_err();
    assert!(matches!(refused, Error::NotFound(_)), "{refused}");
    let elsewhere = UserChange { org: Some("default".into()), ..with_roles(&[]) };
    assert!(matches!(app.create_user(&northboss, "x", elsewhere).await, Err(Error::Forbidden(_))));
    assert!(app.user(&northboss, "webop").is_err());
    let mut known: Vec<_> = app.users(&northboss).into_iter().map(|user| user.name).collect();
    known.sort();
    assert_eq!(known, ["newcomer", "northboss", "northop"]);
}

#[tokio::test]
async fn a_server_admin_is_changed_by_server_admins_only() {
    let town = Town::open().await;
    let app = town.house.app();
    let boss = town.caller("boss").await;
    let root = app.user(&boss, "root").unwrap();
    let change = UserChange { password: Some("taken over".into()), ..UserChange::default() };
    assert!(matches!(app.change_user(&boss, "root", change, root.version).await, Err(Error::Forbidden(_))));
    assert!(matches!(app.delete_user(&boss, "root", root.version).await, Err(Error::Forbidden(_))));
    assert!(app.check_password("root", PASSWORD).await);
}

#[tokio::test]
async fn operators_change_nobody() {
    let town = Town::open().await;
    let app = town.house.app();
    for user in ["webop", "webadmin", "reader", "nobody"] {
        let who = town.caller(user).await;
        assert!(matches!(app.create_user(&who, "x", with_roles(&[])).await, Err(Error::Forbidden(_))), "{user}");
        let raise = UserChange { roles: Some(vec!["server-admin".into()]), ..UserChange::default() };
        let own = app.user(&who, user).unwrap();
        assert!(matches!(app.change_user(&who, user, raise, own.version).await, Err(Error::Forbidden(_))), "{user}");
    }
}

#[tokio::test]
async fn a_group_admin_chooses_among_his_minions_and_sets_no_target() {
    let town = Town::open().await;
    let app = town.house.app();
    let webadmin = town.caller("webadmin").await;
    let known = app.group(&webadmin, "web").await.unwrap().group;
    let version = known.version;
    let mut wider = known.clone();
    wider.target = Some(("glob".into(), "*".into()));
    assert!(matches!(app.put_group(&webadmin, wider, Some(version)).await, Err(Error::Forbidden(_))));
    let mut more = known.clone();
    more.members = vec![crate::town::id("db1")];
    assert!(matches!(app.put_group(&webadmin, more, Some(version)).await, Err(Error::NotFound(_))));
    let mut fewer = known;
    fewer.members = vec![crate::town::id("web1")];
    app.put_group(&webadmin, fewer, Some(version)).await.unwrap();
    let webop = town.caller("webop").await;
    let again = app.group(&webop, "web").await.unwrap().group;
    let version = again.version;
    assert!(matches!(app.put_group(&webop, again, Some(version)).await, Err(Error::Forbidden(_))));
}

#[tokio::test]
async fn two_changes_at_once_do_not_overwrite_each_other() {
    let town = Town::open().await;
    let app = town.house.app();
    let known = app.user(&caller(), "webop").unwrap();
    let change = || UserChange { full_name: Some("Ann".into()), ..UserChange::default() };
    app.change_user(&caller(), "webop", change(), known.version).await.unwrap();
    let late = app.change_user(&caller(), "webop", change(), known.version).await.unwrap_err();
    assert!(matches!(late, Error::Stale(_)), "{late}");
}

#[tokio::test]
async fn everything_that_was_changed_is_in_the_audit_log_and_its_chain_holds() {
    let town = Town::open().await;
    let app = town.house.app();
    let entries = app.audit(&caller(), &AuditQuery { limit: 1000, ..AuditQuery::default() }).await.unwrap();
    let count = |what: &str| entries.iter().filter(|(_, entry)| entry.what == what).count();
    assert_eq!((count("user.create"), count("group.create"), count("key.accept")), (10, 3, 4));
    assert!(entries.iter().all(|(_, entry)| !entry.detail.contains(PASSWORD)));
    let check = app.verify_audit(&caller(), None).await.unwrap();
    assert!(check.broken.is_none(), "{check:?}");
    let noted = Some((check.entries, check.head));
    assert!(app.verify_audit(&caller(), noted).await.unwrap().broken.is_none());
    let wrong = app.verify_audit(&caller(), Some((check.entries, [7; 32]))).await.unwrap().broken.unwrap();
    assert_eq!(wrong.number, check.entries);
    let boss = town.caller("boss").await;
    assert!(matches!(app.verify_audit(&boss, None).await, Err(Error::Forbidden(_))));
}

#[tokio::test]
async fn ones_own_password_is_changed_with_the_old_one() {
    let town = Town::open().await;
    let app = town.house.app();
    let webop = town.caller("webop").await;
    assert!(matches!(app.change_password(&webop, "wrong", "new password").await, Err(Error::Forbidden(_))));
    app.change_password(&webop, PASSWORD, "new password").await.unwrap();
    assert!(app.check_password("webop", "new password").await && !app.check_password("webop", PASSWORD).await);
}
