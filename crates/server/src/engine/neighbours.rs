//! Several servers on one database: each sends to the minions that are connected to it, and sees what the others do.
//!
//! The tables are what they have in common: a run is claimed by compare-and-set, so it has one sender. Each server shows
//! itself every second; whose minions are whose is read in the same breath. A minion that moves takes its open runs along:
//! the server it comes to looks after them. Nothing here needs a message between servers.
//!
//! With SQLite there is one server, and nothing of this happens.

use super::lock;
use crate::master::{Master, Member};
use crate::{Error, clock};
use saltern_core::ids::MinionId;
use saltern_core::time::Timestamp;
use saltern_store::{Location, Neighbours};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::time::Duration;

/// Time between two signs of life.
const BEAT: Duration = Duration::from_secs(1);
/// A server that has not shown itself for so long is taken for dead.
const LEASE: Duration = Duration::from_secs(10);

/// A server that could not show itself for so long no longer does what only the first one does: before another may take it
/// for dead.
const CAUTION: Duration = Duration::from_secs(5);

/// When this server is the first of those that share the database.
struct Turn {
    from: Timestamp,
    until: Timestamp,
}

impl Turn {
    const NEVER: Timestamp = Timestamp(i64::MAX);

    /// What a look at the others at `now` means. `is_new`: this server has just come. Another one may have been first until
    /// then, and gets the time to notice.
    fn look(&mut self, neighbours: &Neighbours, now: Timestamp, is_new: bool) {
        self.until = now.plus(CAUTION);
        self.from = match neighbours {
            Neighbours { lower: 1.., .. } => Self::NEVER,
            Neighbours { servers: 1.., .. } if is_new => now.plus(LEASE),
            // The lower ones have left, or have been silent for longer than caution allows.
            _ if is_new || self.from == Self::NEVER => now,
            _ => self.from,
        };
    }
}

/// Where there is only one server it is always the first.
impl Default for Turn {
    fn default() -> Self {
        Self { from: Timestamp(i64::MIN), until: Timestamp(i64::MAX) }
    }
}

/// What is known of the other servers.
#[derive(Default)]
pub(super) struct Others {
    /// Minions that are connected to another server
    theirs: std::sync::Mutex<HashSet<MinionId>>,
    turn: std::sync::Mutex<Turn>,
    place: AtomicI64,
    is_shared: AtomicBool,
}

impl super::Engine {
    /// Whether another server looks after this minion.
    pub(super) fn is_elsewhere(&self, minion: &MinionId) -> bool {
        self.others.is_shared.load(Relaxed) && lock(&self.others.theirs).contains(minion)
    }

    /// Whether what only one of the servers does is for this one to do: the living one with the lowest place.
    pub(crate) fn is_first(&self, now: Timestamp) -> bool {
        let turn = lock(&self.others.turn);
        turn.from <= now && now < turn.until
    }

    /// Whether other servers share the database now.
    pub(super) fn is_shared(&self) -> bool {
        self.others.is_shared.load(Relaxed)
    }
}

impl Master {
    /// Shows itself and watches the others until the server stops.
    pub(crate) async fn keep_in_touch(self: Arc<Self>) {
        let stop = self.tasks.stop_token();
        if !matches!(self.config.database, Location::Postgres(_)) {
            return stop.cancelled().await;
        }
        let mut keys = None;
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(BEAT) => {}
            }
            if let Err(error) = self.beat(&mut keys).await {
                tracing::warn!(%error, "cannot look after other servers");
            }
        }
        if let Err(error) = self.store.leave_servers(self.engine.others.place.load(Relaxed)).await {
            tracing::warn!(%error, "the place among the servers could not be given up, it is free in a moment");
        }
    }

    /// Takes a place among the servers of the database, before anything is served.
    pub(crate) async fn join_servers(&self) -> Result<(), Error> {
        if matches!(self.config.database, Location::Postgres(_)) {
            let now = clock::now();
            let place = self.store.join_servers(self.config.id.clone(), now, now.minus(LEASE)).await?;
            self.engine.others.place.store(place, Relaxed);
            let neighbours = self.store.beat(place, now, now.minus(LEASE)).await?;
            self.note_others(&neighbours);
            lock(&self.engine.others.turn).look(&neighbours, now, true);
        }
        Ok(())
    }

    fn note_others(&self, neighbours: &Neighbours) {
        let was_shared = self.engine.others.is_shared.swap(neighbours.servers > 0, Relaxed);
        if was_shared != (neighbours.servers > 0) {
            tracing::info!(others = neighbours.servers, "servers that share this database");
        }
        // Whoever is connected here is ours, whatever the tables said a moment ago.
        let is_theirs = |minion: &&MinionId| self.member(minion.as_str()).is_none_or(|member| !member.is_connected());
        let theirs = neighbours.minions.iter().filter(is_theirs).cloned().collect();
        let before = std::mem::replace(&mut *lock(&self.engine.others.theirs), theirs);
        // Their server is gone: what is queued for them is looked at again.
        if neighbours.servers == 0 && !before.is_empty() {
            self.engine.wake.notify_one();
        }
    }

    async fn beat(self: &Arc<Self>, keys: &mut Option<(i64, i64)>) -> Result<(), Error> {
        let now = clock::now();
        let place = self.engine.others.place.load(Relaxed);
        let neighbours = self.store.beat(place, now, now.minus(LEASE)).await?;
        self.note_others(&neighbours);
        lock(&self.engine.others.turn).look(&neighbours, now, false);
        // The first time as well: what was decided between the reading of the keys and now is not known.
        if keys.replace(neighbours.keys) != Some(neighbours.keys) {
            self.read_keys_again().await?;
        }
        if neighbours.servers > 0 {
            self.find_waiting().await?;
            self.engine.wake.notify_one();
        }
        Ok(())
    }

    /// These minions have come to this server: they are its own now, and so are their open runs.
    pub(super) async fn adopt(self: &Arc<Self>, minions: &BTreeSet<MinionId>) -> Result<(), Error> {
        if !matches!(self.config.database, Location::Postgres(_)) {
            return Ok(());
        }
        let place = self.engine.others.place.load(Relaxed);
        // They have to be there to be owned: what was seen of them is written with some delay otherwise.
        let rows = minions.iter().filter_map(|minion| self.member(minion.as_str())).map(|member| member.row());
        self.store.record_minions(rows.collect()).await?;
        self.store.own_minions(place, &minions.iter().cloned().collect::<Vec<_>>()).await?;
        {
            let mut theirs = lock(&self.engine.others.theirs);
            theirs.retain(|minion| !minions.contains(minion));
        }
        for minion in minions {
            for (action, run) in self.store.open_runs_of(minion).await? {
                self.restore(action, run).await?;
            }
        }
        Ok(())
    }
}

impl Member {
    /// Whether it has an authenticated connection to this server.
    fn is_connected(&self) -> bool {
        matches!(self.facts().presence, crate::master::Presence::Present(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn others(servers: usize, lower: usize) -> Neighbours {
        Neighbours { servers, lower, ..Neighbours::default() }
    }

    fn is_first(turn: &Turn, second: i64) -> bool {
        let now = Timestamp::from_secs(second);
        turn.from <= now && now < turn.until
    }

    fn turn(looks: &[(i64, Neighbours)]) -> Turn {
        let mut turn = Turn::default();
        for (index, (second, neighbours)) in looks.iter().enumerate() {
            turn.look(neighbours, Timestamp::from_secs(*second), index == 0);
        }
        turn
    }

    #[test]
    fn a_server_on_its_own_is_first_at_once() {
        assert!(is_first(&Turn::default(), 100));
        assert!(is_first(&turn(&[(100, others(0, 0))]), 100));
    }

    #[test]
    fn who_comes_in_before_the_first_waits_until_that_one_has_noticed() {
        let mut turn = turn(&[(100, others(1, 0)), (109, others(1, 0))]);
        assert!(!is_first(&turn, 109));
        turn.look(&others(1, 0), Timestamp::from_secs(110), false);
        assert!(is_first(&turn, 110));
    }

    #[test]
    fn who_has_one_before_him_is_not_first_until_that_one_is_gone() {
        assert!(!is_first(&turn(&[(100, others(1, 1))]), 100));
        assert!(is_first(&turn(&[(100, others(1, 1)), (120, others(0, 0))]), 120));
        assert!(!is_first(&turn(&[(100, others(0, 0)), (120, others(1, 1))]), 120));
    }

    #[test]
    fn who_cannot_show_himself_is_not_first_before_others_take_him_for_dead() {
        let turn = turn(&[(100, others(0, 0))]);
        assert!(is_first(&turn, 104));
        assert!(!is_first(&turn, 105));
    }
}
