//! What minions send back: checked against the job, cut if too large, stored, and only then answered.

use super::{Master, Member, acks};
use crate::{Error, body, clock};
use saltern_core::event;
use saltern_core::ids::Jid;
use saltern_core::run::judge;
use saltern_core::time::Timestamp;
use saltern_core::value::{Map, Value};
use saltern_store::{NewAction, NewJob, NewReturn};
use saltern_wire::load::{Fun, Return, ReturnJid};
use std::sync::Arc;

impl Master {
    /// Takes a return. A repeated one is absorbed; the minion gets its answer after the commit.
    pub(super) async fn take_return(self: &Arc<Self>, member: &Arc<Member>, load: Map) -> Result<Value, Error> {
        let now = clock::now();
        let returned = match Return::parse(load) {
            Ok(returned) => returned,
            Err(error) => {
                tracing::warn!(minion = %member.id, %error, "a return with a wrong shape was refused");
                return Ok(Value::Nil);
            }
        };
        let (jid, known) = match returned.jid {
            ReturnJid::Job(jid) => match self.known_job(jid).await? {
                Some(known) if known.is_for(&member.id) => (jid, Some(known)),
                _ => {
                    tracing::warn!(minion = %member.id, %jid, "a return for a job that was not for it was refused");
                    return Ok(Value::Nil);
                }
            },
            ReturnJid::Req => (self.next_jid(now), None),
            ReturnJid::Nocache => return self.log_only(member, returned, now).await,
        };
        let fun = name(&returned.fun);
        let verdict = judge(returned.retcode().unwrap_or(&Value::Nil), returned.success().unwrap_or(&Value::Nil));
        let standalone = known.is_none().then(|| Box::new(standalone(member, &returned, jid, &fun, now)));
        let is_synced =
            verdict.success && known.as_ref().is_some_and(|known| known.internal && known.fun == acks::SYNC);
        let lost_executor = acks::says_executor_is_missing(&returned);
        let load = self.kept_load(returned, jid, now);
        let new = NewReturn {
            jid,
            action: known.as_ref().map(|known| known.action),
            standalone,
            minion: member.id.clone(),
            at: now,
            fun,
            verdict,
            body: Arc::new(body::pack(&Value::Map(load))),
            tag: event::tag::job_ret(jid, &member.id),
            events: Vec::new(),
        };
        self.store.record_return(new).await?;
        if is_synced {
            self.ack_prepared(member);
        }
        if lost_executor {
            self.ack_executor_lost(member);
        }
        Ok(Value::Nil)
    }

    /// The load as it is kept and as its event shows it.
    fn kept_load(&self, returned: Return, jid: Jid, now: Timestamp) -> Map {
        let mut load = returned.into_load();
        load.insert("jid", jid);
        load.insert("_stamp", now.stamp());
        self.cut(&mut load, jid.as_str());
        load
    }

    /// Cuts what is too large, in any field: a minion decides what it sends.
    fn cut(&self, load: &mut Map, jid: &str) {
        let limit = self.config.max_return_size;
        for (field, value) in load.iter_mut() {
            if body::cut(value, limit) {
                tracing::warn!(jid, field = field.as_str().unwrap_or_default(), limit, "a return was cut");
            }
        }
    }

    /// `nocache`: an event and nothing else.
    async fn log_only(&self, member: &Arc<Member>, returned: Return, now: Timestamp) -> Result<Value, Error> {
        let mut load = returned.into_load();
        self.cut(&mut load, "nocache");
        let load = Value::Map(load);
        let tag = format!("salt/job/nocache/ret/{}", member.id);
        self.store.log_events(vec![super::entry(now, tag, load, Some(&member.id), None)]).await?;
        Ok(Value::Nil)
    }
}

/// The job of something a minion did on its own: a schedule, `salt-call`, start-up states.
fn standalone(member: &Arc<Member>, returned: &Return, jid: Jid, fun: &str, now: Timestamp) -> NewJob {
    let json = |value: &Value| serde_json::to_string(value).unwrap_or_default();
    let action = NewAction {
        kind: "standalone".into(),
        fun: fun.into(),
        arg: json(&Value::List(returned.fun_args().to_vec())),
        target: json(&Value::from(&member.id)),
        target_type: "glob".into(),
        initiator: returned.user().unwrap_or("minion").into(),
        created: now,
        due: now,
        deadline: now,
        internal: false,
    };
    NewJob {
        jid,
        action,
        minions: vec![member.id.clone()],
        missing: Vec::new(),
        load: Vec::new(),
        events: Vec::new(),
        audit: None,
    }
}

pub(super) fn name(fun: &Fun) -> String {
    fun.names().join(",")
}
