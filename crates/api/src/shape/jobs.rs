//! Jobs as JSON: the request, the list, the detail, and the steps of one that is being followed.

use super::policy::PolicyShape;
use super::{Run, RunStatus, Time};
use crate::app;
use saltern_core::action::Policy;
use saltern_core::ids::{Jid, MinionId};
use saltern_core::target::Target;
use saltern_core::value::{Map, Value};
use saltern_server::Error;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use utoipa::ToSchema;

/// What somebody wants to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// On which minions: text, or a list where the type takes one
    #[schema(schema_with = super::policy::target)]
    pub target: Value,
    /// How to read the target: Salt's `tgt_type`
    #[serde(default = "glob")]
    #[schema(schema_with = super::policy::tgt_type, required = false)]
    pub tgt_type: String,
    /// What separates keys in a grain or pillar target, if not `:`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<String>,
    /// The function, or several
    pub fun: Functions,
    /// Positional arguments; for several functions one list each
    #[serde(default)]
    #[schema(value_type = Vec<Value>)]
    pub arg: Vec<Value>,
    /// Keyword arguments; only for one function
    #[serde(default, skip_serializing_if = "Value::is_nil")]
    #[schema(value_type = Option<Object>)]
    pub kwarg: Value,
    /// Whether minions are asked to acknowledge; nothing means as the policy says, or as configured
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack: Option<bool>,
    /// The rules it is carried out by
    #[serde(default)]
    #[schema(value_type = PolicyShape)]
    pub policy: Policy,
    /// When it is due; nothing means now
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Time>,
    /// Seconds after its due time in which it ends, whatever happens; nothing means as configured
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<f64>,
    /// Copied into the job and every return
    #[serde(default, skip_serializing_if = "Value::is_nil")]
    #[schema(value_type = Option<Object>)]
    pub metadata: Value,
    /// Returners that minions call themselves
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ret: String,
    /// Where a minion's maintenance window is closed when it is due: start when that opens, in place of a refusal
    #[serde(default)]
    pub in_window: bool,
}

/// One function or several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Functions {
    /// One
    One(String),
    /// Several, run one after the other in one job
    Many(Vec<String>),
}

/// A job that was accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Accepted {
    /// The job's id; nothing as long as it is not due
    pub jid: Option<String>,
    /// The action's id
    pub action: i64,
    /// The minions it is for
    pub minions: Vec<String>,
    /// Names of a list target that no accepted minion has
    #[serde(default)]
    pub missing: Vec<String>,
}

/// A page of jobs, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobList {
    /// The jobs
    pub jobs: Vec<Job>,
    /// What `before` is for the next page; nothing: there is none
    #[serde(default)]
    pub next: Option<String>,
}

/// A job in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Job {
    /// Its id
    pub jid: String,
    /// The action it carries out
    pub action: i64,
    /// When it was accepted
    pub created: Time,
    /// The function; several are joined by commas
    pub fun: String,
    /// Its arguments
    #[schema(value_type = Value)]
    pub arg: Value,
    /// The target expression
    #[schema(value_type = Value)]
    pub target: Value,
    /// The target's type
    pub tgt_type: String,
    /// Who asked
    pub user: String,
    /// How many minions it was for
    pub minion_count: usize,
    /// Whether it is housekeeping of the server itself
    pub internal: bool,
}

/// A job with everything that is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobDetail {
    /// What a list shows
    #[serde(flatten)]
    pub job: Job,
    /// The minions it was for
    pub minions: Vec<String>,
    /// Names of a list target that no accepted minion has
    pub missing: Vec<String>,
    /// Where each minion stands
    pub runs: BTreeMap<String, RunStatus>,
    /// What came back
    pub returns: BTreeMap<String, Return>,
}

/// One minion's return.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Return {
    /// The value
    #[serde(rename = "return")]
    #[schema(value_type = Value)]
    pub value: Value,
    /// The exit code
    pub retcode: i64,
    /// Whether it was judged good
    pub success: bool,
    /// When it came
    pub at: Time,
    /// How the minion would like it shown: `nested`, `highstate` …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out: Option<String>,
}

/// A step of a job that is being followed: one line of the stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum JobStep {
    /// A minion has begun
    Ack {
        /// Which
        minion: String,
    },
    /// A minion has answered
    Return {
        /// Which
        minion: String,
        /// What
        #[serde(flatten)]
        returned: Return,
    },
    /// Nothing more is waited for
    Done {
        /// Those who have not answered, and why
        unanswered: Vec<Unanswered>,
    },
}

/// A minion that did not answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Unanswered {
    /// Which
    pub minion: String,
    /// Why, as far as is known
    #[serde(flatten)]
    pub why: Why,
}

/// Why a minion did not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "why", content = "since", rename_all = "snake_case")]
pub enum Why {
    /// It is not connected since then
    Offline(Time),
    /// It was not heard of since the server started; last seen then
    NotSeen(Time),
    /// It is connected and can acknowledge, and did not
    NotAcknowledged,
    /// It acknowledged then, and is still at it
    Running(Time),
    /// It acknowledged, and now says that it does not run this job
    Gone,
    /// It is connected, cannot acknowledge, and said nothing
    Silent,
    /// It never said that it began, and was given up
    NotDelivered,
    /// It took longer than its `job_timeout`
    TimedOut,
    /// Somebody had it killed
    Stopped,
    /// Somebody cancelled it, or too many others had failed
    Cancelled,
    /// Its deadline passed before it could start
    Expired,
    /// Somebody declared it failed
    FailedByHand,
    /// It was not sent yet
    Waiting,
}

pub(super) fn glob() -> String {
    "glob".into()
}

impl RunRequest {
    /// The domain's request, if this is one.
    pub(crate) fn read(self) -> Result<app::RunRequest, Error> {
        let target = Target::read(&self.tgt_type, &self.target, self.delimiter.as_deref())
            .map_err(|error| Error::Invalid(error.to_string()))?;
        Ok(app::RunRequest {
            target,
            funs: match self.fun {
                Functions::One(fun) => vec![fun],
                Functions::Many(funs) => funs,
            },
            args: self.arg,
            kwargs: map("kwarg", self.kwarg)?.unwrap_or_default(),
            policy: Policy { ack: self.ack.or(self.policy.ack), ..self.policy },
            due: self.due.map(|due| due.0),
            deadline: seconds("deadline", self.deadline)?,
            metadata: map("metadata", self.metadata)?,
            ret: self.ret,
            in_window: self.in_window,
        })
    }
}

/// The longest time that can be asked for: a century.
const LONGEST: Duration = Duration::from_secs(3_155_760_000);

/// A length of time, if it is one.
pub(super) fn seconds(name: &str, seconds: Option<f64>) -> Result<Option<Duration>, Error> {
    let read = |seconds: f64| {
        let time = Duration::try_from_secs_f64(seconds).ok();
        time.filter(|time| !time.is_zero() && *time <= LONGEST)
            .ok_or_else(|| Error::Invalid(format!("{name} is a number of seconds above 0, at most a century")))
    };
    seconds.map(read).transpose()
}

pub(super) fn map(name: &str, value: Value) -> Result<Option<Map>, Error> {
    match value {
        Value::Nil => Ok(None),
        Value::Map(map) => Ok(Some(map)),
        _ => Err(Error::Invalid(format!("{name} must be an object"))),
    }
}

pub(super) fn texts(ids: &[MinionId]) -> Vec<String> {
    ids.iter().map(MinionId::to_string).collect()
}

impl From<app::Accepted> for Accepted {
    fn from(accepted: app::Accepted) -> Self {
        Self {
            jid: accepted.jid.map(|jid| jid.to_string()),
            action: accepted.action.0,
            minions: texts(&accepted.minions),
            missing: accepted.missing,
        }
    }
}

impl From<app::JobSummary> for Job {
    fn from(job: app::JobSummary) -> Self {
        Self {
            jid: job.jid.to_string(),
            action: job.action.0,
            created: job.created.into(),
            fun: job.fun,
            arg: job.arg,
            target: job.target,
            tgt_type: job.target_type,
            user: job.user,
            minion_count: job.minions.len(),
            internal: job.internal,
        }
    }
}

impl From<app::JobDetail> for JobDetail {
    fn from(app::JobDetail { job, runs, returns }: app::JobDetail) -> Self {
        let runs = runs.into_iter().map(|run| {
            let Run { minion, status } = run.into();
            (minion, status)
        });
        Self {
            minions: texts(&job.minions),
            missing: job.missing.clone(),
            runs: runs.collect(),
            returns: returns.into_iter().map(|entry| (entry.minion.to_string(), entry.into())).collect(),
            job: job.into(),
        }
    }
}

impl From<app::ReturnEntry> for Return {
    fn from(entry: app::ReturnEntry) -> Self {
        Self {
            out: entry.load.get("out").and_then(Value::as_str).map(str::to_owned),
            value: entry.value,
            retcode: entry.retcode,
            success: entry.success,
            at: entry.at.into(),
        }
    }
}

impl From<app::Progress> for JobStep {
    fn from(progress: app::Progress) -> Self {
        match progress {
            app::Progress::Acked(minion) => Self::Ack { minion: minion.to_string() },
            app::Progress::Returned(entry) => {
                Self::Return { minion: entry.minion.to_string(), returned: (*entry).into() }
            }
            app::Progress::Done(unanswered) => {
                Self::Done { unanswered: unanswered.into_iter().map(Unanswered::from).collect() }
            }
        }
    }
}

impl From<app::Unanswered> for Unanswered {
    fn from(entry: app::Unanswered) -> Self {
        let why = match entry.why {
            app::Why::Offline(since) => Why::Offline(since.into()),
            app::Why::NotSeen(last) => Why::NotSeen(last.into()),
            app::Why::NotAcknowledged => Why::NotAcknowledged,
            app::Why::Running(since) => Why::Running(since.into()),
            app::Why::Gone => Why::Gone,
            app::Why::Silent => Why::Silent,
            app::Why::NotDelivered => Why::NotDelivered,
            app::Why::TimedOut => Why::TimedOut,
            app::Why::Stopped => Why::Stopped,
            app::Why::Cancelled => Why::Cancelled,
            app::Why::Expired => Why::Expired,
            app::Why::FailedByHand => Why::FailedByHand,
            app::Why::Waiting => Why::Waiting,
        };
        Self { minion: entry.minion.to_string(), why }
    }
}

/// Reads a job id from a path or a query.
pub(crate) fn read_jid(text: &str) -> Result<Jid, Error> {
    Jid::parse(text).ok_or_else(|| Error::Invalid(format!("{text:?} is not a job id: it has 20 digits")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_core::time::Timestamp;

    #[test]
    fn a_request_needs_no_more_than_target_and_function() {
        let request: RunRequest = serde_json::from_str(r#"{"target": "web*", "fun": "test.ping"}"#).unwrap();
        assert_eq!(request.tgt_type, "glob");
        let read = request.read().unwrap();
        assert_eq!(read.target.to_string(), "glob web*");
        assert_eq!(read.funs, ["test.ping"]);
        assert!(read.args.is_empty() && read.kwargs.is_empty());
        assert_eq!((read.policy, read.due, read.deadline), (Policy::default(), None, None));
    }

    #[test]
    fn acknowledgement_is_part_of_the_policy() {
        let json = r#"{"target": "*", "fun": "test.ping", "ack": false, "policy": {"ack": true, "offline": "hold"}}"#;
        let read = serde_json::from_str::<RunRequest>(json).unwrap().read().unwrap();
        assert_eq!(read.policy.ack, Some(false));
        assert_eq!(read.policy.offline, saltern_core::action::Offline::Hold);
    }

    #[test]
    fn a_misspelt_field_is_refused() {
        let error =
            serde_json::from_str::<RunRequest>(r#"{"target": "*", "fun": "test.ping", "args": []}"#).unwrap_err();
        assert!(error.to_string().contains("unknown field `args`"), "{error}");
    }

    #[test]
    fn steps_read_back() {
        let at = Time(Timestamp::from_secs(1_794_772_591));
        let returned = Return { value: true.into(), retcode: 0, success: true, at, out: None };
        let unanswered = vec![
            Unanswered { minion: "a".into(), why: Why::Offline(at) },
            Unanswered { minion: "b".into(), why: Why::Silent },
        ];
        for step in [
            JobStep::Ack { minion: "web1".into() },
            JobStep::Return { minion: "web1".into(), returned },
            JobStep::Done { unanswered },
        ] {
            let json = serde_json::to_string(&step).unwrap();
            assert_eq!(serde_json::from_str::<JobStep>(&json).unwrap(), step, "{json}");
        }
    }

    #[test]
    fn the_lines_of_the_stream_are_what_programs_were_promised() {
        let done = JobStep::Done { unanswered: vec![Unanswered { minion: "a".into(), why: Why::NotAcknowledged }] };
        assert_eq!(
            serde_json::to_string(&done).unwrap(),
            r#"{"event":"done","unanswered":[{"minion":"a","why":"not_acknowledged"}]}"#
        );
    }
}
