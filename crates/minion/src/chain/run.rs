//! Runs the steps of a chunk, one after the other: written down, run, written down.

use super::disk::{Folder, Trouble, fault_point};
use super::record::{Chunk, Kind, Record, Step, StepState};
use crate::clock;
use crate::functions::{Call, Context, Failure, Outcome, find};
use crate::jobs::event_load;
use futures_util::FutureExt;
use saltern_core::event::tag;
use saltern_core::ids::{Jid, MinionId};
use saltern_core::value::{Map, Value};
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use tokio::sync::mpsc;

/// Largest result that is kept, and that is told while the chunk runs, in bytes of JSON.
const KEPT: usize = 16 << 20;
const TOLD: usize = 1 << 20;

/// Largest part of a result that is shown beside what was expected of it, in characters of JSON.
const SHORT: usize = 200;

/// Levels of lists and maps that are kept as such: JSON that is deeper could not be read back.
const DEEPEST: usize = 64;

/// Progress that waits to be sent; more is dropped, as the answer tells all of it.
const WAITING: usize = 64;

/// How long the master is given to confirm progress.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs what waits. The lock is ours. An error leaves in `chunk` what is known.
pub(super) async fn run(context: &Context, folder: &Folder, boot: &str, chunk: &mut Chunk) -> Result<(), Trouble> {
    let mut progress = Progress::new(context);
    folder.write(chunk)?;
    for index in 0..chunk.steps.len() {
        let is_cancelled = folder.is_cancelled(&chunk.launch)?;
        let has_failed = chunk.has_failed();
        let Some(step) = chunk.steps.get_mut(index) else { break };
        if step.record.state != StepState::Waiting {
            continue;
        }
        if is_cancelled {
            break;
        }
        if !step.after.may_run(has_failed) {
            step.record.state = StepState::Skipped;
            continue;
        }
        let tries = step.record.tries + 1;
        let boot_id = (step.kind == Kind::Reboot).then(|| boot.to_owned());
        step.record = Record { state: StepState::Started, started: Some(now()), tries, boot_id, ..Record::default() };
        let begun = step.clone();
        chunk.conclude(false);
        if let Err(trouble) = folder.write(chunk) {
            // It was not begun.
            if let Some(step) = chunk.steps.get_mut(index) {
                step.record.state = StepState::Waiting;
            }
            chunk.conclude(false);
            return Err(trouble);
        }
        progress.tell(chunk, &begun);
        fault_point();
        let outcome = call(context, &begun).await;
        fault_point();
        let ended = Step { record: ended(&begun, outcome), ..begun };
        if let Some(step) = chunk.steps.get_mut(index) {
            *step = ended.clone();
        }
        chunk.conclude(folder.is_cancelled(&chunk.launch)?);
        folder.write(chunk)?;
        if ended.record.state != StepState::Started {
            progress.tell(chunk, &ended);
        }
    }
    chunk.conclude(folder.is_cancelled(&chunk.launch)?);
    folder.write(chunk)
}

/// The time as records tell it.
pub(super) fn now() -> String {
    clock::now().stamp()
}

async fn call(context: &Context, step: &Step) -> Outcome {
    if step.kind == Kind::Reboot && step.record.boot_id.as_deref().is_none_or(str::is_empty) {
        let text = "this machine tells no boot id, so a reboot could not be proven";
        return Failure::Command(text.into()).into_outcome(&step.fun);
    }
    let Some(function) = find(&step.fun) else {
        return Outcome { value: format!("'{}' is not available.", step.fun).into(), retcode: 1 };
    };
    let keywords = step.kwarg.as_map().cloned().unwrap_or_default();
    let bound = Call::bind(function, context.clone(), step.arg.clone(), keywords);
    let called = match bound {
        Ok(call) => {
            // A function that panics fails its step, and the chunk goes on as after any failure.
            let called = AssertUnwindSafe(async move { (function.run)(call).await }).catch_unwind().await;
            called.unwrap_or_else(|_| Err(Failure::Exception("it panicked".into())))
        }
        Err(failure) => Err(failure),
    };
    called.unwrap_or_else(|failure| failure.into_outcome(&step.fun))
}

/// The record of a step whose function has answered.
fn ended(step: &Step, outcome: Outcome) -> Record {
    let Outcome { value, retcode } = match difference(step, &outcome) {
        Some(text) => Outcome { value: text.into(), retcode: 1 },
        None => outcome,
    };
    let (ret, cut) = within(value, KEPT);
    let record = Record { ret: Some(ret), cut, ..step.record.clone() };
    match (retcode, step.kind) {
        // Done when the machine is up again under another boot id.
        (0, Kind::Reboot) => record,
        (retcode, _) => {
            let state = if retcode == 0 { StepState::Done } else { StepState::Failed };
            Record { state, retcode: Some(retcode), ended: Some(now()), ..record }
        }
    }
}

/// What is wrong with what a check returned; none if it is what was expected, or nothing was. Compared as JSON, which is
/// what is kept of it.
fn difference(step: &Step, outcome: &Outcome) -> Option<String> {
    let wanted = step.expect.as_ref().filter(|_| outcome.retcode == 0)?;
    let json = |value: &Value| serde_json::to_value(value).unwrap_or_default();
    let (gave, wanted) = (json(&outcome.value), json(wanted));
    let differs = || format!("not updated: {} gave {}, wanted {}", step.fun, short(&gave), short(&wanted));
    (gave != wanted).then(differs)
}

fn short(json: &serde_json::Value) -> String {
    let text = json.to_string();
    match text.char_indices().nth(SHORT) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// A result, or the beginning of its JSON and that it is only that.
fn within(value: Value, most: usize) -> (Value, bool) {
    let Ok(mut json) = serde_json::to_string(&value) else { return (value.key_text().into_owned().into(), true) };
    if json.len() <= most && depth(&value) <= DEEPEST {
        return (value, false);
    }
    let end = (0..=most.min(json.len())).rev().find(|end| json.is_char_boundary(*end)).unwrap_or(0);
    json.truncate(end);
    (json.into(), true)
}

fn depth(value: &Value) -> usize {
    match value {
        Value::List(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Map(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Tells the master about steps while they run, in order and without holding them up.
struct Progress {
    queue: Option<(mpsc::Sender<Map>, MinionId, Jid)>,
    number: u64,
}

impl Progress {
    fn new(context: &Context) -> Self {
        let (link, id, jid) = (context.link.clone(), MinionId::new(&context.id).ok(), context.job.jid());
        let (Some(link), Some(id), Some(jid)) = (link, id, jid) else { return Self { queue: None, number: 0 } };
        let (queue, mut waiting) = mpsc::channel(WAITING);
        tokio::spawn(async move {
            while let Some(load) = waiting.recv().await {
                if let Err(error) = link.request(load, PATIENCE).await {
                    tracing::debug!(%error, "progress of a chain could not be told");
                }
            }
        });
        Self { queue: Some((queue, id, jid)), number: 0 }
    }

    fn tell(&mut self, chunk: &Chunk, step: &Step) {
        let Some((queue, id, jid)) = &self.queue else { return };
        self.number += 1;
        let mut data = Map::with_capacity(9);
        data.push("launch", chunk.launch.as_str());
        data.push("chunk", chunk.chunk);
        data.push("step", step.id.as_str());
        data.push("state", step.record.state.word());
        // An event may be late: when it was is told with it.
        for (name, at) in [("started", &step.record.started), ("ended", &step.record.ended)] {
            if let Some(at) = at {
                data.push(name, at.as_str());
            }
        }
        if let (Some(ret), Some(retcode)) = (&step.record.ret, step.record.retcode) {
            let (ret, cut) = within(ret.clone(), TOLD);
            data.push("ret", ret);
            data.push("retcode", retcode);
            if cut {
                data.push("cut", true);
            }
        }
        let load = event_load(id, &tag::job_prog(*jid, id, self.number), data.into());
        if queue.try_send(load).is_err() {
            tracing::debug!(step = step.id, "progress of a chain was dropped: too much of it waits");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_that_are_too_long_or_too_deep_become_the_beginning_of_their_json() {
        assert_eq!(within(Value::from("äää"), 100), (Value::from("äää"), false));
        assert_eq!(within(Value::from("äää"), 4), (Value::from("\"ä"), true));
        let deep = (0..DEEPEST).fold(Value::from(1), |value, _| Value::list([value]));
        assert_eq!(within(deep.clone(), 1000), (deep.clone(), false));
        assert!(within(Value::list([deep]), 1000).1);
    }
}
