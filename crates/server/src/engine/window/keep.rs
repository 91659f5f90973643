//! Keeps what is known of windows as it is: changes of other servers, members of groups, and a new day.

use super::Opening;
use super::snapshot::{Groups, Snapshot};
use crate::master::Master;
use crate::{Error, clock};
use saltern_core::access::Sight;
use saltern_core::ids::{ActionId, MinionId};
use saltern_core::run::WaitingFor;
use saltern_store::{Counter, WindowChange, WindowData};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// How often it is looked whether something was changed.
const LOOK: Duration = Duration::from_secs(1);
/// After so long calendars are looked at again, and expanded further ahead.
const RENEWED: Duration = Duration::from_secs(3_600);
/// Most runs that are looked at when windows were changed.
pub(super) const MOST_QUEUED: usize = 100_000;

impl Master {
    /// Keeps what is known of windows as it is. Runs until the server stops.
    pub(crate) async fn keep_windows(self: Arc<Self>) {
        let stop = self.tasks.stop_token();
        let mut look = tokio::time::interval(LOOK);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = look.tick() => {}
            }
            if let Err(error) = self.look_at_windows().await {
                tracing::warn!(%error, "cannot look for changes of maintenance windows; those that are known hold");
            }
        }
    }

    async fn look_at_windows(self: &Arc<Self>) -> Result<(), Error> {
        let known = self.windows.snapshot();
        let is_old = clock::now().since(known.made) >= RENEWED || clock::now() < known.made;
        if is_old || self.store.taken(Counter::Windows).await? != known.data.number {
            return self.reread_windows().await;
        }
        self.look_at_groups().await
    }

    /// Reads all there is of windows: at the start, and when something was changed.
    pub(crate) async fn reread_windows(self: &Arc<Self>) -> Result<(), Error> {
        let _one = self.windows.changing.lock().await;
        self.reread_windows_now().await
    }

    /// The same for whoever holds the lock.
    pub(super) async fn reread_windows_now(self: &Arc<Self>) -> Result<(), Error> {
        let data = self.store.window_data().await?;
        let snapshot = self.snapshot_of(data).await?;
        self.take_snapshot(snapshot).await
    }

    /// What windows would be if the tables said this.
    pub(super) async fn snapshot_of(self: &Arc<Self>, data: WindowData) -> Result<Snapshot, Error> {
        let groups = self.members_of_groups(&data).await?;
        let before = self.windows.snapshot();
        let now = clock::now();
        let built = tokio::task::spawn_blocking(move || Snapshot::build(data, groups, &before, now)).await;
        built.map_err(|_| Error::Internal("calendars could not be expanded".into()))
    }

    /// Looks again who is in the groups that schedules are assigned to. Costs nothing where there are none.
    pub(crate) async fn look_at_groups(self: &Arc<Self>) -> Result<(), Error> {
        let known = self.windows.snapshot();
        if Snapshot::assigned_groups(&known.data).is_empty() {
            return Ok(());
        }
        let groups = self.members_of_groups(&known.data).await?;
        if groups == known.groups {
            return Ok(());
        }
        let _one = self.windows.changing.lock().await;
        // Somebody may have assigned schedules to other groups meanwhile: whose members are not known would be always open.
        let known = self.windows.snapshot();
        let groups = self.members_of_groups(&known.data).await?;
        self.take_snapshot(known.with_groups(groups)).await
    }

    async fn members_of_groups(self: &Arc<Self>, data: &WindowData) -> Result<Groups, Error> {
        let mut members = Groups::new();
        let directory = self.directory.snapshot();
        for name in Snapshot::assigned_groups(data) {
            let Some(group) = directory.groups.get(&name) else { continue };
            if let Sight::Some(minions) = self.minions_of_group(&directory, group).await? {
                members.insert(name, minions.iter().cloned().collect());
            }
        }
        Ok(members)
    }

    async fn take_snapshot(self: &Arc<Self>, snapshot: Snapshot) -> Result<(), Error> {
        let snapshot = Arc::new(snapshot);
        let before = self.windows.replace(snapshot.clone());
        let changed = snapshot.differing(&before);
        if changed.is_empty() || before.made.0 == 0 {
            return Ok(());
        }
        self.engine.chains.wake_all();
        if self.engine.is_first(clock::now()) { self.release_opened(&snapshot, changed).await } else { Ok(()) }
    }

    /// What waits for the window of a minion need not wait for the next one where it is open now.
    async fn release_opened(self: &Arc<Self>, snapshot: &Snapshot, mut minions: Vec<MinionId>) -> Result<(), Error> {
        let now = clock::now();
        minions.retain(|minion| snapshot.opening(minion, now) == Opening::Open);
        let waiting = self.store.restricted_queue(&minions, MOST_QUEUED).await?;
        // A step is not due by itself; its launch looks by itself.
        let held = waiting.into_iter().filter(|(action, run)| {
            run.waiting_for == Some(WaitingFor::Window) && run.due.is_some() && action.new.step.is_none()
        });
        let moves: Vec<_> = held.map(|(action, run)| (action.id, run.minion, now)).collect();
        if moves.is_empty() {
            return Ok(());
        }
        let actions: BTreeSet<ActionId> = moves.iter().map(|(action, ..)| *action).collect();
        let change =
            WindowChange { moves, message: "its window was opened".into(), at: now, ..WindowChange::default() };
        self.store.change_windows(change).await?;
        actions.into_iter().for_each(|action| self.engine.wake(action));
        Ok(())
    }
}
