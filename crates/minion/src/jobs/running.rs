//! What is under way now: for `saltutil.running`, `find_job` and the functions that stop a job.

use rustix::process::{Pid, Signal, kill_process_group};
use saltern_core::ids::Jid;
use saltern_core::value::{Map, Value};
use saltern_wire::load::Publish;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::AbortHandle;

/// The jobs under way. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Running(Arc<Mutex<BTreeMap<Jid, Entry>>>);

struct Entry {
    load: Map,
    groups: Vec<Pid>,
    abort: Option<AbortHandle>,
}

/// The job a call belongs to.
#[derive(Clone, Default)]
pub(crate) struct JobHandle {
    jid: Option<Jid>,
    running: Running,
}

impl Running {
    /// Notes a job as under way; it is gone when the guard is.
    pub(crate) fn begin(&self, job: &Publish) -> Guard {
        let load = Value::map([
            ("pid", Value::from(std::process::id())),
            ("jid", job.jid.into()),
            ("fun", job.fun.clone().into()),
            ("arg", Value::List(job.arg.clone())),
            ("tgt", job.tgt.clone()),
            ("tgt_type", Value::Text(job.tgt_type.clone())),
            ("ret", Value::Text(job.ret.clone())),
            ("user", job.user.clone().into()),
        ]);
        let load = load.as_map().cloned().unwrap_or_default();
        self.lock().insert(job.jid, Entry { load, groups: Vec::new(), abort: None });
        Guard { jid: job.jid, running: self.clone() }
    }

    /// Notes how the task of a job can be ended.
    pub(super) fn set_abort(&self, jid: Jid, abort: AbortHandle) {
        if let Some(entry) = self.lock().get_mut(&jid) {
            entry.abort = Some(abort);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Jid, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A job under way.
pub(crate) struct Guard {
    jid: Jid,
    running: Running,
}

impl Guard {
    pub(crate) fn handle(&self) -> JobHandle {
        JobHandle { jid: Some(self.jid), running: self.running.clone() }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let gone = self.running.lock().remove(&self.jid);
        // Whatever a job leaves behind in its own process groups ends with it.
        for group in gone.iter().flat_map(|entry| &entry.groups) {
            let _ = kill_process_group(*group, Signal::KILL);
        }
    }
}

impl JobHandle {
    /// The job's id; a local call has none.
    pub(crate) fn jid(&self) -> Option<Jid> {
        self.jid
    }

    /// Notes a process group that belongs to this job, so that stopping the job stops it.
    pub(crate) fn add_group(&self, group: Pid) {
        if let Some(jid) = self.jid
            && let Some(entry) = self.running.lock().get_mut(&jid)
        {
            entry.groups.push(group);
        }
    }

    /// Forgets a process group that has ended by itself: its number may be somebody else's soon.
    pub(crate) fn remove_group(&self, group: Pid) {
        if let Some(jid) = self.jid
            && let Some(entry) = self.running.lock().get_mut(&jid)
        {
            entry.groups.retain(|known| *known != group);
        }
    }

    /// The jobs under way, without the one that asks.
    pub(crate) fn others(&self) -> Vec<Map> {
        self.running
            .lock()
            .iter()
            .filter(|(jid, _)| Some(**jid) != self.jid)
            .map(|(_, entry)| entry.load.clone())
            .collect()
    }

    /// One job under way.
    pub(crate) fn find(&self, jid: Jid) -> Option<Map> {
        self.running.lock().get(&jid).map(|entry| entry.load.clone())
    }

    /// Sends a signal to what a job has started; one that ends processes ends the job as well. Nothing if it is not under way.
    pub(crate) fn signal(&self, jid: Jid, signal: Signal) -> Option<()> {
        let running = self.running.lock();
        let entry = running.get(&jid)?;
        for group in &entry.groups {
            let _ = kill_process_group(*group, signal);
        }
        if let (Signal::TERM | Signal::KILL | Signal::INT | Signal::HUP | Signal::QUIT, Some(abort)) =
            (signal, &entry.abort)
        {
            abort.abort();
        }
        Some(())
    }
}
