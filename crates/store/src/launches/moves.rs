//! How minions go through a launch: chunks are claimed for them, and they move from one standing to the next.
//!
//! Every move names what it moves from, so that of two that are made at once only one happens.

use super::{LaunchCounts, MinionState, count_ended};
use crate::db::{Effects, Locking, Operation, Param, Tx, locking, params};
use crate::events::NewEvent;
use crate::transit::{self, Transition};
use crate::{Error, Result, Store};
use futures_util::future::{LocalBoxFuture, try_join_all};
use saltern_core::ids::{ActionId, LaunchId, MinionId};
use saltern_core::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// Minions that are to be sent a chunk.
#[derive(Clone, Debug)]
pub struct ChunkClaim {
    /// Of which launch
    pub launch: LaunchId,
    /// Which chunk
    pub chunk: i64,
    /// Which minions
    pub minions: Vec<MinionId>,
    /// Now
    pub at: Timestamp,
}

/// A step of a minion through a launch. What it says about the minion replaces what was there.
#[derive(Clone, Debug)]
pub struct MinionMove {
    /// Of which launch
    pub launch: LaunchId,
    /// Which minion
    pub minion: MinionId,
    /// Where it must stand for this to happen
    pub from: MinionState,
    /// At which chunk it must be for this to happen
    pub from_chunk: i64,
    /// Where it stands then
    pub to: MinionState,
    /// At which chunk it is then
    pub chunk: i64,
    /// Whether a step has failed there
    pub failed: bool,
    /// When it happens
    pub since: Timestamp,
    /// How it names its boot, as far as is known
    pub boot_id: Option<String>,
    /// How often it was asked
    pub asked: i64,
    /// How it ended, if it did: `completed`, `failed` or `cancelled`
    pub outcome: Option<&'static str>,
    /// What to say about it
    pub message: Option<String>,
    /// What happens to runs with it
    pub transitions: Vec<Transition>,
    /// The event to log with it
    pub event: Option<NewEvent>,
}

const GOES_ON: Locking = locking!("SELECT 1 FROM launches WHERE id = ?1 AND cancelled IS NULL AND ended IS NULL");
const LOCK_LAUNCH: Locking = locking!("SELECT 1 FROM launches WHERE id = ?1");
// Whoever wants a minion locks what every launch has with it. Two that want it at once have a row in common: the launch
// that was stored first is seen by both. So the second looks after the first has committed, and the unique index, which
// would undo a whole group of writes, never has to speak.
const LOCK_MINION: Locking =
    locking!("SELECT launch FROM launch_minions WHERE minion = ?1 AND state <> 'ended' ORDER BY launch");
const CLAIM: &str = "UPDATE launch_minions SET state = 'sent', holds = 1, since = ?4, carrier = NULL \
    WHERE launch = ?1 AND minion = ?2 AND chunk = ?3 AND state = 'waiting' AND NOT EXISTS \
    (SELECT 1 FROM launch_minions o WHERE o.minion = ?2 AND o.holds = 1 AND o.launch <> ?1)";
const SET_CARRIER: &str = "UPDATE launch_minions SET carrier = ?3 \
    WHERE launch = ?1 AND minion = ?2 AND state IN ('sent', 'asking')";
const MOVE: &str = "UPDATE launch_minions SET state = ?5, chunk = ?6, failed = ?7, since = ?8, boot_id = ?9, asked = ?10, \
    outcome = ?11, message = ?12, holds = CASE WHEN ?5 = 'ended' THEN 0 ELSE holds END \
    WHERE launch = ?1 AND minion = ?2 AND state = ?3 AND chunk = ?4";

impl Operation for ChunkClaim {
    type Output = Vec<MinionId>;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, _effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<Vec<MinionId>>> {
        Box::pin(async move {
            if tx.query_locking(&GOES_ON, params![self.launch]).await?.is_empty() {
                return Ok(Vec::new());
            }
            let minions: BTreeSet<&MinionId> = self.minions.iter().collect();
            try_join_all(minions.iter().map(|minion| tx.query_locking(&LOCK_MINION, params![*minion]))).await?;
            let row = |minion: &&MinionId| params![self.launch, *minion, self.chunk, self.at];
            let changed = tx.execute_many(CLAIM, minions.iter().map(row).collect()).await?;
            let claimed = minions.into_iter().zip(changed).filter(|(_, changed)| *changed > 0);
            Ok(claimed.map(|(minion, _)| minion.clone()).collect())
        })
    }
}

struct SetCarrier(LaunchId, Vec<MinionId>, ActionId);

impl Operation for SetCarrier {
    type Output = ();
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, _effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let Self(launch, minions, carrier) = self;
            let minions: BTreeSet<&MinionId> = minions.iter().collect();
            let rows = minions.into_iter().map(|minion| params![*launch, minion, *carrier]);
            tx.execute_many(SET_CARRIER, rows.collect()).await.map(drop)
        })
    }
}

impl MinionMove {
    fn ends(&self) -> bool {
        self.to == MinionState::Ended
    }

    /// What it adds to the counts of its launch; nothing if it does not end there.
    fn counts(&self) -> Result<Option<LaunchCounts>> {
        if self.from == MinionState::Ended {
            return Err(Error::Invalid("a minion that has ended with a launch does not move any more"));
        }
        let one = LaunchCounts::default();
        match (self.to, self.outcome) {
            (MinionState::Ended, Some("completed")) => Ok(Some(LaunchCounts { completed: 1, ..one })),
            (MinionState::Ended, Some("failed")) => Ok(Some(LaunchCounts { failed: 1, ..one })),
            (MinionState::Ended, Some("cancelled")) => Ok(Some(LaunchCounts { cancelled: 1, ..one })),
            (MinionState::Ended, _) => Err(Error::Invalid("a minion ends completed, failed or cancelled")),
            (_, None) => Ok(None),
            (_, Some(_)) => Err(Error::Invalid("only a minion that has ended has an outcome")),
        }
    }

    fn row(&self) -> Vec<Param> {
        params![
            self.launch,
            &self.minion,
            self.from.as_str(),
            self.from_chunk,
            self.to.as_str(),
            self.chunk,
            self.failed,
            self.since,
            self.boot_id.as_ref(),
            self.asked,
            self.outcome,
            self.message.as_ref(),
        ]
    }
}

/// Moves of minions through launches, all at once.
pub(crate) struct Moves(pub(crate) Vec<MinionMove>);

impl Moves {
    /// Makes the moves; tells which were possible. In the order in which every server locks minions; moves of the same one
    /// stay in theirs.
    async fn make(&self, tx: &Tx<'_>) -> Result<Vec<bool>> {
        let mut order: Vec<(usize, &MinionMove)> = self.0.iter().enumerate().collect();
        order.sort_by_key(|(_, one)| (&one.minion, one.launch));
        let changed = tx.execute_many(MOVE, order.iter().map(|(_, one)| one.row()).collect()).await?;
        let mut moved = vec![false; self.0.len()];
        for ((place, _), changed) in order.into_iter().zip(changed) {
            moved[place] = changed > 0;
        }
        Ok(moved)
    }
}

impl Operation for Moves {
    type Output = Vec<bool>;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<Vec<bool>>> {
        Box::pin(async move {
            let counts = self.0.iter().map(MinionMove::counts).collect::<Result<Vec<_>>>()?;
            let ending: BTreeSet<LaunchId> = self.0.iter().filter(|one| one.ends()).map(|one| one.launch).collect();
            for launch in ending {
                tx.query_locking(&LOCK_LAUNCH, params![launch]).await?;
            }
            let moved = self.make(tx).await?;
            let done = || self.0.iter().zip(&moved).filter(|(_, moved)| **moved).map(|(one, _)| one);
            let transitions: Vec<&Transition> = done().flat_map(|one| &one.transitions).collect();
            transit::happen_all(tx, effects, &transitions).await?;
            done().filter_map(|one| one.event.clone()).for_each(|event| effects.push(event));
            let mut sums: BTreeMap<LaunchId, (LaunchCounts, Timestamp)> = BTreeMap::new();
            for ((one, moved), counts) in self.0.iter().zip(&moved).zip(counts) {
                if let Some(LaunchCounts { completed, failed, cancelled, .. }) = counts.filter(|_| *moved) {
                    let (sum, at) = sums.entry(one.launch).or_insert((LaunchCounts::default(), one.since));
                    sum.completed += completed;
                    sum.failed += failed;
                    sum.cancelled += cancelled;
                    *at = one.since.max(*at);
                }
            }
            for (launch, (ended, at)) in sums {
                count_ended(tx, effects, launch, ended, at).await?;
            }
            Ok(moved)
        })
    }
}

impl Store {
    /// Takes those of the minions that wait for this chunk, of a launch that goes on, and that no other launch has; tells
    /// which, by name. They are `sent` then, and nobody else's until they have ended.
    pub async fn claim_chunk(&self, claim: ChunkClaim) -> Result<Vec<MinionId>> {
        self.write(claim).await
    }

    /// Notes what brings their chunk to minions, or asks about it; of those that are still to be reached.
    pub async fn set_carrier(&self, launch: LaunchId, minions: Vec<MinionId>, carrier: ActionId) -> Result<()> {
        self.write(SetCarrier(launch, minions, carrier)).await
    }

    /// Moves minions, each if it still stands where it is moved from, with what happens to their runs; all in one
    /// transaction. Tells which moves happened. The last minion that ends, ends its launch.
    pub async fn move_minions(&self, moves: Vec<MinionMove>) -> Result<Vec<bool>> {
        self.write(Moves(moves)).await
    }
}
