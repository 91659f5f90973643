//! What minions send back: checked against the job, cut if too large, stored, and only then answered.

use super::{Known, Master, Member, acks};
use crate::{Error, body, clock};
use saltern_core::action::Policy;
use saltern_core::event;
use saltern_core::ids::Jid;
use saltern_core::run::judge;
use saltern_core::time::Timestamp;
use saltern_core::value::{Map, Value};
use saltern_store::{Body, DeadLetter, NewAction, NewReturn};
use saltern_wire::load::{Fun, Return, ReturnJid};
use std::sync::Arc;

/// Exit codes of what was killed, told by Python and by a shell.
const KILLED: [i64; 2] = [-9, 137];
/// Functions that end other jobs on a minion.
const KILLERS: [&str; 5] = [
    "saltutil.term_job",
    "saltutil.kill_job",
    "saltutil.signal_job",
    "saltutil.term_all_jobs",
    "saltutil.kill_all_jobs",
];

impl Master {
    /// Takes a return. A repeated one is absorbed; the minion gets its answer after the commit.
    pub(crate) async fn take_return(self: &Arc<Self>, member: &Arc<Member>, load: Map) -> Result<Value, Error> {
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
        let standalone = known.is_none().then(|| Box::new(standalone(member, &returned, &fun, now)));
        let lost_executor = acks::says_executor_is_missing(&returned);
        let load = Value::Map(returned.into_load());
        let verdict = match &known {
            Some(known) => known.work.kind.judge(&known.work.params, &load),
            None => judge(load.get("retcode").unwrap_or(&Value::Nil), load.get("success").unwrap_or(&Value::Nil)),
        };
        // Of a reboot another boot id tells the end: a good return is its beginning, and so is that of an agent that died of it.
        let waits_for_boot = known.as_ref().is_some_and(|known| known.work.ends_by_boot())
            && (verdict.success || was_interrupted(&load));
        // The minion tells that it was killed before it tells that it has killed it.
        let stopped = known.as_ref().is_some_and(|known| self.engine.was_stopped(known.work.id, &member.id, jid))
            && KILLED.contains(&verdict.retcode);
        let is_answer = |known: &&Arc<Known>| known.work.internal || known.work.launch.is_some();
        let answers = known.as_ref().filter(is_answer).map(|known| (known.clone(), load.clone()));
        let new = NewReturn {
            jid,
            action: known.as_ref().map(|known| known.work.id),
            standalone,
            minion: member.id.clone(),
            at: now,
            fun,
            verdict,
            settles: !waits_for_boot,
            stopped,
            body: Arc::new(body::pack(&self.kept_load(load, jid, now))),
            tag: event::tag::job_ret(jid, &member.id),
            events: Vec::new(),
        };
        let answers_none = answers.is_none();
        let body = new.body.clone();
        let recorded = match self.store.record_return(new).await {
            // This return and nothing else is at fault: it is set aside, or the minion would send it for ever.
            Err(error @ saltern_store::Error::Database(_)) => {
                return self.set_aside(member, jid, &body, now, &error).await;
            }
            recorded => recorded?,
        };
        if let (Some(known), Some(outcome)) = (&known, &recorded.outcome) {
            // A job that is killed so does not answer any more.
            if !known.work.internal && known.work.fun.names().iter().any(|fun| KILLERS.contains(&&**fun)) {
                self.engine.doubt(&member.id);
            }
            self.engine.note_return(known.work.id, &member.id, now);
            self.consequences(known.work.id, &member.id, outcome, now);
        }
        if let Some((known, load)) = answers {
            if verdict.success && known.work.fun.names() == [acks::SYNC] {
                self.ack_prepared(member);
            }
            if known.work.launch.is_some() {
                if recorded.news {
                    self.chain_returned(member, &known.work, &load).await?;
                }
            } else {
                self.answered(known.work.id, member, &load).await?;
            }
        }
        if lost_executor {
            self.ack_executor_lost(member);
        } else if answers_none {
            self.offer_acks_again(member);
        }
        Ok(Value::Nil)
    }

    /// Keeps a return that cannot be processed where somebody finds it, and says so.
    async fn set_aside(
        &self,
        member: &Arc<Member>,
        jid: Jid,
        body: &Body,
        at: Timestamp,
        error: &saltern_store::Error,
    ) -> Result<Value, Error> {
        tracing::error!(minion = %member.id, %jid, %error, "a return could not be processed and was set aside");
        self.engine.metrics.note_dead_letter();
        let letter = DeadLetter {
            at,
            minion: Some(member.id.clone()),
            what: format!("return of job {jid}"),
            error: error.to_string(),
            body: body.clone(),
        };
        self.store.dead_letter(letter).await?;
        let body =
            Value::map([("minion", Value::from(&member.id)), ("jid", jid.into()), ("error", error.to_string().into())]);
        let notice = super::entry(at, "saltern/notification/dead_letter".into(), body, Some(&member.id), Some(jid));
        self.store.log_events(vec![notice]).await?;
        Ok(Value::Nil)
    }

    /// The load as it is kept and as its event shows it.
    pub(crate) fn kept_load(&self, load: Value, jid: Jid, now: Timestamp) -> Value {
        let Value::Map(mut load) = load else { return load };
        load.insert("jid", jid);
        load.insert("_stamp", now.stamp());
        self.cut(&mut load, jid.as_str());
        Value::Map(load)
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
fn standalone(member: &Arc<Member>, returned: &Return, fun: &str, now: Timestamp) -> NewAction {
    let json = |value: &Value| serde_json::to_string(value).unwrap_or_default();
    NewAction {
        kind: "standalone".into(),
        name: fun.into(),
        params: "{}".into(),
        fun: fun.into(),
        arg: json(&Value::List(returned.fun_args().to_vec())),
        target: json(&Value::from(&member.id)),
        target_type: "glob".into(),
        initiator: returned.user().unwrap_or("minion").into(),
        origin: "minion".into(),
        org: String::new(),
        created: now,
        due: now,
        deadline: now,
        policy: Policy::default(),
        decision: "{}".into(),
        metadata: None,
        ret: String::new(),
        internal: false,
        late: false,
        launch: None,
        step: None,
        recurring: None,
    }
}

/// Whether our own minion says that its agent stopped while the job was running.
fn was_interrupted(load: &Value) -> bool {
    load.get("return").and_then(Value::as_str).is_some_and(|text| text.starts_with("ERROR: interrupted"))
}

pub(super) fn name(fun: &Fun) -> String {
    fun.names().join(",")
}
