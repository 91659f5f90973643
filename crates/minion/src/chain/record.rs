//! What is known of a chunk: its steps in order, and what became of each. Pure: the disk, the boot id and the time come in.

use saltern_core::value::{Map, Value};
use serde::{Deserialize, Deserializer, Serialize};

/// The form of the file this writes and reads.
const VERSION: u32 = 1;

/// How often a repeatable step is begun before it counts as interrupted all the same.
const TRIES: u32 = 3;

/// A chunk, as it stands in the store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Chunk {
    version: u32,
    pub(super) launch: String,
    pub(super) chunk: u64,
    /// The job that runs it, or ran it last
    pub(super) jid: Option<String>,
    pub(super) state: ChunkState,
    /// Whether a step of an earlier chunk has failed
    failed: bool,
    pub(super) steps: Vec<Step>,
}

/// How a chunk stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ChunkState {
    /// Steps are left
    Running,
    /// The machine is to come back under another boot id
    Rebooting,
    /// The agent is being replaced; whether it was, the next chunk finds out
    Updating,
    Done,
    Failed,
    /// Interrupted: by a power cut, or because somebody said so
    Stopped,
    Cancelled,
}

/// A step: what is to be done, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Step {
    pub(super) id: String,
    #[serde(default)]
    pub(super) kind: Kind,
    pub(super) fun: String,
    #[serde(default)]
    pub(super) arg: Vec<Value>,
    #[serde(default = "no_keywords")]
    pub(super) kwarg: Value,
    #[serde(default)]
    pub(super) repeatable: bool,
    #[serde(default)]
    pub(super) after: After,
    /// What a check must return; none: anything will do
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expect: Option<Value>,
    #[serde(default)]
    pub(super) record: Record,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    #[default]
    Call,
    /// Whether the update before it took effect
    Check,
    Reboot,
    Update,
}

/// When a step runs, given the steps before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum After {
    #[default]
    Ok,
    Failed,
    Always,
}

/// What became of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) state: StepState,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(super) ret: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) retcode: Option<i64>,
    /// Whether `ret` is only the beginning of the result, as JSON
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) cut: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) started: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ended: Option<String>,
    /// The boot in which a reboot was asked for
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) boot_id: Option<String>,
    #[serde(default)]
    pub(super) tries: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum StepState {
    #[default]
    Waiting,
    Started,
    Done,
    Failed,
    Skipped,
    Interrupted,
    Cancelled,
}

impl Chunk {
    pub(super) fn new(launch: &str, chunk: u64, jid: Option<String>, steps: Vec<Step>, failed: bool) -> Self {
        Self { version: VERSION, launch: launch.to_owned(), chunk, jid, state: ChunkState::Running, failed, steps }
    }

    /// Reads what [`Chunk::to_json`] wrote.
    pub(super) fn from_json(json: &[u8]) -> Result<Self, String> {
        let chunk: Self = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        if chunk.version == VERSION { Ok(chunk) } else { Err("it is not of this version".into()) }
    }

    pub(super) fn to_json(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }

    /// Decides what became of the steps that were under way. Nobody works on the chunk.
    pub(super) fn settle(&mut self, boot: &str, is_cancelled: bool, now: &str) {
        for Step { kind, repeatable, record, .. } in &mut self.steps {
            if record.state != StepState::Started {
                continue;
            }
            let may_repeat = *repeatable && !is_cancelled && record.tries < TRIES;
            let ended = Some(now.to_owned());
            match kind {
                Kind::Reboot if !boot.is_empty() && record.boot_id.as_deref() != Some(boot) => {
                    (record.state, record.retcode, record.ended) = (StepState::Done, Some(0), ended);
                }
                Kind::Reboot if may_repeat && record.ret.is_none() => record.state = StepState::Waiting,
                Kind::Reboot => {}
                Kind::Update if !is_cancelled => {}
                _ if may_repeat => record.state = StepState::Waiting,
                _ => (record.state, record.ended) = (StepState::Interrupted, ended),
            }
        }
        self.conclude(is_cancelled);
    }

    /// Brings the chunk's state in line with that of its steps.
    pub(super) fn conclude(&mut self, is_cancelled: bool) {
        let under_way = self.steps.iter().find(|step| step.record.state == StepState::Started).map(|step| step.kind);
        let is_cancelled = is_cancelled && under_way.is_none();
        let is_interrupted = self.has(StepState::Interrupted);
        if is_cancelled || is_interrupted {
            let end = if is_cancelled { StepState::Cancelled } else { StepState::Skipped };
            for step in self.steps.iter_mut().filter(|step| step.record.state == StepState::Waiting) {
                step.record.state = end;
            }
        }
        self.state = match under_way {
            Some(Kind::Reboot) => ChunkState::Rebooting,
            Some(Kind::Update) => ChunkState::Updating,
            Some(Kind::Call | Kind::Check) => ChunkState::Running,
            None if self.has(StepState::Waiting) => ChunkState::Running,
            None if is_interrupted => ChunkState::Stopped,
            None if self.has_failed() => ChunkState::Failed,
            None if self.has(StepState::Cancelled) => ChunkState::Cancelled,
            None => ChunkState::Done,
        };
    }

    /// Whether a step has failed, here or in an earlier chunk.
    pub(super) fn has_failed(&self) -> bool {
        self.failed || self.has(StepState::Failed)
    }

    fn has(&self, state: StepState) -> bool {
        self.steps.iter().any(|step| step.record.state == state)
    }

    /// The steps as an answer tells them.
    pub(super) fn told(&self) -> Map {
        self.steps.iter().map(|step| (step.id.as_str().into(), step.record.told().into())).collect()
    }
}

impl ChunkState {
    pub(super) const fn is_open(self) -> bool {
        matches!(self, Self::Running | Self::Rebooting | Self::Updating)
    }

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Rebooting => "rebooting",
            Self::Updating => "updating",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Cancelled => "cancelled",
        }
    }
}

impl StepState {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Started => "started",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Interrupted => "interrupted",
            Self::Cancelled => "cancelled",
        }
    }
}

impl After {
    /// Whether a step runs, now that a step before it has failed, or none has.
    pub(super) const fn may_run(self, has_failed: bool) -> bool {
        match self {
            Self::Ok => !has_failed,
            Self::Failed => has_failed,
            Self::Always => true,
        }
    }
}

impl Record {
    fn told(&self) -> Map {
        let mut told = Map::with_capacity(7);
        told.push("state", self.state.word());
        let texts = [("started", &self.started), ("ended", &self.ended), ("boot_id", &self.boot_id)];
        let ret = self.ret.clone().map(|ret| ("ret", ret));
        let retcode = self.retcode.map(|retcode| ("retcode", retcode.into()));
        let cut = self.cut.then_some(("cut", true.into()));
        let texts = texts.into_iter().filter_map(|(name, text)| Some((name, text.as_deref()?.into())));
        for (name, value) in ret.into_iter().chain(retcode).chain(cut).chain(texts) {
            told.push(name, value);
        }
        told
    }
}

/// Reads the steps a job brings. The error says what is wrong with them.
pub(super) fn read_steps(value: &Value) -> Result<Vec<Step>, String> {
    let mut steps: Vec<Step> = Vec::new();
    let given = value.as_list().filter(|given| !given.is_empty()).ok_or("steps must be a list of maps")?;
    for given in given {
        let given = given.as_map().ok_or("steps must be a list of maps")?;
        // What is `None` was not given.
        let given = given.iter().filter(|(_, value)| !value.is_nil()).cloned().collect();
        let json = serde_json::to_value(Value::Map(given)).map_err(|error| error.to_string())?;
        let step: Step = serde_json::from_value(json).map_err(|error| format!("steps: {error}"))?;
        let Step { id, fun, .. } = &step;
        if id.is_empty() || steps.iter().any(|other| other.id == *id) {
            return Err("every step needs an id of its own".into());
        }
        if fun.starts_with("saltern_chain.") {
            return Err(format!("step {id} needs a function outside of this module"));
        }
        if step.kwarg.as_map().is_none() {
            return Err(format!("step {id}: kwarg must be a map"));
        }
        if step.expect.is_some() && step.kind != Kind::Check {
            return Err(format!("step {id}: only a check has an expectation"));
        }
        if let Some(last) = steps.last().filter(|last| matches!(last.kind, Kind::Reboot | Kind::Update)) {
            return Err(format!("a chunk ends with its reboot or update: {}", last.id));
        }
        steps.push(Step { record: Record::default(), ..step });
    }
    Ok(steps)
}

fn no_keywords() -> Value {
    Value::Map(Map::new())
}

/// A result that is `None` is a result.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-01-01T00:00:00.000000+00:00";

    fn chunk(steps: &str) -> Chunk {
        let steps = read_steps(&serde_json::from_str(steps).unwrap()).unwrap();
        Chunk::new("7", 1, None, steps, false)
    }

    fn begin(chunk: &mut Chunk, index: usize, boot: &str) {
        let record = &mut chunk.steps[index].record;
        (record.state, record.tries) = (StepState::Started, record.tries + 1);
        record.boot_id = Some(boot.to_owned());
    }

    fn states(chunk: &Chunk) -> Vec<&'static str> {
        std::iter::once(chunk.state.word()).chain(chunk.steps.iter().map(|step| step.record.state.word())).collect()
    }

    const TWO: &str = r#"[{"id":"a","fun":"test.ping"},{"id":"b","fun":"test.ping"}]"#;

    #[test]
    fn what_was_under_way_is_interrupted_and_the_rest_skipped() {
        let mut chunk = chunk(TWO);
        begin(&mut chunk, 0, "1");
        chunk.settle("1", false, NOW);
        assert_eq!(states(&chunk), ["stopped", "interrupted", "skipped"]);
    }

    #[test]
    fn a_repeatable_step_waits_again_but_not_for_ever() {
        let mut chunk = chunk(r#"[{"id":"a","fun":"test.ping","repeatable":true}]"#);
        for _ in 1..TRIES {
            begin(&mut chunk, 0, "1");
            chunk.settle("1", false, NOW);
            assert_eq!(states(&chunk), ["running", "waiting"]);
        }
        begin(&mut chunk, 0, "1");
        chunk.settle("1", false, NOW);
        assert_eq!(states(&chunk), ["stopped", "interrupted"]);
    }

    #[test]
    fn a_reboot_is_done_under_another_boot_id_only() {
        let mut chunk = chunk(r#"[{"id":"a","kind":"reboot","fun":"system.reboot"}]"#);
        begin(&mut chunk, 0, "1");
        for unproven in ["1", ""] {
            chunk.settle(unproven, false, NOW);
            assert_eq!(states(&chunk), ["rebooting", "started"]);
        }
        chunk.settle("2", false, NOW);
        assert_eq!(states(&chunk), ["done", "done"]);
    }

    #[test]
    fn an_update_that_killed_its_agent_stays_undecided_until_it_is_cancelled() {
        let mut chunk = chunk(r#"[{"id":"a","kind":"update","fun":"pkg.install"}]"#);
        begin(&mut chunk, 0, "1");
        chunk.settle("2", false, NOW);
        assert_eq!(states(&chunk), ["updating", "started"]);
        chunk.settle("2", true, NOW);
        assert_eq!(states(&chunk), ["stopped", "interrupted"]);
    }

    #[test]
    fn what_waits_is_cancelled_and_what_runs_is_not() {
        let mut chunk = chunk(TWO);
        begin(&mut chunk, 0, "1");
        chunk.conclude(true);
        assert_eq!(states(&chunk), ["running", "started", "waiting"]);
        chunk.steps[0].record.state = StepState::Done;
        chunk.conclude(true);
        assert_eq!(states(&chunk), ["cancelled", "done", "cancelled"]);
    }

    #[test]
    fn a_chunk_reads_back_as_it_was_written() {
        let mut chunk = chunk(TWO);
        chunk.steps[0].record.ret = Some(Value::Nil);
        chunk.steps[1].record.ret = Some(Value::map([("x", 1)]));
        assert_eq!(Chunk::from_json(&chunk.to_json().unwrap()), Ok(chunk.clone()));
        chunk.version = 2;
        assert!(Chunk::from_json(&chunk.to_json().unwrap()).is_err());
    }

    #[test]
    fn steps_that_make_no_sense_are_refused() {
        let refused = |steps: &str| read_steps(&serde_json::from_str(steps).unwrap()).unwrap_err();
        assert_eq!(refused("{}"), "steps must be a list of maps");
        assert_eq!(refused("[]"), "steps must be a list of maps");
        assert!(refused(r#"[{"id":"a"}]"#).contains("fun"));
        assert!(refused(r#"[{"id":"a","fun":"x.y","kind":"nap"}]"#).contains("unknown variant `nap`"));
        assert!(refused(r#"[{"id":"a","fun":"x.y","kwarg":[1]}]"#).contains("kwarg must be a map"));
        assert!(refused(r#"[{"id":"a","fun":"x.y"},{"id":"a","fun":"x.y"}]"#).contains("id of its own"));
        assert!(refused(r#"[{"id":"a","fun":"saltern_chain.start"}]"#).contains("outside"));
        let expecting = refused(r#"[{"id":"a","fun":"x.y","kind":"call","expect":1}]"#);
        assert_eq!(expecting, "step a: only a check has an expectation");
        let reboot_first = r#"[{"id":"a","kind":"reboot","fun":"x.y"},{"id":"b","fun":"x.y"}]"#;
        assert_eq!(refused(reboot_first), "a chunk ends with its reboot or update: a");
    }
}
