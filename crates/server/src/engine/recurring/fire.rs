//! Fires one instant of a definition: under its owner's rights, on the minions that are there now, by the engine's only door.

use super::choose::{Chosen, LeftOut, Moment};
use super::definition::Definition;
use super::instants::{MISSED, REFUSED, Round, SKIPPED};
use super::plan::ON_TIME;
use super::tell;
use super::what::{RecurringWhat, action_name, action_type};
use crate::app::{Caller, steps_of};
use crate::engine::admission::Recurs;
use crate::engine::chain::Asked;
use crate::engine::{Door, Request};
use crate::master::Master;
use crate::{Error, clock};
use saltern_core::access::{Rights, Sight, Wish};
use saltern_core::action::Policy;
use saltern_core::action::types::ActionType;
use saltern_core::chain::Step;
use saltern_core::ids::{ActionId, ChainId, LaunchId, MinionId};
use saltern_core::target::Target;
use saltern_core::time::Timestamp;
use saltern_core::value::Map;
use saltern_store::{FireSlot, NewEvent, Recurring};
use std::sync::Arc;
use std::time::Duration;

/// An instant that is accounted for with the action or launch that is made.
#[derive(Clone, Debug)]
pub(crate) struct Fire {
    pub(crate) slot: FireSlot,
    row: Arc<Recurring>,
}

/// An instant to come, and whom it would hit as things are now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedFire {
    /// When
    pub at: Timestamp,
    /// Who would take part
    pub minions: Vec<MinionId>,
    /// Who would be left out, and why
    pub left_out: Vec<(MinionId, String)>,
}

/// What is done, made ready.
pub(super) enum Task {
    Action { kind: &'static dyn ActionType, params: Map, name: String },
    Chain { chain: ChainId, name: String, steps: Vec<Step> },
}

/// Why an instant was not fired.
pub(super) enum Stop {
    /// Somebody else has accounted for it
    Taken,
    /// Nobody takes part
    Nobody(Chosen),
    Refused(String),
    /// Not now; perhaps in a moment
    Busy(String),
    /// It is not known; it has to be tried again
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        match error {
            Error::Store(saltern_store::Error::FireTaken) => Self::Taken,
            Error::Store(_) | Error::Stopping => Self::Failed(error),
            Error::Busy(why) => Self::Busy(why),
            refused => Self::Refused(refused.to_string()),
        }
    }
}

impl From<saltern_store::Error> for Stop {
    fn from(error: saltern_store::Error) -> Self {
        Error::from(error).into()
    }
}

impl Fire {
    /// What is told of it, with the id of what was made.
    pub(crate) fn fired(&self, work: (&'static str, i64), minions: usize, at: Timestamp) -> NewEvent {
        tell::fired(&self.row, &self.slot, work, minions, at)
    }
}

impl Task {
    /// Whether it may only start while its minions may be changed.
    pub(super) fn is_restricted(&self) -> bool {
        match self {
            Self::Action { kind, params, .. } => kind.is_restricted(params),
            Self::Chain { steps, .. } => {
                steps.iter().any(|step| step.action_type().is_some_and(|kind| kind.is_restricted(&step.params)))
            }
        }
    }
}

impl Master {
    /// Fires an instant, or accounts for why not; false if somebody else was faster.
    pub(super) async fn fire(
        self: &Arc<Self>,
        round: &Round,
        definition: &Definition,
        slot: FireSlot,
    ) -> Result<bool, Error> {
        let (slot, outcome) = match self.try_to_fire(round, definition, &slot).await {
            Ok(()) => return Ok(true),
            Err(Stop::Taken) => {
                self.move_on(slot).await?;
                return Ok(false);
            }
            Err(Stop::Failed(error)) => return Err(error),
            // Places become free again within moments; what is late by then is told why. What was missed while the server was
            // not there has these moments, too.
            Err(Stop::Busy(why))
                if !round.is_hasty && clock::now().since(slot.planned.max(self.engine.started)) <= ON_TIME =>
            {
                return Err(Error::Busy(why));
            }
            Err(Stop::Busy(why) | Stop::Refused(why)) => (FireSlot { why, ..slot }, REFUSED),
            Err(Stop::Nobody(chosen)) => {
                let (why, skipped) = (chosen.why_nobody(definition), chosen.skipped());
                (FireSlot { why, skipped, detail: write_left_out(&chosen.left_out), ..slot }, SKIPPED)
            }
        };
        self.account(&definition.row, vec![(slot, outcome)]).await
    }

    async fn try_to_fire(
        self: &Arc<Self>,
        round: &Round,
        definition: &Definition,
        slot: &FireSlot,
    ) -> Result<(), Stop> {
        let rights = self.owner_in_round(round, definition).await?;
        definition.entity.check(&rights, &definition.row.org)?;
        let task = self.task(definition, &rights).await?;
        let minions = self.minions_in_round(round, definition).await?;
        let at = if slot.late { clock::now() } else { slot.planned };
        let moment = Moment { at, span: definition.span(slot.planned, slot.next) };
        let chosen = self.choose(definition, &task, &rights.sees, &minions, moment).await?;
        if chosen.minions.is_empty() {
            return Err(Stop::Nobody(chosen));
        }
        let slot = FireSlot { skipped: chosen.skipped(), detail: write_left_out(&chosen.left_out), ..slot.clone() };
        let fire = Fire { slot, row: Arc::new(definition.row.clone()) };
        let who = Caller {
            who: definition.row.owner.clone(),
            origin: format!("recurring {}", definition.row.id),
            rights,
            token: None,
            person: None,
        };
        self.carry_out(definition, task, &who, chosen, Some(at), Some(fire)).await?;
        Ok(())
    }

    /// Does it at once, as somebody's own work. No planned instant is accounted for.
    pub(crate) async fn run_recurring_now(
        self: &Arc<Self>,
        caller: &Caller,
        definition: &Definition,
    ) -> Result<(Option<ActionId>, Option<LaunchId>), Error> {
        let task = self.task(definition, &caller.rights).await?;
        let mut minions = self.minions_of_entity(&definition.entity).await?;
        minions.retain(|minion| caller.sight().sees(minion));
        let chosen = Chosen { minions, ..Chosen::default() };
        if chosen.minions.is_empty() {
            return Err(Error::NotFound(chosen.why_nobody(definition)));
        }
        self.carry_out(definition, task, caller, chosen, None, None).await
    }

    /// Everything that would refuse it if it were fired now, on whoever is there.
    pub(crate) async fn check_recurring(
        self: &Arc<Self>,
        caller: &Caller,
        definition: &Definition,
    ) -> Result<(), Error> {
        let task = self.task(definition, &caller.rights).await?;
        let mut minions = self.minions_of_entity(&definition.entity).await?;
        minions.retain(|minion| caller.sight().sees(minion));
        if minions.is_empty() {
            return Ok(());
        }
        let chosen = Chosen { minions, ..Chosen::default() };
        let checked = match task {
            Task::Action { kind, params, name } => {
                self.preview(request(definition, caller, (kind, params, name), chosen, None, None)).await.map(drop)
            }
            Task::Chain { .. } => {
                self.preview_launch(caller, &asked(definition, task, chosen, None, None)?).await.map(drop)
            }
        };
        match checked {
            // What is only so at this moment says nothing about when it fires.
            Err(Error::Conflict(_) | Error::Busy(_)) => Ok(()),
            checked => checked,
        }
    }

    /// The next `count` instants after this one, and whom each would hit as things are now.
    pub(crate) async fn planned_fires(
        self: &Arc<Self>,
        caller: &Caller,
        definition: &Definition,
        after: Timestamp,
        count: usize,
    ) -> Result<Vec<PlannedFire>, Error> {
        let task = self.task(definition, &caller.rights).await?;
        let mut minions = self.minions_of_entity(&definition.entity).await?;
        minions.retain(|minion| caller.sight().sees(minion));
        let mut skip = definition.row.skip_next;
        let mut planned = Vec::with_capacity(count);
        for at in definition.cron.preview(after, &definition.zone, count) {
            let chosen = if std::mem::take(&mut skip) {
                let left_out = LeftOut::from([("it is to be skipped".to_owned(), minions.clone())]);
                Chosen { left_out, ..Chosen::default() }
            } else {
                self.open_at(definition, &task, Moment { at, span: Duration::ZERO }, minions.iter())
            };
            planned.push(PlannedFire { at, minions: chosen.minions, left_out: flat(chosen.left_out) });
        }
        Ok(planned)
    }

    /// What is done, if there still is such a thing and the owner may use it.
    async fn task(&self, definition: &Definition, rights: &Rights) -> Result<Task, Error> {
        match &definition.what {
            RecurringWhat::Action { kind, params } => {
                let kind = action_type(kind)?;
                let name = action_name(&definition.row.name, kind, params);
                Ok(Task::Action { kind, params: params.clone(), name })
            }
            RecurringWhat::Chain { chain: id, params } => {
                let none = || Error::NotFound(format!("there is no chain {id}"));
                let chain = self.store.chain(*id).await?.ok_or_else(none)?;
                let wish = Wish::UseChain { org: &chain.org, owner: &chain.owner, shared: chain.shared };
                rights.may(&wish).map_err(|_| none())?;
                // What others write does not run with his rights before he has looked at it.
                if chain.changed > definition.row.changed && chain.changed_by != definition.row.owner {
                    return Err(Error::Conflict(format!(
                        "chain {:?} was changed by {} after this was set up; look at it, and save this again",
                        chain.name, chain.changed_by
                    )));
                }
                let mut steps = steps_of(&chain)?;
                if steps.is_empty() {
                    return Err(Error::Invalid(format!("chain {:?} has no steps yet", chain.name)));
                }
                let most = steps.len();
                for (number, params) in params {
                    let step = number.checked_sub(1).and_then(|index| steps.get_mut(index));
                    let none = || Error::Invalid(format!("there is no step {number}: the chain has {most}"));
                    step.ok_or_else(none)?.changes(params);
                }
                Ok(Task::Chain { chain: *id, name: definition.row.name.clone(), steps })
            }
        }
    }

    async fn carry_out(
        self: &Arc<Self>,
        definition: &Definition,
        task: Task,
        who: &Caller,
        chosen: Chosen,
        due: Option<Timestamp>,
        fire: Option<Fire>,
    ) -> Result<(Option<ActionId>, Option<LaunchId>), Error> {
        match task {
            Task::Action { kind, params, name } => {
                let request = request(definition, who, (kind, params, name), chosen, due, fire);
                Ok((Some(self.submit(request).await?.action), None))
            }
            Task::Chain { .. } => {
                Ok((None, Some(self.launch(who, asked(definition, task, chosen, due, fire)?).await?)))
            }
        }
    }

    /// An instant that has its row and is next all the same: a change of the definition has put it back while it fired.
    async fn move_on(&self, slot: FireSlot) -> Result<(), Error> {
        let is_next = self.store.recurring(slot.recurring).await?.is_some_and(|row| row.next == Some(slot.planned));
        if !is_next {
            return Ok(());
        }
        let newest = self.store.fires(slot.recurring, Timestamp(slot.planned.0.saturating_add(1)), 1).await?;
        if newest.first().is_some_and(|fire| fire.planned == slot.planned) {
            self.store.account_fires(vec![(slot, MISSED)], clock::now(), Box::new(|_| Vec::new())).await?;
        }
        Ok(())
    }
}

fn recurs(definition: &Definition, fire: Option<Fire>) -> Option<Recurs> {
    Some(Recurs { id: definition.row.id, fire })
}

fn target(minions: &[MinionId]) -> Target {
    Target::list(minions.iter().map(MinionId::as_str))
}

fn request(
    definition: &Definition,
    who: &Caller,
    (kind, params, name): (&'static dyn ActionType, Map, String),
    chosen: Chosen,
    due: Option<Timestamp>,
    fire: Option<Fire>,
) -> Request {
    Request {
        door: Door::Recurring,
        who: who.who.clone(),
        origin: who.origin.clone(),
        rights: who.rights.clone(),
        target: target(&chosen.minions),
        kind,
        params,
        name: Some(name),
        // Nobody waits for it.
        policy: Policy { interactive: false, ..definition.policy.clone() },
        due,
        deadline: definition.deadline(),
        metadata: None,
        ret: String::new(),
        paused: false,
        launch: None,
        recurs: recurs(definition, fire),
        in_window: definition.row.in_window,
        dues: chosen.dues,
    }
}

fn asked(
    definition: &Definition,
    task: Task,
    chosen: Chosen,
    due: Option<Timestamp>,
    fire: Option<Fire>,
) -> Result<Asked, Error> {
    let Task::Chain { chain, name, steps } = task else {
        return Err(Error::Internal("an action is not launched".into()));
    };
    Ok(Asked {
        chain: Some(chain),
        name,
        steps,
        target: Some(target(&chosen.minions)),
        due,
        deadline: definition.deadline(),
        in_window: definition.row.in_window,
        window: definition.policy.window,
        override_window: definition.policy.override_window.clone(),
        recurs: recurs(definition, fire),
    })
}

fn write_left_out(left_out: &LeftOut) -> String {
    let lists = left_out.iter().map(|(why, minions)| {
        let minions: Vec<&str> = minions.iter().map(MinionId::as_str).collect();
        (why.clone(), serde_json::Value::from(minions))
    });
    serde_json::Value::Object(lists.collect()).to_string()
}

/// Who was left out of a fire and why, as far as somebody sees them.
pub(crate) fn left_out_of(detail: &str, sight: &Sight) -> Vec<(MinionId, String)> {
    let lists: std::collections::BTreeMap<String, Vec<String>> = serde_json::from_str(detail).unwrap_or_default();
    let read = lists.into_iter().map(|(why, minions)| {
        let seen = minions.iter().filter_map(|name| MinionId::new(name).ok()).filter(|minion| sight.sees(minion));
        (why, seen.collect())
    });
    flat(read.collect())
}

fn flat(left_out: LeftOut) -> Vec<(MinionId, String)> {
    let one = |(why, minions): (String, Vec<MinionId>)| minions.into_iter().map(move |minion| (minion, why.clone()));
    let mut all: Vec<_> = left_out.into_iter().flat_map(one).collect();
    all.sort();
    all
}
