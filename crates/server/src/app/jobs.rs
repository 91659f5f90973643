//! Jobs: ask for one, look at one, list them.

use super::{ActionRequest, App, Caller, What};
use crate::engine::Door;
use crate::{Error, body};
use saltern_core::access::{Sight, narrow_target};
use saltern_core::action::Policy;
use saltern_core::ids::{ActionId, Jid, MinionId};
use saltern_core::run::Verdict;
use saltern_core::target::{Glob, Nodegroups, Target};
use saltern_core::time::Timestamp;
use saltern_core::value::{Map, Value};
use saltern_store::{Job, JobPage, Run};
use std::time::Duration;

/// What somebody wants to run.
#[derive(Clone, Debug)]
pub struct RunRequest {
    /// On which minions
    pub target: Target,
    /// The function, or several
    pub funs: Vec<String>,
    /// Positional arguments; for several functions one list each
    pub args: Vec<Value>,
    /// Keyword arguments
    pub kwargs: Map,
    /// The rules it is carried out by
    pub policy: Policy,
    /// When it is due; nothing: now
    pub due: Option<Timestamp>,
    /// How long after its due time it ends, whatever happens
    pub deadline: Option<Duration>,
    /// Copied into the job and every return
    pub metadata: Option<Map>,
    /// Returners that minions call themselves
    pub ret: String,
    /// Where a minion's maintenance window is closed when it is due: started when that opens, in place of a refusal
    pub in_window: bool,
}

/// An action that was accepted: it is in the database, and stays there whatever happens next.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// The job's id; nothing as long as it is not due
    pub jid: Option<Jid>,
    /// The action's id
    pub action: ActionId,
    /// The minions it is for
    pub minions: Vec<MinionId>,
    /// Names of a list target that no accepted minion has
    pub missing: Vec<String>,
}

/// Which jobs are wanted, newest first.
#[derive(Clone, Debug, Default)]
pub struct JobQuery {
    /// Only older than this one
    pub before: Option<Jid>,
    /// At most so many
    pub limit: usize,
    /// With the server's own housekeeping
    pub internal: bool,
    /// Only jobs that some minion has not finished
    pub active: bool,
    /// Only of functions that match one of these shell patterns; none: of all
    pub functions: Vec<Glob>,
    /// Only for minions, or with a target, that match one of these
    pub targets: Vec<Glob>,
    /// Only asked for by this user
    pub user: Option<String>,
    /// Only made at this moment or later
    pub since: Option<Timestamp>,
    /// Only made before this moment
    pub until: Option<Timestamp>,
}

impl JobQuery {
    fn wants(&self, job: &JobSummary) -> bool {
        let matches = |patterns: &[Glob], text: &str| patterns.iter().any(|pattern| pattern.matches(text));
        // Several functions are known by each of them, and by all with commas between.
        let has_function =
            || matches(&self.functions, &job.fun) || job.fun.split(',').any(|fun| matches(&self.functions, fun));
        let has_target = || {
            let target = job.target.as_str().is_some_and(|text| matches(&self.targets, text));
            target || job.minions.iter().any(|minion| matches(&self.targets, minion.as_str()))
        };
        (self.functions.is_empty() || has_function())
            && (self.targets.is_empty() || has_target())
            && self.user.as_ref().is_none_or(|user| *user == job.user)
            && self.since.is_none_or(|since| job.created >= since)
            && self.until.is_none_or(|until| job.created < until)
    }
}

/// A job in a list.
#[derive(Clone, Debug)]
pub struct JobSummary {
    /// Its id
    pub jid: Jid,
    /// The action it carries out
    pub action: ActionId,
    /// When it was accepted
    pub created: Timestamp,
    /// The function
    pub fun: String,
    /// Its arguments
    pub arg: Value,
    /// The target expression
    pub target: Value,
    /// The target's type
    pub target_type: String,
    /// Who asked
    pub user: String,
    /// The minions it was for
    pub minions: Vec<MinionId>,
    /// Names of a list target that no accepted minion has
    pub missing: Vec<String>,
    /// Whether it is housekeeping of the server itself
    pub internal: bool,
    /// What its asker wrote beside it
    pub metadata: Option<Value>,
}

/// One minion's return.
#[derive(Clone, Debug)]
pub struct ReturnEntry {
    /// From whom
    pub minion: MinionId,
    /// When it came
    pub at: Timestamp,
    /// The exit code
    pub retcode: i64,
    /// Whether it was judged good
    pub success: bool,
    /// The value
    pub value: Value,
    /// Everything the minion sent
    pub load: Value,
}

/// A job with its runs and returns.
#[derive(Clone, Debug)]
pub struct JobDetail {
    /// The job
    pub job: JobSummary,
    /// Where each minion stands
    pub runs: Vec<Run>,
    /// What came back
    pub returns: Vec<ReturnEntry>,
}

/// Most runs and returns read for one job at a time.
const PAGE: usize = 1_000;

/// Fewest jobs read at a time where some of them are not for the caller.
pub(super) const LEAST: usize = 100;

impl App {
    /// Accepts a job and publishes it.
    pub async fn run(&self, caller: &Caller, asked: RunRequest) -> Result<Accepted, Error> {
        self.submit(caller, request(asked)?, Door::Run).await
    }

    /// One job with everything that is known of it.
    pub async fn job(&self, caller: &Caller, jid: Jid) -> Result<JobDetail, Error> {
        let store = &self.master.store;
        let missing = || Error::NotFound(format!("there is no job {jid}"));
        let job = as_seen(caller, store.job(jid).await?.ok_or_else(missing)?).ok_or_else(missing)?;
        let mut runs = self.master.all_runs(job.action).await?;
        runs.retain(|run| caller.sight().sees(&run.minion));
        let mut returns: Vec<ReturnEntry> = Vec::new();
        loop {
            let after = returns.last().map_or(String::new(), |entry| entry.minion.to_string());
            let page = store.returns(jid, &after, PAGE).await?;
            let last = page.len() < PAGE;
            for returned in page {
                returns.push(ReturnEntry::read(returned)?);
            }
            if last {
                break;
            }
        }
        returns.retain(|returned| caller.sight().sees(&returned.minion));
        Ok(JobDetail { job: summary(job), runs, returns })
    }

    /// A job without its runs and returns; nothing if there is none, or none for him.
    pub async fn job_summary(&self, caller: &Caller, jid: Jid) -> Result<Option<JobSummary>, Error> {
        Ok(self.master.store.job(jid).await?.and_then(|job| as_seen(caller, job)).map(summary))
    }

    /// A page of jobs, newest first.
    pub async fn jobs(&self, caller: &Caller, query: &JobQuery) -> Result<Vec<JobSummary>, Error> {
        let limit = query.limit.clamp(1, PAGE);
        // Who sees little looks through much: not row by row.
        let step = limit.max(LEAST);
        let mut page = JobPage { before: query.before, limit: step, internal: query.internal, open: query.active };
        let mut seen = Vec::new();
        loop {
            let rows = self.master.store.jobs(&page).await?;
            let oldest = rows.last().map(|job| job.created);
            // Nothing older can be wanted.
            let is_past = oldest.is_some_and(|oldest| query.since.is_some_and(|since| oldest < since));
            let last = rows.len() < step || is_past;
            page.before = rows.last().map(|job| job.jid);
            let rows = rows.into_iter().filter_map(|job| as_seen(caller, job)).map(summary);
            seen.extend(rows.filter(|job| query.wants(job)));
            if last || seen.len() >= limit {
                seen.truncate(limit);
                return Ok(seen);
            }
        }
    }
}

impl ReturnEntry {
    pub(super) fn read(returned: saltern_store::Return) -> Result<Self, Error> {
        let load = body::unpack(&returned.body)?;
        let verdict = Verdict { success: returned.success, retcode: returned.retcode };
        Ok(Self::new(returned.minion, returned.at, verdict, load))
    }

    /// A return, out of the load that tells of it.
    pub(super) fn new(minion: MinionId, at: Timestamp, verdict: Verdict, load: Value) -> Self {
        let Verdict { success, retcode } = verdict;
        let value = load.get("return").cloned().unwrap_or_default();
        Self { minion, at, retcode, success, value, load }
    }
}

fn request(request: RunRequest) -> Result<ActionRequest, Error> {
    if request.funs.len() > 1 {
        let is_list = |arg: &Value| arg.as_list().is_some();
        if !request.kwargs.is_empty() || request.args.len() != request.funs.len() || !request.args.iter().all(is_list) {
            return Err(Error::Invalid("several functions take one list of arguments each".into()));
        }
    }
    Ok(ActionRequest {
        what: What::Function { funs: request.funs, args: request.args, kwargs: request.kwargs },
        target: request.target,
        name: None,
        // Somebody waits for it, so it does not queue behind large actions.
        policy: Policy {
            interactive: request.policy.batch.is_none() && request.due.is_none() && !request.in_window,
            ..request.policy
        },
        due: request.due,
        deadline: request.deadline,
        metadata: request.metadata,
        ret: request.ret,
        paused: false,
        in_window: request.in_window,
    })
}

/// A job with the minions that the caller sees; nothing if he sees none of them and did not ask for it himself.
fn as_seen(caller: &Caller, mut job: Job) -> Option<Job> {
    if *caller.sight() == Sight::All {
        return Some(job);
    }
    job.minions.retain(|minion| caller.sight().sees(minion));
    let is_his = job.initiator == caller.who;
    if is_his {
        let target = Target::read(&job.target_type, &value(&job.target), None).ok();
        let listed = target.and_then(|target| missing(&target, &Nodegroups::default(), caller.sight()));
        job.missing = listed.unwrap_or(job.missing);
    } else {
        job.missing.clear();
        let mut target = value(&job.target);
        narrow_target(&job.target_type, &mut target, caller.sight());
        job.target = serde_json::to_string(&target).unwrap_or_default();
    }
    (is_his || !job.minions.is_empty()).then_some(job)
}

/// The names a target lists that are nobody's for him: whom he does not see is not there. Nothing for one that lists none.
pub(super) fn missing(target: &Target, nodegroups: &Nodegroups, sight: &Sight) -> Option<Vec<String>> {
    let matcher = target.compile(nodegroups).ok()?;
    let is_seen = |name: &str| MinionId::new(name).is_ok_and(|id| sight.sees(&id));
    Some(matcher.listed()?.iter().filter(|name| !is_seen(name)).map(ToString::to_string).collect())
}

pub(super) fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Nil)
}

fn summary(job: Job) -> JobSummary {
    JobSummary {
        jid: job.jid,
        action: job.action,
        created: job.created,
        arg: value(&job.arg),
        target: value(&job.target),
        fun: job.fun,
        target_type: job.target_type,
        user: job.initiator,
        minions: job.minions,
        missing: job.missing,
        internal: job.internal,
        metadata: job.metadata.as_deref().map(value),
    }
}
