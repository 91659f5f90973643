//! What people see, and on whom they may act.

use crate::house::caller;
use crate::town::{Town, id, ping};
use saltern_core::access::{Thing, Wish};
use saltern_core::target::{Target, TargetType};
use saltern_server::Error;
use saltern_server::app::{ActionQuery, JobQuery, RunRequest, Verb};
use saltern_store::ActionFilter;

async fn seen(town: &Town, user: &str) -> Vec<String> {
    let who = town.caller(user).await;
    town.house.app().minions(&who, None).await.unwrap().iter().map(|minion| minion.id.to_string()).collect()
}

#[tokio::test]
async fn everybody_sees_his_minions_and_no_others() {
    let town = Town::open().await;
    let expected = [
        ("root", vec!["db1", "north1", "web1", "web2"]),
        ("boss", vec!["db1", "web1", "web2"]),
        ("webadmin", vec!["web1", "web2"]),
        ("webop", vec!["web1", "web2"]),
        ("dbop", vec!["db1"]),
        ("reader", vec!["db1", "web1", "web2"]),
        ("webreader", vec!["web1", "web2"]),
        ("nobody", vec![]),
        ("northboss", vec!["north1"]),
        ("northop", vec!["north1"]),
    ];
    for (user, minions) in expected {
        assert_eq!(seen(&town, user).await, minions, "{user}");
    }
}

#[tokio::test]
async fn a_minion_of_others_is_not_there() {
    let town = Town::open().await;
    let app = town.house.app();
    let dbop = town.caller("dbop").await;
    let of_others = app.minion(&dbop, "web1").unwrap_err();
    let of_nobody = app.minion(&dbop, "zzz").unwrap_err();
    assert_eq!(of_others.to_string(), of_nobody.to_string().replace("zzz", "web1"));
    assert!(matches!(of_others, Error::NotFound(_)));
}

#[tokio::test]
async fn operators_reach_their_minions_and_readers_none() {
    let town = Town::open().await;
    for (user, pattern, minions) in
        [("webop", "*", 2), ("dbop", "*", 1), ("boss", "*", 3), ("root", "*", 4), ("northop", "*", 1)]
    {
        let accepted = town.ping(&town.caller(user).await, pattern).await.unwrap();
        assert_eq!(accepted.minions.len(), minions, "{user}");
    }
    for user in ["reader", "webreader", "nobody"] {
        let refused = town.ping(&town.caller(user).await, "web1").await.unwrap_err();
        assert!(matches!(refused, Error::Forbidden(_)), "{user}: {refused}");
    }
    let refused = town.ping(&town.caller("dbop").await, "web1").await.unwrap_err();
    assert!(matches!(refused, Error::NotFound(_)), "{refused}");
}

#[tokio::test]
async fn jobs_and_actions_show_the_minions_one_sees() {
    let town = Town::open().await;
    let app = town.house.app();
    let all = town.ping(&caller(), "*").await.unwrap();
    let northern = town.ping(&caller(), "north1").await.unwrap();
    let webop = town.caller("webop").await;
    let jobs = app.jobs(&webop, &JobQuery { limit: 10, ..JobQuery::default() }).await.unwrap();
    assert_eq!(jobs.iter().map(|job| job.jid).collect::<Vec<_>>(), [all.jid.unwrap()]);
    assert_eq!(jobs[0].minions, [id("web1"), id("web2")]);
    assert!(app.job(&webop, northern.jid.unwrap()).await.is_err());
    assert_eq!(app.job(&webop, all.jid.unwrap()).await.unwrap().runs.len(), 2);
    let query = ActionQuery {
        before: None,
        limit: 10,
        internal: false,
        archived: false,
        filter: ActionFilter::All,
        initiator: None,
        minion: None,
    };
    let actions = app.actions(&webop, &query).await.unwrap();
    assert_eq!(actions.iter().map(|action| (action.id, action.counts.total)).collect::<Vec<_>>(), [(all.action, 2)]);
}

#[tokio::test]
async fn verbs_reach_what_is_ones_own() {
    let town = Town::open().await;
    let app = town.house.app();
    let all = town.ping(&caller(), "*").await.unwrap();
    let webop = town.caller("webop").await;
    let done = app.act(&webop, &[all.action], None, &Verb::Cancel).await.unwrap();
    assert_eq!(done[0].minions.keys().collect::<Vec<_>>(), [&id("web1"), &id("web2")]);
    for whole in [Verb::Pause, Verb::Archive] {
        let refused = app.act(&webop, &[all.action], None, &whole).await.unwrap_err();
        assert!(matches!(refused, Error::Forbidden(_)), "{refused}");
    }
    let webreader = town.caller("webreader").await;
    let refused = app.act(&webreader, &[all.action], None, &Verb::Cancel).await.unwrap_err();
    assert!(matches!(refused, Error::Forbidden(_)), "{refused}");
}

#[tokio::test]
async fn a_group_by_target_takes_in_who_comes_later() {
    let town = Town::open().await;
    let webop = town.session("webop").await.0;
    town.house.app().make_keys(&caller(), Some(&id("web3")), None, false).await.unwrap();
    saltern_testkit::wait::until("web3 to be seen", std::time::Duration::from_secs(20), async || {
        let who = town.house.app().caller_of_token(&webop, "here").await.unwrap().caller;
        who.sight().sees(&id("web3"))
    })
    .await;
}

#[tokio::test]
async fn keys_that_wait_are_for_those_who_decide() {
    let town = Town::open().await;
    let app = town.house.app();
    for (user, keys) in [("root", 4), ("webop", 2), ("nobody", 0), ("northboss", 1)] {
        assert_eq!(app.keys(&town.caller(user).await).len(), keys, "{user}");
    }
    let webop = town.caller("webop").await;
    assert!(app.may(&webop, &Wish::Manage(Thing::Server)).is_err());
    assert!(matches!(app.status(&webop).await, Err(Error::Forbidden(_))));
    assert!(matches!(app.make_keys(&webop, Some(&id("x")), None, false).await, Err(Error::Forbidden(_))));
}

#[tokio::test]
async fn a_list_of_minions_names_nobody_to_those_who_do_not_see_him() {
    let town = Town::open().await;
    let app = town.house.app();
    let list = |names: &str| RunRequest { target: Target::new(TargetType::List, names), ..ping("") };
    let all = app.run(&caller(), list("web1,db1,north1,ghost")).await.unwrap();
    let webop = town.caller("webop").await;
    let job = app.job(&webop, all.jid.unwrap()).await.unwrap().job;
    assert_eq!(job.target.as_str(), Some("web1"));
    let action = app.action(&webop, all.action).await.unwrap().new;
    assert!(!action.target.contains("db1") && !action.decision.contains("db1"), "{action:?}");
    // Whom he does not see is missing as one that does not exist, and is not counted.
    let own = app.run(&webop, list("web1,db1,ghost")).await.unwrap();
    assert_eq!(own.missing, ["db1", "ghost"]);
    assert_eq!(app.job(&webop, own.jid.unwrap()).await.unwrap().job.missing, ["db1", "ghost"]);
    let decision = app.action(&webop, own.action).await.unwrap().new.decision;
    assert!(!decision.contains("of 2"), "{decision}");
}

#[tokio::test]
async fn pillar_cannot_be_guessed_by_who_matches_it() {
    let town = Town::open().await;
    let app = town.house.app();
    // Nobody's pillar says so, and who may not read it must not learn even that.
    let target = Target::new(TargetType::Compound, "web* and not I@secret:h*");
    for (user, count) in [("webop", 2), ("boss", 2), ("webreader", 0), ("reader", 0), ("nobody", 0)] {
        let found = app.minions(&town.caller(user).await, Some(&target)).await.unwrap();
        assert_eq!(found.len(), count, "{user}");
    }
}

#[tokio::test]
async fn a_short_page_is_full_whatever_others_have_run() {
    let town = Town::open().await;
    let app = town.house.app();
    let own = town.ping(&caller(), "web1").await.unwrap();
    for _ in 0..3 {
        town.ping(&caller(), "north1").await.unwrap();
    }
    let webop = town.caller("webop").await;
    let jobs = app.jobs(&webop, &JobQuery { limit: 1, ..JobQuery::default() }).await.unwrap();
    assert_eq!(jobs.iter().map(|job| job.jid).collect::<Vec<_>>(), [own.jid.unwrap()]);
}
