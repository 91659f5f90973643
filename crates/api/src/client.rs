//! The other end of the API: what the command line speaks through.
//!
//! [`endpoint::Endpoint`] is the only part that knows how a server is reached; everything above it is HTTP. One file per
//! noun beside it, as in `v1`.

mod actions;
mod audit;
mod chains;
mod endpoint;
mod error;
mod functions;
mod groups;
mod lines;
mod organisations;
mod recurring;
mod request;
mod states;
mod tls;
mod tokens;
mod url;
mod users;
mod webhooks;
mod windows;

pub use actions::{ActionQuery, RunQuery};
pub use audit::AuditQuery;
pub use chains::LaunchQuery;
pub use endpoint::Endpoint;
pub use error::ClientError;
pub use lines::Lines;
pub use url::{ServerUrl, UrlError};
pub use windows::FeedQuery;

use crate::shape::{
    Accepted, Event, JobDetail, JobList, JobStep, Key, KeyDecision, KeyList, KeyResult, Minion, MinionChange,
    MinionDetail, MinionList, RunRequest, Status,
};
use hyper::Method;
use std::fmt::Write;

/// What is to be done about keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyVerb {
    /// Let the minion in
    Accept,
    /// Keep it out
    Reject,
    /// Forget the key
    Delete,
}

/// Which jobs are wanted.
#[derive(Clone, Debug, Default)]
pub struct JobQuery {
    /// Only older than this one
    pub before: Option<String>,
    /// At most so many
    pub limit: Option<usize>,
    /// With the server's own housekeeping
    pub internal: bool,
    /// Only jobs that some minion has not finished
    pub active: bool,
}

/// Which minions are wanted.
#[derive(Clone, Debug)]
pub struct TargetQuery {
    /// The expression
    pub tgt: String,
    /// Its type
    pub tgt_type: String,
    /// What separates keys, if not `:`
    pub delimiter: Option<String>,
}

/// Which events are wanted.
#[derive(Clone, Debug, Default)]
pub struct EventQuery {
    /// Only those after this number; nothing means from now on
    pub since: Option<i64>,
    /// Only tags that match this shell pattern
    pub tag: Option<String>,
    /// Only of this job
    pub jid: Option<String>,
    /// End with what is stored now, instead of waiting for more
    pub stored_only: bool,
}

/// A server to speak to. Each call is a connection of its own.
#[derive(Clone, Debug)]
pub struct Client {
    endpoint: Endpoint,
}

impl Client {
    /// The server at this endpoint. Nothing is connected yet.
    pub fn new(endpoint: Endpoint) -> Self {
        Self { endpoint }
    }

    /// Where it is.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Asks for a job. It is done once, even if the connection breaks on the way.
    pub async fn run(&self, request: &RunRequest) -> Result<Accepted, ClientError> {
        self.create("/api/v1/run", request).await
    }

    /// Follows a job; `timeout` is how many seconds a silent minion is waited for.
    pub async fn watch(&self, jid: &str, timeout: Option<f64>) -> Result<Lines<JobStep>, ClientError> {
        let query = Query::new().add("timeout", timeout);
        self.follow(&query.onto(&format!("/api/v1/jobs/{}/watch", escape(jid)))).await
    }

    /// A page of jobs, newest first.
    pub async fn jobs(&self, query: &JobQuery) -> Result<JobList, ClientError> {
        let flag = |set: bool| set.then_some(true);
        let query = Query::new()
            .add("before", query.before.as_ref())
            .add("limit", query.limit)
            .add("internal", flag(query.internal))
            .add("active", flag(query.active));
        self.get(&query.onto("/api/v1/jobs")).await
    }

    /// One job.
    pub async fn job(&self, jid: &str) -> Result<JobDetail, ClientError> {
        self.get(&format!("/api/v1/jobs/{}", escape(jid))).await
    }

    /// Every key.
    pub async fn keys(&self) -> Result<KeyList, ClientError> {
        let query = Query::new().add("limit", Some(request::PAGE));
        let mut list: KeyList = self.get(&query.onto("/api/v1/keys")).await?;
        if let Some(after) = list.next.take() {
            list.keys.extend(self.pages_after::<KeyList>("/api/v1/keys", Query::new(), Some(after)).await?);
        }
        Ok(list)
    }

    /// The keys of one id, with their PEM.
    pub async fn key(&self, id: &str) -> Result<KeyList, ClientError> {
        self.get(&format!("/api/v1/keys/{}", escape(id))).await
    }

    /// Decides about keys.
    pub async fn decide_keys(&self, verb: KeyVerb, decision: &KeyDecision) -> Result<KeyResult, ClientError> {
        let path = match verb {
            KeyVerb::Accept => "/api/v1/keys/accept",
            KeyVerb::Reject => "/api/v1/keys/reject",
            KeyVerb::Delete => "/api/v1/keys/delete",
        };
        self.send(Method::POST, path, decision).await
    }

    /// The accepted minions, all or those of a target.
    pub async fn minions(&self, target: Option<&TargetQuery>) -> Result<MinionList, ClientError> {
        let query = Query::new()
            .add("tgt", target.map(|target| &target.tgt))
            .add("tgt_type", target.map(|target| &target.tgt_type))
            .add("delimiter", target.and_then(|target| target.delimiter.as_ref()));
        Ok(MinionList { minions: self.pages::<MinionList>("/api/v1/minions", query).await?, next: None })
    }

    /// One minion.
    pub async fn minion(&self, id: &str) -> Result<MinionDetail, ClientError> {
        self.get(&format!("/api/v1/minions/{}", escape(id))).await
    }

    /// Sets what can be set for one minion.
    pub async fn change_minion(&self, id: &str, change: &MinionChange) -> Result<MinionDetail, ClientError> {
        self.send(Method::PATCH, &format!("/api/v1/minions/{}", escape(id)), change).await
    }

    /// Events: those that are stored, then live.
    pub async fn events(&self, query: &EventQuery) -> Result<Lines<Event>, ClientError> {
        let query = Query::new()
            .add("since", query.since)
            .add("tag", query.tag.as_ref())
            .add("jid", query.jid.as_ref())
            .add("follow", query.stored_only.then_some(false));
        self.follow(&query.onto("/api/v1/events")).await
    }

    /// How the server is doing.
    pub async fn status(&self) -> Result<Status, ClientError> {
        self.get("/api/v1/status").await
    }
}

/// A page of a list that is told in the order of names.
trait Page {
    /// What it is a list of
    type Item;

    /// What is on it, and after which name the next one begins.
    fn split(self) -> (Vec<Self::Item>, Option<String>);
}

impl Page for MinionList {
    type Item = Minion;

    fn split(self) -> (Vec<Minion>, Option<String>) {
        (self.minions, self.next)
    }
}

impl Page for KeyList {
    type Item = Key;

    fn split(self) -> (Vec<Key>, Option<String>) {
        (self.keys, self.next)
    }
}

/// A query that is put together.
#[derive(Clone)]
struct Query(String);

impl Query {
    fn new() -> Self {
        Self(String::new())
    }

    fn add(mut self, name: &str, value: Option<impl ToString>) -> Self {
        if let Some(value) = value {
            let separator = if self.0.is_empty() { '?' } else { '&' };
            let _ = write!(self.0, "{separator}{name}={}", escape(&value.to_string()));
        }
        self
    }

    fn onto(&self, path: &str) -> String {
        format!("{path}{}", self.0)
    }
}

/// Text as it may stand in a path or a query.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_escaped() {
        let query = Query::new().add("tgt", Some("G@os:Arch* and é")).add("none", None::<u8>).add("n", Some(3));
        assert_eq!(query.onto("/x"), "/x?tgt=G%40os%3AArch%2A%20and%20%C3%A9&n=3");
    }
}
