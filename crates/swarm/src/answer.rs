//! What a light minion returns: what the function would, for the few that clients and masters ask by themselves.

use crate::publications::Job;
use crate::work::{Running, Work};
use bytestring::ByteString;
use saltern_core::value::{Map, Value};

/// What a job asks about the minion itself, or about another of its jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Query {
    /// All that it is at
    Running,
    /// One job, if it is at it
    FindJob,
    /// To end one job, with this signal
    Signal(u8),
}

/// What a killed process is killed with.
const SIGKILL: u8 = 9;
const SIGTERM: u8 = 15;

/// What a stock minion says that keeps no returns, which is how it comes.
const NOTHING_CACHED: &str = "Local jobs cache directory not found; you may need to enable cache_jobs on this minion";

impl Query {
    pub(crate) fn read(fun: &Value) -> Option<Self> {
        match fun.as_str()? {
            "saltutil.running" => Some(Self::Running),
            "saltutil.find_job" => Some(Self::FindJob),
            "saltutil.kill_job" => Some(Self::Signal(SIGKILL)),
            "saltutil.term_job" => Some(Self::Signal(SIGTERM)),
            _ => None,
        }
    }

    /// The answer, and the job that is ended by it.
    pub(crate) fn answer(self, arg: &Value, work: &mut Work) -> (Value, Option<Running>) {
        let jid = arg.as_list().and_then(<[Value]>::first).and_then(Value::as_str).unwrap_or_default();
        match self {
            Self::Running => (Value::List(work.running().iter().map(described).collect()), None),
            Self::FindJob => {
                let found = work.running().iter().find(|running| *running.job.record.jid == *jid);
                (found.map_or_else(|| Value::Map(Map::new()), described), None)
            }
            Self::Signal(number) => match work.end(jid) {
                Some(ended) => (format!("Signal {number} sent to job {jid} at pid {}", pid()).into(), Some(ended)),
                None => ("".into(), None),
            },
        }
    }
}

/// Whether a function is about the minion itself. It takes no time, never fails, and even a minion that hangs does it: in a
/// stock minion such jobs have their own processes, and what they say must be true.
pub(crate) fn is_about_minion(fun: &Value) -> bool {
    fun.as_str().is_some_and(|fun| fun.starts_with("saltutil."))
}

/// What every minion returns for a function that is no query. `padding` stands for the value of any function that is not
/// known here.
pub(crate) fn usual(fun: &Value, arg: &Value, padding: &ByteString) -> Value {
    match fun.as_str() {
        Some("saltutil.find_cached_job") => NOTHING_CACHED.into(),
        Some(fun) if fun.starts_with("saltutil.sync_") => Value::List(Vec::new()),
        _ if !padding.is_empty() => Value::Text(padding.clone()),
        Some("test.echo") => arg.as_list().and_then(<[Value]>::first).cloned().unwrap_or_default(),
        _ => Value::Bool(true),
    }
}

/// The return of a job that was told to fail.
pub(crate) fn failure(job: &Job) -> Map {
    return_load(&job.record.jid, &job.load, "ERROR: the swarm was told to fail".into(), true)
}

/// The fields of a return, without its sender. `published` is the load of the job.
pub(crate) fn return_load(jid: &ByteString, published: &Map, value: Value, is_failure: bool) -> Map {
    let given = |name| published.get(name).cloned();
    let mut load = Map::with_capacity(8);
    load.push("cmd", "_return");
    load.push("jid", jid.clone());
    load.push("fun", given("fun").unwrap_or_default());
    load.push("fun_args", given("arg").unwrap_or_else(|| Value::List(Vec::new())));
    load.push("return", value);
    load.push("retcode", i64::from(is_failure));
    load.push("success", !is_failure);
    if let Some(metadata) = given("metadata") {
        load.push("metadata", metadata);
    }
    load
}

/// What a stock minion's proc file says: the job as it was published, and the process.
fn described(running: &Running) -> Value {
    let mut all = Map::with_capacity(8);
    all.push("jid", running.job.record.jid.clone());
    for name in ["fun", "arg", "tgt", "tgt_type", "ret", "user", "metadata"] {
        if let Some(value) = running.job.load.get(name) {
            all.push(name, value.clone());
        }
    }
    all.push("pid", pid());
    Value::Map(all)
}

/// The light minions have one process between them.
fn pid() -> u32 {
    std::process::id()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publications::tests::job;
    use crate::tally::Tally;
    use crate::work::Fate;
    use std::sync::Arc;
    use std::time::Instant;

    const JID: &str = "20261115200427443183";

    fn at_work() -> (Work, Arc<Job>) {
        let (tally, mut work) = (Tally::new(10), Work::default());
        let job = job(&tally, JID, "cmd.run");
        work.begin(Running::new(job.clone(), Instant::now(), Fate::default(), &tally));
        (work, job)
    }

    fn ask(work: &mut Work, fun: &str, jid: &str) -> Value {
        Query::read(&fun.into()).unwrap().answer(&Value::list([jid]), work).0
    }

    #[test]
    fn a_running_job_is_found_as_it_was_published_and_no_other_is() {
        let (mut work, _) = at_work();
        let found = ask(&mut work, "saltutil.find_job", JID);
        assert_eq!(found.get("jid"), Some(&JID.into()));
        assert_eq!(found.get("fun"), Some(&"cmd.run".into()));
        assert_eq!(found.get("tgt"), Some(&"*".into()));
        assert!(found.get("pid").is_some());
        assert_eq!(ask(&mut work, "saltutil.find_job", "20261115200427443184"), Value::Map(Map::new()));
        assert_eq!(ask(&mut work, "saltutil.running", ""), Value::List(vec![found]));
    }

    #[test]
    fn a_killed_job_is_named_and_no_longer_running() {
        for (fun, number) in [("saltutil.kill_job", 9), ("saltutil.term_job", 15)] {
            let (mut work, job) = at_work();
            let (said, ended) = Query::read(&fun.into()).unwrap().answer(&Value::list([JID]), &mut work);
            assert_eq!(said, format!("Signal {number} sent to job {JID} at pid {}", pid()).into());
            assert!(Arc::ptr_eq(&ended.unwrap().job, &job));
            assert_eq!(ask(&mut work, "saltutil.running", ""), Value::List(Vec::new()));
            assert_eq!(ask(&mut work, fun, JID), "".into());
        }
    }

    #[test]
    fn nothing_is_cached() {
        let said = usual(&"saltutil.find_cached_job".into(), &Value::list([JID]), &"padding".into());
        assert!(said.as_str().unwrap().contains("not found"));
    }

    #[test]
    fn a_return_carries_the_metadata_of_its_job() {
        let published = Value::map([("fun", Value::from("test.ping")), ("metadata", Value::map([("a", 1)]))]);
        let load = return_load(&JID.into(), published.as_map().unwrap(), true.into(), false);
        assert_eq!(load.get("metadata"), Some(&Value::map([("a", 1)])));
        assert_eq!((load.get("success"), load.get("retcode")), (Some(&true.into()), Some(&0_i64.into())));
    }
}
