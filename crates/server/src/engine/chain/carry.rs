//! Sends chunks to minions, and asks minions where they stand.
//!
//! A carrier is submitted like any action and has no way around admission; what it carries was admitted when the chain was
//! launched. A crash between the claim of a chunk and its carrier leaves a claim without one, which is found and asked about.

use super::super::Door;
use super::super::admission::Request;
use super::super::dispatch::transition;
use super::book::Going;
use super::carrier::Carrier;
use super::{CARRIER, Errand};
use crate::master::Master;
use crate::{Error, clock};
use saltern_core::access::Rights;
use saltern_core::action::{Offline, Policy, Retry};
use saltern_core::chain::Plan;
use saltern_core::ids::MinionId;
use saltern_core::run::Input;
use saltern_core::target::Target;
use saltern_core::time::Timestamp;
use saltern_core::value::Value;
use saltern_store::{ChunkClaim, LaunchMinion, MinionMove, MinionState};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

impl Master {
    /// Starts a chunk on these minions, as far as nobody else holds them; tells on how many. `restricted`: only while their
    /// windows are open.
    pub(super) async fn start_chunk(
        self: &Arc<Self>,
        going: &Going,
        plan: &Plan,
        chunk: usize,
        rows: &[LaunchMinion],
        restricted: bool,
    ) -> Result<usize, Error> {
        let (at, number) = (clock::now(), i64::try_from(chunk).unwrap_or(i64::MAX));
        let minions = rows.iter().map(|row| row.minion.clone()).collect();
        let claimed = self.store.claim_chunk(ChunkClaim { launch: going.id, chunk: number, minions, at }).await?;
        // What failed before counts for what is done after a failure, so those are told apart.
        let mut by_failure: BTreeMap<bool, Vec<MinionId>> = BTreeMap::new();
        for row in rows.iter().filter(|row| claimed.contains(&row.minion)) {
            by_failure.entry(row.failed).or_default().push(row.minion.clone());
        }
        for (failed, minions) in by_failure {
            let options = Value::map([("failed", failed)]);
            let arg = vec![going.key.to_string().into(), number.into(), plan.load(chunk), options];
            self.carry(going, Errand::Start, chunk, arg, minions, restricted).await?;
        }
        Ok(claimed.len())
    }

    /// Asks minions where they stand. Whoever is asked already is not asked twice.
    pub(super) async fn ask_chunk(
        self: &Arc<Self>,
        going: &Going,
        errand: Errand,
        rows: &[LaunchMinion],
    ) -> Result<(), Error> {
        let at = clock::now();
        let moves = rows.iter().map(|row| MinionMove {
            since: at,
            asked: row.asked + 1,
            // Whatever carried it before is over: the answer to this tells all of it.
            transitions: row
                .carrier
                .map(|carrier| transition(carrier, &row.minion, Input::Gone, at))
                .into_iter()
                .collect(),
            ..stays(row, MinionState::Asking)
        });
        let moved = self.store.move_minions(moves.collect()).await?;
        let mut by_chunk: BTreeMap<i64, Vec<MinionId>> = BTreeMap::new();
        for (row, _) in rows.iter().zip(moved).filter(|(_, moved)| *moved) {
            if let Some(carrier) = row.carrier {
                self.engine.ended(carrier, &row.minion, at);
            }
            by_chunk.entry(row.chunk).or_default().push(row.minion.clone());
        }
        for (chunk, minions) in by_chunk {
            let arg = match errand {
                Errand::Resume | Errand::Start => Vec::new(),
                Errand::Cancel | Errand::Stop => vec![going.key.to_string().into()],
            };
            self.carry(going, errand, usize::try_from(chunk).unwrap_or(0), arg, minions, false).await?;
        }
        Ok(())
    }

    async fn carry(
        self: &Arc<Self>,
        going: &Going,
        errand: Errand,
        chunk: usize,
        arg: Vec<Value>,
        minions: Vec<MinionId>,
        restricted: bool,
    ) -> Result<(), Error> {
        let request = Request {
            door: Door::Chain,
            who: going.initiator.clone(),
            origin: going.origin.clone(),
            rights: Arc::new(Rights { org: going.org.clone(), ..Rights::administrator(going.initiator.as_str()) }),
            target: Target::list(minions.iter().map(MinionId::as_str)),
            kind: &CARRIER,
            params: Carrier::params(errand, chunk, arg, restricted),
            name: None,
            // The minion runs no chunk twice; whether to send one again is decided by where it says that it stands.
            policy: Policy {
                offline: Offline::Hold,
                retry: Retry { attempts: 1, ..Retry::default() },
                ..Policy::default()
            },
            due: None,
            deadline: Some(time_left(going.deadline)),
            metadata: None,
            ret: String::new(),
            paused: false,
            launch: Some(going.id),
            recurs: None,
            in_window: false,
            dues: BTreeMap::new(),
        };
        let (store, launch) = (self.store.clone(), going.id);
        let accepted = self.submit(request).await?;
        store.set_carrier(launch, minions, accepted.action).await?;
        Ok(())
    }

    /// The carrier of a job, if it is one: of which launch it carries which chunk, and what for.
    pub(super) fn carriage(work: &super::super::Work) -> Option<(saltern_core::ids::LaunchId, i64, Errand)> {
        let launch = work.launch?;
        let chunk = work.params.get("chunk").and_then(Value::as_i64)?;
        let fun = work.params.get("fun").and_then(Value::as_str)?;
        Some((launch, chunk, Errand::of(fun)))
    }
}

/// The number of the chunk that a minion is at.
pub(super) fn number_of(row: &LaunchMinion) -> usize {
    usize::try_from(row.chunk).unwrap_or(0)
}

/// Whether a minion waits between two chunks: it has told of the one before, and still keeps that.
pub(super) fn is_between(row: &LaunchMinion) -> bool {
    row.state == MinionState::Waiting && row.chunk > 1
}

/// A minion's row as it is, in another state.
pub(super) fn stays(row: &LaunchMinion, to: MinionState) -> MinionMove {
    MinionMove {
        launch: row.launch,
        minion: row.minion.clone(),
        from: row.state,
        from_chunk: row.chunk,
        to,
        chunk: row.chunk,
        failed: row.failed,
        since: row.since,
        boot_id: row.boot_id.clone(),
        asked: row.asked,
        outcome: None,
        message: row.message.clone(),
        transitions: Vec::new(),
        event: None,
    }
}

/// What is left until a deadline; never nothing, so that the carrier of what is just over can still be told so.
fn time_left(deadline: Timestamp) -> Duration {
    deadline.since(clock::now()).max(Duration::from_secs(10))
}
