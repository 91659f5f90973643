//! Jobs: ask for one, look at one, list them.

use super::{App, Caller};
use crate::master::{Purpose, Submission};
use crate::{Error, body};
use saltern_core::ids::{ActionId, Jid, MinionId};
use saltern_core::run::Verdict;
use saltern_core::target::Target;
use saltern_core::time::Timestamp;
use saltern_core::value::{Map, Value};
use saltern_store::{Job, JobPage, Run};
use saltern_wire::load::{Fun, kwargs};

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
    /// Whether minions are asked to acknowledge; nothing means as configured
    pub ack: Option<bool>,
    /// Copied into the job and every return
    pub metadata: Option<Map>,
    /// Returners that minions call themselves
    pub ret: String,
}

/// A job that was accepted: it is in the database, and stays there whatever happens next.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// The job's id
    pub jid: Jid,
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
    /// When it was published
    pub published: Option<Timestamp>,
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

impl App {
    /// Accepts a job and publishes it.
    pub async fn run(&self, caller: &Caller, request: RunRequest) -> Result<Accepted, Error> {
        let submission = submission(caller, request)?;
        let crate::master::Accepted { jid, action, minions, missing } = self.master.submit(submission).await?;
        Ok(Accepted { jid, action, minions, missing })
    }

    /// One job with everything that is known of it.
    pub async fn job(&self, jid: Jid) -> Result<JobDetail, Error> {
        let store = &self.master.store;
        let job = store.job(jid).await?.ok_or_else(|| Error::NotFound(format!("there is no job {jid}")))?;
        let mut runs: Vec<Run> = Vec::new();
        loop {
            let after = runs.last().map_or(String::new(), |run| run.minion.to_string());
            let page = store.runs(job.action, &after, PAGE).await?;
            let last = page.len() < PAGE;
            runs.extend(page);
            if last {
                break;
            }
        }
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
        Ok(JobDetail { job: summary(job), runs, returns })
    }

    /// A page of jobs, newest first.
    pub async fn jobs(&self, query: &JobQuery) -> Result<Vec<JobSummary>, Error> {
        let page = JobPage {
            before: query.before,
            limit: query.limit.clamp(1, PAGE),
            internal: query.internal,
            open: query.active,
        };
        Ok(self.master.store.jobs(&page).await?.into_iter().map(summary).collect())
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

fn submission(caller: &Caller, request: RunRequest) -> Result<Submission, Error> {
    let named = |name: &String| {
        name.contains('.') && !name.starts_with('.') && !name.ends_with('.') && !name.contains(char::is_whitespace)
    };
    if let Some(bad) = request.funs.iter().find(|name| !named(name)) {
        return Err(Error::Invalid(format!("{bad:?} is not a function: write MODULE.FUNCTION, e.g. test.ping")));
    }
    let mut arg = request.args;
    let fun = match request.funs.as_slice() {
        [] => return Err(Error::Invalid("no function was given: write MODULE.FUNCTION, e.g. test.ping".into())),
        [one] => {
            if !request.kwargs.is_empty() {
                arg.push(kwargs(request.kwargs));
            }
            Fun::from(one.as_str())
        }
        many => {
            if !request.kwargs.is_empty() || arg.len() != many.len() || arg.iter().any(|arg| arg.as_list().is_none()) {
                return Err(Error::Invalid("several functions take one list of arguments each".into()));
            }
            Fun::Many(many.iter().map(|name| name.as_str().into()).collect())
        }
    };
    Ok(Submission {
        target: request.target,
        fun,
        arg,
        user: caller.who.clone(),
        origin: caller.origin.clone(),
        ack: request.ack,
        metadata: request.metadata,
        ret: request.ret,
        purpose: Purpose::Asked,
    })
}

fn summary(job: Job) -> JobSummary {
    let value = |text: &str| serde_json::from_str(text).unwrap_or(Value::Nil);
    JobSummary {
        jid: job.jid,
        action: job.action,
        created: job.created,
        published: job.published,
        arg: value(&job.arg),
        target: value(&job.target),
        fun: job.fun,
        target_type: job.target_type,
        user: job.initiator,
        minions: job.minions,
        missing: job.missing,
        internal: job.internal,
    }
}
