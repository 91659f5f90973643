//! Accounts for the instants of one definition that have come: each is fired, or told why not.

use super::definition::Definition;
use super::entity::EntityRef;
use super::plan::{self, Verdict};
use super::tell;
use crate::master::Master;
use crate::{Error, clock};
use saltern_core::access::Rights;
use saltern_core::ids::MinionId;
use saltern_core::time::Timestamp;
use saltern_store::{FireSlot, Recurring};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::sync::OnceCell;

pub(super) const SKIPPED: &str = "skipped";
pub(super) const MISSED: &str = "missed";
pub(super) const REFUSED: &str = "refused";

/// Most late ones of a definition that are fired in one go; the others are fired right after, when others had their turn.
const MOST_LATE: usize = 100;

/// What is looked up once for many definitions.
type Once<T> = Arc<OnceCell<Arc<T>>>;

/// One look at what is due: what many definitions have in common is found out once.
pub(crate) struct Round {
    pub(super) now: Timestamp,
    /// Whether somebody waits for it: then nothing is put off that cannot be done now
    pub(super) is_hasty: bool,
    minions: Mutex<HashMap<EntityRef, Once<Vec<MinionId>>>>,
    owners: Mutex<HashMap<(String, String), Once<Rights>>>,
}

impl Round {
    pub(crate) fn new(now: Timestamp) -> Self {
        Self { now, is_hasty: false, minions: Mutex::default(), owners: Mutex::default() }
    }

    /// One that somebody waits for.
    pub(crate) fn hasty(now: Timestamp) -> Self {
        Self { is_hasty: true, ..Self::new(now) }
    }

    pub(super) fn minions(&self, entity: &EntityRef) -> Once<Vec<MinionId>> {
        super::super::lock(&self.minions).entry(entity.clone()).or_default().clone()
    }

    pub(super) fn owner(&self, row: &Recurring) -> Once<Rights> {
        super::super::lock(&self.owners).entry((row.owner.clone(), row.person.clone())).or_default().clone()
    }
}

impl Master {
    /// Accounts for the instants of a definition that have come, a batch at most. Who finds that somebody else is at it
    /// leaves it to him.
    pub(crate) async fn account_for(self: &Arc<Self>, round: &Round, row: Recurring) -> Result<(), Error> {
        let Some(first) = row.next else { return Ok(()) };
        let definition = match Definition::read(row.clone()) {
            Ok(definition) => definition,
            Err(error) => {
                // It cannot be known when the next one would be, so there is none until somebody has changed it.
                let slot = FireSlot { why: error.to_string(), ..slot(&row, first, None) };
                return self.account(&row, vec![(slot, REFUSED)]).await.map(drop);
            }
        };
        let (mut undone, mut late) = (Vec::new(), 0);
        for instant in plan::due(&definition, first, round.now) {
            let slot = slot(&row, instant.planned, instant.next);
            match instant.verdict {
                Verdict::Skip => {
                    let why = "somebody asked for it to be skipped".into();
                    undone.push((FireSlot { why, clear_skip_next: true, ..slot }, SKIPPED));
                }
                Verdict::Miss(why) => undone.push((FireSlot { why: why.into(), ..slot }, MISSED)),
                Verdict::Fire { late: is_late } => {
                    late += usize::from(is_late);
                    if late > MOST_LATE {
                        break;
                    }
                    if !self.account(&row, std::mem::take(&mut undone)).await? {
                        return Ok(());
                    }
                    let why = if is_late { "fired late: the server was not there in time" } else { "" };
                    let slot = FireSlot { why: why.into(), late: is_late, ..slot };
                    if !self.fire(round, &definition, slot).await? {
                        return Ok(());
                    }
                }
            }
        }
        self.account(&row, undone).await.map(drop)
    }

    /// Accounts for instants at which nothing is done; false if somebody else was faster.
    pub(super) async fn account(&self, row: &Recurring, slots: Vec<(FireSlot, &'static str)>) -> Result<bool, Error> {
        if slots.is_empty() {
            return Ok(true);
        }
        let at = clock::now();
        let (row, told) = (row.clone(), slots.clone());
        let events = Box::new(move |accounted: &[bool]| {
            let news = told.iter().zip(accounted).filter(|(_, is_news)| **is_news).map(|(slot, _)| slot);
            tell::not_done(&row, &news.collect::<Vec<_>>(), at)
        });
        Ok(self.store.account_fires(slots, at, events).await?.into_iter().all(|is_news| is_news))
    }
}

fn slot(row: &Recurring, planned: Timestamp, next: Option<Timestamp>) -> FireSlot {
    FireSlot {
        recurring: row.id,
        planned,
        next,
        clear_skip_next: false,
        why: String::new(),
        skipped: 0,
        detail: "{}".into(),
        late: false,
    }
}
