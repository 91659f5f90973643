//! The other end of the API: what the command line speaks through.
//!
//! [`endpoint::Endpoint`] is the only part that knows how a server is reached; everything above it is HTTP.

mod actions;
mod endpoint;
mod error;
mod lines;

pub use actions::{ActionQuery, RunQuery};
pub use endpoint::Endpoint;
pub use error::ClientError;
pub use lines::Lines;

use crate::shape::{
    Accepted, Event, JobDetail, JobList, JobStep, KeyDecision, KeyList, KeyResult, MinionChange, MinionDetail,
    MinionList, RunRequest, Status,
};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::{Method, Request, Response, header};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Write;

/// The largest answer that is read as a whole.
const ANSWER_LIMIT: usize = 1 << 30;

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

    /// Asks for a job.
    pub async fn run(&self, request: &RunRequest) -> Result<Accepted, ClientError> {
        self.send(Method::POST, "/api/v1/run", request).await
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
        self.get("/api/v1/keys").await
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
        self.get(&query.onto("/api/v1/minions")).await
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

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        read(self.request(Method::GET, path, Bytes::new()).await?).await
    }

    async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let body = serde_json::to_vec(body).map_err(|error| ClientError::Protocol(error.to_string()))?;
        read(self.request(method, path, body.into()).await?).await
    }

    async fn follow<T: DeserializeOwned>(&self, path: &str) -> Result<Lines<T>, ClientError> {
        let answer = self.request(Method::GET, path, Bytes::new()).await?;
        Ok(Lines::new(succeeded(answer).await?.into_body()))
    }

    async fn request(&self, method: Method, path: &str, body: Bytes) -> Result<Response<Incoming>, ClientError> {
        let mut connection = self.endpoint.connect().await?;
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, self.endpoint.host())
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(|error| ClientError::Protocol(error.to_string()))?;
        connection.send_request(request).await.map_err(|error| ClientError::Lost(error.to_string()))
    }
}

async fn read<T: DeserializeOwned>(answer: Response<Incoming>) -> Result<T, ClientError> {
    let body = whole(succeeded(answer).await?).await?;
    serde_json::from_slice(&body).map_err(|error| ClientError::Protocol(error.to_string()))
}

/// The answer if it is a good one, else the error it carries.
async fn succeeded(answer: Response<Incoming>) -> Result<Response<Incoming>, ClientError> {
    if answer.status().is_success() {
        return Ok(answer);
    }
    let status = answer.status().as_u16();
    let body = whole(answer).await?;
    Err(ClientError::refused(status, &body))
}

async fn whole(answer: Response<Incoming>) -> Result<Bytes, ClientError> {
    let body = Limited::new(answer.into_body(), ANSWER_LIMIT).collect().await;
    Ok(body.map_err(|error| ClientError::Lost(error.to_string()))?.to_bytes())
}

/// A query that is put together.
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
