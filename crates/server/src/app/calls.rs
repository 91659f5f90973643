//! Calls of the server's own functions (Salt's runners and wheel): they have a job id and events like jobs of minions,
//! and calls of runners are remembered as jobs are.

use super::jobs::LEAST;
use super::{App, Caller};
use crate::master::entry;
use crate::{Error, body, clock};
use saltern_core::access::Wish;
use saltern_core::event::MAX_TAG;
use saltern_core::ids::Jid;
use saltern_core::time::Timestamp;
use saltern_core::value::{Map, Value};
use saltern_store::RunnerCall;

/// A call under way.
#[derive(Clone, Debug)]
pub struct Called {
    /// Its job id
    pub jid: Jid,
    /// `runner.` or `wheel.` and the function
    pub fun: String,
    user: String,
    args: Value,
    /// Whether it is remembered after its end
    is_kept: bool,
}

/// A call of a runner that is remembered.
#[derive(Clone, Debug)]
pub struct CallSummary {
    /// Its job id
    pub jid: Jid,
    /// `runner.` and the function
    pub fun: String,
    /// Who asked
    pub user: String,
    /// When
    pub created: Timestamp,
    /// When it ended
    pub ended: Option<Timestamp>,
    /// Whether it went well
    pub success: Option<bool>,
    /// The data of its last event: `fun`, `fun_args`, `return` …
    pub data: Value,
}

/// Most data of an event that somebody sends.
const MOST_DATA: usize = 1 << 20;

/// Most calls in one answer.
const PAGE: usize = 1_000;

impl Called {
    /// What the tags of its events begin with: `salt/run/<jid>` or `salt/wheel/<jid>`.
    pub fn tag(&self) -> String {
        let kind = if self.is_kept { "run" } else { "wheel" };
        format!("salt/{kind}/{}", self.jid)
    }

    fn data(&self, now: Timestamp) -> Map {
        let mut data = Map::new();
        data.insert("fun", self.fun.as_str());
        data.insert("jid", self.jid);
        if !self.is_kept {
            data.insert("tag", self.tag());
        }
        data.insert("user", self.user.as_str());
        data.insert("fun_args", self.args.clone());
        data.insert("_stamp", now.stamp());
        data
    }
}

impl App {
    /// A call begins: `fun` is `runner.<name>` or `wheel.<name>`. `args` must have no secrets in it.
    pub async fn begin_call(&self, caller: &Caller, fun: &str, args: Value) -> Result<Called, Error> {
        let (jid, now) = {
            let now = clock::now();
            (self.master.next_jid(now), now)
        };
        let is_kept = fun.starts_with("runner.");
        let called = Called { jid, fun: fun.to_owned(), user: caller.who.clone(), args, is_kept };
        let data = Value::Map(called.data(now));
        let event = entry(now, format!("{}/new", called.tag()), data.clone(), None, None);
        if is_kept {
            let row = RunnerCall {
                jid,
                fun: called.fun.clone(),
                user: called.user.clone(),
                created: now,
                ended: None,
                success: None,
                body: body::pack(&data),
            };
            self.master.store.record_call(row, vec![event]).await?;
        } else {
            self.master.store.log_events(vec![event]).await?;
        }
        Ok(called)
    }

    /// A call has ended; `told` is what its event tells (the value without secrets). Returns the data of that event.
    pub async fn end_call(&self, called: &Called, told: Value, success: bool) -> Result<Value, Error> {
        let now = clock::now();
        let mut data = called.data(now);
        data.insert("return", told);
        data.insert("success", success);
        let data = Value::Map(data);
        let event = entry(now, format!("{}/ret", called.tag()), data.clone(), None, None);
        if called.is_kept {
            self.master.store.end_call(called.jid, now, success, body::pack(&data), vec![event]).await?;
        } else {
            self.master.store.log_events(vec![event]).await?;
        }
        Ok(data)
    }

    /// One remembered call, if he made it or looks after the server.
    pub async fn call(&self, caller: &Caller, jid: Jid) -> Result<Option<CallSummary>, Error> {
        let call = self.master.store.call(jid).await?.filter(|call| is_his(caller, &call.user));
        call.map(read).transpose()
    }

    /// Remembered calls, newest first.
    pub async fn calls(&self, caller: &Caller, before: Option<Jid>, limit: usize) -> Result<Vec<CallSummary>, Error> {
        let limit = limit.clamp(1, PAGE);
        let step = limit.max(LEAST);
        let (mut before, mut calls) = (before, Vec::new());
        loop {
            let rows = self.master.store.calls(before, step).await?;
            let last = rows.len() < step;
            before = rows.last().map(|call| call.jid);
            for call in rows.into_iter().filter(|call| is_his(caller, &call.user)) {
                calls.push(read(call)?);
            }
            if last || calls.len() >= limit {
                calls.truncate(limit);
                return Ok(calls);
            }
        }
    }

    /// Puts an event of his own into the log.
    pub async fn fire(&self, caller: &Caller, tag: &str, data: Value) -> Result<(), Error> {
        self.may(caller, &Wish::Fire)?;
        self.fire_checked(tag, data).await
    }

    /// Puts what a hook was sent into the log. Without a caller only where hooks need no log-in.
    pub async fn fire_hook(&self, caller: Option<&Caller>, path: &str, data: Value) -> Result<(), Error> {
        match caller {
            Some(caller) => self.may(caller, &Wish::Hook)?,
            None if self.master.config.http.hooks_need_login => {
                return Err(Error::Unauthenticated("hooks are for people who have logged in".into()));
            }
            None => {}
        }
        let tag = if path.is_empty() { "salt/netapi/hook".to_owned() } else { format!("salt/netapi/hook/{path}") };
        self.fire_checked(&tag, data).await
    }

    async fn fire_checked(&self, tag: &str, data: Value) -> Result<(), Error> {
        if tag.is_empty() || tag.len() > MAX_TAG {
            return Err(Error::Invalid(format!("a tag has 1 to {MAX_TAG} bytes")));
        }
        let mut data = data;
        if body::cut(&mut data, MOST_DATA) {
            return Err(Error::Invalid(format!("the data of an event has at most {MOST_DATA} bytes")));
        }
        // What programs take for the word of the server or of a minion is not for others to say.
        let reserved = [
            "salt/job/",
            "salt/run/",
            "salt/wheel/",
            "salt/auth",
            "salt/key",
            "salt/minion/",
            "salt/presence/",
            "saltern/",
            "salt/batch/",
        ];
        if reserved.iter().any(|prefix| tag.starts_with(prefix)) {
            return Err(Error::Invalid(format!("the tag {tag:?} is the server's own; use another beginning")));
        }
        Ok(self.master.store.log_events(vec![entry(clock::now(), tag.to_owned(), data, None, None)]).await?)
    }
}

fn is_his(caller: &Caller, user: &str) -> bool {
    caller.who == user || caller.rights.hears_server()
}

fn read(call: RunnerCall) -> Result<CallSummary, Error> {
    let data = body::unpack(&call.body)?;
    let RunnerCall { jid, fun, user, created, ended, success, .. } = call;
    Ok(CallSummary { jid, fun, user, created, ended, success, data })
}
