//! The state catalogue: who reads, writes and assigns states, and which minion gets which.

use crate::house::{House, caller};
use crate::town::{Town, id};
use saltern_core::value::Value;
use saltern_server::Error;
use saltern_server::app::{ANY_VERSION, Assignee, AssigneeKind, AuditQuery, Caller, StateDraft};
use saltern_testkit::fake_minion::FakeMinion;
use saltern_testkit::{postgres, wait};
use std::time::Duration;

fn draft(name: &str, content: &str) -> StateDraft {
    StateDraft { name: name.into(), content: content.into(), ..StateDraft::default() }
}

fn minion(subject: &str) -> Assignee {
    Assignee { kind: AssigneeKind::Minion, subject: subject.into() }
}

fn group(subject: &str) -> Assignee {
    Assignee { kind: AssigneeKind::Group, subject: subject.into() }
}

fn org(subject: &str) -> Assignee {
    Assignee { kind: AssigneeKind::Org, subject: subject.into() }
}

impl Town {
    async fn put(&self, who: &Caller, name: &str, content: &str) {
        self.house.app().put_state(who, draft(name, content), None).await.unwrap();
    }

    async fn assign(&self, who: &str, name: &str, to: Assignee) -> Result<(), Error> {
        let who = self.caller(who).await;
        self.house.app().assign_state(&who, None, name, to).await
    }
}

/// A file as a minion gets it; nothing if there is none.
async fn file(minion: &FakeMinion, path: &str) -> Option<String> {
    let place = || [("path", Value::from(path)), ("saltenv", "base".into()), ("loc", 0.into())];
    let served = minion.request("_serve_file", place()).await;
    let hash = minion.request("_file_hash", place()).await;
    let found = minion.request("_file_find", place()).await;
    let both = minion.request("_file_hash_and_stat", place()).await;
    let is_there = served.get("dest").unwrap().as_str() == Some(path);
    assert_eq!(hash != Value::from(""), is_there, "the hash of {path}");
    assert_eq!(found.get("path").unwrap().as_str(), Some(if is_there { path } else { "" }));
    assert_eq!(both.as_list().unwrap()[0], hash);
    is_there.then(|| served.get("data").unwrap().as_str().unwrap().to_owned())
}

async fn listed(minion: &FakeMinion, cmd: &str) -> Vec<String> {
    let listed = minion.request(cmd, [("saltenv", "base"), ("prefix", "")]).await;
    listed.as_list().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn states_are_read_in_their_organisation_and_written_by_its_admin() {
    let town = Town::open().await;
    let app = town.house.app();
    let boss = town.caller("boss").await;
    town.put(&boss, "web", "a: {}").await;
    for reader in ["boss", "webadmin", "webop", "webreader", "reader", "root"] {
        let who = town.caller(reader).await;
        assert_eq!(app.state(&who, None, "web").unwrap().state.content, "a: {}", "{reader}");
    }
    for stranger in ["nobody", "northboss", "northop"] {
        let who = town.caller(stranger).await;
        assert!(app.states(&who, None).unwrap().is_empty(), "{stranger}");
        assert!(matches!(app.state(&who, None, "web"), Err(Error::NotFound(_))), "{stranger}");
    }
    assert!(matches!(app.states(&town.caller("northboss").await, Some("default")), Err(Error::NotFound(_))));
    for reader in ["webadmin", "webop", "reader", "nobody"] {
        let who = town.caller(reader).await;
        assert!(matches!(app.put_state(&who, draft("x", "a: {}"), None).await, Err(Error::Forbidden(_))), "{reader}");
        let refused = app.delete_state(&who, None, "web", ANY_VERSION).await.unwrap_err();
        assert!(matches!(refused, Error::Forbidden(_) | Error::NotFound(_)), "{reader}");
    }
    let elsewhere = StateDraft { org: Some("north".into()), ..draft("web", "b: {}") };
    assert!(matches!(app.put_state(&boss, elsewhere.clone(), None).await, Err(Error::NotFound(_))));
    app.put_state(&town.caller("root").await, elsewhere, None).await.unwrap();
    assert_eq!(app.state(&town.caller("northop").await, None, "web").unwrap().state.content, "b: {}");
}

#[tokio::test]
async fn what_a_state_was_can_be_read_and_put_back() {
    let town = Town::open().await;
    let (app, boss) = (town.house.app(), town.caller("boss").await);
    town.put(&boss, "web", "a: {}").await;
    let change = |content| app.put_state(&boss, draft("web", content), Some(ANY_VERSION));
    assert_eq!(change("b: {}").await.unwrap().state.version, 2);
    let (_, first) = app.state_version(&boss, None, "web", 1).await.unwrap();
    assert_eq!(change(&first).await.unwrap().state.version, 3);
    let same = app.put_state(&boss, draft("web", &first), Some(3)).await.unwrap();
    assert_eq!(same.state.version, 3, "what is so already is no change");
    let versions = app.state_versions(&boss, None, "web", None, 10).await.unwrap();
    assert_eq!(versions.iter().map(|version| version.version).collect::<Vec<_>>(), [3, 2, 1]);
    assert!(matches!(app.put_state(&boss, draft("web", "c: {}"), Some(1)).await, Err(Error::Stale(_))));
    assert!(matches!(app.put_state(&boss, draft("web", "c: {}"), None).await, Err(Error::Conflict(_))));
    assert!(matches!(app.put_state(&boss, draft("Web", "c: {}"), None).await, Err(Error::Invalid(_))));
    let audit = app.audit(&caller(), &AuditQuery { limit: 4, ..AuditQuery::default() }).await.unwrap();
    let told: Vec<_> = audit.iter().filter(|(_, entry)| entry.what.starts_with("state.")).collect();
    assert_eq!(told.len(), 3);
}

#[tokio::test]
async fn states_are_assigned_by_those_who_act_on_the_minions() {
    let town = Town::open().await;
    let app = town.house.app();
    town.put(&town.caller("boss").await, "web", "a: {}").await;
    for (who, to, is_allowed) in [
        ("webop", minion("web1"), true),
        ("webop", minion("db1"), false),
        ("webop", group("web"), false),
        ("webreader", minion("web1"), false),
        ("webadmin", group("web"), true),
        ("webadmin", group("db"), false),
        ("webadmin", org("default"), false),
        ("boss", org("default"), true),
        ("boss", org("north"), false),
        ("boss", minion("north1"), false),
        ("boss", group("north-all"), false),
        ("root", minion("north1"), false),
        ("northboss", minion("north1"), false),
        ("nobody", minion("web1"), false),
    ] {
        let assigned = town.assign(who, "web", to.clone()).await;
        assert_eq!(assigned.is_ok(), is_allowed, "{who} {to:?}: {assigned:?}");
    }
    let dbop = app.state(&town.caller("dbop").await, None, "web").unwrap();
    assert_eq!(dbop.assignees, [org("default"), group("web")], "a minion he does not see is not told");
    let refused = app.unassign_state(&town.caller("webreader").await, None, "web", minion("web1")).await.unwrap_err();
    assert!(matches!(refused, Error::Forbidden(_)), "{refused}");
    app.unassign_state(&town.caller("boss").await, None, "web", minion("web1")).await.unwrap();
    let assigned = app.assigned_states(&town.caller("webop").await, &id("web1")).await.unwrap();
    let ways: Vec<_> = assigned.into_iter().map(|(state, by)| (state.name, by)).collect();
    assert_eq!(ways, [("web".to_owned(), org("default")), ("web".to_owned(), group("web"))]);
    assert!(matches!(app.assigned_states(&town.caller("dbop").await, &id("web1")).await, Err(Error::NotFound(_))));
}

#[tokio::test]
async fn a_minion_gets_the_states_of_its_organisation_as_files() {
    let town = Town::with([("auto_accept", true.into())]).await;
    let minion = FakeMinion::accepted(town.house.requests, "web9").await;
    let north = FakeMinion::accepted(town.house.requests, "north9").await;
    town.house.app().set_minion_org(&caller(), &id("north9"), "north").await.unwrap();
    let boss = town.caller("boss").await;
    town.put(&boss, "web.nginx", "a: {}").await;
    assert_eq!(file(&minion, "catalogue/web/nginx.sls").await.as_deref(), Some("a: {}"));
    assert_eq!(file(&north, "catalogue/web/nginx.sls").await, None);
    let files = listed(&minion, "_file_list").await;
    for path in ["catalogue/web/nginx.sls", "saltern/assigned.sls", "_modules/saltern_chain.py"] {
        assert!(files.iter().any(|file| file == path), "{files:?}");
    }
    assert!(listed(&minion, "_dir_list").await.iter().any(|folder| folder == "catalogue/web"));
    assert!(!listed(&north, "_file_list").await.iter().any(|file| file.starts_with("catalogue")));

    town.house.app().put_state(&boss, draft("web.nginx", "b: {}"), Some(1)).await.unwrap();
    assert_eq!(file(&minion, "catalogue/web/nginx.sls").await.as_deref(), Some("b: {}"), "at once");
    town.house.app().delete_state(&boss, None, "web.nginx", 2).await.unwrap();
    assert_eq!(file(&minion, "catalogue/web/nginx.sls").await, None);
}

#[tokio::test]
async fn a_file_of_the_operator_wins_over_one_of_the_catalogue() {
    let house = House::furnished(vec![("auto_accept".into(), true.into())], |dir| {
        std::fs::create_dir_all(dir.join("files/catalogue/empty")).unwrap();
        std::fs::write(dir.join("files/catalogue/web.sls"), "mine: {}").unwrap();
    })
    .await;
    let minion = FakeMinion::accepted(house.requests, "a").await;
    for name in ["web", "empty.state"] {
        house.app().put_state(&caller(), draft(name, "theirs: {}"), None).await.unwrap();
    }
    assert_eq!(file(&minion, "catalogue/web.sls").await.as_deref(), Some("mine: {}"));
    let files = listed(&minion, "_file_list").await;
    assert_eq!(files.iter().filter(|file| *file == "catalogue/web.sls").count(), 1, "{files:?}");
    assert_eq!(listed(&minion, "_file_list_emptydirs").await, [""; 0], "there is a file in it");
}

#[tokio::test]
async fn a_minion_is_told_what_is_assigned_to_it_and_to_what_it_belongs_to() {
    let town = Town::with([("auto_accept", true.into())]).await;
    let web = FakeMinion::accepted(town.house.requests, "web9").await;
    let db = FakeMinion::accepted(town.house.requests, "db9").await;
    let boss = town.caller("boss").await;
    for name in ["a", "b", "c"] {
        town.put(&boss, name, "x: {}").await;
    }
    for (name, to) in [("a", minion("web9")), ("b", group("web")), ("c", org("default")), ("c", group("web"))] {
        town.assign("boss", name, to).await.unwrap();
    }
    let assigned = async |minion: &FakeMinion| file(minion, "saltern/assigned.sls").await.unwrap();
    let text = assigned(&web).await;
    assert!(text.ends_with("include:\n  - catalogue.c\n  - catalogue.b\n  - catalogue.a\n"), "{text}");
    let text = assigned(&db).await;
    assert!(text.ends_with("include:\n  - catalogue.c\n"), "{text}");
    town.house.app().delete_state(&boss, None, "c", ANY_VERSION).await.unwrap();
    assert!(!assigned(&db).await.contains("catalogue"));
}

#[tokio::test]
async fn what_one_server_is_told_the_other_serves() {
    let Some(url) = tokio::task::spawn_blocking(postgres::fresh_database).await.unwrap() else { return };
    let settings = || vec![("database".into(), Value::from(url.as_str())), ("auto_accept".into(), true.into())];
    let one = House::furnished(settings(), |_| {}).await;
    let other = House::furnished(settings(), |_| {}).await;
    let minion = FakeMinion::accepted(other.requests, "a").await;
    one.app().put_state(&caller(), draft("web", "a: {}"), None).await.unwrap();
    // One question at a time: between two of them the other server may have noticed.
    wait::until("the other server to notice", Duration::from_secs(30), async || {
        listed(&minion, "_file_list").await.contains(&"catalogue/web.sls".to_owned())
    })
    .await;
    assert_eq!(file(&minion, "catalogue/web.sls").await.as_deref(), Some("a: {}"));
}
