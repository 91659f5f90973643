//! A definition as the engine works with it: its row, read.

use super::entity::EntityRef;
use super::what::RecurringWhat;
use crate::Error;
use saltern_calendar::cron::Cron;
use saltern_calendar::zone::Zone;
use saltern_core::action::Policy;
use saltern_core::time::Timestamp;
use saltern_store::Recurring;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What happens on a minion where an earlier time has not ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// It is left out
    #[default]
    Skip,
    /// One more waits there, not two
    Queue,
    /// Nobody looks
    Allow,
}

/// What happens with instants that nobody was there for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CatchUp {
    /// They are missed
    None,
    /// The newest is fired late, the others are missed
    #[default]
    Once,
    /// All that are not too old are fired late
    All,
}

/// A definition, read.
pub(crate) struct Definition {
    pub(crate) row: Recurring,
    pub(crate) entity: EntityRef,
    pub(crate) what: RecurringWhat,
    pub(crate) cron: Cron,
    pub(crate) zone: Zone,
    pub(crate) overlap: Overlap,
    pub(crate) catch_up: CatchUp,
    pub(crate) policy: Policy,
}

impl Overlap {
    /// Every one of them.
    pub const ALL: [Self; 3] = [Self::Skip, Self::Queue, Self::Allow];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Queue => "queue",
            Self::Allow => "allow",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == word)
    }
}

impl CatchUp {
    /// Every one of them.
    pub const ALL: [Self; 3] = [Self::None, Self::Once, Self::All];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Once => "once",
            Self::All => "all",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == word)
    }
}

impl Definition {
    /// Reads a row. What was stored was checked, so an error is a broken database, or one of another version.
    pub(crate) fn read(row: Recurring) -> Result<Self, Error> {
        let broken = |what: &str| Error::Internal(format!("recurring action {} cannot be read: {what}", row.id));
        Ok(Self {
            entity: EntityRef::read(&row).ok_or_else(|| broken("what it is done on"))?,
            what: RecurringWhat::read(&row.what).map_err(|error| broken(&error.to_string()))?,
            cron: Cron::parse(&row.cron, &row.seed).map_err(|error| broken(&error.to_string()))?,
            zone: Zone::parse(&row.zone).map_err(|error| broken(&error.to_string()))?,
            overlap: Overlap::parse(&row.overlap).ok_or_else(|| broken("its overlap"))?,
            catch_up: CatchUp::parse(&row.catch_up).ok_or_else(|| broken("its catch-up"))?,
            policy: serde_json::from_str(&row.policy).map_err(|_| broken("its policy"))?,
            row,
        })
    }

    /// The first instant after this one; nothing where the calendar ends.
    pub(crate) fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        self.cron.next(after, &self.zone)
    }

    /// Over how long the minions are spread at an instant: never into the next one.
    pub(super) fn span(&self, planned: Timestamp, next: Option<Timestamp>) -> Duration {
        let most = next.map_or(Duration::MAX, |next| next.since(planned));
        seconds(self.row.spread).min(most)
    }

    /// For how long after its instant a late one is worth firing.
    pub(super) fn catch_up_limit(&self) -> Duration {
        seconds(self.row.catch_up_limit)
    }

    /// How long after it is due whatever is open ends.
    pub(super) fn deadline(&self) -> Option<Duration> {
        self.row.deadline.map(seconds)
    }
}

fn seconds(count: i64) -> Duration {
    Duration::from_secs(u64::try_from(count).unwrap_or(0))
}
