//! What a minion tells of its part of a launch: answers of `saltern_chain`, and events on the way.
//!
//! Minions are peers: whatever they send is read or called nonsense, and nothing of it is trusted to be complete. The
//! contract is in the module's own text, `server/src/master/chain_module.py`.

use crate::target::python_text;
use crate::time::Timestamp;
use crate::value::Value;

/// What was heard.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// How the chunk stands
    Answer(Answer),
    /// It could not be done
    Error {
        /// Which way: `busy`, `past`, `not_yet`, `cancelled`, `damaged`, `store`, `other`, `open`
        word: String,
        /// The launch the minion has, if it tells one
        launch: Option<String>,
        /// The chunk it has
        chunk: Option<u32>,
        /// What it says about it
        reason: String,
        /// How the chunk stands, where it tells that beside the error: its disk can no longer
        answer: Option<Answer>,
    },
    /// Something else than an answer: that the module is not there, or that a call went wrong
    Nonsense(String),
}

/// How a chunk stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The launch, by what minions know it by; none: there is nothing
    pub launch: Option<String>,
    /// The chunk, from 1; 0: there is none
    pub chunk: u32,
    /// Where it stands
    pub state: ChunkState,
    /// The machine's boot id now; empty if it tells none
    pub boot_id: String,
    /// Whether somebody works on it now
    pub alive: bool,
    /// Whether nothing more of the launch will begin
    pub cancelled: bool,
    /// Its steps by id
    pub steps: Vec<(String, Record)>,
}

/// Where a chunk stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChunkState {
    /// There is no chunk
    None,
    /// A step is under way or waits
    Running,
    /// The machine goes down, or has not been seen to come up
    Rebooting,
    /// The agent is being replaced
    Updating,
    /// All is done
    Done,
    /// Something failed, here or before
    Failed,
    /// A step was interrupted, and nobody knows how it ended
    Stopped,
    /// It was cancelled before its end
    Cancelled,
}

/// What is known of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Where it stands
    pub state: StepState,
    /// What it returned
    pub ret: Option<Value>,
    /// Its exit code
    pub retcode: i64,
    /// When it began
    pub started: Option<Timestamp>,
    /// When it ended
    pub ended: Option<Timestamp>,
    /// Whether `ret` is only the beginning of its JSON
    pub cut: bool,
}

/// Where a step stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StepState {
    /// It has not begun
    Waiting,
    /// It has begun
    Started,
    /// It ended well
    Done,
    /// It ended badly
    Failed,
    /// It was not needed, or something before it failed
    Skipped,
    /// It was cancelled before it began
    Cancelled,
    /// It was under way, and nobody knows how it ended
    Interrupted,
}

/// A step that began or ended, told on the way.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// The launch
    pub launch: String,
    /// The chunk
    pub chunk: u32,
    /// The step's id
    pub step: String,
    /// What is known of it
    pub record: Record,
}

/// More steps than any chunk has.
const MOST_STEPS: usize = 1000;
/// Longest launch, step, boot id or word, in bytes.
const LONGEST_WORD: usize = 128;
/// Longest text that is repeated of an error, in characters.
const LONGEST_REASON: usize = 2000;

/// Reads what a function of `saltern_chain` returned.
pub fn read(returned: &Value) -> Heard {
    let answer = answer(returned);
    match (returned.get("error").and_then(word), answer) {
        (Some(word), answer) => Heard::Error {
            launch: returned.get("launch").and_then(word_or_number),
            chunk: chunk(returned),
            reason: reason(returned, &word),
            answer: answer.filter(|answer| !answer.steps.is_empty()),
            word,
        },
        (None, Some(answer)) => Heard::Answer(answer),
        (None, None) => Heard::Nonsense(shown(returned)),
    }
}

/// Reads the data of an event about a step.
pub fn read_progress(data: &Value) -> Option<Progress> {
    Some(Progress {
        launch: data.get("launch").and_then(word_or_number)?,
        chunk: chunk(data)?,
        step: data.get("step").and_then(word)?,
        record: record(data)?,
    })
}

fn answer(value: &Value) -> Option<Answer> {
    let flag = |name| value.get(name).and_then(Value::as_bool).unwrap_or(false);
    let steps = value.get("steps").and_then(Value::as_map).into_iter().flatten().take(MOST_STEPS);
    Some(Answer {
        state: value.get("state").and_then(Value::as_str).and_then(ChunkState::parse)?,
        launch: value.get("launch").and_then(word_or_number),
        chunk: chunk(value).unwrap_or(0),
        boot_id: value.get("boot_id").and_then(word).unwrap_or_default(),
        alive: flag("alive"),
        cancelled: flag("cancelled"),
        steps: steps.filter_map(|(id, step)| Some((word(id)?, record(step)?))).collect(),
    })
}

fn record(value: &Value) -> Option<Record> {
    let state = value.get("state").and_then(Value::as_str).and_then(StepState::parse)?;
    let instant = |name| value.get(name).and_then(Value::as_str).and_then(Timestamp::parse);
    // Who has failed without a code has failed.
    let usual = i64::from(matches!(state, StepState::Failed | StepState::Interrupted));
    Some(Record {
        state,
        ret: value.get("ret").cloned(),
        retcode: value.get("retcode").and_then(Value::as_i64).unwrap_or(usual),
        started: instant("started"),
        ended: instant("ended"),
        cut: value.get("cut").and_then(Value::as_bool).unwrap_or(false),
    })
}

fn chunk(value: &Value) -> Option<u32> {
    value.get("chunk").and_then(Value::as_i64).and_then(|chunk| u32::try_from(chunk).ok())
}

fn word(value: &Value) -> Option<String> {
    value.as_str().filter(|text| text.len() <= LONGEST_WORD).map(str::to_owned)
}

fn word_or_number(value: &Value) -> Option<String> {
    word(value).or_else(|| value.as_i64().map(|number| number.to_string()))
}

/// What an error says about itself, or what its word means.
fn reason(value: &Value, word: &str) -> String {
    if let Some(reason) = value.get("reason").filter(|reason| reason.is_truthy()) {
        let file = value.get("file").and_then(Value::as_str).map(|file| format!("{file}: ")).unwrap_or_default();
        return file + &shown(reason);
    }
    match word {
        "busy" => "another launch is under way on the minion".into(),
        "past" => "the minion is beyond this chunk already".into(),
        "not_yet" => "the chunk before has not ended on the minion".into(),
        "cancelled" => "the launch was cancelled on the minion".into(),
        "damaged" => "what the minion has kept cannot be read".into(),
        "store" => "the minion could not write down what it does".into(),
        "other" => "the minion has another launch".into(),
        "open" => "the launch is still under way on the minion".into(),
        word => format!("the minion says `{word}`"),
    }
}

fn shown(value: &Value) -> String {
    let text = match value {
        Value::List(lines) => lines.iter().map(|line| python_text(line)).collect::<Vec<_>>().join("\n").into(),
        other => python_text(other),
    };
    text.chars().filter(|c| !c.is_control() || *c == '\n').take(LONGEST_REASON).collect()
}

impl ChunkState {
    /// Every state.
    pub const ALL: [Self; 8] = [
        Self::None,
        Self::Running,
        Self::Rebooting,
        Self::Updating,
        Self::Done,
        Self::Failed,
        Self::Stopped,
        Self::Cancelled,
    ];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Running => "running",
            Self::Rebooting => "rebooting",
            Self::Updating => "updating",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Cancelled => "cancelled",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

impl StepState {
    /// Every state.
    pub const ALL: [Self; 7] =
        [Self::Waiting, Self::Started, Self::Done, Self::Failed, Self::Skipped, Self::Cancelled, Self::Interrupted];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Started => "started",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn heard(json: &str) -> Heard {
        read(&serde_json::from_str(json).unwrap())
    }

    #[test]
    fn an_answer_is_read_whole() {
        let told = heard(
            r#"{"launch": "20261116073421123456", "chunk": 2, "state": "failed", "boot_id": "b-1", "alive": false,
                "cancelled": true, "steps": {
                "3": {"state": "done", "ret": {"a": 1}, "retcode": 0, "started": "2026-11-16T07:34:21.123456+00:00",
                      "ended": "2026-11-16T07:34:22.000001+00:00"},
                "4": {"state": "failed", "ret": "[1, 2", "cut": true},
                "5": {"state": "skipped"}}}"#,
        );
        let Heard::Answer(answer) = told else { panic!("{told:?}") };
        assert_eq!((answer.launch.as_deref(), answer.chunk), (Some("20261116073421123456"), 2));
        assert_eq!((answer.state, answer.boot_id.as_str()), (ChunkState::Failed, "b-1"));
        assert!(!answer.alive && answer.cancelled);
        assert_eq!(answer.steps.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["3", "4", "5"]);
        let third = &answer.steps[0].1;
        assert_eq!((third.state, third.retcode), (StepState::Done, 0));
        assert_eq!(third.started.unwrap().stamp(), "2026-11-16T07:34:21.123456+00:00");
        assert_eq!(third.ended.unwrap().stamp(), "2026-11-16T07:34:22.000001+00:00");
        let fourth = &answer.steps[1].1;
        assert_eq!((fourth.retcode, fourth.cut, fourth.started), (1, true, None), "a failure without a code is one");
    }

    #[test]
    fn a_minion_that_has_nothing_says_so() {
        let none = r#"{"launch": null, "chunk": null, "state": "none", "boot_id": "", "alive": false, "steps": {}}"#;
        let Heard::Answer(answer) = heard(none) else { panic!("no answer") };
        assert_eq!((answer.launch, answer.chunk, answer.state), (None, 0, ChunkState::None));
    }

    #[test]
    fn an_error_names_what_the_minion_has() {
        let busy = heard(r#"{"error": "busy", "launch": 17, "chunk": 1, "state": "running", "boot_id": "b"}"#);
        let reason = "another launch is under way on the minion".to_owned();
        let launch = Some("17".to_owned());
        assert_eq!(busy, Heard::Error { word: "busy".into(), launch, chunk: Some(1), reason, answer: None });
        let Heard::Error { reason, .. } = heard(r#"{"error": "damaged", "file": "/x", "reason": "not JSON"}"#) else {
            panic!("no error")
        };
        assert_eq!(reason, "/x: not JSON");
    }

    #[test]
    fn what_a_full_disk_cannot_keep_is_told_beside_the_error() {
        let told = heard(
            r#"{"error": "store", "reason": "No space left on device", "launch": "1", "chunk": 1, "state": "running",
                "boot_id": "b", "alive": false, "cancelled": false, "steps": {"1": {"state": "done", "retcode": 0}}}"#,
        );
        let Heard::Error { answer: Some(answer), .. } = told else { panic!("{told:?}") };
        assert_eq!(answer.steps[0].1.state, StepState::Done);
    }

    #[test]
    fn what_is_no_answer_is_told_as_it_came() {
        assert_eq!(
            heard(r#""'saltern_chain.start' is not available.""#),
            Heard::Nonsense("'saltern_chain.start' is not available.".into())
        );
        assert_eq!(heard(r#"["one", "two"]"#), Heard::Nonsense("one\ntwo".into()));
        assert!(matches!(heard(r#"{"state": "dancing"}"#), Heard::Nonsense(_)));
        assert!(matches!(heard("null"), Heard::Nonsense(_)));
        let Heard::Nonsense(long) = read(&"x".repeat(100_000).into()) else { panic!("an answer") };
        assert_eq!(long.len(), LONGEST_REASON);
    }

    #[test]
    fn progress_tells_one_step() {
        let data = r#"{"launch": "1", "chunk": 2, "step": "3", "state": "done", "ret": [1], "retcode": 0}"#;
        let progress = read_progress(&serde_json::from_str(data).unwrap()).unwrap();
        assert_eq!((progress.launch.as_str(), progress.chunk, progress.step.as_str()), ("1", 2, "3"));
        assert_eq!((progress.record.state, progress.record.ret), (StepState::Done, Some(Value::list([1]))));
        for bad in [
            "{}",
            "[]",
            r#"{"launch": "1", "chunk": -2, "step": "3", "state": "done"}"#,
            r#"{"launch": "1", "chunk": 2, "step": 3, "state": "done"}"#,
            r#"{"launch": "1", "chunk": 2, "step": "3", "state": "gone"}"#,
        ] {
            assert_eq!(read_progress(&serde_json::from_str(bad).unwrap()), None, "{bad}");
        }
    }

    #[test]
    fn words_read_back() {
        for state in ChunkState::ALL {
            assert_eq!(ChunkState::parse(state.as_str()), Some(state));
        }
        for state in StepState::ALL {
            assert_eq!(StepState::parse(state.as_str()), Some(state));
        }
    }

    fn anything() -> impl Strategy<Value = Value> {
        let word = prop::sample::select(vec!["done", "failed", "running", "none", "busy", "2026-11-16T07:34:21Z", "1"]);
        let leaf = prop_oneof![
            Just(Value::Nil),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<Vec<u8>>().prop_map(Value::from),
            word.prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 6, |inner| {
            let key = prop::sample::select(vec!["launch", "chunk", "state", "steps", "error", "reason", "step", "ret"]);
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((key, inner), 0..6).prop_map(Value::map),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_a_minion_sends_is_read(value in anything()) {
            drop(read(&value));
            drop(read_progress(&value));
        }
    }
}
