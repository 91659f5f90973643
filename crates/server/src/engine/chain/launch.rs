//! Launching a chain: every step is admitted as any action is, every minion's part is compiled, and all of it is stored at once.
//!
//! Minions with the same steps and the same kind of agent are compiled once. A step that cannot be done on a minion fails
//! there at once and says why; the rest of that minion's steps does not begin, and nobody else is concerned.

use super::super::admission::{Admitted, Recurs, Request};
use super::super::lock;
use super::super::recurring::Fire;
use super::super::work::{arguments, json};
use super::super::{Door, Work, deliver, tell};
use super::Open;
use crate::app::Caller;
use crate::master::{Master, Member, entry};
use crate::{Error, clock};
use saltern_core::access::Sight;
use saltern_core::action::types;
use saltern_core::action::{Policy, Retry, WindowRule};
use saltern_core::chain::{Agent, Plan, Step, compile};
use saltern_core::ids::{ActionId, ChainId, LaunchId, MinionId};
use saltern_core::run::{Reason, WaitingFor};
use saltern_core::target::Target;
use saltern_core::time::Timestamp;
use saltern_core::value::Value;
use saltern_store::{AckMethod, NewAction, NewEvent, NewJob, NewLaunch, NewLaunchMinion, NewStep, NewStepRun};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// A launch that somebody wants.
pub(crate) struct Asked {
    /// The chain it is made from
    pub(crate) chain: Option<ChainId>,
    pub(crate) name: String,
    pub(crate) steps: Vec<Step>,
    /// Whom all steps are for, in place of their own targets
    pub(crate) target: Option<Target>,
    pub(crate) due: Option<Timestamp>,
    /// How long after its due time it ends, whatever happens; nothing: as configured
    pub(crate) deadline: Option<Duration>,
    /// Where a minion's window is closed when it is due: begun when that opens, in place of a refusal
    pub(crate) in_window: bool,
    /// What happens where the window is closed again when its turn comes
    pub(crate) window: WindowRule,
    /// For what reason windows are not asked
    pub(crate) override_window: Option<String>,
    /// The recurring action that it is one time of
    pub(crate) recurs: Option<Recurs>,
}

impl Asked {
    /// The planned instant that it accounts for.
    fn fire(&self) -> Option<&Fire> {
        self.recurs.as_ref().and_then(|recurs| recurs.fire.as_ref())
    }
}

/// Whom each step of a launch would be for, and where one cannot be done.
#[derive(Clone, Debug)]
pub struct Preview {
    /// By step, in order
    pub steps: Vec<Vec<MinionId>>,
    /// Minions on which a step cannot be done, which one, and why
    pub refused: Vec<(MinionId, usize, String)>,
}

/// The part of each minion.
struct Parts {
    plans: BTreeMap<String, Plan>,
    /// With the hash of its plan
    minions: Vec<(MinionId, String)>,
    refused: HashMap<MinionId, (usize, String)>,
}

impl Master {
    /// Launches a chain; what was stored is begun when it is due.
    pub(crate) async fn launch(self: &Arc<Self>, caller: &Caller, asked: Asked) -> Result<LaunchId, Error> {
        let admitted = self.admit_steps(caller, &asked).await?;
        let parts = parts(&asked.steps, &admitted);
        if parts.minions.is_empty() {
            let why =
                parts.refused.iter().next().map(|(minion, (step, why))| format!("step {step} on {minion}: {why}"));
            return Err(Error::Invalid(why.unwrap_or_else(|| "a chain without steps cannot be launched".into())));
        }
        for step in &admitted {
            self.audit_override(&step.request, step.members.len()).await?;
        }
        let id = self.store_launch(caller, &asked, admitted, parts).await?;
        let look = asked.due.unwrap_or(Timestamp(0));
        lock(&self.engine.chains.open).insert(id, Open { look, blocked: false, expects: true });
        self.engine.chains.wake(id);
        Ok(id)
    }

    /// Whom it would be for, and everything that would refuse it; nothing is stored.
    pub(crate) async fn preview_launch(self: &Arc<Self>, caller: &Caller, asked: &Asked) -> Result<Preview, Error> {
        let admitted = self.admit_steps(caller, asked).await?;
        let mut refused: Vec<_> = parts(&asked.steps, &admitted).refused.into_iter().collect();
        refused.sort();
        let ids = |step: &Admitted| step.members.iter().map(|member| member.id.clone()).collect();
        Ok(Preview {
            steps: admitted.iter().map(ids).collect(),
            refused: refused.into_iter().map(|(minion, (step, why))| (minion, step, why)).collect(),
        })
    }

    /// Each step through the door, as any action.
    async fn admit_steps(self: &Arc<Self>, caller: &Caller, asked: &Asked) -> Result<Vec<Admitted>, Error> {
        let mut admitted = Vec::with_capacity(asked.steps.len());
        for (index, step) in asked.steps.iter().enumerate() {
            let one = self.admit_step(caller, asked, step).await;
            admitted.push(one.map_err(|error| in_step(index + 1, error))?);
        }
        Ok(admitted)
    }

    async fn admit_step(self: &Arc<Self>, caller: &Caller, asked: &Asked, step: &Step) -> Result<Admitted, Error> {
        step.check().map_err(|error| Error::Invalid(error.to_string()))?;
        let kind = types::find(&step.kind).ok_or_else(|| Error::Invalid("its type is not known".into()))?;
        let target = match (&asked.target, &step.target) {
            (Some(target), _) => target.clone(),
            (None, Some(_)) => self.target_of_step(caller, step).await?,
            (None, None) => return Err(Error::Invalid("it has no target: give it one, or one for the launch".into())),
        };
        // Whatever becomes of a step is decided on the minion; what is tried again there is the step's own rule.
        let retry = Retry { attempts: 1, ..Retry::default() };
        self.admit_action(Request {
            door: Door::Chain,
            who: caller.who.clone(),
            origin: caller.origin.clone(),
            rights: caller.rights.clone(),
            target,
            kind,
            params: step.params.clone(),
            name: Some(step.describe()),
            policy: Policy {
                retry,
                job_timeout: Some(step.limit()),
                window: asked.window,
                override_window: asked.override_window.clone(),
                ..Policy::default()
            },
            due: asked.due,
            deadline: asked.deadline,
            metadata: None,
            ret: String::new(),
            paused: false,
            launch: None,
            recurs: None,
            in_window: asked.in_window,
            dues: BTreeMap::new(),
        })
        .await
    }

    /// Whom a step means by itself. A group is those who are in it now.
    pub(crate) async fn target_of_step(self: &Arc<Self>, caller: &Caller, step: &Step) -> Result<Target, Error> {
        let target = step.target.as_ref().ok_or_else(|| Error::Invalid("it has no target".into()))?;
        if target.kind != "group" {
            let read = Target::read(&target.kind, &target.expression, None);
            return read.map_err(|error| Error::Invalid(error.to_string()));
        }
        let name = target.expression.as_str().unwrap_or_default();
        let snapshot = self.directory.snapshot();
        let none = || Error::NotFound(format!("there is no group {name:?}"));
        let group = snapshot.groups.get(name).ok_or_else(none)?;
        let members = match self.minions_of_group(&snapshot, group).await? {
            Sight::Some(minions) => minions.iter().filter(|id| caller.sight().sees(id)).cloned().collect(),
            Sight::All => Vec::new(),
        };
        // Whoever sees nobody of it is not told that there is such a group.
        if members.is_empty() {
            return Err(Error::NotFound(format!("no minion of a group {name:?} is there")));
        }
        Ok(Target::list(members.iter().map(MinionId::as_str)))
    }

    async fn store_launch(
        &self,
        caller: &Caller,
        asked: &Asked,
        admitted: Vec<Admitted>,
        parts: Parts,
    ) -> Result<LaunchId, Error> {
        let (now, due, deadline) = match admitted.first() {
            Some(first) => {
                let last = admitted.iter().map(|step| step.deadline).max();
                // Minions that wait for their windows are not waited for by others.
                (first.now, asked.due.unwrap_or(first.now), last.unwrap_or(first.deadline))
            }
            None => (clock::now(), clock::now(), clock::now()),
        };
        let moved: BTreeSet<&MinionId> = admitted.iter().flat_map(|step| &step.moved).collect();
        let mut firsts: HashMap<&MinionId, usize> = HashMap::new();
        for (index, step) in admitted.iter().enumerate() {
            for member in &step.members {
                firsts.entry(&member.id).or_insert(index);
            }
        }
        loop {
            let mut actions = Vec::with_capacity(admitted.len());
            let mut told = Vec::new();
            for (index, step) in admitted.iter().enumerate() {
                let jid = self.next_jid(now);
                let new = NewAction { due, deadline, ..step_action(step, index + 1) };
                let minions: Vec<MinionId> = step.members.iter().map(|member| member.id.clone()).collect();
                let work = Work::new(ActionId(0), &new, &step.request, step.call.clone(), minions.len(), Some(jid));
                told.push(deliver::announce(&work, jid, &minions, &step.missing, now));
                let runs = minions.iter().map(|minion| NewStepRun {
                    minion: minion.clone(),
                    waiting_for: match firsts[minion] == index {
                        true if moved.contains(minion) => WaitingFor::Window,
                        true => WaitingFor::Due,
                        false => WaitingFor::EarlierStep,
                    },
                    refused: parts.refused.get(minion).map(|(at, why)| refusal(*at, index + 1, why)),
                });
                let runs = runs.collect();
                actions.push(NewStep {
                    action: new,
                    job: NewJob { jid, minions, missing: step.missing.clone() },
                    runs,
                });
            }
            let minions = parts
                .minions
                .iter()
                .map(|(minion, plan)| NewLaunchMinion { minion: minion.clone(), plan: plan.clone() });
            let launch = NewLaunch {
                chain: asked.chain,
                name: asked.name.clone(),
                initiator: caller.who.clone(),
                origin: caller.origin.clone(),
                org: caller.rights.org.clone(),
                key: self.next_jid(now),
                created: now,
                due,
                deadline,
                steps: serde_json::to_string(&asked.steps).unwrap_or_default(),
                actions,
                plans: parts.plans.iter().map(|(hash, plan)| (hash.clone(), plan.json())).collect(),
                minions: minions.collect(),
                events: announcement(caller, asked, told, parts.minions.len(), due, now),
                audit: Some(caller.audit(
                    "chain.launch",
                    &asked.name,
                    serde_json::json!({ "steps": asked.steps.len(), "minions": parts.minions.len() }),
                )),
                recurring: asked.recurs.as_ref().map(|recurs| recurs.id),
                fire: asked.fire().map(|fire| fire.slot.clone()),
            };
            match self.store.create_launch(launch).await {
                Ok((id, _)) => return Ok(id),
                Err(saltern_store::Error::JidTaken) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Puts together what each minion has to do.
fn parts(steps: &[Step], admitted: &[Admitted]) -> Parts {
    let mut of_minion: BTreeMap<&MinionId, (Agent, Vec<usize>)> = BTreeMap::new();
    for (index, step) in admitted.iter().enumerate() {
        for member in &step.members {
            of_minion.entry(&member.id).or_insert_with(|| (agent(member), Vec::new())).1.push(index + 1);
        }
    }
    let mut alike: BTreeMap<(bool, Vec<usize>), Vec<&MinionId>> = BTreeMap::new();
    for (minion, (agent, numbers)) in of_minion {
        alike.entry((agent == Agent::Native, numbers)).or_default().push(minion);
    }
    let mut parts = Parts { plans: BTreeMap::new(), minions: Vec::new(), refused: HashMap::new() };
    for ((native, numbers), minions) in alike {
        let mine: Vec<(usize, &Step)> =
            numbers.iter().filter_map(|number| Some((*number, steps.get(number - 1)?))).collect();
        match compile(&mine, if native { Agent::Native } else { Agent::Stock }) {
            Ok(plan) => {
                let hash = plan.hash();
                parts.minions.extend(minions.into_iter().map(|minion| (minion.clone(), hash.clone())));
                parts.plans.insert(hash, plan);
            }
            Err(error) => {
                let refused = minions.into_iter().map(|minion| (minion.clone(), (error.step, error.reason.clone())));
                parts.refused.extend(refused);
            }
        }
    }
    parts.minions.sort();
    parts
}

/// What kind of agent a minion has.
pub(crate) fn agent(member: &Member) -> Agent {
    if member.facts().ack_method == AckMethod::Native { Agent::Native } else { Agent::Stock }
}

/// How a step ends that is not even tried: because of itself, or of the one that cannot be done.
fn refusal(at: usize, number: usize, why: &str) -> (Reason, String) {
    if at == number {
        (Reason::Refused, why.to_owned())
    } else {
        (Reason::Prerequisite, format!("step {at} cannot be done on this minion: {why}"))
    }
}

fn step_action(step: &Admitted, number: usize) -> NewAction {
    let Admitted { request, call, decision, due, deadline, now, .. } = step;
    NewAction {
        kind: request.kind.name().into(),
        name: request.name.clone().unwrap_or_else(|| request.kind.describe(&request.params)),
        params: json(&Value::Map(request.params.clone())),
        fun: call.funs.join(","),
        arg: json(&Value::List(arguments(call.clone()))),
        target: json(&request.target.expression.to_value()),
        target_type: request.target.kind.as_str().into(),
        initiator: request.who.clone(),
        origin: request.origin.clone(),
        org: request.rights.org.clone(),
        created: *now,
        due: *due,
        deadline: *deadline,
        policy: request.policy.clone(),
        decision: serde_json::to_string(decision).unwrap_or_default(),
        metadata: None,
        ret: String::new(),
        internal: false,
        late: false,
        launch: None,
        step: i64::try_from(number).ok(),
        recurring: None,
    }
}

/// Makes the events of a launch, when its ids are known.
type Announcement = Box<dyn Fn(LaunchId, &[ActionId]) -> Vec<NewEvent> + Send>;

/// The events that tell of a new launch.
fn announcement(
    caller: &Caller,
    asked: &Asked,
    told: Vec<NewEvent>,
    minions: usize,
    due: Timestamp,
    at: Timestamp,
) -> Announcement {
    let (who, name, chain, fire) = (caller.who.clone(), asked.name.clone(), asked.chain, asked.fire().cloned());
    let lines: Vec<(String, String)> = asked.steps.iter().map(|step| (step.kind.clone(), step.describe())).collect();
    Box::new(move |launch, actions| {
        let mut events = told.clone();
        let number = |count: usize| Value::from(i64::try_from(count).unwrap_or(0));
        for (index, (action, (kind, line))) in actions.iter().zip(&lines).enumerate() {
            let body = Value::map([
                ("action", Value::from(action.0)),
                ("kind", kind.as_str().into()),
                ("name", line.as_str().into()),
                ("user", who.as_str().into()),
                ("due", due.rfc3339().into()),
                ("launch", launch.0.into()),
                ("step", number(index + 1)),
            ]);
            events.push(tell::action(*action, "new", body, at));
        }
        let body = Value::map([
            ("launch", Value::from(launch.0)),
            ("action", actions.first().map_or(Value::Nil, |action| action.0.into())),
            ("chain", chain.map_or(Value::Nil, |chain| chain.0.into())),
            ("name", name.as_str().into()),
            ("user", who.as_str().into()),
            ("due", due.rfc3339().into()),
            ("steps", number(lines.len())),
            ("count", number(minions)),
        ]);
        events.push(entry(at, format!("saltern/chain/{launch}/new"), body, None, None));
        events.extend(fire.iter().map(|fire| fire.fired(("launch", launch.0), minions, at)));
        events
    })
}

/// An error that says in which step it is.
pub(crate) fn in_step(number: usize, error: Error) -> Error {
    let at = |text: String| format!("step {number}: {text}");
    match error {
        Error::Invalid(text) => Error::Invalid(at(text)),
        Error::NotFound(text) => Error::NotFound(at(text)),
        Error::Forbidden(text) => Error::Forbidden(at(text)),
        Error::Busy(text) => Error::Busy(at(text)),
        Error::Conflict(text) => Error::Conflict(at(text)),
        other => other,
    }
}
