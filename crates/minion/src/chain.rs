//! This machine's part of an action chain: run chunk by chunk, and always known how far it got.
//!
//! The server splits a chain into chunks, which end where the machine reboots or the agent is replaced, and sends one at a
//! time. `record` is what is known of a chunk, `disk` keeps it, `run` does the steps. Whoever works on the chunk holds a lock:
//! a step that was started while nobody holds the lock was interrupted, and nothing is run twice unless its step says that
//! it may be. Stock minions have the same contract in `chain_module.py` of the server.

mod disk;
mod record;
mod run;
#[cfg(test)]
mod tests;

use crate::functions::{Context, Outcome};
use disk::{BRIEFLY, Folder, Hold, Trouble};
use record::{Chunk, ChunkState};
use run::{now, run};
use rustix::process::Signal;
use saltern_core::ids::Jid;
use saltern_core::value::{Map, Value};
use std::time::Duration;

/// Where Linux tells which boot this is.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// How long a job that was killed may take to let go.
const AFTER_KILL: Duration = Duration::from_secs(10);

/// The chain of this machine.
pub(crate) struct Chain {
    context: Context,
    folder: Folder,
}

/// A chunk as a job brings it.
pub(crate) struct Order {
    launch: String,
    chunk: u64,
    steps: Vec<record::Step>,
    /// Whether a step of an earlier chunk has failed
    failed: bool,
}

impl Order {
    /// Reads what `start` was given. The error says what is wrong with it.
    pub(crate) fn read(launch: String, chunk: i64, steps: &Value, options: Option<&Value>) -> Result<Self, String> {
        let chunk = u64::try_from(chunk).ok().filter(|chunk| *chunk > 0).ok_or("chunk must be a number from 1")?;
        let failed = match options {
            None => false,
            Some(Value::Map(options)) => options.get("failed").is_some_and(Value::is_truthy),
            Some(_) => return Err("options must be a map".into()),
        };
        Ok(Self { launch, chunk, steps: record::read_steps(steps)?, failed })
    }
}

impl Chain {
    /// The chain of the machine that this call runs on.
    pub(crate) fn of(context: &Context) -> Self {
        Self { context: context.clone(), folder: Folder::new(context.data_dir.join("chain")) }
    }

    /// Runs a chunk; the same one never twice.
    pub(crate) async fn start(&self, order: Order) -> Outcome {
        outcome(self.try_start(order).await)
    }

    /// Decides what became of the chunk while the agent was away, and runs what is left of it.
    pub(crate) async fn resume(&self) -> Outcome {
        outcome(self.try_resume().await)
    }

    /// Tells how the chunk stands.
    pub(crate) async fn status(&self) -> Outcome {
        outcome(self.try_status().await)
    }

    /// Begins nothing more of a launch. With `kill`, the step that is under way is killed.
    pub(crate) async fn cancel(&self, launch: &str, kill: bool) -> Outcome {
        outcome(self.try_cancel(launch, kill).await)
    }

    /// Forgets a chunk that has ended; with `force`, any that nobody works on.
    pub(crate) async fn clear(&self, launch: Option<&str>, force: bool) -> Outcome {
        outcome(self.try_clear(launch, force).await)
    }

    async fn try_start(&self, order: Order) -> Result<Map, Trouble> {
        let lock = self.folder.lock(Hold::Alone, BRIEFLY).await?;
        let mut kept = self.folder.read()?;
        match (&lock, &mut kept) {
            (None, None) => return Ok(nobodys("busy")),
            (Some(_), Some(kept)) => self.settle(kept)?,
            _ => {}
        }
        if let Some(refusal) = self.refusal(kept.as_ref(), &order, lock.is_none())? {
            return Ok(refusal);
        }
        let before = kept.filter(|kept| kept.launch == order.launch);
        let failed = before.is_some_and(|before| before.has_failed() || before.state == ChunkState::Stopped);
        let jid = self.context.job.jid().map(|jid| jid.to_string());
        let mut chunk = Chunk::new(&order.launch, order.chunk, jid, order.steps, order.failed || failed);
        self.work(&mut chunk).await
    }

    /// The answer to a start that runs nothing; none if it may run.
    fn refusal(&self, kept: Option<&Chunk>, order: &Order, is_alive: bool) -> Result<Option<Map>, Trouble> {
        if let Some(kept) = kept {
            // An update that killed its agent is judged by the check that begins the next chunk.
            let is_open = kept.state.is_open();
            let may_follow = !is_open || (kept.state == ChunkState::Updating && !is_alive);
            let word = match (kept.launch == order.launch, order.chunk) {
                (true, chunk) if chunk == kept.chunk => return self.view(kept, is_alive).map(Some),
                (true, chunk) if chunk < kept.chunk => Some("past"),
                (true, _) => (!may_follow).then_some("not_yet"),
                (false, _) => is_open.then_some("busy"),
            };
            if let Some(word) = word {
                return Ok(Some(self.error(word, kept)));
            }
        }
        if !self.folder.is_cancelled(&order.launch)? {
            return Ok(None);
        }
        let mut refusal = nobodys("cancelled");
        refusal.insert("launch", order.launch.as_str());
        refusal.insert("chunk", order.chunk);
        Ok(Some(refusal))
    }

    async fn try_resume(&self) -> Result<Map, Trouble> {
        let lock = self.folder.lock(Hold::Alone, BRIEFLY).await?;
        let Some(mut chunk) = self.folder.read()? else { return Ok(self.nothing()) };
        if lock.is_none() {
            return self.view(&chunk, true);
        }
        let before = chunk.clone();
        self.settle(&mut chunk)?;
        if chunk.state == ChunkState::Running {
            chunk.jid = self.context.job.jid().map(|jid| jid.to_string());
            return self.work(&mut chunk).await;
        }
        if chunk != before {
            self.folder.write(&chunk)?;
        }
        self.view(&chunk, false)
    }

    async fn try_status(&self) -> Result<Map, Trouble> {
        let free = self.folder.lock(Hold::Shared, BRIEFLY).await?;
        let Some(mut chunk) = self.folder.read()? else { return Ok(self.nothing()) };
        if free.is_some() {
            self.settle(&mut chunk)?;
        }
        self.view(&chunk, free.is_none())
    }

    async fn try_cancel(&self, launch: &str, kill: bool) -> Result<Map, Trouble> {
        // Written where the one at work looks before each step, and kept for a start that is still on its way.
        self.folder.add_cancelled(launch).await?;
        let mut lock = self.folder.lock(Hold::Alone, BRIEFLY).await?;
        if lock.is_none() && kill {
            let kept = self.folder.read()?.filter(|kept| kept.launch == launch);
            let jid = kept.and_then(|kept| Jid::parse(&kept.jid?));
            if jid.is_some_and(|jid| self.context.job.signal(jid, Signal::KILL).is_some()) {
                lock = self.folder.lock(Hold::Alone, AFTER_KILL).await?;
            }
        }
        match self.folder.read()?.filter(|kept| kept.launch == launch) {
            Some(mut chunk) => {
                if lock.is_some() {
                    self.settle(&mut chunk)?;
                    self.folder.write(&chunk)?;
                }
                self.view(&chunk, lock.is_none())
            }
            // Nothing of it is here, and nothing of it will run.
            None => {
                let mut answer = self.nothing();
                answer.insert("launch", launch);
                answer.insert("state", ChunkState::Cancelled.word());
                answer.insert("cancelled", true);
                Ok(answer)
            }
        }
    }

    async fn try_clear(&self, launch: Option<&str>, force: bool) -> Result<Map, Trouble> {
        let lock = self.folder.lock(Hold::Alone, BRIEFLY).await?;
        let mut answer = self.nothing();
        // The list of cancelled launches is looked at as well: it may be what is damaged.
        let kept = self.folder.is_cancelled("").and_then(|_| self.folder.read());
        let chunk = match kept {
            Err(Trouble::Damaged { path, .. }) if force && lock.is_some() => {
                answer.insert("cleared", Value::Nil);
                answer.insert("kept", self.folder.set_aside(&path)?.to_string_lossy().into_owned());
                return Ok(answer);
            }
            kept => kept?,
        };
        let Some(mut chunk) = chunk else {
            answer.insert("cleared", Value::Nil);
            return Ok(answer);
        };
        if launch.is_some_and(|launch| launch != chunk.launch) {
            return Ok(self.error("other", &chunk));
        }
        if lock.is_some() {
            self.settle(&mut chunk)?;
        }
        if lock.is_none() || (chunk.state.is_open() && !force) {
            return Ok(self.error("open", &chunk));
        }
        self.folder.remove()?;
        answer.insert("cleared", chunk.launch.as_str());
        Ok(answer)
    }

    async fn work(&self, chunk: &mut Chunk) -> Result<Map, Trouble> {
        match run(&self.context, &self.folder, &self.boot_id(), chunk).await {
            Ok(()) => self.view(chunk, false),
            // What is known in memory is told now: the disk cannot tell it later.
            Err(Trouble::Disk(error)) => {
                let mut answer = self.view(chunk, false)?;
                answer.insert("error", "store");
                answer.insert("reason", error.to_string());
                Ok(answer)
            }
            Err(damaged) => Err(damaged),
        }
    }

    fn settle(&self, chunk: &mut Chunk) -> Result<(), Trouble> {
        let is_cancelled = self.folder.is_cancelled(&chunk.launch)?;
        chunk.settle(&self.boot_id(), is_cancelled, &now());
        Ok(())
    }

    /// The answer that tells how a chunk stands.
    fn view(&self, chunk: &Chunk, is_alive: bool) -> Result<Map, Trouble> {
        let mut answer = self.nothing();
        answer.insert("launch", chunk.launch.as_str());
        answer.insert("chunk", chunk.chunk);
        answer.insert("state", chunk.state.word());
        answer.insert("alive", is_alive && chunk.state.is_open());
        answer.insert("cancelled", self.folder.is_cancelled(&chunk.launch)?);
        answer.insert("steps", chunk.told());
        Ok(answer)
    }

    /// The answer where there is no chunk.
    fn nothing(&self) -> Map {
        let mut answer = Map::with_capacity(8);
        answer.push("launch", Value::Nil);
        answer.push("chunk", Value::Nil);
        answer.push("state", "none");
        answer.push("boot_id", self.boot_id());
        answer.push("alive", false);
        answer.push("cancelled", false);
        answer.push("steps", Map::new());
        answer
    }

    fn error(&self, word: &str, chunk: &Chunk) -> Map {
        let mut answer = nobodys(word);
        answer.insert("launch", chunk.launch.as_str());
        answer.insert("chunk", chunk.chunk);
        answer.insert("state", chunk.state.word());
        answer.insert("boot_id", self.boot_id());
        answer
    }

    /// Which boot this is; `saltern_boot_id_file` lets a test have another one.
    fn boot_id(&self) -> String {
        let file = self.context.opts.get("saltern_boot_id_file").and_then(Value::as_str).unwrap_or(BOOT_ID);
        std::fs::read_to_string(file).map(|text| text.trim().to_owned()).unwrap_or_default()
    }
}

/// An error about no chunk in particular.
fn nobodys(word: &str) -> Map {
    let mut answer = Map::with_capacity(5);
    answer.push("error", word);
    answer.push("launch", Value::Nil);
    answer.push("chunk", Value::Nil);
    answer
}

fn outcome(answered: Result<Map, Trouble>) -> Outcome {
    let answer = answered.unwrap_or_else(|trouble| {
        let mut answer = Map::with_capacity(3);
        match trouble {
            Trouble::Damaged { path, reason } => {
                answer.push("error", "damaged");
                answer.push("file", path.to_string_lossy().into_owned());
                answer.push("reason", reason);
            }
            Trouble::Disk(error) => {
                answer.push("error", "store");
                answer.push("reason", error.to_string());
            }
        }
        answer
    });
    let is_bad = |state: &Value| matches!(state.as_str(), Some("failed" | "stopped"));
    let failed = answer.get("error").is_some() || answer.get("state").is_some_and(is_bad);
    Outcome { value: answer.into(), retcode: failed.into() }
}
