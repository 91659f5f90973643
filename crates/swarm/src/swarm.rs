//! The swarm: what its minions share, and the handle to all of them.

use crate::access::Access;
use crate::keys::{self, Key};
use crate::ledger::{self, Entry};
use crate::publications::{Fleet, Job, Publications, common_grains};
use crate::report::{JobReport, Report};
use crate::steps::{self, StepEntry};
use crate::tally::Tally;
use crate::{Error, Options, Usage, minion};
use bytes::Bytes;
use bytestring::ByteString;
use saltern_core::ids::MinionId;
use saltern_core::value::Map;
use saltern_wire::envelope;
use saltern_wire::zmtp;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What all light minions share.
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) ids: Vec<MinionId>,
    pub(crate) keys: Vec<Arc<Key>>,
    pub(crate) grains: Map,
    /// What a job of any size returns
    pub(crate) padding: ByteString,
    pub(crate) tally: Tally,
    pub(crate) wire: Arc<zmtp::Options>,
    /// Cancelled when the first minion has met the master
    pub(crate) first_contact: CancellationToken,
    access: RwLock<Option<Arc<Access>>>,
    publications: Publications,
}

impl Shared {
    /// What is known of the master.
    pub(crate) fn access(&self) -> Option<Arc<Access>> {
        self.access.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_access(&self, access: Arc<Access>) {
        let is_known = self.access().is_some_and(|known| Arc::ptr_eq(&known, &access));
        if !is_known {
            *self.access.write().unwrap_or_else(PoisonError::into_inner) = Some(access);
        }
    }

    /// The job in a publication, opened once for all.
    pub(crate) fn open(&self, frame: &Bytes, access: &Access) -> Result<Option<Arc<Job>>, envelope::Error> {
        let fleet =
            Fleet { ids: &self.ids, answering: self.options.answering(), grains: &self.grains, padding: &self.padding };
        self.publications.open(frame, access, &self.tally, &fleet)
    }
}

/// A swarm that lives. Dropping it ends its minions.
pub struct Swarm {
    pub(crate) shared: Arc<Shared>,
    tasks: TaskTracker,
    stop: CancellationToken,
    before: Usage,
}

/// How far a swarm has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Minions there are.
    pub minions: u64,
    /// Minions that were let in.
    pub signed_in: u64,
    /// Minions that came all the way up.
    pub ready: u64,
    /// Jobs seen.
    pub jobs: u64,
    /// Jobs that every minion they were for has returned.
    pub finished: u64,
    /// Jobs begun, once for each minion.
    pub executions: u64,
    /// Executions in progress.
    pub running: u64,
    /// Returns that the master has confirmed.
    pub returns: u64,
    /// Returns that it has yet to confirm.
    pub unconfirmed: u64,
    /// Things that went wrong.
    pub errors: u64,
}

impl Swarm {
    /// Begins: makes the keys and lets the minions loose.
    pub async fn start(options: Options) -> Result<Self, Error> {
        let ids = options.check()?;
        let (count, dir) = (options.keys.min(options.count), options.key_dir.clone());
        let made = tokio::task::spawn_blocking(move || keys::load_or_make(count, dir.as_deref())).await;
        let keys = made.map_err(|error| Error::Option(format!("keys could not be made: {error}")))??;
        let before = Usage::now();
        let shared = Arc::new(Shared {
            grains: common_grains(&options.salt_version),
            padding: "x".repeat(options.return_size).into(),
            ids,
            keys,
            tally: Tally::new(options.keep_jobs),
            // A stock minion sends no heartbeats by itself.
            wire: Arc::new(zmtp::Options { heartbeat_interval: Duration::ZERO, ..zmtp::Options::default() }),
            first_contact: CancellationToken::new(),
            access: RwLock::default(),
            publications: Publications::default(),
            options,
        });
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        for index in 0..shared.options.count {
            let (shared, stop) = (shared.clone(), stop.clone());
            tasks.spawn(async move {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = minion::live(shared, index) => {}
                }
            });
        }
        tasks.close();
        Ok(Self { shared, tasks, stop, before })
    }

    /// How far it has come.
    pub fn progress(&self) -> Progress {
        let tally = &self.shared.tally;
        let returns = tally.returns_confirmed.get();
        Progress {
            minions: self.shared.options.count as u64,
            signed_in: tally.signed_in.get(),
            ready: tally.ready.get(),
            jobs: tally.jobs_seen(),
            finished: tally.finished.get(),
            executions: tally.executions.get(),
            running: tally.at_once().now(),
            returns,
            // Read after those that are: each is sent before it is confirmed.
            unconfirmed: tally.returns_sent.get().saturating_sub(returns),
            errors: tally.errors().values().sum(),
        }
    }

    /// Waits until every minion was let in, or so long; tells whether they are.
    pub async fn all_signed_in(&self, patience: Duration) -> bool {
        let tally = &self.shared.tally;
        self.until(patience, || tally.signed_in.get() >= self.shared.options.count as u64).await
    }

    /// Waits until every minion has come all the way up, or so long; tells whether they have.
    pub async fn all_ready(&self, patience: Duration) -> bool {
        let tally = &self.shared.tally;
        self.until(patience, || tally.ready.get() >= self.shared.options.count as u64).await
    }

    /// Waits until so many jobs have finished, or so long; tells whether they have.
    pub async fn jobs_finished(&self, count: u64, patience: Duration) -> bool {
        let tally = &self.shared.tally;
        self.until(patience, || tally.finished.get() >= count).await
    }

    /// Waits until every minion that a job is for has had its return confirmed, or so long; tells whether they have.
    pub async fn job_finished(&self, jid: &str, patience: Duration) -> bool {
        let tally = &self.shared.tally;
        self.until(patience, || tally.known(jid).is_some_and(|record| record.is_finished())).await
    }

    async fn until(&self, patience: Duration, is_so: impl Fn() -> bool) -> bool {
        tokio::time::timeout(patience, self.shared.tally.until(is_so)).await.is_ok()
    }

    /// What has become of a job that was seen.
    pub fn job(&self, jid: &str) -> Option<JobReport> {
        self.shared.tally.known(jid).map(|record| JobReport::new(&record))
    }

    /// What every job that is kept has come to so far on every minion it means, oldest job first.
    pub fn ledger(&self) -> impl Iterator<Item = Entry> {
        ledger::entries(&self.shared.tally, &self.shared.ids)
    }

    /// Every step of a chain that is kept on every minion that has begun it, oldest step first.
    pub fn steps(&self) -> impl Iterator<Item = StepEntry> {
        steps::entries(self.shared.tally.step_records(), &self.shared.ids)
    }

    /// Writes the ledger to a file, as lines of JSON, and tells how many. Who reads it finds a whole ledger, old or new.
    pub async fn write_ledger(&self, path: &Path) -> Result<u64, Error> {
        let (shared, to) = (self.shared.clone(), path.to_owned());
        let writing = tokio::task::spawn_blocking(move || ledger::write(&shared.tally, &shared.ids, &to)).await;
        writing.unwrap_or_else(|error| Err(Error::Ledger { path: path.to_owned(), source: error.into() }))
    }

    /// What has come of it so far.
    pub fn report(&self) -> Report {
        let now = Usage::now();
        let usage = Usage {
            user_s: now.user_s - self.before.user_s,
            system_s: now.system_s - self.before.system_s,
            peak_rss_bytes: now.peak_rss_bytes,
        };
        Report::new(self.shared.options.count, &self.shared.tally, usage)
    }

    /// Ends every minion at once. From then on report and ledger change no more, and agree.
    pub async fn halt(&self) {
        self.stop.cancel();
        self.tasks.wait().await;
    }

    /// Ends every minion at once, and tells what came of it.
    pub async fn stop(self) -> Report {
        self.halt().await;
        self.report()
    }
}

impl Drop for Swarm {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
