//! Takes what was admitted into the tables, and starts what may start at once.
//!
//! Action, job, runs, events and audit are one transaction. Places are taken before it and given back if it fails; nothing
//! is published before it. What cannot start now waits for the dispatcher.

use super::admission::Admitted;
use super::deliver::{self, Delivery};
use super::pace::{Progress, Room, room};
use super::window::Opening;
use super::work::{arguments, json};
use super::{Request, Work, tell};
use crate::Error;
use crate::master::{Known, Master, Member};
use saltern_core::action::types::Call;
use saltern_core::ids::{ActionId, Jid, MinionId};
use saltern_core::run::{RunState, WaitingFor};
use saltern_core::time::Timestamp;
use saltern_core::value::Value;
use saltern_store::{AuditEntry, NewAction, NewEvent, NewJob, NewRun, NewWork, Paused};
use std::collections::BTreeSet;
use std::sync::Arc;

/// An action that was accepted: it is in the database.
#[derive(Clone, Debug)]
pub(crate) struct Accepted {
    pub(crate) action: ActionId,
    /// The job of its first attempts; nothing as long as it is not due
    pub(crate) jid: Option<Jid>,
    pub(crate) minions: Vec<MinionId>,
    pub(crate) missing: Vec<String>,
}

impl Master {
    /// Accepts what somebody wants done: decides, stores, and publishes what may start now.
    pub(crate) async fn submit(self: &Arc<Self>, request: Request) -> Result<Accepted, Error> {
        self.submit_noting(request, |_| ()).await
    }

    /// Whom it would be for, and everything that would refuse it; nothing is stored.
    pub(crate) async fn preview(self: &Arc<Self>, request: Request) -> Result<Vec<MinionId>, Error> {
        let admitted = self.admit_action(request).await?;
        Ok(admitted.members.iter().map(|member| member.id.clone()).collect())
    }

    /// The same, with a word in between: `note` is called when it is stored, before anybody can have answered.
    pub(super) async fn submit_noting(
        self: &Arc<Self>,
        request: Request,
        note: impl FnOnce(ActionId),
    ) -> Result<Accepted, Error> {
        let admitted = self.admit_action(request).await?;
        self.begin(admitted, note).await
    }

    async fn begin(self: &Arc<Self>, admitted: Admitted, note: impl FnOnce(ActionId)) -> Result<Accepted, Error> {
        let Admitted { request, call, members, missing, decision, due, deadline, moved, now, .. } = admitted;
        self.audit_override(&request, members.len()).await?;
        let internal = request.is_house();
        let interactive = request.policy.interactive;
        let is_due = due <= now && !request.paused;
        let minions: Vec<MinionId> = members.iter().map(|member| member.id.clone()).collect();
        let due_of = |minion: &MinionId| request.dues.get(minion).copied().unwrap_or(due);
        let overridden = request.policy.override_window.is_some();

        // Who may start at once. Places are taken before the commit and given back if it fails.
        let ready = |member: &&Arc<Member>| {
            is_due
                && due_of(&member.id) <= now
                // The house asks those who are away, too: that is how it hears of them again.
                && (internal || self.is_there(member))
                && !self.engine.is_elsewhere(&member.id)
                && (internal || !self.is_on_its_way(member, now))
                // A reboot is proven by another boot id, so the present one has to be known.
                && !(request.ends_by_boot() && member.facts().current_boot().is_none())
                && self.windows.opening_by(&member.id, request.is_restricted(), overridden, now) == Opening::Open
        };
        let candidates: Vec<&Arc<Member>> = members.iter().filter(ready).collect();
        let progress = Progress {
            total: minions.len(),
            queued: minions.len(),
            in_progress: 0,
            failed: 0,
            unreachable: 0,
            cooling: (0, None),
            last_ended: None,
        };
        let mine = match room(&request.policy, &progress, now) {
            Room::For(places) => places.min(candidates.len()),
            Room::None(..) | Room::OverBudget(_) => 0,
        };
        let granted = if internal { mine } else { self.engine.tracker().reserve(interactive, mine, now) };
        let held_by = match (is_due, mine < candidates.len(), granted < mine) {
            (false, ..) => WaitingFor::Due,
            (_, true, _) if request.policy.waves.is_empty() => WaitingFor::Slot,
            (_, true, _) => WaitingFor::Wave,
            (_, _, true) if self.engine.tracker().free(interactive) > 0 => WaitingFor::Rate,
            _ => WaitingFor::Slot,
        };
        let starting: BTreeSet<&MinionId> = candidates.iter().take(granted).map(|member| &member.id).collect();
        let runs = minions.iter().map(|minion| {
            let starts = starting.contains(minion);
            let held_by = match due_of(minion) > now {
                true if moved.contains(minion) => WaitingFor::Window,
                true => WaitingFor::Due,
                false => held_by,
            };
            NewRun {
                minion: minion.clone(),
                state: if starts { RunState::Sent } else { RunState::Queued },
                waiting_for: (!starts).then_some(held_by),
                due: (!starts).then_some(due_of(minion)),
            }
        });
        let runs: Vec<NewRun> = runs.collect();
        let fun = call.funs.join(",");
        let arg = arguments(call.clone());
        let new = NewAction {
            kind: request.kind.name().into(),
            name: request.name.clone().unwrap_or_else(|| request.kind.describe(&request.params)),
            params: json(&Value::Map(request.params.clone())),
            fun: fun.clone(),
            arg: json(&Value::List(arg)),
            target: json(&request.target.expression.to_value()),
            target_type: request.target.kind.as_str().into(),
            initiator: request.who.clone(),
            origin: request.origin.clone(),
            org: request.rights.org.clone(),
            created: now,
            due,
            deadline,
            policy: request.policy.clone(),
            decision: serde_json::to_string(&decision).unwrap_or_default(),
            metadata: request.metadata.clone().map(|metadata| json(&Value::Map(metadata))),
            ret: request.ret.clone(),
            internal: !request.is_listed(),
            late: request.fire().is_some_and(|fire| fire.slot.late),
            launch: request.launch,
            step: None,
            recurring: request.recurs.as_ref().map(|recurs| recurs.id),
        };
        let stored = self.store_new(&request, &call, &new, &minions, &missing, &runs, is_due, now).await;
        let (action, jid) = match stored {
            Ok(stored) => stored,
            Err(error) => {
                if !internal {
                    self.engine.tracker().unreserve(interactive, granted);
                }
                return Err(error);
            }
        };
        note(action);
        let work = Work::new(action, &new, &request, call, minions.len(), jid);
        if request.paused {
            let pause = Paused { at: now, by: request.who.clone(), why: "begun paused".into() };
            self.store.pause(action, pause, None).await?;
        }
        if let Some(jid) = jid {
            // Known before it is published: a quick minion answers before this function returns.
            self.remember_job(jid, Arc::new(Known::new(work.clone(), minions.clone())));
        }
        let sent: Vec<Arc<Member>> = candidates.into_iter().take(granted).cloned().collect();
        self.engine.metrics.note_queued(runs.len() - sent.len());
        self.engine.metrics.note_started(sent.len(), false);
        if !internal {
            self.track(&work, &sent, jid, now, 1);
        }
        if sent.len() < minions.len() {
            self.engine.await_turn(&work, due);
        }
        if let (Some(jid), true) = (jid, work.policy.batch.is_some()) {
            let event = self.batch_start(&work, jid, now).await?;
            self.store.log_events(vec![event]).await?;
        }
        if let (Some(jid), false) = (jid, sent.is_empty()) {
            if work.ends_by_boot() {
                self.keep_boot_ids(action, &sent).await?;
            }
            let names: BTreeSet<&MinionId> = sent.iter().map(|member| &member.id).collect();
            let others: Vec<MinionId> = minions.iter().filter(|minion| !names.contains(minion)).cloned().collect();
            let others = Some(others.as_slice());
            self.deliver(&Delivery { work: &work, jid, attempt: 1, members: &sent, others }).await?;
        }
        Ok(Accepted { action, jid, minions, missing })
    }

    /// Stores a new action with its runs; takes another job id where somebody else has it.
    #[expect(clippy::too_many_arguments, reason = "the parts of one row, used once")]
    async fn store_new(
        &self,
        request: &Request,
        call: &Call,
        new: &NewAction,
        minions: &[MinionId],
        missing: &[String],
        runs: &[NewRun],
        is_due: bool,
        now: Timestamp,
    ) -> Result<(ActionId, Option<Jid>), Error> {
        loop {
            let jid = is_due.then(|| self.next_jid(now));
            let work = NewWork {
                action: new.clone(),
                job: jid.map(|jid| NewJob { jid, minions: minions.to_vec(), missing: missing.to_vec() }),
                runs: runs.to_vec(),
                events: announcement(request, call, new, jid, minions, missing),
                audit: (!new.internal).then(|| AuditEntry {
                    at: now,
                    who: request.who.clone(),
                    origin: request.origin.clone(),
                    what: "action.create".into(),
                    subject: jid.map_or_else(|| new.name.clone(), |jid| jid.to_string()),
                    detail: serde_json::json!({ "fun": new.fun, "minions": minions.len() }).to_string(),
                }),
                fire: request.fire().map(|fire| fire.slot.clone()),
            };
            match self.store.create(work).await {
                Ok(action) => return Ok((action, jid)),
                Err(saltern_store::Error::JidTaken) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// The events that tell of a new action.
fn announcement(
    request: &Request,
    call: &Call,
    new: &NewAction,
    jid: Option<Jid>,
    minions: &[MinionId],
    missing: &[String],
) -> Box<dyn Fn(ActionId) -> Vec<NewEvent> + Send> {
    let told = jid.map(|jid| {
        // Who is told of a job needs no action's id, so this is made once and outside of the transaction.
        let work = Work::new(ActionId(0), new, request, call.clone(), minions.len(), Some(jid));
        deliver::announce(&work, jid, minions, missing, new.created)
    });
    let (new, minions, fire) = (new.clone(), minions.len(), request.fire().cloned());
    Box::new(move |id| {
        let mut events: Vec<NewEvent> = told.iter().cloned().collect();
        if !new.internal {
            let body = Value::map([
                ("action", Value::from(id.0)),
                ("kind", new.kind.as_str().into()),
                ("name", new.name.as_str().into()),
                ("user", new.initiator.as_str().into()),
                ("due", new.due.rfc3339().into()),
                ("deadline", new.deadline.rfc3339().into()),
                ("jid", jid.map_or(Value::Nil, Value::from)),
                ("minions", i64::try_from(minions).unwrap_or(0).into()),
            ]);
            events.push(tell::action(id, "new", body, new.created));
        }
        events.extend(fire.iter().map(|fire| fire.fired(("action", id.0), minions, new.created)));
        events
    })
}
