//! Rows as short words, so that a test shows only what it is about.

use saltern_core::action::Policy;
use saltern_core::ids::{ActionId, Jid, LaunchId, MinionId, RecurringId};
use saltern_core::run::{Input, RunState, Verdict, WaitingFor};
use saltern_core::time::Timestamp;
use saltern_store::{
    Ack, Action, AuditEntry, AuditFilter, Body, Claim, DEFAULT_ORGANISATION, Event, EventFilter, FireSlot, Group,
    JobPage, Launch, LaunchMinion, MinionMove, MinionState, NewAction, NewEvent, NewJob, NewLaunch, NewLaunchMinion,
    NewReturn, NewRun, NewStep, NewStepRun, NewWork, Organisation, Recurring, Run, Store, Token, TokenKind, Transition,
    User, Verb, Webhook,
};
use std::sync::Arc;

pub(crate) const GOOD: Verdict = Verdict { success: true, retcode: 0 };
pub(crate) const BAD: Verdict = Verdict { success: false, retcode: 3 };

/// More than any test has.
pub(crate) const ALL: usize = 1_000_000;

/// How long the actions of tests may take, in microseconds.
pub(crate) const PATIENCE: i64 = 60_000_000;

/// The instant `n` microseconds after the tests' epoch.
pub(crate) fn at(n: i64) -> Timestamp {
    Timestamp(1_790_000_000_000_000 + n)
}

pub(crate) fn jid(n: i64) -> Jid {
    Jid::at(at(n))
}

pub(crate) fn minion(id: &str) -> MinionId {
    MinionId::new(id).unwrap()
}

pub(crate) fn minions(ids: &[&str]) -> Vec<MinionId> {
    ids.iter().map(|id| minion(id)).collect()
}

pub(crate) fn body(text: &str) -> Body {
    Body { encoding: 1, bytes: text.as_bytes().to_vec() }
}

/// Action number `n`, asked for at instant `n`.
pub(crate) fn action(n: i64) -> NewAction {
    NewAction {
        kind: "function".into(),
        name: "ping".into(),
        params: r#"{"fun":"test.ping"}"#.into(),
        fun: "test.ping".into(),
        arg: r#"["a"]"#.into(),
        target: r#""*""#.into(),
        target_type: "glob".into(),
        initiator: "root".into(),
        origin: "cli".into(),
        org: "main".into(),
        created: at(n),
        due: at(n),
        deadline: at(n + PATIENCE),
        policy: Policy::default(),
        decision: "{}".into(),
        metadata: None,
        ret: String::new(),
        internal: false,
        late: false,
        launch: None,
        step: None,
        recurring: None,
    }
}

/// Action number `n`, sent to these minions at once as job `n`, with one event `job/<n>/new`.
pub(crate) fn work(n: i64, ids: &[&str]) -> NewWork {
    let run = |id: &&str| NewRun { minion: minion(id), state: RunState::Sent, waiting_for: None, due: None };
    NewWork {
        action: action(n),
        job: Some(NewJob { jid: jid(n), minions: minions(ids), missing: Vec::new() }),
        runs: ids.iter().map(run).collect(),
        events: Box::new(move |_| vec![NewEvent { jid: Some(jid(n)), ..event(&format!("job/{n}/new")) }]),
        audit: None,
        fire: None,
    }
}

/// Action number `n`, not sent to anybody yet, due when it was asked for.
pub(crate) fn queued(n: i64, ids: &[&str]) -> NewWork {
    let run = |id: &&str| NewRun {
        minion: minion(id),
        state: RunState::Queued,
        waiting_for: Some(WaitingFor::Due),
        due: Some(at(n)),
    };
    NewWork { job: None, runs: ids.iter().map(run).collect(), ..work(n, ids) }
}

/// The same work under other rules.
pub(crate) fn under(policy: Policy, work: NewWork) -> NewWork {
    NewWork { action: NewAction { policy, ..work.action }, ..work }
}

/// Job `n` takes these runs of an action; it is made with the claim, and the first of its action.
pub(crate) fn claim(n: i64, action: ActionId, ids: &[&str]) -> Claim {
    Claim {
        action,
        jid: jid(n),
        job: Some(NewJob { jid: jid(n), minions: minions(ids), missing: Vec::new() }),
        is_first: true,
        minions: minions(ids),
        at: at(n),
        events: vec![NewEvent { jid: Some(jid(n)), ..event(&format!("job/{n}/new")) }],
    }
}

/// Launch number `n` with so many steps on each of these minions, which all have the plan `plan<n>`. Its key is the id of job
/// `100 n`, and those of its steps follow.
pub(crate) fn launch(n: i64, steps: i64, ids: &[&str]) -> NewLaunch {
    let run = |id: &&str| NewStepRun { minion: minion(id), waiting_for: WaitingFor::EarlierStep, refused: None };
    let step = |s: i64| NewStep {
        action: action(n),
        job: NewJob { jid: jid(100 * n + s), minions: minions(ids), missing: Vec::new() },
        runs: ids.iter().map(run).collect(),
    };
    NewLaunch {
        chain: None,
        name: format!("launch {n}"),
        initiator: "root".into(),
        origin: "cli".into(),
        org: "main".into(),
        key: jid(100 * n),
        created: at(n),
        due: at(n),
        deadline: at(n + PATIENCE),
        steps: "[]".into(),
        actions: (1..=steps).map(step).collect(),
        plans: vec![(format!("plan{n}"), format!("body of {n}"))],
        minions: ids.iter().map(|id| NewLaunchMinion { minion: minion(id), plan: format!("plan{n}") }).collect(),
        events: Box::new(|_, _| Vec::new()),
        audit: None,
        recurring: None,
        fire: None,
    }
}

/// A minion of a launch moves at instant `n`, and stays at its first chunk.
pub(crate) fn moving(n: i64, launch: LaunchId, id: &str, from: MinionState, to: MinionState) -> MinionMove {
    MinionMove {
        launch,
        minion: minion(id),
        from,
        from_chunk: 1,
        to,
        chunk: 1,
        failed: false,
        since: at(n),
        boot_id: None,
        asked: 0,
        outcome: (to == MinionState::Ended).then_some("completed"),
        message: None,
        transitions: Vec::new(),
        event: None,
    }
}

/// A launch that must be there.
pub(crate) async fn launched(store: &Store, launch: LaunchId) -> Launch {
    store.launch(launch).await.unwrap().unwrap()
}

/// A minion of a launch that must be there.
pub(crate) async fn standing(store: &Store, launch: LaunchId, id: &str) -> LaunchMinion {
    store.launch_minion(launch, &minion(id)).await.unwrap().unwrap()
}

/// Something happens to one run at instant `n`.
pub(crate) fn transition(n: i64, action: ActionId, id: &str, input: Input) -> Transition {
    Transition { action, minion: minion(id), input, at: at(n), message: None, evidence: None }
}

/// Somebody wants something of all runs of an action at instant `n`.
pub(crate) fn verb(n: i64, action: ActionId, input: Input) -> Verb {
    Verb { action, minions: None, only_failed: false, input, at: at(n), message: None, deadline: None, audit: None }
}

pub(crate) fn ack(n: i64, action: ActionId, id: &str) -> Ack {
    let event = NewEvent { jid: Some(jid(n)), minion: Some(minion(id)), ..event(&format!("job/{n}/ack/{id}")) };
    Ack { jid: jid(n), action, minion: minion(id), at: at(n + 10), events: vec![event] }
}

/// The good return of job `n` from a minion, with the event `job/<n>/ret/<id>`.
pub(crate) fn returned(n: i64, action: Option<ActionId>, id: &str) -> NewReturn {
    NewReturn {
        jid: jid(n),
        action,
        standalone: None,
        minion: minion(id),
        at: at(n + 20),
        fun: "test.ping".into(),
        verdict: GOOD,
        settles: true,
        stopped: false,
        body: Arc::new(body(&format!("return of {id}"))),
        tag: format!("job/{n}/ret/{id}"),
        events: Vec::new(),
    }
}

pub(crate) fn event(tag: &str) -> NewEvent {
    NewEvent { at: at(1), tag: tag.into(), minion: None, jid: None, body: Arc::new(body(tag)), is_return: false }
}

pub(crate) fn audit(what: &str) -> AuditEntry {
    AuditEntry {
        at: at(2),
        who: "root".into(),
        origin: "socket".into(),
        what: what.into(),
        subject: "web1".into(),
        detail: "{}".into(),
    }
}

/// The whole audit log, newest first.
pub(crate) async fn all_audit(store: &Store) -> Vec<(i64, AuditEntry)> {
    store.audit_page(i64::MAX, ALL, &AuditFilter::default()).await.unwrap()
}

/// What was done, oldest first, as far as the audit log tells.
pub(crate) async fn audited(store: &Store) -> Vec<String> {
    all_audit(store).await.into_iter().rev().map(|(_, entry)| entry.what).collect()
}

/// A page that leaves nothing out.
pub(crate) fn every_job() -> JobPage {
    JobPage { before: None, limit: ALL, internal: true, open: false }
}

pub(crate) async fn all_events(store: &Store) -> Vec<Event> {
    store.events_after(0, &EventFilter::default(), ALL).await.unwrap()
}

pub(crate) async fn all_tags(store: &Store) -> Vec<String> {
    all_events(store).await.into_iter().map(|event| event.event.tag).collect()
}

/// An action that must be there.
pub(crate) async fn stored(store: &Store, action: ActionId) -> Action {
    store.action(action).await.unwrap().unwrap()
}

/// The one run of an action for one minion.
pub(crate) async fn run(store: &Store, action: ActionId) -> Run {
    let mut runs = store.runs(action, "", ALL).await.unwrap();
    assert_eq!(runs.len(), 1);
    runs.remove(0)
}

/// Where the one run of an action stands.
pub(crate) async fn state(store: &Store, action: ActionId) -> RunState {
    run(store, action).await.state
}

/// Fails unless the log is numbered 1, 2, 3 … without a gap.
pub(crate) fn assert_numbered(events: &[Event]) {
    let numbers: Vec<i64> = events.iter().map(|event| event.number).collect();
    let wanted: Vec<i64> = (1..).take(numbers.len()).collect();
    assert_eq!(numbers, wanted);
}

pub(crate) fn organisation(name: &str) -> Organisation {
    Organisation { name: name.into(), description: format!("all of {name}"), created: at(3), version: 0 }
}

/// A local user of the default organisation to whom this is granted.
pub(crate) fn user(name: &str, grants: &[&str]) -> User {
    User {
        name: name.into(),
        org: DEFAULT_ORGANISATION.into(),
        auth: "local".into(),
        password: Some("$argon2id$secret".into()),
        full_name: format!("{name} of Saltern"),
        disabled: false,
        created: at(4),
        version: 0,
        grants: grants.iter().map(|&grant| grant.to_owned()).collect(),
    }
}

/// A group of the default organisation with these members.
pub(crate) fn group(name: &str, ids: &[&str]) -> Group {
    Group {
        name: name.into(),
        org: DEFAULT_ORGANISATION.into(),
        description: format!("all of {name}"),
        target: None,
        members: minions(ids),
        created: at(5),
        version: 0,
    }
}

/// A session that ends at instant 1000.
pub(crate) fn session(id: &str, user: &str) -> Token {
    Token {
        id: id.into(),
        hash: hash(id),
        kind: TokenKind::Session,
        user: user.into(),
        auth: "local".into(),
        groups: vec!["wheel".into(), "two\nlines".into()],
        name: String::new(),
        scope: "all".into(),
        created: at(6),
        expires: at(1000),
        last_used: None,
        origin: "192.0.2.7".into(),
    }
}

/// An API token that ends at instant 1000.
pub(crate) fn api_token(id: &str, user: &str) -> Token {
    Token { kind: TokenKind::Api, name: "for the robot".into(), scope: "read".into(), ..session(id, user) }
}

pub(crate) fn webhook(name: &str, owner: &str) -> Webhook {
    Webhook {
        id: 0,
        name: name.into(),
        url: "https://example.org/hook".into(),
        secret: "hunter2".into(),
        tag: "salt/job/*".into(),
        jid: Some(jid(7)),
        action: Some(ActionId(8)),
        minion: Some("web*".into()),
        owner: owner.into(),
        active: true,
        cursor: 40,
        failures: 0,
        next_try: None,
        last_error: None,
        created: at(7),
        version: 1,
    }
}

/// A recurring action of ann on group web, whose next instant is 100.
pub(crate) fn recurring(name: &str) -> Recurring {
    Recurring {
        id: RecurringId(0),
        name: name.into(),
        org: DEFAULT_ORGANISATION.into(),
        entity_kind: "group".into(),
        entity: "web".into(),
        owner: "ann".into(),
        person: r#"{"user":"ann"}"#.into(),
        creator: "ann".into(),
        what: r#"{"type":"states"}"#.into(),
        cron: "0 3 * * *".into(),
        zone: "Europe/Berlin".into(),
        seed: name.into(),
        active: true,
        skip_next: false,
        spread: 60,
        overlap: "skip".into(),
        catch_up: "once".into(),
        catch_up_limit: 3600,
        in_window: true,
        deadline: Some(7200),
        policy: "{}".into(),
        created: at(8),
        changed: at(9),
        version: 1,
        next: Some(at(100)),
    }
}

/// Makes a recurring action; what its owner called it is new.
pub(crate) async fn recurs(store: &Store, name: &str) -> RecurringId {
    store.create_recurring(recurring(name), audit("recurring.create")).await.unwrap().unwrap()
}

/// The instant `planned` of a recurring action, which is followed by `next`.
pub(crate) fn slot(recurring: RecurringId, planned: i64, next: Option<i64>) -> FireSlot {
    FireSlot {
        recurring,
        planned: at(planned),
        next: next.map(at),
        clear_skip_next: false,
        why: String::new(),
        skipped: 0,
        detail: "{}".into(),
        late: false,
    }
}

/// Something like the hash of a secret: another one for each text.
pub(crate) fn hash(text: &str) -> [u8; 32] {
    saltern_store::link(&[0; 32], 0, &audit(text))
}

pub(crate) async fn token_ids(store: &Store) -> Vec<String> {
    store.tokens(None, "", ALL).await.unwrap().into_iter().map(|token| token.id).collect()
}
