//! What a job of `saltern_chain` asks for: read once, for all the minions that it means.

use crate::answer;
use crate::steps::StepRecord;
use bytestring::ByteString;
use saltern_core::value::{Map, Value};
use std::sync::Arc;

/// The functions that fail as steps; everything else is done.
const FAILING: [&str; 2] = ["test.false", "test.exception"];

/// What a job of `saltern_chain` asks for.
#[derive(Debug)]
pub(crate) enum Order {
    Start(Arc<Start>),
    Resume,
    Status,
    /// To begin nothing more of a launch; with `kill`, also to end what is under way
    Cancel {
        launch: ByteString,
        kill: bool,
    },
    Clear {
        launch: Option<ByteString>,
        force: bool,
    },
    /// Nothing that makes sense, and why
    Wrong(String),
}

/// A chunk as a job brings it.
#[derive(Debug)]
pub(crate) struct Start {
    pub(super) launch: ByteString,
    pub(super) chunk: i64,
    /// Whether a step of an earlier chunk has failed
    pub(super) failed: bool,
    pub(super) steps: Vec<Step>,
}

/// A step, with what its function is going to return on every minion.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) id: ByteString,
    pub(super) kind: Kind,
    pub(super) repeatable: bool,
    pub(super) after: After,
    pub(super) ret: Value,
    pub(super) fails: bool,
    pub(super) record: Arc<StepRecord>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Call,
    Check,
    Reboot,
    Update,
}

/// When a step runs, given the steps before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    Ok,
    Failed,
    Always,
}

/// Where records of steps come from: by launch, chunk and id.
type Recorder<'a> = &'a dyn Fn(&ByteString, i64, &ByteString) -> Arc<StepRecord>;

impl Order {
    /// Reads a job; nothing if it is not of `saltern_chain`. `padding` is what functions return if a size was asked for.
    pub(crate) fn read(fun: &Value, arg: &Value, padding: &ByteString, recorder: Recorder<'_>) -> Option<Self> {
        let fun = fun.as_str()?;
        let given = Given::new(arg);
        let launch = || given.text(0, "launch").ok_or_else(|| "it needs a launch".to_owned());
        let read = match fun.strip_prefix("saltern_chain.")? {
            "start" => Start::read(&given, padding, recorder).map(|start| Self::Start(Arc::new(start))),
            "resume" => Ok(Self::Resume),
            "status" => Ok(Self::Status),
            "cancel" => launch().map(|launch| Self::Cancel { launch, kill: false }),
            "stop" => launch().map(|launch| Self::Cancel { launch, kill: true }),
            "clear" => {
                let force = given.get(1, "force").and_then(Value::as_bool).unwrap_or(false);
                Ok(Self::Clear { launch: given.text(0, "launch"), force })
            }
            _ => return None,
        };
        Some(read.unwrap_or_else(|text| Self::Wrong(format!("ERROR executing '{fun}': {text}"))))
    }
}

impl Start {
    fn read(given: &Given<'_>, padding: &ByteString, recorder: Recorder<'_>) -> Result<Self, String> {
        let launch = given.text(0, "launch").ok_or("it needs a launch")?;
        let chunk = given.get(1, "chunk").and_then(Value::as_i64).filter(|chunk| *chunk > 0);
        let chunk = chunk.ok_or("chunk must be a number from 1")?;
        let no_steps = "steps must be a list of maps";
        let maps = given.get(2, "steps").and_then(Value::as_list).filter(|maps| !maps.is_empty()).ok_or(no_steps)?;
        let failed = given.get(3, "options").and_then(|options| options.get("failed")).is_some_and(Value::is_truthy);
        let mut steps: Vec<Step> = Vec::with_capacity(maps.len());
        for map in maps {
            let map = map.as_map().ok_or(no_steps)?;
            let id = map.get("id").and_then(Value::as_str).unwrap_or_default();
            let wrong = |problem: &str| format!("step {id}: {problem}");
            if id.is_empty() || steps.iter().any(|other| *other.id == *id) {
                return Err(wrong("needs an id of its own"));
            }
            if steps.last().is_some_and(|last| matches!(last.kind, Kind::Reboot | Kind::Update)) {
                return Err(wrong("a chunk ends with its reboot or update"));
            }
            let step = Step::read(id, map, padding, |id| recorder(&launch, chunk, id));
            steps.push(step.map_err(|problem| wrong(&problem))?);
        }
        Ok(Self { launch, chunk, failed, steps })
    }
}

impl Step {
    fn read(
        id: &str,
        map: &Map,
        padding: &ByteString,
        record: impl FnOnce(&ByteString) -> Arc<StepRecord>,
    ) -> Result<Self, String> {
        let given = |name| map.get(name).filter(|value| !value.is_nil());
        let fun = given("fun").filter(|fun| fun.as_str().is_some_and(|fun| !fun.starts_with("saltern_chain.")));
        let fun = fun.ok_or("needs a function outside of this module")?;
        let kind = match given("kind").map_or(Some("call"), Value::as_str) {
            Some("call") => Kind::Call,
            Some("check") => Kind::Check,
            Some("reboot") => Kind::Reboot,
            Some("update") => Kind::Update,
            _ => return Err("unknown kind".into()),
        };
        let after = match given("after").map_or(Some("ok"), Value::as_str) {
            Some("ok") => After::Ok,
            Some("failed") => After::Failed,
            Some("always") => After::Always,
            _ => return Err("unknown after".into()),
        };
        let expect = given("expect");
        if expect.is_some() && kind != Kind::Check {
            return Err("only a check has an expectation".into());
        }
        let fails = fun.as_str().is_some_and(|fun| FAILING.contains(&fun));
        // A check finds what it looks for: nothing was ever updated here.
        let ret = match expect {
            _ if fails => false.into(),
            Some(expect) => expect.clone(),
            None => answer::usual(fun, given("arg").unwrap_or(&Value::Nil), padding),
        };
        let repeatable = given("repeatable").and_then(Value::as_bool).unwrap_or(false);
        let id = ByteString::from(id);
        Ok(Self { record: record(&id), id, kind, repeatable, after, ret, fails })
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

/// The arguments of a job, by position or by name.
struct Given<'a> {
    list: &'a [Value],
    keywords: Option<&'a Map>,
}

impl<'a> Given<'a> {
    fn new(arg: &'a Value) -> Self {
        let list = arg.as_list().unwrap_or_default();
        let is_keywords = |map: &&Map| map.get("__kwarg__").is_some_and(Value::is_truthy);
        match list.split_last() {
            Some((Value::Map(last), list)) if is_keywords(&last) => Self { list, keywords: Some(last) },
            _ => Self { list, keywords: None },
        }
    }

    /// What is `None` was not given.
    fn get(&self, at: usize, name: &str) -> Option<&'a Value> {
        let named = || self.keywords.and_then(|keywords| keywords.get(name));
        self.list.get(at).or_else(named).filter(|value| !value.is_nil())
    }

    fn text(&self, at: usize, name: &str) -> Option<ByteString> {
        self.get(at, name).map(|value| value.key_text().into_owned().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::Tally;
    use serde_json::json;

    fn read(fun: &str, arg: serde_json::Value) -> Option<Order> {
        let (tally, arg) = (Tally::new(10), serde_json::from_value(arg).unwrap());
        Order::read(&fun.into(), &arg, &ByteString::new(), &|launch, chunk, id| tally.step(launch, chunk, id, 1))
    }

    #[test]
    fn arguments_come_by_position_or_by_name() {
        let steps = json!([{ "id": "1", "fun": "test.ping" }]);
        let named =
            json!([{ "__kwarg__": true, "launch": 17, "chunk": 2, "steps": steps, "options": { "failed": true } }]);
        for arg in [json!([17, 2, steps, { "failed": true }]), named] {
            let Some(Order::Start(start)) = read("saltern_chain.start", arg) else { panic!("no start") };
            assert_eq!((&*start.launch, start.chunk, start.failed, start.steps.len()), ("17", 2, true, 1));
        }
        let Some(Order::Clear { launch, force }) =
            read("saltern_chain.clear", json!([{ "__kwarg__": true, "force": true }]))
        else {
            panic!("no clear")
        };
        assert_eq!((launch, force), (None, true));
        assert!(read("test.ping", json!([])).is_none());
    }

    #[test]
    fn a_check_returns_what_is_expected_and_some_functions_fail() {
        let steps = json!([
            { "id": "c", "kind": "check", "fun": "pkg.version", "arg": ["salt-minion"], "expect": "3008.3" },
            { "id": "f", "fun": "test.false" },
        ]);
        let Some(Order::Start(start)) = read("saltern_chain.start", json!(["7", 1, steps])) else { panic!("no start") };
        assert_eq!((&start.steps[0].ret, start.steps[0].fails), (&"3008.3".into(), false));
        assert_eq!((&start.steps[1].ret, start.steps[1].fails), (&false.into(), true));
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        let wrong = |steps: serde_json::Value| match read("saltern_chain.start", json!(["7", 1, steps])) {
            Some(Order::Wrong(text)) => {
                text.strip_prefix("ERROR executing 'saltern_chain.start': ").unwrap().to_owned()
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(wrong(json!([])), "steps must be a list of maps");
        assert_eq!(wrong(json!([{ "id": "a", "fun": "x.y", "kind": "nap" }])), "step a: unknown kind");
        assert_eq!(wrong(json!([{ "id": "a", "fun": "x.y", "expect": 1 }])), "step a: only a check has an expectation");
        let two = json!([{ "id": "a", "fun": "x.y" }, { "id": "a", "fun": "x.y" }]);
        assert_eq!(wrong(two), "step a: needs an id of its own");
        let reboot_first = json!([{ "id": "a", "fun": "x.y", "kind": "reboot" }, { "id": "b", "fun": "x.y" }]);
        assert_eq!(wrong(reboot_first), "step b: a chunk ends with its reboot or update");
        assert!(matches!(read("saltern_chain.stop", json!([])), Some(Order::Wrong(_))));
    }
}
