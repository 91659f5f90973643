//! Who takes part in one time of a definition, who is left out and why, and when each starts.

use super::definition::{Definition, Overlap};
use super::fire::{Stop, Task};
use crate::Error;
use crate::engine::window::Opening;
use crate::master::Master;
use saltern_core::access::Sight;
use saltern_core::ids::{MinionId, RecurringId};
use saltern_core::time::Timestamp;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

const BUSY: &str = "an earlier time has not ended there";
const WAITING: &str = "an earlier time is waiting there already";
const OUTSIDE: &str = "outside of its maintenance window";
const NO_WINDOW: &str = "outside of its maintenance window, and no other is known";

/// How long what waits behind an earlier time is left alone at first.
const BEHIND: Duration = Duration::from_secs(1);

/// Those who are left out, by the reason.
pub(super) type LeftOut = BTreeMap<String, Vec<MinionId>>;

/// Who takes part.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) minions: Vec<MinionId>,
    /// Where it starts later than the others
    pub(super) dues: BTreeMap<MinionId, Timestamp>,
    pub(super) left_out: LeftOut,
}

impl Chosen {
    fn leave_out(&mut self, minion: &MinionId, why: &str) {
        self.left_out.entry(why.to_owned()).or_default().push(minion.clone());
    }

    pub(super) fn skipped(&self) -> i64 {
        i64::try_from(self.left_out.values().map(Vec::len).sum::<usize>()).unwrap_or(i64::MAX)
    }

    /// Why nobody takes part, in words.
    pub(super) fn why_nobody(&self, definition: &Definition) -> String {
        if self.left_out.is_empty() {
            return format!("{} has no minions at this time", definition.entity);
        }
        let reasons = self.left_out.iter().map(|(why, minions)| format!("{} {why}", minions.len()));
        format!("every minion is left out: {}", reasons.collect::<Vec<_>>().join(", "))
    }
}

/// When a time starts, and how long it is spread over.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    pub(super) at: Timestamp,
    pub(super) span: Duration,
}

impl Master {
    /// Chooses among the minions that the owner sees.
    pub(super) async fn choose(
        self: &Arc<Self>,
        definition: &Definition,
        task: &Task,
        sight: &Sight,
        minions: &[MinionId],
        moment: Moment,
    ) -> Result<Chosen, Stop> {
        let (busy, behind) = self.busy_with(definition).await?;
        let mut chosen = self.open_at(
            definition,
            task,
            moment,
            minions.iter().filter(|minion| sight.sees(minion) && !busy.contains_key(*minion)),
        );
        for minion in minions.iter().filter(|minion| sight.sees(minion)) {
            if let Some(why) = busy.get(minion) {
                chosen.leave_out(minion, why);
            }
        }
        // Not at once: the dispatcher lets it wait for the time before. A launch waits by itself.
        if matches!(task, Task::Action { .. }) {
            for minion in chosen.minions.iter().filter(|minion| behind.contains(*minion)) {
                chosen.dues.entry(minion.clone()).or_insert_with(|| moment.at.plus(BEHIND));
            }
        }
        Ok(chosen)
    }

    /// Those of the minions whose windows let them start, and when.
    pub(super) fn open_at<'a>(
        &self,
        definition: &Definition,
        task: &Task,
        moment: Moment,
        minions: impl Iterator<Item = &'a MinionId>,
    ) -> Chosen {
        let restricted = task.is_restricted() && definition.policy.override_window.is_none();
        // A launch begins everywhere at once; what holds it where a window is closed is its own business.
        let (single, span) = match task {
            Task::Action { .. } => (true, moment.span),
            Task::Chain { .. } => (false, Duration::ZERO),
        };
        let mut chosen = Chosen::default();
        for minion in minions {
            let due = match self.windows.opening(minion, restricted, moment.at) {
                Opening::Open => {
                    let due = moment.at.plus(offset(definition.row.id, minion, span));
                    // The span ends with the window: who would come after its end starts at once.
                    let is_open = self.windows.opening(minion, restricted, due) == Opening::Open;
                    if is_open { due } else { moment.at }
                }
                // Admission moves it to the next one, if there is one at any distance.
                Opening::Closed(opens) if definition.row.in_window => {
                    let far = || self.windows.snapshot().opening_far(minion, moment.at);
                    if opens.is_none() || far() == Opening::Closed(None) {
                        chosen.leave_out(minion, NO_WINDOW);
                        continue;
                    }
                    moment.at
                }
                Opening::Closed(_) => {
                    chosen.leave_out(minion, OUTSIDE);
                    continue;
                }
            };
            if single && due > moment.at {
                chosen.dues.insert(minion.clone(), due);
            }
            chosen.minions.push(minion.clone());
        }
        chosen
    }

    /// Where an earlier time is in the way, and how; and where this one may wait behind it.
    async fn busy_with(
        &self,
        definition: &Definition,
    ) -> Result<(HashMap<MinionId, &'static str>, BTreeSet<MinionId>), Error> {
        if definition.overlap == Overlap::Allow {
            return Ok((HashMap::new(), BTreeSet::new()));
        }
        let pending = self.store.pending_of(definition.row.id).await?;
        if definition.overlap == Overlap::Skip {
            return Ok((pending.into_iter().map(|(minion, _)| (minion, BUSY)).collect(), BTreeSet::new()));
        }
        let (begun, waiting): (Vec<_>, Vec<_>) = pending.into_iter().partition(|(_, begun)| *begun);
        let waiting = waiting.into_iter().map(|(minion, _)| (minion, WAITING)).collect();
        Ok((waiting, begun.into_iter().map(|(minion, _)| minion).collect()))
    }
}

/// How long after the others a minion starts: the same each time, within the span.
fn offset(definition: RecurringId, minion: &MinionId, span: Duration) -> Duration {
    let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    if millis == 0 {
        return Duration::ZERO;
    }
    let digest = Sha256::digest(format!("{definition}/{minion}").as_bytes());
    let number = digest.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    Duration::from_millis(number % millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenario_89_a_spread_is_stable_and_within_its_span() {
        let span = Duration::from_secs(600);
        let ids: Vec<MinionId> = (0..500).map(|number| MinionId::new(&format!("web{number}")).unwrap()).collect();
        let offsets = |id| ids.iter().map(|minion| offset(RecurringId(id), minion, span)).collect::<Vec<_>>();
        assert_eq!(offsets(1), offsets(1));
        assert_ne!(offsets(1), offsets(2), "another definition spreads in another way");
        assert!(offsets(1).iter().all(|offset| *offset < span));
        let early = offsets(1).iter().filter(|offset| **offset < span / 2).count();
        assert!((200..300).contains(&early), "{early} of 500 in the first half");
        assert_eq!(offset(RecurringId(1), &ids[0], Duration::ZERO), Duration::ZERO);
    }
}
