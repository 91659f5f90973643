//! What happens to a run, applied: read it, ask [`step`], write what follows if the run is still what was asked about.
//!
//! The writes of one commit may be applied side by side, so even a run that this transaction has locked may change between
//! the reading and the writing. Every write of a run names what it was; who comes too late reads and asks again.

use crate::db::{Effects, Locking, Operation, Param, Tx, locking, params};
use crate::events::NewEvent;
use crate::runs::{self, Attempt, Run, columns};
use crate::teller::RunChanged;
use crate::{Result, Store, actions};
use futures_util::future::{LocalBoxFuture, try_join_all};
use saltern_core::action::Policy;
use saltern_core::ids::{ActionId, Jid, MinionId};
use saltern_core::run::{Change, Input, Outcome, Reason, RunState, Standing, WaitingFor, step};
use saltern_core::time::Timestamp;
use std::collections::BTreeSet;

/// Something that happens to a run.
#[derive(Clone, Debug)]
pub struct Transition {
    /// Of which action
    pub action: ActionId,
    /// On which minion
    pub minion: MinionId,
    /// What happens
    pub input: Input,
    /// When
    pub at: Timestamp,
    /// What to say about it; kept with the run, or with the attempt that ends by it
    pub message: Option<String>,
    /// What to note about it, as JSON text, in place of what was noted before
    pub evidence: Option<String>,
}

/// A minion's word that it has begun a job.
#[derive(Clone, Debug)]
pub struct Ack {
    /// Which job
    pub jid: Jid,
    /// The action it carries out
    pub action: ActionId,
    /// Who says so
    pub minion: MinionId,
    /// When it said so
    pub at: Timestamp,
    /// Events to log, whether or not it is news
    pub events: Vec<NewEvent>,
}

/// What happens, as far as it is the same for all runs of an action that it happens to.
#[derive(Clone, Copy)]
pub(crate) struct Cause<'a> {
    pub(crate) action: ActionId,
    pub(crate) input: Input,
    pub(crate) at: Timestamp,
    pub(crate) retcode: Option<i64>,
    pub(crate) message: Option<&'a str>,
    pub(crate) evidence: Option<&'a str>,
}

/// What changes about a run, as the parameters of statements.
pub(crate) struct Written {
    update: Vec<Param>,
    history: Option<Vec<Param>>,
}

/// Whether the event of a change comes from the teller, or the write has one of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    ByTeller { internal: bool },
    ByItself,
}

const WITH_RULES: Locking = locking!(
    concat!(
        "SELECT ",
        columns!(),
        ", a.policy, a.internal FROM runs r JOIN actions a ON a.id = r.action \
         WHERE r.action = ?1 AND r.minion = ?2 AND a.deleting = 0"
    ),
    " OF r"
);
const UPDATE: &str = "UPDATE runs SET state = ?7, reason = ?8, waiting_for = ?9, due = ?10, attempt = ?11, deliveries = ?12, \
    jid = ?13, sent = ?14, picked_up = ?15, ended = ?16, retcode = ?17, message = ?18, evidence = ?19 \
    WHERE action = ?1 AND minion = ?2 AND state = ?3 AND attempt = ?4 AND deliveries = ?5 AND coalesce(jid, '') = ?6";
// An attempt may end twice: given up, and then heard of after all. What is known of it is put together.
const CLOSE: &str = "INSERT INTO attempts (action, minion, number, jid, sent, picked_up, ended, reason, retcode, message) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (action, minion, number) DO UPDATE SET \
    jid = coalesce(excluded.jid, attempts.jid), sent = coalesce(excluded.sent, attempts.sent), \
    picked_up = coalesce(excluded.picked_up, attempts.picked_up), ended = excluded.ended, reason = excluded.reason, \
    retcode = excluded.retcode, message = excluded.message";
// The most frequent acknowledgement by far, without reading first.
const PICK_UP: &str = "UPDATE runs SET state = 'picked_up', picked_up = ?4, message = NULL \
    WHERE action = ?1 AND minion = ?2 AND jid = ?3 AND state = 'sent'";

/// Lets something happen to one run. Nothing: there is no such run.
pub(crate) async fn happen(
    tx: &Tx<'_>,
    effects: &mut Effects,
    minion: &MinionId,
    cause: &Cause<'_>,
    is_told: bool,
) -> Result<Option<Outcome>> {
    loop {
        let Some((run, policy, internal)) = find(tx, cause.action, minion).await? else { return Ok(None) };
        let outcome = step(&run.standing(), cause.input, &policy, cause.at);
        if let Outcome::Change(change) = &outcome {
            let written = write(&run, change, cause);
            if tx.execute(UPDATE, written.update).await? == 0 {
                continue;
            }
            if let Some(history) = written.history {
                tx.execute(CLOSE, history).await?;
            }
            let told = if is_told { Told::ByTeller { internal } } else { Told::ByItself };
            note(effects, &run, change, cause, told);
        }
        return Ok(Some(outcome));
    }
}

/// Writes the changes of many runs that cannot have changed meanwhile.
pub(crate) async fn write_all(tx: &Tx<'_>, written: Vec<Written>) -> Result<()> {
    let (mut updates, mut histories) = (Vec::with_capacity(written.len()), Vec::new());
    for Written { update, history } in written {
        updates.push(update);
        histories.extend(history);
    }
    tx.execute_many(UPDATE, updates).await?;
    tx.execute_many(CLOSE, histories).await?;
    Ok(())
}

/// What a change makes of a run and its history.
pub(crate) fn write(run: &Run, change: &Change, cause: &Cause<'_>) -> Written {
    let next = next(run, change, cause);
    let was = run.jid.as_ref().map_or("", Jid::as_str);
    let update = params![
        cause.action,
        &run.minion,
        run.state.as_str(),
        run.attempt,
        run.deliveries,
        was,
        next.state.as_str(),
        next.reason.map(Reason::as_str),
        next.waiting_for.map(WaitingFor::as_str),
        next.due,
        next.attempt,
        next.deliveries,
        next.jid,
        next.sent,
        next.picked_up,
        next.ended,
        next.retcode,
        next.message,
        next.evidence,
    ];
    let history = (change.closes_attempt && !is_closed_already(run)).then(|| {
        let Attempt { number, jid, sent, picked_up, ended, reason, retcode, message } = closed(run, change, cause);
        let reason = reason.map(Reason::as_str);
        params![cause.action, &run.minion, number, jid, sent, picked_up, ended, reason, retcode, message]
    });
    Written { update, history }
}

/// Notes what else follows from a change that was written.
pub(crate) fn note(effects: &mut Effects, run: &Run, change: &Change, cause: &Cause<'_>, told: Told) {
    let Standing { state, reason, waiting_for, jid, .. } = change.standing;
    effects.moved(cause.action, (run.state, run.reason), (state, reason), cause.at);
    // The dispatcher says again and again what a run waits for; that only its time has moved is no event.
    if let Told::ByTeller { internal } = told
        && change.standing != run.standing()
    {
        effects.tell(&RunChanged {
            action: cause.action,
            minion: &run.minion,
            jid,
            state,
            reason,
            waiting_for,
            message: cause.message,
            internal,
            at: cause.at,
        });
    }
}

/// The run after a change.
fn next(run: &Run, change: &Change, cause: &Cause<'_>) -> Run {
    let Standing { state, reason, waiting_for, attempt, deliveries, jid } = change.standing.clone();
    let is_claimed = matches!(cause.input, Input::Claim(_));
    let is_new = is_claimed || change.closes_attempt;
    let stays = state == run.state && !change.closes_attempt;
    // What was said about the end of an attempt is kept with it; a person's word about another one is not about the old.
    let message = cause.message.filter(|_| !change.closes_attempt || run.state.is_terminal()).map(str::to_owned);
    Run {
        minion: run.minion.clone(),
        state,
        reason,
        waiting_for,
        due: change.due,
        attempt,
        deliveries,
        jid,
        sent: if is_claimed { Some(cause.at) } else { run.sent.filter(|_| !is_new) },
        picked_up: match state {
            RunState::PickedUp => run.picked_up.or(Some(cause.at)),
            _ => run.picked_up.filter(|_| !is_new),
        },
        ended: state.is_terminal().then_some(cause.at),
        retcode: if is_new { None } else { cause.retcode.or(run.retcode) },
        message: message.or_else(|| run.message.clone().filter(|_| stays)),
        evidence: cause.evidence.map(str::to_owned).or_else(|| run.evidence.clone()),
        late: run.late,
    }
}

/// Whether a run has ended without anything of its own after its last attempt was closed: there is nothing to add to that.
fn is_closed_already(run: &Run) -> bool {
    let is_bare = run.deliveries == 0 && run.sent.is_none() && run.picked_up.is_none() && run.retcode.is_none();
    run.state.is_terminal() && is_bare
}

/// The attempt that is over with a change.
fn closed(run: &Run, change: &Change, cause: &Cause<'_>) -> Attempt {
    let had_ended = run.state.is_terminal();
    let reason = match cause.input {
        _ if had_ended => run.reason,
        Input::Return(..) => Some(Reason::ReturnedError),
        Input::Gone if run.state == RunState::PickedUp => Some(Reason::Lost),
        Input::Gone | Input::NotDelivered(_) => Some(Reason::NotDelivered),
        Input::Unreachable => Some(Reason::Offline),
        _ => None,
    };
    let message = if had_ended { None } else { cause.message.map(str::to_owned) };
    Attempt {
        number: change.standing.attempt,
        jid: run.jid.filter(|_| run.deliveries > 0),
        sent: run.sent,
        picked_up: run.picked_up,
        ended: run.ended.or(Some(cause.at)),
        reason,
        retcode: cause.retcode.or(run.retcode),
        message: message.or_else(|| run.message.clone()),
    }
}

async fn find(tx: &Tx<'_>, action: ActionId, minion: &MinionId) -> Result<Option<(Run, Policy, bool)>> {
    let rows = tx.query_locking(&WITH_RULES, params![action, minion]).await?;
    let Some(mut row) = rows.into_iter().next() else { return Ok(None) };
    let policy = actions::read_policy(&row.text(runs::COLUMNS)?)?;
    let internal = row.flag(runs::COLUMNS + 1)?;
    Ok(Some((runs::read(&mut row)?, policy, internal)))
}

impl Operation for Ack {
    type Output = bool;
    const COMMUTES: bool = true;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<bool>> {
        effects.log(&self.events);
        Box::pin(async move {
            if tx.execute(PICK_UP, params![self.action, &self.minion, self.jid, self.at]).await? > 0 {
                return Ok(true);
            }
            let cause = Cause {
                action: self.action,
                input: Input::Ack(self.jid),
                at: self.at,
                retcode: None,
                message: None,
                evidence: None,
            };
            let outcome = happen(tx, effects, &self.minion, &cause, false).await?;
            Ok(matches!(outcome, Some(Outcome::Change(_))))
        })
    }
}

struct Transitions(Vec<Transition>);

impl Operation for Transitions {
    type Output = Vec<Outcome>;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<Vec<Outcome>>> {
        Box::pin(async move { happen_all(tx, effects, &self.0.iter().collect::<Vec<_>>()).await })
    }
}

/// Lets things happen to runs, in their order.
pub(crate) async fn happen_all(
    tx: &Tx<'_>,
    effects: &mut Effects,
    transitions: &[&Transition],
) -> Result<Vec<Outcome>> {
    let mut outcomes = Vec::with_capacity(transitions.len());
    let mut rest = transitions;
    while !rest.is_empty() {
        // Neighbours of different runs do not see each other, so they share one pipeline.
        let mut seen = BTreeSet::new();
        let together = rest.iter().take_while(|one| seen.insert((one.action, &one.minion))).count();
        let (now, later) = rest.split_at(together);
        rest = later;
        let parts = now.iter().map(|one| (*one, effects.part())).collect::<Vec<_>>();
        let applied = parts.into_iter().map(async |(one, mut part)| {
            let cause = Cause {
                action: one.action,
                input: one.input,
                at: one.at,
                retcode: None,
                message: one.message.as_deref(),
                evidence: one.evidence.as_deref(),
            };
            let outcome = happen(tx, &mut part, &one.minion, &cause, true).await?;
            Ok::<_, crate::Error>((outcome.unwrap_or(Outcome::Nothing), part))
        });
        for (outcome, part) in try_join_all(applied).await? {
            outcomes.push(outcome);
            effects.join(part);
        }
    }
    Ok(outcomes)
}

impl Store {
    /// Notes that a minion has begun a job; tells whether that was news.
    pub async fn record_ack(&self, ack: Ack) -> Result<bool> {
        self.write(ack).await
    }

    /// Lets things happen to runs, in their order, all or none; tells what came of each. A run that does not exist:
    /// [`Outcome::Nothing`].
    pub async fn transit(&self, transitions: Vec<Transition>) -> Result<Vec<Outcome>> {
        self.write(Transitions(transitions)).await
    }
}
