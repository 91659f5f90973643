//! Jobs and calls of runners as Salt's `jobs` functions show them.

use super::stamp;
use saltern_core::value::{Map, Value};
use saltern_server::app::{CallSummary, JobDetail, JobSummary, ReturnEntry};

/// A job in a list.
pub(super) fn listed(job: &JobSummary) -> Map {
    let mut shown = head(job);
    shown.push("StartTime", stamp::start_time(job.jid.as_str()));
    shown
}

/// A job with its minions and results.
pub(super) fn shown(detail: &JobDetail) -> Map {
    let mut shown = head(&detail.job);
    shown.push("Minions", Value::List(detail.job.minions.iter().map(Value::from).collect()));
    shown.push("StartTime", stamp::start_time(detail.job.jid.as_str()));
    let results = detail.returns.iter().map(|entry| (Value::from(&entry.minion), result(entry)));
    shown.push("Result", Value::Map(results.collect()));
    shown
}

/// A call of a runner in a list: a job of the server itself.
pub(super) fn call_listed(call: &CallSummary, master: &str) -> Map {
    let mut shown = call_head(call, master);
    shown.push("StartTime", stamp::start_time(call.jid.as_str()));
    shown
}

/// A call of a runner with its result: the data of its event.
pub(super) fn call_shown(call: &CallSummary, master: &str) -> Map {
    let mut shown = call_listed(call, master);
    let mut results = Map::new();
    if call.ended.is_some() {
        results.push(master, Value::map([("return", call_data(call))]));
    }
    shown.push("Result", results);
    shown
}

/// The data of the event that ended a call.
pub(super) fn call_data(call: &CallSummary) -> Value {
    let mut data = call.data.clone();
    stamp::restamp(&mut data);
    data
}

/// What is said of a job that is not there.
pub(super) fn unknown(jid: &str) -> Map {
    Map::from_iter([
        ("jid".into(), Value::from(jid)),
        ("Error".into(), "Cannot contact returner or no job with this jid".into()),
        ("StartTime".into(), stamp::start_time(jid).into()),
        ("Result".into(), Value::Map(Map::new())),
    ])
}

/// A job's id in front of what is shown of it.
pub(super) fn with_jid(key: &str, jid: &str, shown: Map) -> Map {
    let mut all = Map::with_capacity(shown.len() + 1);
    all.push(key, jid);
    for (name, value) in shown {
        all.push(name, value);
    }
    all
}

fn head(job: &JobSummary) -> Map {
    let mut head = Map::from_iter([
        ("Function".into(), Value::from(job.fun.as_str())),
        ("Arguments".into(), job.arg.clone()),
        ("Target".into(), job.target.clone()),
        ("Target-type".into(), job.target_type.as_str().into()),
        ("User".into(), job.user.as_str().into()),
    ]);
    if let Some(metadata) = &job.metadata {
        head.push("Metadata", metadata.clone());
    }
    head
}

fn call_head(call: &CallSummary, master: &str) -> Map {
    Map::from_iter([
        ("Function".into(), Value::from(call.fun.as_str())),
        ("Arguments".into(), Value::List(Vec::new())),
        ("Target".into(), master.into()),
        ("Target-type".into(), "list".into()),
        ("User".into(), call.user.as_str().into()),
    ])
}

fn result(entry: &ReturnEntry) -> Value {
    let mut result = Map::from_iter([
        ("return".into(), entry.value.clone()),
        ("retcode".into(), entry.load.get("retcode").cloned().unwrap_or_else(|| entry.retcode.into())),
        ("success".into(), entry.success.into()),
    ]);
    if let Some(out) = entry.load.get("out") {
        result.push("out", out.clone());
    }
    Value::Map(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_core::ids::{ActionId, Jid, MinionId};
    use saltern_core::time::Timestamp;

    fn job() -> JobSummary {
        JobSummary {
            jid: Jid::parse("20261115191319125684").unwrap(),
            action: ActionId(1),
            created: Timestamp(0),
            fun: "test.ping".into(),
            arg: Value::List(Vec::new()),
            target: "*".into(),
            target_type: "glob".into(),
            user: "admin".into(),
            minions: vec![MinionId::new("ghost1").unwrap(), MinionId::new("web1").unwrap()],
            missing: Vec::new(),
            internal: false,
            metadata: None,
        }
    }

    fn check(shown: Map, expected: &str) {
        assert_eq!(serde_json::to_string(&Value::Map(shown)).unwrap(), expected);
    }

    #[test]
    fn a_list_has_neither_minions_nor_results() {
        check(
            listed(&job()),
            r#"{"Function":"test.ping","Arguments":[],"Target":"*","Target-type":"glob","User":"admin","StartTime":"2026, Nov 15 19:13:19.125684"}"#,
        );
    }

    #[test]
    fn a_job_shows_who_answered_what() {
        let returned = ReturnEntry {
            minion: MinionId::new("web1").unwrap(),
            at: Timestamp(0),
            retcode: 1,
            success: false,
            value: "'x.y' is not available.".into(),
            load: serde_json::from_str(r#"{"retcode": 1, "out": "nested"}"#).unwrap(),
        };
        let metadata = Some(Value::map([("ticket", "T-9")]));
        let detail = JobDetail { job: JobSummary { metadata, ..job() }, runs: Vec::new(), returns: vec![returned] };
        check(
            with_jid("jid", "20261115191319125684", shown(&detail)),
            r#"{"jid":"20261115191319125684","Function":"test.ping","Arguments":[],"Target":"*","Target-type":"glob","User":"admin","Metadata":{"ticket":"T-9"},"Minions":["ghost1","web1"],"StartTime":"2026, Nov 15 19:13:19.125684","Result":{"web1":{"return":"'x.y' is not available.","retcode":1,"success":false,"out":"nested"}}}"#,
        );
    }

    #[test]
    fn a_call_of_a_runner_is_a_job_of_the_server() {
        let call = CallSummary {
            jid: Jid::parse("20261115193735835691").unwrap(),
            fun: "runner.test.arg".into(),
            user: "admin".into(),
            created: Timestamp(0),
            ended: Some(Timestamp(1)),
            success: Some(true),
            data: serde_json::from_str(r#"{"fun_args": [1], "_stamp": "2026-11-15T19:37:36.534759+00:00"}"#).unwrap(),
        };
        check(
            call_shown(&call, "host1_master"),
            r#"{"Function":"runner.test.arg","Arguments":[],"Target":"host1_master","Target-type":"list","User":"admin","StartTime":"2026, Nov 15 19:37:35.835691","Result":{"host1_master":{"return":{"fun_args":[1],"_stamp":"2026-11-15T19:37:36.534759"}}}}"#,
        );
    }

    #[test]
    fn a_job_that_is_not_there_is_said_to_be_so() {
        check(
            unknown("foo"),
            r#"{"jid":"foo","Error":"Cannot contact returner or no job with this jid","StartTime":"","Result":{}}"#,
        );
    }
}
