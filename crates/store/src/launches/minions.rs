//! Where minions stand with launches, as it is read. What changes it: `create`, `moves`, `verbs`, `purge`.

use crate::db::{Param, Row, params};
use crate::{Error, Result, Store};
use saltern_core::ids::{ActionId, LaunchId, MinionId};
use saltern_core::time::Timestamp;
use std::collections::BTreeSet;

/// A minion of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchMinion {
    /// Of which launch
    pub launch: LaunchId,
    /// Which one
    pub minion: MinionId,
    /// The hash of its plan
    pub plan: String,
    /// The chunk of the plan it is at, from 1 on
    pub chunk: i64,
    /// Where it stands with that
    pub state: MinionState,
    /// Whether it is taken by this launch, so that no other may begin there
    pub holds: bool,
    /// Whether a step has failed there
    pub failed: bool,
    /// What brought the chunk there, or asks about it
    pub carrier: Option<ActionId>,
    /// Since when it stands so
    pub since: Timestamp,
    /// How it named its boot when that was last heard
    pub boot_id: Option<String>,
    /// How often it was asked
    pub asked: i64,
    /// How it ended: `completed`, `failed` or `cancelled`
    pub outcome: Option<String>,
    /// What was said when it came to stand so
    pub message: Option<String>,
}

/// Where a minion stands with its chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MinionState {
    /// The chunk was not sent
    Waiting,
    /// The chunk is under way
    Sent,
    /// The machine or its agent restarts
    Restarting,
    /// It is being asked where it stands
    Asking,
    /// There is no more to do
    Ended,
}

impl MinionState {
    /// Every state.
    pub const ALL: [Self; 5] = [Self::Waiting, Self::Sent, Self::Restarting, Self::Asking, Self::Ended];

    /// The word for it, in the database and everywhere else.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Sent => "sent",
            Self::Restarting => "restarting",
            Self::Asking => "asking",
            Self::Ended => "ended",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT m.launch, m.minion, m.plan, m.chunk, m.state, m.holds, m.failed, m.carrier, m.since, m.boot_id, \
             m.asked, m.outcome, m.message FROM launch_minions m ",
            $rest
        )
    };
}

pub(crate) use select;

const ONE: &str = select!("WHERE m.launch = ?1 AND m.minion = ?2");
pub(crate) const PAGE: &str = select!("WHERE m.launch = ?1 AND m.minion > ?2 ORDER BY m.minion LIMIT ?3");
pub(crate) const IN_STATE: &str =
    select!("WHERE m.launch = ?1 AND m.state = ?4 AND m.minion > ?2 ORDER BY m.minion LIMIT ?3");
pub(crate) const OPEN_OF_MINION: &str = select!("WHERE m.minion = ?1 AND m.state <> 'ended' ORDER BY m.launch");
pub(crate) const HELD: &str = "SELECT minion, launch FROM launch_minions \
    WHERE holds = 1 AND minion >= ?1 AND minion <= ?2 ORDER BY minion";

impl Store {
    /// One minion of a launch.
    pub async fn launch_minion(&self, launch: LaunchId, minion: &MinionId) -> Result<Option<LaunchMinion>> {
        Ok(self.list_launch_minions(ONE, params![launch, minion]).await?.into_iter().next())
    }

    /// The minions of a launch, or those that stand so, by name, after `after` (empty text: from the first).
    pub async fn launch_minions(
        &self,
        launch: LaunchId,
        state: Option<MinionState>,
        after: &str,
        limit: usize,
    ) -> Result<Vec<LaunchMinion>> {
        let mut values = params![launch, after, limit];
        values.extend(state.map(|state| Param::from(state.as_str())));
        self.list_launch_minions(if state.is_some() { IN_STATE } else { PAGE }, values).await
    }

    /// Where a minion stands with launches that have not ended there, the oldest launch first.
    pub async fn open_launch_minions_of(&self, minion: &MinionId) -> Result<Vec<LaunchMinion>> {
        self.list_launch_minions(OPEN_OF_MINION, params![minion]).await
    }

    /// Which of these minions are taken, and by which launch; by name.
    pub async fn holders(&self, minions: &[MinionId]) -> Result<Vec<(MinionId, LaunchId)>> {
        let wanted: BTreeSet<&MinionId> = minions.iter().collect();
        let (Some(first), Some(last)) = (wanted.first(), wanted.last()) else { return Ok(Vec::new()) };
        // One read of all that is taken between them, rather than one for each: never more than there are minions.
        let rows = self.query(HELD, params![*first, *last]).await?;
        let held = rows.into_iter().map(|mut row| Ok((row.minion(0)?, LaunchId(row.int(1)?))));
        held.filter(|held| held.as_ref().map_or(true, |(minion, _)| wanted.contains(minion))).collect()
    }

    pub(crate) async fn list_launch_minions(&self, sql: &'static str, values: Vec<Param>) -> Result<Vec<LaunchMinion>> {
        self.query(sql, values).await?.into_iter().map(read).collect()
    }
}

fn read(mut row: Row) -> Result<LaunchMinion> {
    Ok(LaunchMinion {
        launch: LaunchId(row.int(0)?),
        minion: row.minion(1)?,
        plan: row.text(2)?,
        chunk: row.int(3)?,
        state: MinionState::parse(&row.text(4)?).ok_or(Error::Shape { what: "launch_minions", column: 4 })?,
        holds: row.flag(5)?,
        failed: row.flag(6)?,
        carrier: row.opt_int(7)?.map(ActionId),
        since: row.time(8)?,
        boot_id: row.opt_text(9)?,
        asked: row.int(10)?,
        outcome: row.opt_text(11)?,
        message: row.opt_text(12)?,
    })
}

#[cfg(test)]
mod tests {
    use super::MinionState;

    #[test]
    fn words_read_back() {
        for state in MinionState::ALL {
            assert_eq!(MinionState::parse(state.as_str()), Some(state));
        }
        assert_eq!(MinionState::parse("queued"), None);
    }
}
