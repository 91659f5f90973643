//! Nobody gives more than he has.

use crate::house::caller;
use crate::town::{PASSWORD, Town, id};
use saltern_core::value::Value;
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

#[tokio::test]
async fn ones_own_password_is_not_guessed_with_a_session_that_was_found() {
    let town = Town::open().await;
    let app = town.house.app();
    let webop = town.caller("webop").await;
    for n in 0..5 {
        let refused = app.change_password(&webop, &format!("wrong {n}"), "new password").await.unwrap_err();
        assert!(refused.to_string().contains("not right"), "{refused}");
    }
    let refused = app.change_password(&webop, PASSWORD, "new password").await.unwrap_err();
    assert!(matches!(&refused, Error::Forbidden(text) if text.contains("too many")), "{refused}");
    assert!(app.check_password("webop", PASSWORD).await);
}

#[tokio::test]
async fn a_name_that_salts_rules_speak_of_is_not_for_org_admins_to_take() {
    let rules = Value::map([("pam", Value::map([("dave", Value::list([".*", "@runner", "@wheel"]))]))]);
    let town = Town::with([("external_auth", rules)]).await;
    let app = town.house.app();
    let northboss = town.caller("northboss").await;
    for auth in ["pam", "local"] {
        let password = (auth == "local").then(|| PASSWORD.to_owned());
        let dave = UserChange { auth: Some(auth.into()), password, ..UserChange::default() };
        let refused = app.create_user(&northboss, "dave", dave).await;
        assert!(matches!(refused, Err(Error::Forbidden(_))), "{auth}: {refused:?}");
    }
    // Who is in his organisation by the word of a server admin is not his to change, either.
    let change = UserChange { org: Some("north".into()), auth: Some("pam".into()), ..UserChange::default() };
    let dave = app.create_user(&caller(), "dave", change).await.unwrap();
    let out = UserChange { disabled: Some(true), ..UserChange::default() };
    assert!(matches!(app.change_user(&northboss, "dave", out, dave.version).await, Err(Error::Forbidden(_))));
    assert!(matches!(app.delete_user(&northboss, "dave", dave.version).await, Err(Error::Forbidden(_))));
}

#[tokio::test]
async fn who_only_reads_a_minion_does_not_take_it_into_his_group() {
    let town = Town::open().await;
    let app = town.house.app();
    town.user("keeper", "default", "group-admin:web reader").await;
    let keeper = town.caller("keeper").await;
    let mut web = app.group(&keeper, "web").await.unwrap().group;
    let version = web.version;
    web.members = vec![id("db1")];
    let refused = app.put_group(&keeper, web.clone(), Some(version)).await;
    assert!(matches!(refused, Err(Error::Forbidden(_))), "{refused:?}");
    assert!(matches!(town.ping(&town.caller("keeper").await, "db1").await, Err(Error::Forbidden(_))));
    web.members = vec![id("web1")];
    app.put_group(&keeper, web, Some(version)).await.unwrap();
}

#[tokio::test]
async fn members_one_does_not_see_are_not_shown_and_stay() {
    let town = Town::open().await;
    let app = town.house.app();
    let mut web = app.group(&caller(), "web").await.unwrap().group;
    let version = web.version;
    web.members = vec![id("north1"), id("web1")];
    app.put_group(&caller(), web, Some(version)).await.unwrap();
    for user in ["nobody", "dbop"] {
        assert!(app.group(&town.caller(user).await, "web").await.unwrap().group.members.is_empty(), "{user}");
    }
    let webadmin = town.caller("webadmin").await;
    let mut web = app.group(&webadmin, "web").await.unwrap().group;
    assert_eq!(web.members, [id("web1")]);
    web.members = vec![id("web2")];
    let version = web.version;
    app.put_group(&webadmin, web, Some(version)).await.unwrap();
    assert_eq!(app.group(&caller(), "web").await.unwrap().group.members, [id("north1"), id("web2")]);
}

#[tokio::test]
async fn roles_on_groups_do_not_move_to_another_organisation() {
    let town = Town::open().await;
    let app = town.house.app();
    let webop = app.user(&caller(), "webop").unwrap();
    let north = UserChange { org: Some("north".into()), ..UserChange::default() };
    let refused = app.change_user(&caller(), "webop", north.clone(), webop.version).await.unwrap_err();
    assert!(refused.to_string().contains("no group \"web\""), "{refused}");
    let north = UserChange { roles: Some(vec!["operator:north-all".into()]), ..north };
    app.change_user(&caller(), "webop", north, webop.version).await.unwrap();
    assert_eq!(town.ping(&town.caller("webop").await, "*").await.unwrap().minions, [id("north1")]);
}
