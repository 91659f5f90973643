//! The only door: who may, what, on which minions, when. What passes is stored with the reasons; what does not is told why.
//!
//! Whatever wants something run (a person, a client of salt-api, a minion, a recurring fire, a chain, the server's own
//! housekeeping) makes a [`Request`] and names its [`Door`]. Only [`Master::admit_action`] makes an [`Admitted`], and only an
//! `Admitted` can be stored and published.

use super::recurring::Fire;
use crate::master::{Master, Member};
use crate::{Error, clock};
use saltern_core::access::{Invocation, Rights, Wish};
use saltern_core::action::Policy;
use saltern_core::action::types::{self, ActionType, Call, Ends};
use saltern_core::ids::{LaunchId, MinionId, RecurringId};
use saltern_core::target::Target;
use saltern_core::time::Timestamp;
use saltern_core::value::{Map, Value};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// The ways in. Each passes through [`Master::admit_action`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Door {
    /// `saltern run` and `/api/v1/run`
    Run,
    /// `/api/v1/actions` and `saltern action create`
    Action,
    /// salt-api's `/`, `/run`, `/minions` and what calls minions from its runners
    SaltApi,
    /// A minion's `publish.publish`
    Peer,
    /// A step of a chain that is launched, and what carries it
    Chain,
    /// What recurs, at its time or at once
    Recurring,
    /// The server's own housekeeping
    House,
}

impl Door {
    /// Every way in.
    pub const ALL: [Self; 7] =
        [Self::Run, Self::Action, Self::SaltApi, Self::Peer, Self::Chain, Self::Recurring, Self::House];
}

/// What somebody wants done.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) door: Door,
    pub(crate) who: String,
    pub(crate) origin: String,
    /// What he may do
    pub(crate) rights: Arc<Rights>,
    pub(crate) target: Target,
    pub(crate) kind: &'static dyn ActionType,
    pub(crate) params: Map,
    pub(crate) name: Option<String>,
    pub(crate) policy: Policy,
    pub(crate) due: Option<Timestamp>,
    /// How long after its due time it ends, whatever happens; nothing: as configured
    pub(crate) deadline: Option<Duration>,
    pub(crate) metadata: Option<Map>,
    /// Returners that minions call themselves
    pub(crate) ret: String,
    /// Begin paused
    pub(crate) paused: bool,
    /// The launch that it carries a part of
    pub(crate) launch: Option<LaunchId>,
    /// The recurring action that it is one time of
    pub(crate) recurs: Option<Recurs>,
    /// Where a minion's window is closed when it is due: due when that opens, in place of a refusal
    pub(crate) in_window: bool,
    /// Minions whose runs are due at a time of their own
    pub(crate) dues: BTreeMap<MinionId, Timestamp>,
}

/// One time of a recurring action.
#[derive(Clone, Debug)]
pub(crate) struct Recurs {
    pub(crate) id: RecurringId,
    /// The planned instant that is accounted for with it; nothing: somebody wanted it at once
    pub(crate) fire: Option<Fire>,
}

/// What was decided, and why. Stored with the action.
#[derive(Clone, Debug, Serialize)]
pub struct Decision {
    /// Which way it came
    pub door: Door,
    /// When it was decided
    pub at: String,
    /// What was looked at
    pub checks: Vec<Check>,
}

/// One thing that was looked at.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// `permission`, `target`, `limits`, `window`
    pub what: &'static str,
    /// What was found
    pub found: String,
}

/// A request that was let in: the only thing that can be stored and published.
pub(super) struct Admitted {
    pub(super) request: Request,
    pub(super) call: Call,
    pub(super) members: Vec<Arc<Member>>,
    pub(super) missing: Vec<String>,
    pub(super) decision: Decision,
    pub(super) due: Timestamp,
    pub(super) deadline: Timestamp,
    /// Minions whose runs wait for their windows
    pub(super) moved: BTreeSet<MinionId>,
    pub(super) now: Timestamp,
    /// Only [`Master::admit_action`] makes one
    _door: (),
}

/// How long housekeeping is waited for.
const HOUSE_DEADLINE: Duration = Duration::from_secs(60);
/// Furthest in the future that something may be due.
const FURTHEST: Duration = Duration::from_secs(10 * 365 * 86_400);

impl Request {
    /// Housekeeping of the server itself: not acknowledged, not audited, not listed.
    pub(crate) fn house(target: Target, fun: &str, arg: Vec<Value>) -> Self {
        let params = Value::map([("fun", Value::from(fun)), ("arg", Value::List(arg))]);
        Self {
            door: Door::House,
            who: "saltern".into(),
            origin: "server".into(),
            rights: Arc::new(Rights::administrator("saltern")),
            target,
            kind: function(),
            params: params.as_map().cloned().unwrap_or_default(),
            name: None,
            policy: Policy { ack: Some(false), interactive: true, ..Policy::default() },
            due: None,
            deadline: Some(HOUSE_DEADLINE),
            metadata: None,
            ret: String::new(),
            paused: false,
            launch: None,
            recurs: None,
            in_window: false,
            dues: BTreeMap::new(),
        }
    }

    /// Whether people see it in lists: not what the server does for itself, nor what only carries steps of a chain.
    pub(super) fn is_listed(&self) -> bool {
        !self.is_house() && self.launch.is_none()
    }

    /// The planned instant that it accounts for.
    pub(super) fn fire(&self) -> Option<&Fire> {
        self.recurs.as_ref().and_then(|recurs| recurs.fire.as_ref())
    }

    pub(super) fn is_house(&self) -> bool {
        self.door == Door::House
    }

    /// Whether it may only start while its minions may be changed.
    pub(super) fn is_restricted(&self) -> bool {
        !self.is_house() && self.kind.is_restricted(&self.params)
    }

    pub(super) fn ends_by_boot(&self) -> bool {
        self.kind.ends(&self.params) == Ends::ByBoot
    }
}

impl Master {
    /// Decides whether a request may be carried out, and on whom.
    pub(super) async fn admit_action(self: &Arc<Self>, mut request: Request) -> Result<Admitted, Error> {
        let now = clock::now();
        let mut checks = Vec::new();
        let mut found = |what, found: String| checks.push(Check { what, found });

        let call = request.kind.compile(&request.params).map_err(|error| Error::Invalid(error.to_string()))?;
        check_functions(&call)?;
        // What he may do to nobody is refused before anybody is looked for: the answer tells nothing about who there is.
        may_call(&request.rights, &call, &[])?;
        let (members, missing) = self.resolve(&request.target).await?;
        let narrows = request.rights.narrows();
        let (seen, hidden): (Vec<_>, Vec<_>) =
            members.into_iter().partition(|member| !narrows || request.rights.sees.sees(&member.id));
        // Whom somebody may not see does not exist for him: the same words as for a target that matches nobody.
        if seen.is_empty() {
            let Target { kind, expression, .. } = &request.target;
            return Err(Error::NotFound(format!("no accepted minion matches {kind} {expression}")));
        }
        let ids: Vec<MinionId> = seen.iter().map(|member| member.id.clone()).collect();
        may_call(&request.rights, &call, &ids)?;
        found(
            "permission",
            format!("{} may reach {} of {} minions", request.who, seen.len(), seen.len() + hidden.len()),
        );
        found("target", format!("{} {} is {} minions", request.target.kind, request.target.expression, seen.len()));

        let queued = self.engine.queued();
        if !request.is_house() && queued + seen.len() > self.config.max_queued {
            return Err(Error::Busy(format!(
                "{queued} runs are queued and {} more would be above max_queued ({}); wait, cancel some, or raise it",
                seen.len(),
                self.config.max_queued
            )));
        }
        found("limits", format!("{queued} runs were queued"));

        let due = request.due.unwrap_or(now);
        if due > now.plus(FURTHEST) {
            return Err(Error::Invalid("the due time is more than ten years away".into()));
        }
        let fitted = self.fit_windows(&mut request, &seen, due).await?;
        if let Some(fits) = fitted.found {
            found("window", fits);
        }
        let dues = || seen.iter().map(|member| request.dues.get(&member.id).copied().unwrap_or(due));
        let last = dues().max().unwrap_or(due);
        let deadline = last.max(now).plus(request.deadline.unwrap_or(self.config.job_deadline));
        // Where each has a time of its own, it begins with the first.
        let due = dues().min().unwrap_or(due);
        let moved = fitted.moved;
        let decision = Decision { door: request.door, at: now.rfc3339(), checks };
        Ok(Admitted { request, call, members: seen, missing, decision, due, deadline, moved, now, _door: () })
    }
}

/// Whether he may call these functions with these arguments on these minions: each on each.
pub(crate) fn may_call(rights: &Rights, call: &Call, minions: &[MinionId]) -> Result<(), Error> {
    let one = call.funs.len() == 1;
    let none = Map::new();
    let arguments = |number: usize| -> &[Value] {
        if one { &call.arg } else { call.arg.get(number).and_then(Value::as_list).unwrap_or_default() }
    };
    let calls: Vec<Invocation<'_>> = call
        .funs
        .iter()
        .enumerate()
        .map(|(number, fun)| Invocation { fun, arg: arguments(number), kwarg: if one { &call.kwarg } else { &none } })
        .collect();
    let wish = Wish::Call { calls: &calls, minions };
    rights.may(&wish).map_err(|refusal| Error::Forbidden(refusal.message))
}

/// The type of a plain function.
pub(crate) fn function() -> &'static dyn ActionType {
    types::find("function").unwrap_or(types::ALL[0])
}

fn check_functions(call: &Call) -> Result<(), Error> {
    let is_name = |name: &String| {
        name.contains('.')
            && !name.starts_with('.')
            && !name.ends_with('.')
            && !name.contains([',', '\0'])
            && !name.contains(char::is_whitespace)
    };
    match call.funs.iter().find(|name| !is_name(name)) {
        Some(bad) => Err(Error::Invalid(format!("{bad:?} is not a function: write MODULE.FUNCTION, e.g. test.ping"))),
        None if call.funs.is_empty() => {
            Err(Error::Invalid("no function was given: write MODULE.FUNCTION, e.g. test.ping".into()))
        }
        None => Ok(()),
    }
}
