//! What a light minion returns: what the function would, for the few that clients and masters ask by themselves.

use crate::publications::Job;
use crate::tally::Record;
use bytestring::ByteString;
use saltern_core::value::{Map, Value};
use std::sync::Arc;

/// What every minion returns for a function; nothing if it depends on what the minion is at. `padding` stands for the
/// value of any function that is not known here.
pub(crate) fn usual(fun: &Value, arg: &Value, padding: &ByteString) -> Option<Value> {
    match fun.as_str() {
        Some("saltutil.find_job" | "saltutil.running") => None,
        Some(fun) if fun.starts_with("saltutil.sync_") => Some(Value::List(Vec::new())),
        _ if !padding.is_empty() => Some(Value::Text(padding.clone())),
        Some("test.echo") => Some(arg.as_list().and_then(<[Value]>::first).cloned().unwrap_or_default()),
        _ => Some(Value::Bool(true)),
    }
}

/// The return of a job that asks what else the minion is at.
pub(crate) fn about_running(job: &Job, running: &[Arc<Record>]) -> Map {
    let others = || running.iter().filter(|record| record.jid != job.record.jid);
    let value = if job.fun.as_str() == Some("saltutil.running") {
        Value::List(others().map(|record| described(record)).collect())
    } else {
        let asked = job.arg.as_list().and_then(<[Value]>::first).and_then(Value::as_str).unwrap_or_default();
        others().find(|record| *record.jid == *asked).map_or_else(|| Value::Map(Map::new()), |found| described(found))
    };
    return_load(&job.record.jid, &job.fun, &job.arg, value, false)
}

/// The return of a job that was told to fail.
pub(crate) fn failure(job: &Job) -> Map {
    return_load(&job.record.jid, &job.fun, &job.arg, "ERROR: the swarm was told to fail".into(), true)
}

/// The fields of a return, without its sender.
pub(crate) fn return_load(jid: &ByteString, fun: &Value, arg: &Value, value: Value, is_failure: bool) -> Map {
    let mut load = Map::with_capacity(7);
    load.push("cmd", "_return");
    load.push("jid", jid.clone());
    load.push("fun", fun.clone());
    load.push("fun_args", arg.clone());
    load.push("return", value);
    load.push("retcode", i64::from(is_failure));
    load.push("success", !is_failure);
    load
}

fn described(record: &Record) -> Value {
    Value::map([
        ("jid", Value::Text(record.jid.clone())),
        ("fun", "swarm.work".into()),
        ("pid", std::process::id().into()),
    ])
}
