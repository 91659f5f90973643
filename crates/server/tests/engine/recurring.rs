//! What recurs, with minions in the hands of the test: each planned instant is accounted for once, whatever happens.

mod once;
mod people;
mod windows;

use crate::house::{House, caller};
use crate::ward::{Hands, LONG, house, minion};
use saltern_core::action::{Offline, Policy};
use saltern_core::ids::{ActionId, MinionId, RecurringId};
use saltern_core::run::{RunState, WaitingFor};
use saltern_core::time::Timestamp;
use saltern_core::value::Value;
use saltern_server::app::{
    ANY_VERSION, Caller, ChainDraft, EntityKind, EntityRef, FireEntry, Group, Identity, Overlap, RecurringDraft,
    RecurringVerb, RecurringWhat, UserChange,
};
use saltern_testkit::wait;
use std::time::Duration;

/// New Year: an instant that no test meets.
const NEVER: &str = "0 0 1 1 *";

fn what(json: &str) -> RecurringWhat {
    RecurringWhat::read(json).unwrap()
}

fn ping() -> RecurringWhat {
    what(r#"{"type":"function","params":{"fun":"test.ping"}}"#)
}

fn on(kind: EntityKind, subject: &str) -> EntityRef {
    EntityRef::new(kind, subject)
}

fn on_a(cron: &str) -> RecurringDraft {
    RecurringDraft::new("ping", on(EntityKind::Minion, "a"), ping(), cron)
}

fn on_both(overlap: Overlap, policy: Policy) -> RecurringDraft {
    let draft = RecurringDraft::new("ping", on(EntityKind::Target, "L@a,b"), ping(), NEVER);
    RecurringDraft { overlap, policy, ..draft }
}

fn hold() -> Policy {
    Policy { offline: Offline::Hold, ..Policy::default() }
}

fn id(text: &str) -> MinionId {
    MinionId::new(text).unwrap()
}

fn now() -> Timestamp {
    saltern_server::clock::now()
}

/// A ping that recurs on a minion, and is done at once.
pub(crate) async fn run_once(house: &House, minion: &str) {
    let draft = RecurringDraft::new("once", on(EntityKind::Minion, minion), ping(), NEVER);
    let definition = house.define(draft).await;
    house.app().act_on_recurring(&caller(), definition, RecurringVerb::RunNow).await.unwrap();
}

impl House {
    async fn define(&self, draft: RecurringDraft) -> RecurringId {
        self.app().create_recurring(&caller(), draft).await.unwrap().recurring.id
    }

    fn change(&self, sql: &str, values: impl rusqlite::Params) {
        let database = rusqlite::Connection::open(self.dir.path().join("data/saltern.db")).unwrap();
        database.busy_timeout(LONG).unwrap();
        database.execute(sql, values).unwrap();
    }

    /// Its instant comes: now. The server hears of it with the next change of any definition.
    async fn comes(&self, id: RecurringId) -> Timestamp {
        let planned = now();
        self.change("UPDATE recurring SET next = ?1 WHERE id = ?2", [planned.0, id.0]);
        self.knock().await;
        planned
    }

    async fn knock(&self) {
        let name = format!("knock {}", now().0);
        let target = on(EntityKind::Target, "nobody");
        let draft = RecurringDraft { active: false, ..RecurringDraft::new(name, target, ping(), NEVER) };
        self.define(draft).await;
    }

    async fn fires(&self, id: RecurringId) -> Vec<FireEntry> {
        self.app().fires(&caller(), id, None, 1_000).await.unwrap()
    }

    /// Waits until so many instants are accounted for; tells what became of them, newest first.
    async fn accounted(&self, id: RecurringId, count: usize) -> Vec<FireEntry> {
        wait::until_ok("the instants to be accounted for", LONG, async || {
            let fires = self.fires(id).await;
            if fires.len() >= count { Ok(fires) } else { Err(format!("{fires:?}")) }
        })
        .await
    }

    /// What became of its instant, which comes now.
    async fn fired(&self, id: RecurringId) -> FireEntry {
        let planned = self.comes(id).await;
        wait::until_ok("the instant to be accounted for", LONG, async || {
            let fires = self.fires(id).await;
            fires.into_iter().find(|entry| entry.fire.planned == planned).ok_or("not yet")
        })
        .await
    }

    async fn minions_of(&self, action: Option<ActionId>) -> Vec<String> {
        let runs = self.app().runs(&caller(), action.unwrap(), None, "", 1_000).await.unwrap();
        runs.into_iter().map(|run| run.minion.to_string()).collect()
    }

    async fn user(&self, name: &str, role: &str) -> Caller {
        let change = UserChange {
            password: Some("correct horse".into()),
            roles: Some(vec![role.into()]),
            ..UserChange::default()
        };
        self.app().create_user(&caller(), name, change).await.unwrap();
        self.caller_of(name).await
    }

    async fn caller_of(&self, name: &str) -> Caller {
        let identity = Identity { user: name.into(), auth: "local".into(), groups: vec![] };
        self.app().caller_of(&identity, "192.0.2.1").await.unwrap()
    }

    async fn group(&self, name: &str, members: &[&str], expected: Option<i64>) {
        let group = Group {
            name: name.into(),
            org: "default".into(),
            description: String::new(),
            target: None,
            members: members.iter().map(|member| id(member)).collect(),
            created: Timestamp(0),
            version: 0,
        };
        self.app().put_group(&caller(), group, expected).await.unwrap();
    }

    async fn minions_known(&self, ids: &[&str]) {
        for minion in ids {
            self.app().make_keys(&caller(), Some(&id(minion)), None, false).await.unwrap();
        }
    }
}

#[tokio::test]
async fn scenario_71_it_fires_once_as_an_action_of_its_owner_that_names_the_states_and_one_digest_tells_the_end() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    let states = what(r#"{"type":"states","params":{"mods":["web","db"]}}"#);
    let draft = RecurringDraft::new("nightly", on(EntityKind::Minion, "a"), states, NEVER);
    let definition = house.define(draft).await;
    let before = house.last_event().await;
    let entry = house.fired(definition).await;
    assert_eq!((entry.fire.outcome.as_str(), entry.fire.minions, entry.fire.late), ("fired", 1, false));
    let action = house.action(entry.fire.action.unwrap()).await;
    assert_eq!(action.new.name, "Apply recurring states [web, db]");
    assert_eq!((action.new.initiator.as_str(), action.new.recurring), ("tester", Some(definition)));
    let job = a.job("state.apply").await;
    let state = Value::map([("result", true)]);
    a.return_for(&job, Value::map([("a state", state)])).await;
    house.becomes(action.id, "a", RunState::Completed, None).await;
    let digest = format!("saltern/recurring/{definition}/digest");
    let digests = async || house.events_after(before).await.into_iter().filter(|event| event.tag == digest);
    wait::until("the digest", LONG, async || digests().await.next().is_some()).await;
    house.knock().await;
    let digests: Vec<_> = digests().await.collect();
    assert_eq!(digests.len(), 1);
    assert_eq!(digests[0].data.get("ok").and_then(Value::as_i64), Some(1));
    assert_eq!(digests[0].data.get("user").and_then(Value::as_str), Some("tester"));
    assert_eq!(house.fires(definition).await.len(), 1);
    let view = house.app().recurring(&caller(), definition).await.unwrap();
    assert!(view.recurring.next.unwrap() > now(), "{view:?}");
}

#[tokio::test]
async fn scenario_73_a_group_is_who_is_in_it_when_it_fires() {
    let house = house().await;
    house.minions_known(&["a", "b"]).await;
    house.group("web", &["a"], None).await;
    let draft = RecurringDraft::new("ping", on(EntityKind::Group, "web"), ping(), NEVER);
    let definition = house.define(RecurringDraft { overlap: Overlap::Allow, policy: hold(), ..draft }).await;
    assert_eq!(house.minions_of(house.fired(definition).await.fire.action).await, ["a"]);
    house.group("web", &["a", "b"], Some(ANY_VERSION)).await;
    assert_eq!(house.minions_of(house.fired(definition).await.fire.action).await, ["a", "b"]);
    house.group("web", &["b"], Some(ANY_VERSION)).await;
    assert_eq!(house.minions_of(house.fired(definition).await.fire.action).await, ["b"]);
    house.group("web", &[], Some(ANY_VERSION)).await;
    let entry = house.fired(definition).await.fire;
    assert_eq!((entry.outcome.as_str(), entry.action), ("skipped", None));
    assert!(entry.why.contains("no minions"), "{}", entry.why);
}

#[tokio::test]
async fn scenario_76_the_one_to_be_skipped_is_skipped_and_the_next_one_fires() {
    let house = house().await;
    house.minions_known(&["a"]).await;
    let definition = house.define(RecurringDraft { policy: hold(), ..on_a(NEVER) }).await;
    house.app().act_on_recurring(&caller(), definition, RecurringVerb::SkipNext(true)).await.unwrap();
    let preview = house.app().preview_recurring(&caller(), definition, 2).await.unwrap();
    assert_eq!((preview[0].minions.len(), preview[0].left_out.len(), preview[1].minions.len()), (0, 1, 1));
    let entry = house.fired(definition).await.fire;
    assert_eq!((entry.outcome.as_str(), entry.action), ("skipped", None));
    assert!(!house.app().recurring(&caller(), definition).await.unwrap().recurring.skip_next);
    assert_eq!(house.fired(definition).await.fire.outcome, "fired");
}

#[tokio::test]
async fn scenario_77_what_is_off_does_not_fire_and_on_again_it_fires_at_its_next_time_only() {
    let house = house().await;
    house.minions_known(&["a"]).await;
    let definition = house.define(on_a("* * * * * *")).await;
    house.accounted(definition, 1).await;
    let act = async |active| {
        let verb = RecurringVerb::Activate(active);
        house.app().act_on_recurring(&caller(), definition, verb).await.unwrap().recurring.recurring.next
    };
    assert_eq!(act(false).await, None);
    let fires = house.fires(definition).await.len();
    let on_again = now();
    assert!(act(true).await.unwrap() > on_again);
    let after = house.accounted(definition, fires + 1).await;
    assert!(after[after.len() - fires - 1].fire.planned > on_again);
}

#[tokio::test]
async fn scenario_78_who_is_still_busy_is_left_out_and_named() {
    let house = house().await;
    let (mut a, mut b) = (minion(&house, "a").await, minion(&house, "b").await);
    let definition = house.define(on_both(Overlap::Skip, hold())).await;
    let first = house.fired(definition).await.fire.action.unwrap();
    let (_pending, job) = (a.job("test.ping").await, b.job("test.ping").await);
    b.return_for(&job, true).await;
    house.becomes(first, "b", RunState::Completed, None).await;
    let second = house.fired(definition).await;
    assert_eq!((second.fire.minions, second.fire.skipped), (1, 1));
    assert_eq!(house.minions_of(second.fire.action).await, ["b"]);
    let (left_out, why) = &second.left_out[0];
    assert_eq!(left_out.as_str(), "a");
    assert!(why.contains("earlier"), "{why}");
    let third = house.fired(definition).await.fire;
    assert_eq!((third.outcome.as_str(), third.minions, third.skipped), ("skipped", 0, 2));
    assert!(third.why.contains("every minion is left out"), "{}", third.why);
}

#[tokio::test]
async fn one_more_waits_where_that_is_allowed_and_any_number_where_nobody_looks() {
    let house = house().await;
    for id in ["a", "b"] {
        drop(minion(&house, id).await);
        house.gone(id).await;
    }
    let definition = house.define(on_both(Overlap::Queue, hold())).await;
    assert_eq!(house.fired(definition).await.fire.outcome, "fired");
    let entry = house.fired(definition).await;
    assert_eq!((entry.fire.outcome.as_str(), entry.fire.skipped), ("skipped", 2));
    let allowed = on_both(Overlap::Allow, hold());
    house.app().put_recurring(&caller(), definition, allowed, ANY_VERSION).await.unwrap();
    assert_eq!(house.fired(definition).await.fire.minions, 2);
}

#[tokio::test]
async fn what_waits_behind_an_earlier_time_starts_when_that_has_ended() {
    let house = house().await;
    let mut a = minion(&house, "a").await;
    let definition = house.define(RecurringDraft { overlap: Overlap::Queue, policy: hold(), ..on_a(NEVER) }).await;
    let first = house.fired(definition).await.fire.action.unwrap();
    let job = a.job("test.ping").await;
    let entry = house.fired(definition).await.fire;
    let second = entry.action.unwrap();
    assert_eq!((entry.outcome.as_str(), entry.minions), ("fired", 1));
    house.until(second, "a", |run| run.waiting_for == Some(WaitingFor::Overlap)).await;
    assert_eq!(house.fired(definition).await.fire.outcome, "skipped", "one waits already");
    assert_eq!(house.state(second, "a").await.state, RunState::Queued);
    a.return_for(&job, true).await;
    house.becomes(first, "a", RunState::Completed, None).await;
    let job = a.job("test.ping").await;
    a.return_for(&job, true).await;
    house.becomes(second, "a", RunState::Completed, None).await;
}

#[tokio::test]
async fn scenario_89_a_spread_gives_each_minion_a_time_of_its_own_and_the_same_one_each_time() {
    let house = house().await;
    let ids: Vec<String> = (0..10).map(|number| format!("m{number}")).collect();
    house.minions_known(&ids.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let spread = Duration::from_secs(3_600);
    let draft = RecurringDraft::new("ping", on(EntityKind::Target, "m*"), ping(), NEVER);
    let draft = RecurringDraft { spread, overlap: Overlap::Allow, policy: hold(), ..draft };
    let definition = house.define(draft).await;
    let mut times = Vec::new();
    for _ in 0..2 {
        let fire = house.fired(definition).await.fire;
        let runs = house.app().runs(&caller(), fire.action.unwrap(), None, "", 100).await.unwrap();
        assert!(runs.iter().all(|run| run.state == RunState::Queued && run.waiting_for == Some(WaitingFor::Due)));
        let offset = |due: Option<Timestamp>| due.unwrap().since(fire.planned);
        times.push(runs.iter().map(|run| offset(run.due)).collect::<Vec<_>>());
        assert!(house.action(fire.action.unwrap()).await.new.deadline > fire.planned.plus(spread));
    }
    assert_eq!(times[0], times[1]);
    assert!(times[0].iter().all(|offset| *offset < spread));
    let mut different = times[0].clone();
    different.dedup();
    assert!(different.len() > 5, "{different:?}");
}

#[tokio::test]
async fn a_change_that_leaves_the_times_alone_leaves_the_next_one_alone_and_what_has_come_fires_first() {
    let house = house().await;
    house.minions_known(&["a"]).await;
    let draft = RecurringDraft { overlap: Overlap::Allow, policy: hold(), ..on_a("0 0 29 2 *") };
    let definition = house.define(draft.clone()).await;
    let next = house.app().recurring(&caller(), definition).await.unwrap().recurring.next;
    let renamed = RecurringDraft { name: "other".into(), ..draft.clone() };
    let renamed = house.app().put_recurring(&caller(), definition, renamed, ANY_VERSION).await.unwrap();
    assert_eq!((renamed.recurring.name.as_str(), renamed.recurring.next), ("other", next));
    house.change("UPDATE recurring SET next = ?1 WHERE id = ?2", [now().0, definition.0]);
    let later = RecurringDraft { cron: NEVER.into(), ..draft };
    let later = house.app().put_recurring(&caller(), definition, later, ANY_VERSION).await.unwrap();
    assert_eq!(later.last.unwrap().fire.outcome, "fired");
    assert!(later.recurring.next.unwrap() > now());
}

#[tokio::test]
async fn a_chain_is_launched_on_whom_it_recurs_on() {
    let house = house().await;
    house.minions_known(&["a", "b"]).await;
    let step = r#"[{"type":"function","params":{"fun":"test.ping"}}]"#;
    let steps = serde_json::from_str(step).unwrap();
    let draft = ChainDraft { name: "one".into(), description: String::new(), shared: false, steps };
    let chain = house.app().create_chain(&caller(), draft).await.unwrap();
    let what = what(&format!(r#"{{"chain":{},"params":{{"1":{{"fun":"test.version"}}}}}}"#, chain.id));
    let draft = RecurringDraft::new("chain", on(EntityKind::Organisation, "default"), what, NEVER);
    let definition = house.define(draft).await;
    let fire = house.fired(definition).await.fire;
    assert_eq!((fire.outcome.as_str(), fire.minions, fire.action), ("fired", 2, None));
    let launch = house.app().launch_of(&caller(), fire.launch.unwrap()).await.unwrap();
    assert_eq!(launch.steps[0].1.new.fun, "test.version");
    let busy = house.fired(definition).await;
    assert_eq!((busy.fire.outcome.as_str(), busy.left_out.len()), ("skipped", 2));
    house.app().delete_chain(&caller(), chain.id, ANY_VERSION).await.unwrap();
    let gone = house.fired(definition).await.fire;
    assert!(gone.outcome == "refused" && gone.why.contains("no chain"), "{gone:?}");
}
