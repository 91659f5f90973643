//! `jobs.*`: what ran and what runs, on minions and here, within the caller's sight.
//!
//! Everything is answered from the database: nobody is asked, so a dead machine costs no time.

use crate::salt::function::{Call, Function, Outcome, Trouble, split};
use crate::salt::{jobs, stamp};
use saltern_core::ids::Jid;
use saltern_core::run::RunState;
use saltern_core::target::Glob;
use saltern_core::value::{Map, Value};
use saltern_server::Class;
use saltern_server::app::{CallSummary, JobDetail, JobQuery, JobSummary};

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "jobs.active",
        params: "display_progress=False",
        doc: "Shows the jobs that minions are at.",
        secret: false,
        run: |call| Box::pin(active(call)),
    },
    Function {
        name: "jobs.list_jobs",
        params: "ext_source=None, outputter=None, search_metadata=None, search_function=None, search_target=None, \
                 start_time=None, end_time=None, display_progress=False, limit=None, before=None",
        doc: "Lists jobs, the newest ones unless `before` names a job id; 10000 unless `limit` says less.",
        secret: false,
        run: |call| Box::pin(list_jobs(call)),
    },
    Function {
        name: "jobs.list_jobs_filter",
        params: "count, filter_find_job=True, ext_source=None, outputter=None, display_progress=False",
        doc: "Lists so many of the newest jobs.",
        secret: false,
        run: |call| Box::pin(list_jobs_filter(call)),
    },
    Function {
        name: "jobs.list_job",
        params: "jid, ext_source=None, display_progress=False",
        doc: "Shows a job and what came back.",
        secret: false,
        run: |call| Box::pin(list_job(call)),
    },
    Function {
        name: "jobs.print_job",
        params: "jid, ext_source=None",
        doc: "Shows a job and what came back, under its id.",
        secret: false,
        run: |call| Box::pin(print_job(call)),
    },
    Function {
        name: "jobs.lookup_jid",
        params: "jid, ext_source=None, returned=True, missing=False, display_progress=False",
        doc: "Shows what came back for a job; with `missing` also who did not answer.",
        secret: false,
        run: |call| Box::pin(lookup_jid(call)),
    },
    Function {
        name: "jobs.last_run",
        params: "ext_source=None, outputter=None, metadata=None, function=None, target=None, display_progress=False",
        doc: "Shows the newest job, of a function or a target if one is given.",
        secret: false,
        run: |call| Box::pin(last_run(call)),
    },
    Function {
        name: "jobs.exit_success",
        params: "jid, ext_source=None",
        doc: "Shows for each minion of a job whether it went well there.",
        secret: false,
        run: |call| Box::pin(exit_success(call)),
    },
    Function {
        name: "jobs.master",
        params: "",
        doc: "Lists the runners that are under way on the server.",
        secret: false,
        run: |call| Box::pin(master(call)),
    },
];

/// Most jobs in one answer.
const MOST: usize = 10_000;

/// How many are read at a time.
const PAGE: usize = 1_000;

/// A job of minions, or a call of a runner.
enum Found {
    Job(Box<JobSummary>),
    Call(Box<CallSummary>),
}

impl Found {
    fn jid(&self) -> Jid {
        match self {
            Self::Job(job) => job.jid,
            Self::Call(call) => call.jid,
        }
    }

    fn listed(&self, call: &Call) -> Map {
        match self {
            Self::Job(job) => jobs::listed(job),
            Self::Call(found) => jobs::call_listed(found, &call.salt.app.config().id),
        }
    }
}

/// Which jobs are wanted.
#[derive(Default)]
struct Search {
    functions: Vec<Glob>,
    targets: Vec<Glob>,
    metadata: Option<Map>,
    since: Option<Jid>,
    until: Option<Jid>,
    before: Option<Jid>,
    limit: usize,
}

impl Search {
    fn read(call: &Call) -> Result<Self, Trouble> {
        let given = &call.given;
        let globs = |name: &str| {
            let patterns = given.texts(name)?.unwrap_or_default();
            Ok(patterns.iter().flat_map(|text| split(text)).map(|text| Glob::new(&text)).collect::<Vec<_>>())
        };
        let time = |name: &str| match given.text(name)? {
            None => Ok(None),
            Some(text) => stamp::read_time(&text).map(Some).ok_or_else(|| {
                Trouble::Raised(format!("'{name}' must be a time such as '2026, Nov 15 18:54' or '2026-11-15 18:54'"))
            }),
        };
        let before = given
            .text("before")?
            .map(|jid| Jid::parse(&jid).ok_or_else(|| Trouble::Raised("'before' must be a job id".into())));
        let limit = given.number("limit")?.map_or(MOST, |limit| usize::try_from(limit).unwrap_or(1).clamp(1, MOST));
        Ok(Self {
            functions: globs("search_function")?,
            targets: globs("search_target")?,
            metadata: metadata(call, "search_metadata")?,
            since: time("start_time")?,
            until: time("end_time")?,
            before: before.transpose()?,
            limit,
        })
    }

    fn wants(&self, job: &JobSummary) -> bool {
        let has = |metadata: &Map| {
            metadata
                .iter()
                .all(|(key, value)| job.metadata.as_ref().and_then(|all| all.as_map()?.find(key)) == Some(value))
        };
        self.metadata.as_ref().is_none_or(has) && self.has_target(&job.target) && self.is_in_time(job.jid)
    }

    /// By the target as it was written, not by whom it came to.
    fn has_target(&self, target: &Value) -> bool {
        let words = target.as_list().unwrap_or(std::slice::from_ref(target));
        let matches =
            |word: &Value| word.as_str().is_some_and(|text| self.targets.iter().any(|glob| glob.matches(text)));
        self.targets.is_empty() || words.iter().any(matches)
    }

    fn wants_call(&self, call: &CallSummary, master: &str) -> bool {
        let matches = |globs: &[Glob], text: &str| globs.is_empty() || globs.iter().any(|glob| glob.matches(text));
        // Whoever looks is not what he looks for.
        let is_look = call.ended.is_none() && call.fun.starts_with("runner.jobs.");
        self.metadata.is_none()
            && !is_look
            && matches(&self.functions, &call.fun)
            && matches(&self.targets, master)
            && self.is_in_time(call.jid)
    }

    fn is_in_time(&self, jid: Jid) -> bool {
        self.since.is_none_or(|since| jid >= since) && self.until.is_none_or(|until| jid <= until)
    }

    /// Whether nothing older can be wanted.
    fn is_over(&self, jid: Option<Jid>) -> bool {
        jid.is_none_or(|jid| self.since.is_some_and(|since| jid < since))
    }
}

/// A word or an object of metadata; nothing for other values.
fn metadata(call: &Call, name: &str) -> Result<Option<Map>, Trouble> {
    match call.given.get(name) {
        None => Ok(None),
        Some(Value::Map(map)) => Ok(Some(map.clone())),
        Some(_) => Err(Trouble::Raised(format!("'{name}' must be an object"))),
    }
}

/// Jobs and calls, newest first.
async fn search(call: &Call, search: &Search) -> Result<Vec<Found>, Trouble> {
    let app = &call.salt.app;
    let mut found = Vec::new();
    let mut query = JobQuery {
        before: search.before,
        limit: PAGE.min(search.limit),
        functions: search.functions.clone(),
        since: search.since.and_then(|jid| jid.instant()),
        ..JobQuery::default()
    };
    while found.len() < search.limit {
        let page = app.jobs(&call.caller, &query).await.map_err(|error| call.trouble(error))?;
        let last = page.len() < query.limit;
        query.before = page.last().map(|job| job.jid);
        found.extend(page.into_iter().filter(|job| search.wants(job)).map(|job| Found::Job(Box::new(job))));
        if last || search.is_over(query.before) {
            break;
        }
    }
    let master = &app.config().id;
    let (mut before, mut calls) = (search.before, 0);
    while calls < search.limit {
        let page = app.calls(&call.caller, before, PAGE).await.map_err(|error| call.trouble(error))?;
        let last = page.len() < PAGE;
        before = page.last().map(|found| found.jid);
        for one in page.into_iter().filter(|one| search.wants_call(one, master)) {
            calls += 1;
            found.push(Found::Call(Box::new(one)));
        }
        if last || search.is_over(before) {
            break;
        }
    }
    found.sort_unstable_by_key(|found| std::cmp::Reverse(found.jid()));
    found.truncate(search.limit);
    Ok(found)
}

async fn list_jobs(call: Call) -> Outcome {
    let found = search(&call, &Search::read(&call)?).await?;
    // The oldest first, as Salt's job cache lists them.
    let listed: Map =
        found.iter().rev().map(|found| (Value::from(found.jid()), Value::Map(found.listed(&call)))).collect();
    Ok(match call.given.text("outputter")? {
        Some(outputter) => Value::map([("outputter", Value::from(outputter)), ("data", Value::Map(listed))]),
        None => listed.into(),
    })
}

async fn list_jobs_filter(call: Call) -> Outcome {
    let count = call.given.number("count")?.and_then(|count| usize::try_from(count).ok()).unwrap_or(0).min(MOST);
    if count == 0 {
        return Ok(Value::List(Vec::new()));
    }
    let found = search(&call, &Search { limit: count, ..Search::default() }).await?;
    let listed = found.iter().rev().map(|found| {
        let mut listed = found.listed(&call);
        let start = listed.remove("StartTime").unwrap_or_default();
        listed.push("JID", found.jid());
        listed.push("StartTime", start);
        Value::Map(listed)
    });
    Ok(Value::List(listed.collect()))
}

/// A job in full.
enum Whole {
    Job(Box<JobDetail>),
    Call(Box<CallSummary>),
}

async fn find(call: &Call, jid: &str) -> Result<Option<Whole>, Trouble> {
    let Some(jid) = Jid::parse(jid) else { return Ok(None) };
    match call.salt.app.job(&call.caller, jid).await {
        Ok(detail) => return Ok(Some(Whole::Job(Box::new(detail)))),
        Err(error) if error.class() == Class::NotFound => {}
        Err(error) => return Err(call.trouble(error)),
    }
    let found = call.salt.app.call(&call.caller, jid).await.map_err(|error| call.trouble(error))?;
    Ok(found.map(|found| Whole::Call(Box::new(found))))
}

fn shown(call: &Call, whole: &Whole) -> Map {
    match whole {
        Whole::Job(detail) => jobs::shown(detail),
        Whole::Call(found) => jobs::call_shown(found, &call.salt.app.config().id),
    }
}

async fn list_job(call: Call) -> Outcome {
    let jid = call.given.required("jid")?;
    Ok(match find(&call, &jid).await? {
        Some(whole) => jobs::with_jid("jid", &jid, shown(&call, &whole)).into(),
        None => jobs::unknown(&jid).into(),
    })
}

async fn print_job(call: Call) -> Outcome {
    let jid = call.given.required("jid")?;
    let shown = match find(&call, &jid).await? {
        Some(whole) => shown(&call, &whole),
        None => {
            let mut unknown = jobs::unknown(&jid);
            unknown.remove("jid");
            unknown
        }
    };
    Ok(Value::map([(jid, Value::Map(shown))]))
}

async fn lookup_jid(call: Call) -> Outcome {
    let given = &call.given;
    let wants_returned = given.get("returned").is_none() || given.flag("returned");
    let found = find(&call, &given.required("jid")?).await?;
    Ok(match found {
        Some(Whole::Job(detail)) => returns(&detail, wants_returned, given.flag("missing")),
        Some(Whole::Call(found)) if found.ended.is_some() && wants_returned => {
            Value::map([(call.salt.app.config().id.as_str(), jobs::call_data(&found))])
        }
        Some(Whole::Call(_)) | None => Value::Map(Map::new()),
    })
}

/// What came back; in the wrapper of its outputter if it is to be shown in a way of its own.
fn returns(detail: &JobDetail, wants_returned: bool, wants_missing: bool) -> Value {
    let mut told = Map::new();
    if wants_returned {
        for entry in &detail.returns {
            told.push(&entry.minion, entry.value.clone());
        }
    }
    if wants_missing {
        let answered = |id| detail.returns.iter().any(|entry| entry.minion == id);
        for minion in detail.job.minions.iter().filter(|minion| !answered((*minion).clone())) {
            told.push(minion, "Minion did not return");
        }
    }
    let outputter = detail.returns.first().and_then(|entry| entry.load.get("out")).and_then(Value::as_str);
    match outputter {
        Some("highstate") if wants_returned => {
            Value::map([("outputter", Value::from("highstate")), ("data", Value::Map(told))])
        }
        _ => Value::Map(told),
    }
}

async fn last_run(call: Call) -> Outcome {
    let globs = |name: &str| {
        let patterns = call.given.texts(name)?.unwrap_or_default();
        Ok(patterns.iter().map(|text| Glob::new(text)).collect::<Vec<_>>())
    };
    let wanted = Search {
        functions: globs("function")?,
        targets: globs("target")?,
        metadata: metadata(&call, "metadata")?,
        limit: 1,
        ..Search::default()
    };
    let Some(newest) = search(&call, &wanted).await?.into_iter().next() else { return Ok(false.into()) };
    let jid = newest.jid().to_string();
    Ok(match find(&call, &jid).await? {
        Some(whole) => Value::map([(jid, Value::Map(shown(&call, &whole)))]),
        None => false.into(),
    })
}

async fn exit_success(call: Call) -> Outcome {
    let found = find(&call, &call.given.required("jid")?).await?;
    let mut told = Map::new();
    match found {
        Some(Whole::Job(detail)) => {
            let went_well = |id| detail.returns.iter().any(|entry| entry.minion == id && entry.success);
            for minion in &detail.job.minions {
                told.push(minion, went_well(minion.clone()));
            }
        }
        Some(Whole::Call(found)) => told.push(call.salt.app.config().id.as_str(), found.success == Some(true)),
        None => {}
    }
    Ok(told.into())
}

async fn active(call: Call) -> Outcome {
    let app = &call.salt.app;
    let query = JobQuery { limit: PAGE, active: true, ..JobQuery::default() };
    let open = app.jobs(&call.caller, &query).await.map_err(|error| call.trouble(error))?;
    let mut told = Map::new();
    for job in open.iter().rev() {
        let (mut running, mut returned) = (Vec::new(), Vec::new());
        let mut after = String::new();
        loop {
            let page = app.runs(&call.caller, job.action, None, &after, PAGE).await;
            let page = page.map_err(|error| call.trouble(error))?;
            let last = page.len() < PAGE;
            after = page.last().map(|run| run.minion.to_string()).unwrap_or_default();
            for run in page.iter().filter(|run| run.jid == Some(job.jid)) {
                match run.state {
                    // Which process it is, only its minion knows.
                    RunState::PickedUp => running.push(Value::map([(Value::from(&run.minion), Value::from(0))])),
                    RunState::Completed => returned.push(Value::from(&run.minion)),
                    RunState::Failed if run.retcode.is_some() => returned.push(Value::from(&run.minion)),
                    RunState::Queued | RunState::Sent | RunState::Failed | RunState::Cancelled => {}
                }
            }
            if last {
                break;
            }
        }
        if !running.is_empty() {
            let mut shown = jobs::listed(job);
            shown.push("Running", Value::List(running));
            shown.push("Returned", Value::List(returned));
            told.push(job.jid, shown);
        }
    }
    Ok(told.into())
}

async fn master(call: Call) -> Outcome {
    let recent = call.salt.app.calls(&call.caller, None, PAGE).await.map_err(|error| call.trouble(error))?;
    let open = recent.iter().filter(|found| found.ended.is_none()).map(|found| {
        let mut data = jobs::call_data(found);
        if let Value::Map(map) = &mut data {
            map.insert("pid", std::process::id());
        }
        data
    });
    Ok(Value::List(open.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_core::ids::{ActionId, MinionId};
    use saltern_core::time::Timestamp;
    use saltern_server::app::ReturnEntry;

    #[test]
    fn a_target_is_looked_for_as_it_was_written() {
        let search = Search { targets: vec![Glob::new("db*")], ..Search::default() };
        assert!(search.has_target(&"db1".into()));
        assert!(search.has_target(&Value::list(["web1", "db1"])));
        assert!(!search.has_target(&"*".into()));
        assert!(Search::default().has_target(&"*".into()));
    }

    #[test]
    fn times_bound_a_search_on_both_sides() {
        let jid = |text: &str| stamp::read_time(text).unwrap();
        let search = Search { since: Some(jid("2026-11-15")), until: Some(jid("2026-11-16")), ..Search::default() };
        assert!(search.is_in_time(jid("2026-11-15 12:00")));
        assert!(!search.is_in_time(jid("2026-11-14")) && !search.is_in_time(jid("2026-11-17")));
        assert!(search.is_over(Some(jid("2026-11-14"))) && !search.is_over(Some(jid("2026-11-15"))));
    }

    fn detail(out: &str) -> JobDetail {
        let id = |text: &str| MinionId::new(text).unwrap();
        let job = JobSummary {
            jid: Jid::parse("20261115185506275942").unwrap(),
            action: ActionId(1),
            created: Timestamp(0),
            fun: "test.ping".into(),
            arg: Value::List(Vec::new()),
            target: "*".into(),
            target_type: "glob".into(),
            user: "admin".into(),
            minions: vec![id("ghost1"), id("web1")],
            missing: Vec::new(),
            internal: false,
            metadata: None,
        };
        let returned = ReturnEntry {
            minion: id("web1"),
            at: Timestamp(0),
            retcode: 0,
            success: true,
            value: true.into(),
            load: Value::map([("out", out)]),
        };
        JobDetail { job, runs: Vec::new(), returns: vec![returned] }
    }

    #[test]
    fn who_did_not_answer_is_told_on_request() {
        let text = |missing| serde_json::to_string(&returns(&detail("nested"), true, missing)).unwrap();
        assert_eq!(text(false), r#"{"web1":true}"#);
        assert_eq!(text(true), r#"{"web1":true,"ghost1":"Minion did not return"}"#);
    }

    #[test]
    fn state_runs_come_with_their_outputter() {
        let told = serde_json::to_string(&returns(&detail("highstate"), true, false)).unwrap();
        assert_eq!(told, r#"{"outputter":"highstate","data":{"web1":true}}"#);
    }
}
