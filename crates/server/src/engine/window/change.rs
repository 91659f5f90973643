//! What a change of calendars, schedules or assignments does to work that waits: told before, and done with it or not at all.

use super::keep::MOST_QUEUED;
use super::{Opening, Snapshot};
use crate::app::Caller;
use crate::engine::Work;
use crate::master::Master;
use crate::{Error, clock};
use saltern_core::ids::{ActionId, LaunchId, MinionId};
use saltern_core::run::WaitingFor;
use saltern_core::time::Timestamp;
use saltern_store::{Action, Assignment, WindowChange, WindowData, Written};
use serde::{Deserialize, Serialize};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What becomes of work that waits, and would be outside of its window by a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// Nothing is changed
    #[default]
    Refuse,
    /// It is cancelled, on those minions
    Cancel,
    /// It waits for the next window of each minion
    Next,
}

/// A run that would be outside of its window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    /// Of which action; of a launch, its first step there
    pub action: ActionId,
    /// What that is called
    pub name: String,
    /// The launch it is a part of
    pub launch: Option<LaunchId>,
    /// On which minion
    pub minion: MinionId,
    /// When it would start
    pub due: Timestamp,
    /// When the minion's next window opens then
    pub next: Option<Timestamp>,
}

/// Most runs named in a refusal.
const NAMED: usize = 5;

impl Master {
    /// What a change would touch.
    pub(crate) async fn touched_by(self: &Arc<Self>, change: &WindowChange) -> Result<Vec<Touched>, Error> {
        let before = self.windows.snapshot();
        let after = self.snapshot_of(applied(&before.data, change)).await?;
        self.compare(&before, &after).await
    }

    /// Changes windows, and what waits for them by the strategy, in one transaction. Tells what it touched.
    pub(crate) async fn change_windows(
        self: &Arc<Self>,
        caller: &Caller,
        mut change: WindowChange,
        strategy: Strategy,
    ) -> Result<(Written, Vec<Touched>), Error> {
        let _one = self.windows.changing.lock().await;
        // It may be that another server was faster.
        self.reread_windows_now().await?;
        let touched = self.touched_by(&change).await?;
        change.at = clock::now();
        change.grace = self.config.job_deadline;
        change.message = format!("the maintenance windows of its minion were changed by {}", caller.who);
        match strategy {
            Strategy::Refuse if !touched.is_empty() => {
                return Err(Error::Conflict(format!(
                    "{} would be outside of their windows, and nothing was changed: {}; cancel them, or let them wait for \
                     the next window",
                    runs(touched.len()),
                    named(&touched)
                )));
            }
            Strategy::Refuse => {}
            Strategy::Cancel => {
                let mut parts = Vec::new();
                for one in &touched {
                    match one.launch {
                        Some(launch) => parts.push((launch, one.minion.clone())),
                        None => change.cancel.push((one.action, one.minion.clone())),
                    }
                }
                change.parts = self.cancelled_parts(parts, &change.message).await?;
            }
            Strategy::Next => {
                let stuck: Vec<Touched> = touched.iter().filter(|one| one.next.is_none()).cloned().collect();
                if !stuck.is_empty() {
                    return Err(Error::Conflict(format!(
                        "{} would have no next window, and nothing was changed: {}; cancel them",
                        runs(stuck.len()),
                        named(&stuck)
                    )));
                }
                let moved = |one: &Touched| Some((one.action, one.minion.clone(), one.next?));
                change.moves = touched.iter().filter_map(moved).collect();
            }
        }
        let written = self.store.change_windows(change).await?;
        if let Written::Done(_) = written {
            self.reread_windows_now().await?;
            for action in touched.iter().map(|one| one.action).collect::<BTreeSet<_>>() {
                self.engine.wake(action);
            }
        }
        Ok((written, touched))
    }

    /// What waits, would start inside of its window, and no longer does.
    async fn compare(self: &Arc<Self>, before: &Snapshot, after: &Snapshot) -> Result<Vec<Touched>, Error> {
        let now = clock::now();
        let minions = after.differing(before);
        let waiting = self.store.restricted_queue(&minions, MOST_QUEUED).await?;
        if waiting.len() >= MOST_QUEUED {
            return Err(Error::Busy(format!(
                "{MOST_QUEUED} runs and more wait on these minions; try again with fewer"
            )));
        }
        let mut restricted = Restricted::default();
        let mut touched = Vec::new();
        for (action, run) in waiting {
            let due = run.due.unwrap_or(action.new.due).max(now);
            let was_open = before.opening_far(&run.minion, due) == Opening::Open;
            if after.opening_far(&run.minion, due) == Opening::Open {
                continue;
            }
            // What waits for a window takes any: one that is open now lets it start, and is no harm.
            let from = if run.waiting_for == Some(WaitingFor::Window) { now } else { due };
            let Opening::Closed(next) = after.opening_far(&run.minion, from) else { continue };
            if was_open && restricted.is(self, &action, &run.minion).await? {
                touched.push(Touched {
                    action: action.id,
                    name: action.new.name.clone(),
                    launch: action.new.launch.filter(|_| action.new.step.is_some()),
                    minion: run.minion,
                    due,
                    next,
                });
            }
        }
        Ok(touched)
    }
}

/// Which actions, and which parts of launches, keep to windows.
#[derive(Default)]
struct Restricted {
    actions: BTreeMap<ActionId, bool>,
    launches: BTreeMap<LaunchId, Arc<[Action]>>,
}

impl Restricted {
    async fn is(&mut self, master: &Master, action: &Action, minion: &MinionId) -> Result<bool, Error> {
        if action.new.policy.override_window.is_some() {
            return Ok(false);
        }
        let (Some(launch), Some(_)) = (action.new.launch, action.new.step) else { return self.is_one(action) };
        let steps = match self.launches.entry(launch) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(new) => new.insert(master.store.launch_actions(launch).await?.into()).clone(),
        };
        // A part of a launch begins with its first step, and has to be inside if any of it changes something.
        for step in steps.iter() {
            if self.is_one(step)? && master.store.run(step.id, minion).await?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_one(&mut self, action: &Action) -> Result<bool, Error> {
        if let Some(known) = self.actions.get(&action.id) {
            return Ok(*known);
        }
        let restricted = Work::read(action)?.is_restricted();
        self.actions.insert(action.id, restricted);
        Ok(restricted)
    }
}

/// What the tables would say after a change.
fn applied(data: &WindowData, change: &WindowChange) -> WindowData {
    let mut data = data.clone();
    if let Some((calendar, _)) = &change.put_calendar {
        data.calendars.retain(|one| (&one.org, &one.name) != (&calendar.org, &calendar.name));
        data.calendars.push(calendar.clone());
    }
    if let Some((org, name, _)) = &change.delete_calendar {
        data.calendars.retain(|one| (&one.org, &one.name) != (org, name));
    }
    if let Some((schedule, _)) = &change.put_schedule {
        data.schedules.retain(|one| (&one.org, &one.name) != (&schedule.org, &schedule.name));
        data.schedules.push(schedule.clone());
    }
    if let Some((org, name, _)) = &change.delete_schedule {
        data.schedules.retain(|one| (&one.org, &one.name) != (org, name));
        data.assignments.retain(|one| (&one.org, &one.schedule) != (org, name));
    }
    let mut assigned: BTreeSet<Assignment> = data.assignments.drain(..).collect();
    assigned.extend(change.assign.iter().cloned());
    assigned.retain(|one| !change.unassign.contains(one));
    data.assignments = assigned.into_iter().collect();
    data
}

fn runs(number: usize) -> String {
    if number == 1 { "1 waiting run".into() } else { format!("{number} waiting runs") }
}

fn named(touched: &[Touched]) -> String {
    let one =
        |one: &Touched| format!("action {} ({}) on {}, due {}", one.action, one.name, one.minion, one.due.rfc3339());
    let names: Vec<String> = touched.iter().take(NAMED).map(one).collect();
    let more = touched.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names.join(", "))
}
