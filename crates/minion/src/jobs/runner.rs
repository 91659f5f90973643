//! Runs jobs, in the order that makes the promises true.
//!
//! Written down before it is acknowledged, acknowledged before it runs, its answer written down before it counts as done,
//! kept until the master has it. A job that cannot be written down is refused, with the reason, and not run.

use super::{Ledger, Running, Spool, Standing};
use crate::functions::{self, Call, Context, Failure, Outcome};
use crate::link::Link;
use crate::{Config, Error, clock};
use saltern_core::event::tag;
use saltern_core::ids::{Jid, MinionId};
use saltern_core::target::{Facts, Nodegroups, Target};
use saltern_core::value::{Map, Value};
use saltern_wire::load::{Fun, Publish, split_kwargs};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};

/// How long the master is given to confirm an acknowledgement before the job runs anyway: it was received.
const ACK_PATIENCE: Duration = Duration::from_secs(5);

/// How long the master is given to confirm an answer; then it is sent again.
const RETURN_PATIENCE: Duration = Duration::from_secs(15);

/// What runs jobs. One per minion, shared.
pub(crate) struct Runner {
    pub(crate) id: MinionId,
    context: Context,
    link: Link,
    ledger: Ledger,
    spool: Spool,
    running: Running,
    job_ack: bool,
    /// Jobs at once; more wait, unacknowledged
    slots: Arc<Semaphore>,
    /// Answers to be sent, oldest first
    outbox: Mutex<VecDeque<Jid>>,
    filled: Notify,
}

impl Runner {
    /// Opens what a minion keeps of its jobs.
    pub(crate) fn open(config: &Config, context: Context, link: Link) -> Result<Self, Error> {
        let ledger = Ledger::open(&config.data_dir.join("ledger"))?;
        let spool = Spool::open(&config.data_dir.join("spool"))?;
        Ok(Self {
            id: config.id.clone(),
            context,
            link,
            ledger,
            running: Running::default(),
            job_ack: config.job_ack,
            slots: Arc::new(Semaphore::new(config.max_jobs.max(1))),
            outbox: Mutex::new(spool.list()?.into()),
            spool,
            filled: Notify::new(),
        })
    }

    /// Takes a publication: runs it if it is for us and new.
    pub(crate) fn take(self: &Arc<Self>, load: Map) {
        let wants_ack = load.get("job_ack") != Some(&Value::Bool(false));
        let job = match Publish::parse(load) {
            Ok(job) => job,
            Err(error) => {
                tracing::warn!(%error, "a publication with a wrong shape was ignored");
                return;
            }
        };
        if !self.is_meant(&job) {
            return;
        }
        match self.write_down(job.jid) {
            Ok(true) => {}
            Ok(false) => {
                tracing::debug!(jid = %job.jid, "a job that is known already was ignored");
                return;
            }
            Err(error) => {
                tracing::error!(jid = %job.jid, %error, "a job was refused: it cannot be written down");
                self.refuse(job, &error);
                return;
            }
        }
        let runner = self.clone();
        tokio::spawn(async move { runner.run(job, wants_ack).await });
    }

    /// Writes a new job down and sets room aside for its answer; `false` if it is known already.
    fn write_down(&self, jid: Jid) -> Result<bool, Error> {
        if !self.ledger.receive(jid)? {
            return Ok(false);
        }
        self.spool.reserve(jid)?;
        Ok(true)
    }

    /// Reports what was under way when the agent died.
    pub(crate) fn report_interrupted(&self) -> Result<Vec<Jid>, Error> {
        let jids = self.ledger.interrupted()?;
        for jid in &jids {
            let text = "ERROR: interrupted: the agent stopped while this job was running; it was not run again";
            let outcome = Outcome { value: text.into(), retcode: 1 };
            let load = self.answer(*jid, &Value::from("unknown"), &[], None, None, outcome, Some("nested"));
            self.spool.put(*jid, &load, |_| load.clone())?;
            self.deliver_later(*jid);
        }
        Ok(jids)
    }

    fn is_meant(&self, job: &Publish) -> bool {
        let target = Target::read(&job.tgt_type, &job.tgt, job.delimiter.as_deref());
        let facts = Own {
            id: &self.id,
            grains: Value::Map((*self.context.grains()).clone()),
            pillar: Value::Map((*self.context.pillar()).clone()),
        };
        target.and_then(|target| target.compile(&Nodegroups::new())).is_ok_and(|matcher| matcher.matches(&facts))
    }

    async fn run(self: Arc<Self>, job: Publish, wants_ack: bool) {
        let Ok(_slot) = self.slots.clone().acquire_owned().await else { return };
        // Written down before it is acknowledged: what cannot be written down is refused, and nothing was promised.
        if let Err(error) = self.ledger.note(job.jid, Standing::Started) {
            tracing::error!(jid = %job.jid, %error, "a job was refused: it cannot be written down");
            self.refuse(job, &error);
            return;
        }
        if self.job_ack && wants_ack {
            self.acknowledge(&job).await;
        }
        let guard = self.running.begin(&job);
        let context = Context { job: guard.handle(), ..self.context.clone() };
        let (fun, arg) = (job.fun.clone(), job.arg.clone());
        let work = tokio::spawn(async move { call_all(&fun, &arg, &context).await });
        self.running.set_abort(job.jid, work.abort_handle());
        let (outcome, out) = match work.await {
            Ok(done) => done,
            // Stopped by somebody: like a stock minion's, a killed job does not answer.
            Err(error) if error.is_cancelled() => {
                drop(guard);
                if let Err(error) = self.ledger.note(job.jid, Standing::Interrupted) {
                    tracing::error!(jid = %job.jid, %error, "the end of a job cannot be written down");
                }
                return;
            }
            Err(error) => (Failure::Exception(error.to_string()).into_outcome(""), Some("nested")),
        };
        // Not under way any more before the answer goes out, as on a stock minion.
        drop(guard);
        let (fun, retcode) = (Value::from(job.fun.clone()), outcome.retcode);
        let load = self.answer(job.jid, &fun, &job.arg, job.user.as_deref(), job.metadata.clone(), outcome, out);
        let substitute = |error: &Error| {
            tracing::error!(jid = %job.jid, %error, "an answer cannot be kept whole; a note of it is kept instead");
            let text = format!(
                "ERROR: the job ended with exit code {retcode}, but there was no room to keep its answer: {error}"
            );
            let outcome = Outcome { value: text.into(), retcode: 1 };
            self.answer(job.jid, &fun, &[], None, None, outcome, Some("nested"))
        };
        if let Err(error) = self.spool.put(job.jid, &load, substitute) {
            tracing::error!(jid = %job.jid, %error, "an answer was lost");
            return;
        }
        if let Err(error) = self.ledger.note(job.jid, Standing::Finished) {
            tracing::error!(jid = %job.jid, %error, "the end of a job cannot be written down");
        }
        self.deliver_later(job.jid);
    }

    async fn acknowledge(&self, job: &Publish) {
        let data = Value::map([("jid", Value::from(job.jid)), ("fun", job.fun.clone().into())]);
        let event = event_load(&self.id, &tag::job_ack(job.jid, &self.id), data);
        if let Err(error) = self.link.request(event, ACK_PATIENCE).await {
            tracing::warn!(jid = %job.jid, %error, "a job could not be acknowledged; it runs all the same");
        }
    }

    /// Tells the master that a job will not run, without keeping anything.
    fn refuse(self: &Arc<Self>, job: Publish, reason: &Error) {
        let outcome = Outcome { value: format!("ERROR: refused, the job was not run: {reason}").into(), retcode: 1 };
        let fun = Value::from(job.fun.clone());
        let load = self.answer(job.jid, &fun, &job.arg, job.user.as_deref(), job.metadata, outcome, Some("nested"));
        let runner = self.clone();
        tokio::spawn(async move {
            if let Err(error) = runner.link.request(load, RETURN_PATIENCE).await {
                tracing::error!(%error, "a refusal could not be sent");
            }
        });
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one message, all of them needed")]
    fn answer(
        &self,
        jid: Jid,
        fun: &Value,
        arg: &[Value],
        user: Option<&str>,
        metadata: Option<Map>,
        outcome: Outcome,
        out: Option<&str>,
    ) -> Map {
        let mut load = Map::with_capacity(12);
        load.push("cmd", "_return");
        load.push("id", &self.id);
        load.push("jid", jid);
        load.push("fun", fun.clone());
        load.push("fun_args", Value::List(arg.to_vec()));
        load.push("return", outcome.value);
        load.push("retcode", outcome.retcode);
        load.push("success", outcome.retcode == 0);
        if let Some(out) = out {
            load.push("out", out);
        }
        if let Some(user) = user {
            load.push("user", user);
        }
        if let Some(metadata) = metadata {
            load.push("metadata", metadata);
        }
        load.push("_stamp", clock::now().stamp());
        load
    }

    fn deliver_later(&self, jid: Jid) {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner).push_back(jid);
        self.filled.notify_one();
    }

    /// Sends what is in the spool, for ever; waits longer and longer while the master does not answer.
    pub(crate) async fn deliver(self: Arc<Self>) {
        let mut pause = Backoff::default();
        loop {
            let next = self.outbox.lock().unwrap_or_else(PoisonError::into_inner).front().copied();
            let Some(jid) = next else {
                self.filled.notified().await;
                continue;
            };
            match self.deliver_one(jid).await {
                Ok(()) => {
                    self.outbox.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                    pause = Backoff::default();
                }
                Err(error) => {
                    tracing::warn!(%jid, %error, "an answer could not be delivered; it is kept");
                    pause.wait().await;
                }
            }
        }
    }

    async fn deliver_one(&self, jid: Jid) -> Result<(), Error> {
        let Some(load) = self.spool.get(jid)? else { return Ok(()) };
        self.link.request(load, RETURN_PATIENCE).await?;
        self.spool.remove(jid)?;
        self.ledger.note(jid, Standing::Returned)
    }
}

/// The load of an event.
pub(crate) fn event_load(id: &MinionId, tag: &str, data: Value) -> Map {
    let mut load = Map::with_capacity(6);
    load.push("id", id);
    load.push("cmd", "_minion_event");
    load.push("pretag", Value::Nil);
    load.push("tag", tag);
    load.push("data", data);
    load
}

/// Calls one function, or several in order; with the outputter hint of the answer.
async fn call_all(fun: &Fun, arg: &[Value], context: &Context) -> (Outcome, Option<&'static str>) {
    let Fun::Many(names) = fun else {
        let name = fun.names().first().map(|name| name.to_string()).unwrap_or_default();
        return call_one(&name, arg, context).await;
    };
    let (mut values, mut codes) = (Map::new(), 0);
    for (index, name) in names.iter().enumerate() {
        let arg = arg.get(index).and_then(Value::as_list).unwrap_or_default();
        let (outcome, _) = call_one(name, arg, context).await;
        codes = if codes == 0 { outcome.retcode } else { codes };
        values.insert(name.clone(), outcome.value);
    }
    (Outcome { value: Value::Map(values), retcode: codes }, None)
}

pub(crate) async fn call_one(name: &str, arg: &[Value], context: &Context) -> (Outcome, Option<&'static str>) {
    let Some(function) = functions::find(name) else {
        let text = format!("'{name}' is not available.");
        return (Outcome { value: text.into(), retcode: 1 }, Some("nested"));
    };
    let (positional, mut kwargs) = split_kwargs(arg);
    let mut args = Vec::with_capacity(positional.len());
    for value in positional {
        match value.as_str().and_then(keyword_in) {
            Some((name, value)) => drop(kwargs.insert(name, value)),
            None => args.push(value.clone()),
        }
    }
    let called = match Call::bind(function, context.clone(), args, kwargs) {
        Ok(call) => (function.run)(call).await,
        Err(failure) => Err(failure),
    };
    match called {
        Ok(outcome) => (outcome, None),
        Err(failure) => (failure.into_outcome(name), Some("nested")),
    }
}

/// `name=value` in a text argument is a keyword argument, its value read as YAML (wire reference, section 7.2).
fn keyword_in(text: &str) -> Option<(&str, Value)> {
    let (name, value) = text.split_once('=')?;
    let mut chars = name.chars();
    let is_name = chars.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && chars.all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-'));
    if !is_name || value.starts_with('=') || text.contains('\n') {
        return None;
    }
    let value = saltern_render::yaml::load(value).unwrap_or_else(|_| value.into());
    Some((name, value))
}

/// What this minion knows of itself, for targets.
struct Own<'a> {
    id: &'a MinionId,
    grains: Value,
    pillar: Value,
}

impl Facts for Own<'_> {
    fn id(&self) -> &str {
        self.id.as_str()
    }

    fn grains(&self) -> Option<&Value> {
        Some(&self.grains)
    }

    fn pillar(&self) -> Option<&Value> {
        Some(&self.pillar)
    }
}

/// Waits longer and longer, each time by a part that is left to chance: a thousand minions must not come back at once.
pub(crate) struct Backoff {
    next: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { next: Duration::from_millis(500) }
    }
}

impl Backoff {
    const LONGEST: Duration = Duration::from_secs(30);

    pub(crate) async fn wait(&mut self) {
        let mut random = [0; 2];
        // Without randomness the pause is only less random.
        let _ = getrandom::fill(&mut random);
        let part = f64::from(u16::from_le_bytes(random)) / f64::from(u16::MAX);
        tokio::time::sleep(self.next.mul_f64(0.5 + part)).await;
        self.next = (self.next * 2).min(Self::LONGEST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keyword_arguments_hide_in_text() {
        assert_eq!(keyword_in("a=1"), Some(("a", Value::Int(1))));
        assert_eq!(keyword_in("test=True"), Some(("test", Value::Bool(true))));
        for plain in ["a==1", "a = 1", "=x", "1a=2", "no", "x=1\ny"] {
            assert_eq!(keyword_in(plain), None, "{plain:?}");
        }
    }
}
