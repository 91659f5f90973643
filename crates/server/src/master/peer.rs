//! Peer publishing: a minion that runs functions on others. Off unless `peer` is configured.
//!
//! Such a job is a job like any other: stored, logged, with the minion as its user.

use super::{Master, Member, targets};
use crate::engine::{Door, Request, function};
use crate::{Error, body};
use regex::Regex;
use saltern_core::access::Rights;
use saltern_core::action::Policy;
use saltern_core::ids::Jid;
use saltern_core::value::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// Longest time `minion_publish` keeps a minion waiting.
const LONGEST_WAIT: Duration = Duration::from_secs(50);

impl Master {
    /// `minion_pub`: publishes and tells the job id.
    pub(super) async fn peer_publish(self: &Arc<Self>, member: &Arc<Member>, load: &Map) -> Result<Value, Error> {
        let Some(submission) = self.peer_submission(member, load) else { return Ok(Value::Map(Map::new())) };
        match self.submit(submission).await {
            Ok(accepted) => {
                let jid = accepted.jid.map_or(Value::Nil, Value::from);
                Ok(Value::map([("jid", jid), ("minions", Value::list(&accepted.minions))]))
            }
            Err(error @ (Error::NotFound(_) | Error::Invalid(_) | Error::Conflict(_))) => {
                tracing::info!(minion = %member.id, %error, "a peer publish was refused");
                Ok(Value::Map(Map::new()))
            }
            Err(error) => Err(error),
        }
    }

    /// `minion_publish`: publishes and waits for the returns.
    pub(super) async fn peer_publish_and_wait(
        self: &Arc<Self>,
        member: &Arc<Member>,
        load: &Map,
    ) -> Result<Value, Error> {
        let Some(submission) = self.peer_submission(member, load) else { return Ok(Value::Map(Map::new())) };
        let seconds = load.get("tmo").and_then(Value::as_i64).and_then(|tmo| u64::try_from(tmo).ok()).unwrap_or(5);
        let mut feed = self.store.feed();
        let Ok(accepted) = self.submit(submission).await else { return Ok(Value::Map(Map::new())) };
        let Some(jid) = accepted.jid else { return Ok(Value::Map(Map::new())) };
        let deadline = tokio::time::Instant::now() + Duration::from_secs(seconds).min(LONGEST_WAIT);
        loop {
            let returns = self.store.returns(jid, "", accepted.minions.len()).await?;
            let complete = returns.len() >= accepted.minions.len();
            if complete || tokio::time::timeout_at(deadline, feed.recv()).await.is_err() {
                return self.collect(jid, |_, value| value).await;
            }
        }
    }

    /// `pub_ret`: the returns so far, for the minion that published only.
    pub(super) async fn peer_returns(self: &Arc<Self>, member: &Arc<Member>, load: &Map) -> Result<Value, Error> {
        let jid = load.get("jid").and_then(Value::as_str).and_then(Jid::parse);
        let Some(jid) = jid else { return Ok(Value::Map(Map::new())) };
        let job = self.store.job(jid).await?;
        if job.is_none_or(|job| job.initiator != peer_user(member)) {
            return Ok(Value::Map(Map::new()));
        }
        self.collect(jid, |out, value| {
            let mut entry = Map::new();
            entry.push("ret", value);
            if let Some(out) = out {
                entry.push("out", out);
            }
            Value::Map(entry)
        })
        .await
    }

    async fn collect(&self, jid: Jid, shape: impl Fn(Option<Value>, Value) -> Value) -> Result<Value, Error> {
        let mut answer = Map::new();
        for returned in self.store.returns(jid, "", 100_000).await? {
            let load = body::unpack(&returned.body)?;
            let value = load.get("return").cloned().unwrap_or_default();
            answer.push(returned.minion.as_str(), shape(load.get("out").cloned(), value));
        }
        Ok(Value::Map(answer))
    }

    fn peer_submission(&self, member: &Arc<Member>, load: &Map) -> Option<Request> {
        let fun = load.get("fun").and_then(Value::as_str)?;
        if !self.peer_may(member, fun) {
            tracing::info!(minion = %member.id, fun, "a peer publish was refused: `peer` does not allow it");
            return None;
        }
        let arg = match load.get("arg") {
            Some(Value::List(items)) => items.clone(),
            None | Some(Value::Nil) => Vec::new(),
            Some(one) => vec![one.clone()],
        };
        let params = Value::map([("fun", Value::from(fun)), ("arg", Value::List(arg))]);
        Some(Request {
            door: Door::Peer,
            who: peer_user(member),
            origin: member.facts().address.clone().unwrap_or_default(),
            // `peer` has decided already.
            rights: Arc::new(Rights::administrator("a minion")),
            target: targets::asked_by_minion(load)?,
            kind: function(),
            params: params.as_map().cloned().unwrap_or_default(),
            name: None,
            policy: Policy { interactive: true, ..Policy::default() },
            due: None,
            deadline: None,
            metadata: None,
            ret: load.get("ret").and_then(Value::as_str).unwrap_or_default().to_owned(),
            paused: false,
            launch: None,
            recurs: None,
            in_window: false,
            dues: std::collections::BTreeMap::new(),
        })
    }

    /// Whether `peer` lets this minion publish this function. Patterns match whole names; a job that publishes again is
    /// never allowed, or two minions could keep each other busy for ever.
    fn peer_may(&self, member: &Arc<Member>, fun: &str) -> bool {
        let whole =
            |pattern: &str, text: &str| Regex::new(&format!("^(?:{pattern})$")).is_ok_and(|regex| regex.is_match(text));
        !fun.starts_with("publish.")
            && self.config.peer.iter().any(|(minions, funs)| {
                whole(minions, member.id.as_str()) && funs.iter().any(|pattern| whole(pattern, fun))
            })
    }
}

fn peer_user(member: &Member) -> String {
    format!("minion {}", member.id)
}
