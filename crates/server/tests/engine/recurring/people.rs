//! Who may have something recur on what, as whose work it is done, and what is refused.

use super::{NEVER, hold, id, on, on_a, ping, what};
use crate::house::caller;
use crate::ward::house;
use saltern_core::value::Value;
use saltern_server::Error;
use saltern_server::app::{
    ANY_VERSION, Caller, ChainDraft, EntityKind, Overlap, RecurringDraft, RecurringFilter, RecurringVerb, UserChange,
};
use std::time::Duration;

#[tokio::test]
async fn scenario_88_who_has_lost_the_right_is_refused_and_somebody_is_told() {
    let house = house().await;
    house.minions_known(&["a"]).await;
    house.group("web", &["a"], None).await;
    let ann = house.user("ann", "group-admin:web").await;
    let draft = RecurringDraft::new("ping", on(EntityKind::Group, "web"), ping(), NEVER);
    let definition = house.app().create_recurring(&ann, draft).await.unwrap().recurring.id;
    let fired = house.fired(definition).await.fire;
    assert_eq!(house.action(fired.action.unwrap()).await.new.initiator, "ann");
    let demoted = UserChange { roles: Some(vec!["reader".into()]), ..UserChange::default() };
    house.app().change_user(&caller(), "ann", demoted, ANY_VERSION).await.unwrap();
    let before = house.last_event().await;
    let refused = house.fired(definition).await.fire;
    assert_eq!((refused.outcome.as_str(), refused.action), ("refused", None));
    assert!(refused.why.contains("group"), "{}", refused.why);
    let notices = house.tags_after(before).await;
    assert!(notices.contains(&"saltern/notification/recurring".to_owned()), "{notices:?}");
    let disabled = UserChange { disabled: Some(true), ..UserChange::default() };
    house.app().change_user(&caller(), "ann", disabled, ANY_VERSION).await.unwrap();
    let refused = house.fired(definition).await.fire;
    assert!(refused.outcome == "refused" && refused.why.contains("disabled"), "{refused:?}");
}

#[tokio::test]
async fn scenario_87_what_a_deleted_user_made_is_kept_by_who_deleted_him_and_goes_on_when_he_says_so() {
    let house = house().await;
    house.minions_known(&["a"]).await;
    let ann = house.user("ann", "operator").await;
    let draft = RecurringDraft { overlap: Overlap::Allow, policy: hold(), ..on_a(NEVER) };
    let definition = house.app().create_recurring(&ann, draft).await.unwrap().recurring.id;
    let before = house.last_event().await;
    house.app().delete_user(&caller(), "ann", ANY_VERSION).await.unwrap();
    let row = house.app().recurring(&caller(), definition).await.unwrap().recurring;
    assert_eq!((row.owner.as_str(), row.creator.as_str()), ("tester", "ann"));
    // It would run with other rights than it was made with.
    assert_eq!((row.active, row.next), (false, None));
    let told = house.events_after(before).await;
    let notice = told.iter().find(|event| event.tag == "saltern/notification/recurring").unwrap();
    assert_eq!(notice.data.get("what").and_then(Value::as_str), Some("reassigned"));
    house.app().act_on_recurring(&caller(), definition, RecurringVerb::Activate(true)).await.unwrap();
    let fired = house.fired(definition).await.fire;
    assert_eq!(house.action(fired.action.unwrap()).await.new.initiator, "tester");
}

#[tokio::test]
async fn what_somebody_made_who_removes_himself_stops_and_somebody_is_told() {
    let house = house().await;
    house.minions_known(&["a"]).await;
    let ann = house.user("ann", "org-admin").await;
    let definition = house.app().create_recurring(&ann, on_a(NEVER)).await.unwrap().recurring.id;
    let before = house.last_event().await;
    house.app().delete_user(&ann, "ann", ANY_VERSION).await.unwrap();
    let row = house.app().recurring(&caller(), definition).await.unwrap().recurring;
    assert_eq!((row.active, row.next), (false, None));
    let told = house.events_after(before).await;
    let notice = told.iter().find(|event| event.tag == "saltern/notification/recurring").unwrap();
    assert_eq!(notice.data.get("what").and_then(Value::as_str), Some("stopped"));
}

#[tokio::test]
async fn who_changes_what_it_does_owns_it_from_then_on() {
    let house = house().await;
    house.minions_known(&["a"]).await;
    let definition = house.define(on_a(NEVER)).await;
    let bob = house.user("bob", "operator").await;
    let changed = house.app().put_recurring(&bob, definition, on_a("0 3 * * *"), ANY_VERSION).await.unwrap();
    assert_eq!((changed.recurring.owner.as_str(), changed.recurring.creator.as_str()), ("bob", "tester"));
    assert_eq!(changed.words, "every day at 03:00");
    let stale = house.app().put_recurring(&bob, definition, on_a(NEVER), 1).await;
    assert!(matches!(stale, Err(Error::Stale(_))), "{stale:?}");
    let taken = house.app().act_on_recurring(&caller(), definition, RecurringVerb::TakeOver).await.unwrap();
    assert_eq!(taken.recurring.recurring.owner, "tester");
    house.app().delete_recurring(&caller(), definition, ANY_VERSION).await.unwrap();
    assert!(matches!(house.app().recurring(&caller(), definition).await, Err(Error::NotFound(_))));
}

#[tokio::test]
async fn what_is_wrong_is_refused_with_the_place_and_a_hint() {
    let house = house().await;
    house.minions_known(&["a"]).await;
    house.define(on_a(NEVER)).await;
    let with = |change: fn(&mut RecurringDraft)| {
        let mut draft = RecurringDraft { name: "other".into(), ..on_a(NEVER) };
        change(&mut draft);
        draft
    };
    for (draft, words) in [
        (with(|draft| draft.cron = "61 * * * *".into()), vec!["minute", "column 1"]),
        (with(|draft| draft.cron = "0 0 30 2 *".into()), vec!["never fires"]),
        (with(|draft| draft.zone = "Europe/Prag".into()), vec!["Europe/Prague"]),
        (with(|draft| draft.what = what(r#"{"type":"stats"}"#)), vec!["stats", "states"]),
        (with(|draft| draft.what = what(r#"{"type":"states","params":{"mods":[]}}"#)), vec!["mods", "highstate"]),
        (with(|draft| draft.what = what(r#"{"type":"function","params":{"fun":"ping"}}"#)), vec!["fun", "test.ping"]),
        (with(|draft| draft.what = what(r#"{"chain":99}"#)), vec!["no chain 99"]),
        (with(|draft| draft.entity = on(EntityKind::Minion, "zoe")), vec!["zoe"]),
        (with(|draft| draft.entity = on(EntityKind::Group, "zoo")), vec!["zoo"]),
        (with(|draft| draft.entity = on(EntityKind::Organisation, "zoo")), vec!["zoo"]),
        (with(|draft| draft.entity = on(EntityKind::Target, "( a")), vec!["target"]),
        (with(|draft| draft.name = " x".into()), vec!["name"]),
        (with(|draft| draft.spread = Duration::from_secs(30 * 86_400)), vec!["spread", "7 days"]),
        (with(|draft| draft.name = "ping".into()), vec!["already"]),
    ] {
        let refused = house.app().create_recurring(&caller(), draft.clone()).await;
        let error = refused.map(drop).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{draft:?}: {error}");
    }
    let filter = RecurringFilter { limit: 100, ..RecurringFilter::default() };
    assert_eq!(house.app().recurrings(&caller(), &filter).await.unwrap().len(), 1);
}

#[tokio::test]
async fn scenario_80_who_may_have_something_recur_on_what() {
    let house = house().await;
    house.minions_known(&["a", "b"]).await;
    house.group("web", &["a"], None).await;
    house.group("db", &["b"], None).await;
    let things = [
        on(EntityKind::Minion, "a"),
        on(EntityKind::Minion, "b"),
        on(EntityKind::Group, "web"),
        on(EntityKind::Group, "db"),
        on(EntityKind::Organisation, "default"),
        on(EntityKind::Target, "a"),
    ];
    for (name, role, may) in [
        ("root", "server-admin", [true, true, true, true, true, true]),
        ("boss", "org-admin", [true, true, true, true, true, true]),
        ("webadmin", "group-admin:web", [true, false, true, false, false, false]),
        ("webop", "operator:web", [true, false, false, false, false, false]),
        ("reader", "reader", [false, false, false, false, false, false]),
    ] {
        let who = house.user(name, role).await;
        for (thing, may) in things.iter().zip(may) {
            let draft = RecurringDraft::new(name, thing.clone(), ping(), NEVER);
            let made = house.app().create_recurring(&who, draft).await;
            assert_eq!(made.is_ok(), may, "{name} on {thing}: {made:?}");
            let filter = RecurringFilter { limit: 100, entity: Some(thing.clone()), ..RecurringFilter::default() };
            let seen = house.app().recurrings(&who, &filter).await.unwrap();
            assert_eq!(!seen.is_empty(), may, "{name} sees {thing}");
        }
    }
}

#[tokio::test]
async fn scenario_75_a_minion_is_hit_by_its_own_its_groups_its_organisations_and_targets() {
    let house = house().await;
    house.minions_known(&["a", "b"]).await;
    house.group("web", &["a"], None).await;
    let secret = what(r#"{"type":"states","params":{"pillar":{"key":"secret"}}}"#);
    for thing in [
        on(EntityKind::Minion, "a"),
        on(EntityKind::Group, "web"),
        on(EntityKind::Organisation, "default"),
        on(EntityKind::Target, "a*"),
    ] {
        house.define(RecurringDraft::new("x", thing, secret.clone(), NEVER)).await;
    }
    let kinds = async |who: &Caller, minion: &str| {
        let views = house.app().recurrings_hitting(who, &id(minion)).await.unwrap();
        views.into_iter().map(|view| (view.entity.kind.as_str(), view.is_his, view.what.json())).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&caller(), "a").await.len(), 4);
    assert_eq!(kinds(&caller(), "b").await.len(), 1);
    let webop = house.user("webop", "operator:web").await;
    for (kind, is_his, what) in kinds(&webop, "a").await {
        assert_eq!((is_his, what.contains("secret")), (kind == "minion", kind == "minion"), "{kind}");
    }
    assert!(matches!(house.app().recurrings_hitting(&webop, &id("b")).await, Err(Error::NotFound(_))));
}

#[tokio::test]
async fn run_now_is_the_work_of_who_asked_and_no_planned_instant() {
    let house = house().await;
    house.minions_known(&["a"]).await;
    let definition = house.define(RecurringDraft { policy: hold(), ..on_a(NEVER) }).await;
    let bob = house.user("bob", "operator").await;
    let before = house.app().recurring(&bob, definition).await.unwrap().recurring;
    let done = house.app().act_on_recurring(&bob, definition, RecurringVerb::RunNow).await.unwrap();
    let action = house.action(done.action.unwrap()).await;
    assert_eq!((action.new.initiator.as_str(), action.new.recurring), ("bob", Some(definition)));
    assert_eq!(house.fires(definition).await, []);
    assert_eq!(house.app().recurring(&bob, definition).await.unwrap().recurring, before);
}

#[tokio::test]
async fn what_others_change_in_a_chain_does_not_run_with_his_rights() {
    let house = house().await;
    house.minions_known(&["a"]).await;
    let ann = house.user("ann", "operator").await;
    let step =
        saltern_core::chain::Step::new("function", Value::map([("fun", "test.ping")]).as_map().cloned().unwrap());
    let draft = ChainDraft { name: "hers".into(), description: String::new(), shared: true, steps: vec![step] };
    let chain = house.app().create_chain(&ann, draft.clone()).await.unwrap();
    let words = format!(r#"{{"chain":{}}}"#, chain.id);
    let definition = RecurringDraft {
        policy: hold(),
        ..RecurringDraft::new("hers", on(EntityKind::Minion, "a"), what(&words), NEVER)
    };
    let definition = house.app().create_recurring(&caller(), definition).await.unwrap().recurring.id;
    assert_eq!(house.fired(definition).await.fire.outcome, "fired");
    let changed = ChainDraft { description: "and more".into(), ..draft };
    house.app().put_chain(&ann, chain.id, changed, chain.version).await.unwrap();
    // Nor does it help to have somebody touch the definition.
    for skip in [true, false] {
        house.app().act_on_recurring(&caller(), definition, RecurringVerb::SkipNext(skip)).await.unwrap();
    }
    let refused = house.fired(definition).await.fire;
    assert!(refused.outcome == "refused" && refused.why.contains("ann"), "{refused:?}");
}
