//! Actions: ask for one, list them, look at one, explain it, do something with it.
//!
//! Whoever sees none of an action's minions sees no action; whoever sees some sees those.

use super::jobs::{self, LEAST, value};
use super::{Accepted, App, Caller};
use crate::Error;
use crate::engine::{Done, Door, Explanation, Request, Verb, function, may_call};
use saltern_core::access::{Sight, Wish, narrow_target};
use saltern_core::action::Policy;
use saltern_core::action::types;
use saltern_core::ids::{ActionId, MinionId};
use saltern_core::run::{Reason, RunState};
use saltern_core::target::Target;
use saltern_core::time::Timestamp;
use saltern_core::value::{Map, Value};
use saltern_store::{Action, ActionFilter, ActionPage, Counts, DeadLetter, Run};
use std::time::Duration;

/// What somebody wants done.
#[derive(Clone, Debug)]
pub struct ActionRequest {
    /// What
    pub what: What,
    /// On which minions
    pub target: Target,
    /// What it is called in lists; nothing: what it does
    pub name: Option<String>,
    /// The rules it is carried out by
    pub policy: Policy,
    /// When it is due; nothing: now
    pub due: Option<Timestamp>,
    /// How long after its due time it ends, whatever happens; nothing: as configured
    pub deadline: Option<Duration>,
    /// Copied into the job and every return
    pub metadata: Option<Map>,
    /// Returners that minions call themselves
    pub ret: String,
    /// Whether it begins paused
    pub paused: bool,
    /// Where a minion's maintenance window is closed when it is due: started when that opens, in place of a refusal
    pub in_window: bool,
}

/// What is to be done.
#[derive(Clone, Debug)]
pub enum What {
    /// A function, or several
    Function {
        /// Their names
        funs: Vec<String>,
        /// Positional arguments; for several functions one list each
        args: Vec<Value>,
        /// Keyword arguments
        kwargs: Map,
    },
    /// An action of this type with these parameters
    Typed {
        /// The type's name
        kind: String,
        /// Its parameters
        params: Map,
    },
}

/// Which actions are wanted, newest first.
#[derive(Clone, Debug)]
pub struct ActionQuery {
    /// Only older than this one
    pub before: Option<ActionId>,
    /// At most so many
    pub limit: usize,
    /// With the server's own housekeeping
    pub internal: bool,
    /// The archived ones instead of the others
    pub archived: bool,
    /// Which of them
    pub filter: ActionFilter,
    /// Only asked for by this user
    pub initiator: Option<String>,
    /// Only with a run on this minion
    pub minion: Option<MinionId>,
}

/// Most rows in one answer.
const PAGE: usize = 1_000;

impl App {
    /// Accepts an action.
    pub async fn submit(&self, caller: &Caller, request: ActionRequest, door: Door) -> Result<Accepted, Error> {
        let request = read(caller, request, door)?;
        let target = request.target.clone();
        let crate::engine::Accepted { jid, action, minions, missing } = self.master.submit(request).await?;
        let missing = match caller.sight() {
            Sight::All => missing,
            sight => jobs::missing(&target, &self.master.config.nodegroups, sight).unwrap_or(missing),
        };
        Ok(Accepted { jid, action, minions, missing })
    }

    /// Everything that accepting this would refuse, and the minions it would be for; nothing is stored.
    pub async fn preview(&self, caller: &Caller, request: ActionRequest, door: Door) -> Result<Vec<MinionId>, Error> {
        self.master.preview(read(caller, request, door)?).await
    }

    /// One action, as this caller sees it.
    pub async fn action(&self, caller: &Caller, id: ActionId) -> Result<Action, Error> {
        let missing = || Error::NotFound(format!("there is no action {id}"));
        let action = self.master.store.action(id).await?.ok_or_else(missing)?;
        self.as_seen(caller, action).await?.ok_or_else(missing)
    }

    /// A page of actions, newest first.
    pub async fn actions(&self, caller: &Caller, query: &ActionQuery) -> Result<Vec<Action>, Error> {
        let limit = query.limit.clamp(1, PAGE);
        let step = if *caller.sight() == Sight::All { limit } else { limit.max(LEAST) };
        let mut page = ActionPage {
            before: query.before,
            limit: step,
            internal: query.internal,
            archived: query.archived,
            filter: query.filter,
            initiator: query.initiator.clone(),
            minion: query.minion.clone(),
        };
        let mut seen = Vec::new();
        loop {
            let rows = self.master.store.actions(&page).await?;
            let last = rows.len() < step;
            page.before = rows.last().map(|action| action.id);
            for action in rows {
                seen.extend(self.as_seen(caller, action).await?);
            }
            if last || seen.len() >= limit {
                seen.truncate(limit);
                return Ok(seen);
            }
        }
    }

    /// An action with the counts of those runs that the caller sees; nothing if he sees none.
    pub(super) async fn as_seen(&self, caller: &Caller, mut action: Action) -> Result<Option<Action>, Error> {
        if *caller.sight() == Sight::All {
            return Ok(Some(action));
        }
        let mut counts = Counts::default();
        self.runs_seen(caller, &action).await?.iter().for_each(|run| count(&mut counts, run));
        action.counts = counts;
        let new = &mut action.new;
        // How many there are beyond those he sees is in what was found when it was admitted.
        new.decision = without_numbers(&new.decision);
        if new.initiator != caller.who {
            let mut target = value(&new.target);
            narrow_target(&new.target_type, &mut target, caller.sight());
            new.target = serde_json::to_string(&target).unwrap_or_default();
        }
        Ok((action.counts.total > 0).then_some(action))
    }

    /// The runs that the caller sees: looked up one by one, or all of them looked through, whichever is less.
    async fn runs_seen(&self, caller: &Caller, action: &Action) -> Result<Vec<Run>, Error> {
        match caller.sight() {
            Sight::Some(minions) if i64::try_from(minions.len()).is_ok_and(|few| few < action.counts.total / 8 + 1) => {
                let mut runs = Vec::new();
                for minion in minions.iter() {
                    runs.extend(self.master.store.run(action.id, minion).await?);
                }
                Ok(runs)
            }
            sight => {
                let mut runs = self.master.all_runs(action.id).await?;
                runs.retain(|run| sight.sees(&run.minion));
                Ok(runs)
            }
        }
    }

    /// The runs of an action in the order of minions, after `after`; only in this state if one is given.
    pub async fn runs(
        &self,
        caller: &Caller,
        id: ActionId,
        state: Option<RunState>,
        after: &str,
        limit: usize,
    ) -> Result<Vec<Run>, Error> {
        self.action(caller, id).await?;
        let limit = limit.clamp(1, PAGE);
        let store = &self.master.store;
        if *caller.sight() != Sight::All {
            let Some(action) = store.action(id).await? else { return Ok(Vec::new()) };
            let mut runs = self.runs_seen(caller, &action).await?;
            runs.retain(|run| run.minion.as_str() > after && state.is_none_or(|state| run.state == state));
            runs.sort_unstable_by(|a, b| a.minion.cmp(&b.minion));
            runs.truncate(limit);
            return Ok(runs);
        }
        Ok(match state {
            Some(state) => store.runs_in(id, state, after, limit).await?,
            None => store.runs(id, after, limit).await?,
        })
    }

    /// The earlier attempts of one run, oldest first.
    pub async fn attempts(
        &self,
        caller: &Caller,
        id: ActionId,
        minion: &MinionId,
    ) -> Result<Vec<saltern_store::Attempt>, Error> {
        self.action(caller, id).await?;
        if !caller.sight().sees(minion) {
            return Err(Error::NotFound(format!("action {id} has no run on {minion}")));
        }
        Ok(self.master.store.attempts(id, minion).await?)
    }

    /// The jobs of an action, oldest first: one for the first attempts, one for each retry.
    pub async fn jobs_of(&self, caller: &Caller, id: ActionId) -> Result<Vec<saltern_core::ids::Jid>, Error> {
        self.action(caller, id).await?;
        Ok(self.master.store.jobs_of(id).await?.into_iter().map(|job| job.jid).collect())
    }

    /// Why one run stands where it stands.
    pub async fn explain(&self, caller: &Caller, id: ActionId, minion: &MinionId) -> Result<Explanation, Error> {
        let action = self.action(caller, id).await?;
        let missing = || Error::NotFound(format!("action {id} has no run on {minion}"));
        if !caller.sight().sees(minion) {
            return Err(missing());
        }
        self.master.explain(&action, minion).await?.ok_or_else(missing)
    }

    /// Does something with actions, one after the other; what each has become is told in their order.
    pub async fn act(
        &self,
        caller: &Caller,
        ids: &[ActionId],
        minions: Option<&[MinionId]>,
        verb: &Verb,
    ) -> Result<Vec<Done>, Error> {
        let mut actions = Vec::with_capacity(ids.len());
        // Nothing is done to any of them if one is not there.
        for id in ids {
            actions.push(self.action(caller, *id).await?);
        }
        let mut done = Vec::with_capacity(actions.len());
        for action in &actions {
            refuse_step(action)?;
            refuse_override(action, verb)?;
            let minions = self.operable(caller, action, minions, verb).await?;
            if matches!(verb, Verb::Retry { .. }) {
                self.may_repeat(caller, action, minions.as_deref()).await?;
            }
            done.push(self.master.act(caller, action, minions, verb).await?);
        }
        Ok(done)
    }

    /// Whoever has something done again has to be one who may have it done.
    async fn may_repeat(&self, caller: &Caller, action: &Action, minions: Option<&[MinionId]>) -> Result<(), Error> {
        let kind = types::find(&action.new.kind).unwrap_or_else(function);
        let params = value(&action.new.params);
        let params = params.as_map().cloned().unwrap_or_default();
        let call = kind.compile(&params).map_err(|error| Error::Invalid(error.to_string()))?;
        let all = match minions {
            Some(minions) => minions.to_vec(),
            None if caller.rights.operates == Sight::All => Vec::new(),
            None => self.master.all_runs(action.id).await?.into_iter().map(|run| run.minion).collect(),
        };
        may_call(&caller.rights, &call, &all)
    }

    /// With which of an action's minions he may do something: those he named, as far as he sees them, else all he sees.
    /// Nothing: with all of them.
    async fn operable(
        &self,
        caller: &Caller,
        action: &Action,
        named: Option<&[MinionId]>,
        verb: &Verb,
    ) -> Result<Option<Vec<MinionId>>, Error> {
        if *caller.sight() == Sight::All {
            self.may(caller, &Wish::Operate(named.unwrap_or_default()))?;
            if caller.rights.operates == Sight::All {
                return Ok(named.map(<[MinionId]>::to_vec));
            }
        }
        let seen = self.runs_seen(caller, action).await?.into_iter().map(|run| run.minion);
        let meant: Vec<MinionId> = seen.filter(|minion| named.is_none_or(|named| named.contains(minion))).collect();
        self.may(caller, &Wish::Operate(&meant))?;
        if named.is_none() && verb.is_for_the_whole() {
            let total = self.master.store.action(action.id).await?.map_or(0, |action| action.counts.total);
            if i64::try_from(meant.len()).ok() != Some(total) {
                return Err(Error::Forbidden(format!("{} concerns minions that are not yours", verb.word())));
            }
            return Ok(None);
        }
        Ok(Some(meant))
    }

    /// What could not be processed and was set aside, newest first.
    pub async fn dead_letters(
        &self,
        caller: &Caller,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<(i64, DeadLetter)>, Error> {
        self.may(caller, &Wish::Inspect)?;
        Ok(self.master.store.dead_letters(before.unwrap_or(i64::MAX), limit.clamp(1, PAGE)).await?)
    }

    /// Everything that is counted, as Prometheus reads it.
    pub async fn metrics(&self, caller: &Caller) -> Result<String, Error> {
        self.may(caller, &Wish::Inspect)?;
        self.master.metrics_text().await
    }

    /// One round of forgetting what is old, at once.
    pub async fn forget_old(&self) -> Result<(), Error> {
        self.master.forget_old().await
    }
}

/// What is wanted, in the engine's words.
fn read(caller: &Caller, request: ActionRequest, door: Door) -> Result<Request, Error> {
    let (kind, params) = match request.what {
        What::Function { funs, args, kwargs } => {
            let fun = match funs.as_slice() {
                [one] => Value::from(one.as_str()),
                many => Value::list(many.iter().map(String::as_str)),
            };
            let mut params = Map::new();
            params.push("fun", fun);
            if !args.is_empty() {
                params.push("arg", Value::List(args));
            }
            if !kwargs.is_empty() {
                params.push("kwarg", Value::Map(kwargs));
            }
            (function(), params)
        }
        What::Typed { kind, params } => {
            let known = || types::ALL.map(types::ActionType::name).join(", ");
            let found = types::find(&kind)
                .ok_or_else(|| Error::Invalid(format!("there is no action type {kind:?}; there are {}", known())))?;
            (found, params)
        }
    };
    Ok(Request {
        door,
        who: caller.who.clone(),
        origin: caller.origin.clone(),
        rights: caller.rights.clone(),
        target: request.target,
        kind,
        params,
        name: request.name,
        policy: request.policy,
        due: request.due,
        deadline: request.deadline,
        metadata: request.metadata,
        ret: request.ret,
        paused: request.paused,
        launch: None,
        recurs: None,
        in_window: request.in_window,
        dues: std::collections::BTreeMap::new(),
    })
}

/// What belongs to a launch is changed with it: a step alone would leave its minions with a plan that nobody follows.
fn refuse_step(action: &Action) -> Result<(), Error> {
    let Some(launch) = action.new.launch else { return Ok(()) };
    let what = action.new.step.map_or_else(|| "a part".to_owned(), |step| format!("step {step}"));
    Err(Error::Conflict(format!(
        "action {} is {what} of launch {launch}; use `saltern chain cancel {launch}` or `saltern chain stop {launch}`",
        action.id
    )))
}

/// Windows were overridden for one time: whoever wants it again asks for that again.
fn refuse_override(action: &Action, verb: &Verb) -> Result<(), Error> {
    let again = matches!(verb, Verb::Retry { .. } | Verb::Reschedule { .. });
    if again && action.new.policy.override_window.is_some() {
        return Err(Error::Conflict(format!(
            "action {} was begun outside of its windows, for one time; make another one to do it again",
            action.id
        )));
    }
    Ok(())
}

/// A decision without the checks that tell of minions whom not everybody sees.
fn without_numbers(decision: &str) -> String {
    let Ok(mut decision) = serde_json::from_str::<serde_json::Value>(decision) else { return "null".into() };
    if let Some(checks) = decision.get_mut("checks").and_then(serde_json::Value::as_array_mut) {
        checks.retain(|check| !matches!(check["what"].as_str(), Some("permission" | "target" | "window")));
    }
    decision.to_string()
}

fn count(counts: &mut Counts, run: &Run) {
    counts.total += 1;
    match run.state {
        RunState::Queued => counts.queued += 1,
        RunState::Sent | RunState::PickedUp => counts.running += 1,
        RunState::Completed => counts.completed += 1,
        RunState::Cancelled => counts.cancelled += 1,
        RunState::Failed => {
            counts.failed += 1;
            counts.unreachable += i64::from(run.reason.is_some_and(Reason::is_unreachable));
        }
    }
}
