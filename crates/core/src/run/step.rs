//! What becomes of a run: every state, every input, one function.
//!
//! Pure, so that its whole table can be tested. `store` reads the run inside a transaction, asks here, and writes the
//! change only if the run is still what was asked about; whoever is too late changes nothing.
//!
//! Invariants: a run that has ended is reopened by a person only ([`Input::Retry`]); a job id never leads to a second
//! start; a new attempt after one that was sent is made only if that one provably did not start or the action is repeatable.

use super::{Reason, RunState, Verdict, WaitingFor};
use crate::action::{Offline, Policy, RetryWhen};
use crate::ids::Jid;
use crate::time::Timestamp;
use std::time::Duration;

/// What the decision about a run depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Where it stands
    pub state: RunState,
    /// Why it ended so, if it ended badly
    pub reason: Option<Reason>,
    /// What it waits for, while queued
    pub waiting_for: Option<WaitingFor>,
    /// The number of its newest attempt; 0 before the first
    pub attempt: u32,
    /// How often the newest attempt was published; 0 while it may be cancelled
    pub deliveries: u32,
    /// The job of the newest attempt
    pub jid: Option<Jid>,
}

/// What happens to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// The dispatcher takes it, to publish it under this job id
    Claim(Jid),
    /// Evidence that the minion has begun this job: acknowledgement, start, progress, listed as running
    Ack(Jid),
    /// What the minion sent back for this job, judged
    Return(Jid, Verdict),
    /// It returned well, and that is not the end of it: a reboot ends with another boot id
    Accepted(Jid),
    /// Other evidence than a return ended it: the boot id has changed, or will not
    Settled(bool),
    /// It is due, and the minion is not there
    Unreachable,
    /// It is due, and something else is in the way, until then or until it is released
    Wait(WaitingFor, Option<Timestamp>),
    /// It is to be published again under the same job id: nothing was heard
    Redeliver,
    /// The minion has nothing of this job; `true`: it provably never started
    NotDelivered(bool),
    /// It was under way, and is no longer, without a return
    Gone,
    /// Its deadline has passed
    Deadline,
    /// Its `job_timeout` has passed
    TimedOut,
    /// The minion killed it on request
    Stopped,
    /// An earlier step failed
    Prerequisite,
    /// No earlier step failed, and it is for when one does
    NotNeeded,
    /// It cannot be done on this minion
    Refused,
    /// Its maintenance window is closed, and it is not to wait for the next
    OutsideWindow,
    /// Somebody does not want it any more
    Cancel,
    /// Too many others failed
    Budget,
    /// Somebody declares it failed
    Fail,
    /// Somebody wants it again
    Retry,
}

/// What follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing: it is too late, or no news
    Nothing,
    /// The run changes
    Change(Change),
    /// The return is kept and shown, and the status stays
    Late,
    /// What was asked cannot be done
    Refused(Refusal),
}

/// Why a verb cannot be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// It was sent already
    Sent,
    /// It has ended already
    Ended,
    /// It has not ended yet
    Open,
}

/// A run after its transition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Where it stands, why, and what it waits for
    pub standing: Standing,
    /// When it is due next, if it is queued; nothing: when the minion is back
    pub due: Option<Timestamp>,
    /// Whether the attempt of this number is over and is to be kept as history
    pub closes_attempt: bool,
}

/// How long a minion that is not there is given to come back before an action that does not wait for it gives it up.
pub const OFFLINE_GRACE: Duration = Duration::from_secs(8);

/// Decides what becomes of a run.
pub fn step(run: &Standing, input: Input, policy: &Policy, now: Timestamp) -> Outcome {
    match run.state {
        RunState::Queued => queued(run, input, policy, now),
        RunState::Sent => sent(run, input, policy, now),
        RunState::PickedUp => picked_up(run, input, policy, now),
        RunState::Completed | RunState::Failed | RunState::Cancelled => ended(run, input, now),
    }
}

fn queued(run: &Standing, input: Input, policy: &Policy, now: Timestamp) -> Outcome {
    let is_mine = |jid| run.jid == Some(jid);
    let was_sent = run.deliveries > 0;
    match input {
        // What was sent goes out again under its own job id, and what was not needs one that no minion has seen.
        Input::Claim(jid) if was_sent != is_mine(jid) => Outcome::Nothing,
        Input::Claim(jid) => {
            let (attempt, deliveries) = if was_sent { (run.attempt, run.deliveries + 1) } else { (run.attempt + 1, 1) };
            change(Standing {
                state: RunState::Sent,
                reason: None,
                waiting_for: None,
                attempt,
                deliveries,
                jid: Some(jid),
            })
        }
        // It was thought not to have started, and now shows that it has.
        Input::Ack(jid) if is_mine(jid) => begin(run),
        Input::Return(jid, verdict) if is_mine(jid) => judged(run, verdict, policy, now),
        Input::Accepted(jid) if is_mine(jid) => begin(run),
        // Sent again, it would restart the machine that has just been restarted.
        Input::Settled(good) if was_sent => settled(run, good),
        Input::Unreachable => unreachable(run, policy, now),
        Input::Wait(what, until) => change_due(Standing { waiting_for: Some(what), ..run.clone() }, until),
        Input::Deadline if was_sent => end(run, RunState::Failed, Reason::NotDelivered),
        Input::Deadline if run.waiting_for == Some(WaitingFor::Offline) => end(run, RunState::Failed, Reason::Offline),
        Input::Deadline => end(run, RunState::Failed, Reason::Expired),
        Input::Prerequisite if !was_sent => end(run, RunState::Failed, Reason::Prerequisite),
        Input::NotNeeded if !was_sent => end(run, RunState::Cancelled, Reason::NotNeeded),
        Input::Refused if !was_sent => end(run, RunState::Failed, Reason::Refused),
        Input::OutsideWindow if !was_sent => end(run, RunState::Failed, Reason::Window),
        // Sent once and waiting to be sent again: nobody knows that it never starts.
        Input::Cancel | Input::Budget if was_sent => Outcome::Refused(Refusal::Sent),
        Input::Cancel => end(run, RunState::Cancelled, Reason::Cancelled),
        Input::Budget => end(run, RunState::Cancelled, Reason::Budget),
        Input::Fail => end(run, RunState::Failed, Reason::FailedByHand),
        Input::Stopped if was_sent => end(run, RunState::Failed, Reason::Stopped),
        Input::Retry => Outcome::Refused(Refusal::Open),
        Input::Return(..) => Outcome::Late,
        Input::Ack(_)
        | Input::Accepted(_)
        | Input::Settled(_)
        | Input::Redeliver
        | Input::NotDelivered(_)
        | Input::Gone
        | Input::TimedOut
        | Input::Stopped
        | Input::Prerequisite
        | Input::NotNeeded
        | Input::Refused
        | Input::OutsideWindow => Outcome::Nothing,
    }
}

fn sent(run: &Standing, input: Input, policy: &Policy, now: Timestamp) -> Outcome {
    let is_mine = |jid| run.jid == Some(jid);
    match input {
        Input::Ack(jid) | Input::Accepted(jid) if is_mine(jid) => begin(run),
        Input::Return(jid, verdict) if is_mine(jid) => judged(run, verdict, policy, now),
        Input::Return(..) => Outcome::Late,
        Input::Settled(good) => settled(run, good),
        Input::Redeliver => change_due(
            Standing { state: RunState::Queued, waiting_for: Some(WaitingFor::Redelivery), ..run.clone() },
            Some(now),
        ),
        Input::NotDelivered(proven) => again_or(run, policy, proven, Reason::NotDelivered, now),
        Input::Gone => again_or(run, policy, false, Reason::NotDelivered, now),
        Input::Deadline => end(run, RunState::Failed, Reason::NotDelivered),
        Input::TimedOut => end(run, RunState::Failed, Reason::TimedOut),
        Input::Stopped => end(run, RunState::Failed, Reason::Stopped),
        Input::Fail => end(run, RunState::Failed, Reason::FailedByHand),
        Input::Cancel | Input::Budget => Outcome::Refused(Refusal::Sent),
        Input::Retry => Outcome::Refused(Refusal::Open),
        Input::Claim(_)
        | Input::Ack(_)
        | Input::Accepted(_)
        | Input::Unreachable
        | Input::Wait(..)
        | Input::Prerequisite
        | Input::NotNeeded
        | Input::Refused
        | Input::OutsideWindow => Outcome::Nothing,
    }
}

fn picked_up(run: &Standing, input: Input, policy: &Policy, now: Timestamp) -> Outcome {
    let is_mine = |jid| run.jid == Some(jid);
    match input {
        Input::Return(jid, verdict) if is_mine(jid) => judged(run, verdict, policy, now),
        Input::Return(..) => Outcome::Late,
        Input::Settled(good) => settled(run, good),
        Input::Gone => again_or(run, policy, false, Reason::Lost, now),
        Input::Deadline => end(run, RunState::Failed, Reason::Lost),
        Input::TimedOut => end(run, RunState::Failed, Reason::TimedOut),
        Input::Stopped => end(run, RunState::Failed, Reason::Stopped),
        Input::Fail => end(run, RunState::Failed, Reason::FailedByHand),
        Input::Cancel | Input::Budget => Outcome::Refused(Refusal::Sent),
        Input::Retry => Outcome::Refused(Refusal::Open),
        Input::Claim(_)
        | Input::Ack(_)
        | Input::Accepted(_)
        | Input::Unreachable
        | Input::Wait(..)
        | Input::Redeliver
        | Input::NotDelivered(_)
        | Input::Prerequisite
        | Input::NotNeeded
        | Input::Refused
        | Input::OutsideWindow => Outcome::Nothing,
    }
}

fn ended(run: &Standing, input: Input, now: Timestamp) -> Outcome {
    match input {
        Input::Return(jid, verdict) if run.jid == Some(jid) && run.reason.is_some_and(Reason::yields_to_the_truth) => {
            let (state, reason) = verdict.outcome();
            change(Standing { state, reason, waiting_for: None, ..run.clone() })
        }
        Input::Return(..) => Outcome::Late,
        Input::Retry => {
            // Somebody wants it done again: what is still heard of the job before must not pass for that.
            let standing = Standing {
                state: RunState::Queued,
                reason: None,
                waiting_for: Some(WaitingFor::Due),
                deliveries: 0,
                jid: None,
                attempt: run.attempt,
            };
            Outcome::Change(Change { standing, due: Some(now), closes_attempt: run.deliveries > 0 })
        }
        Input::Cancel | Input::Budget | Input::Fail => Outcome::Refused(Refusal::Ended),
        Input::Claim(_)
        | Input::Ack(_)
        | Input::Accepted(_)
        | Input::Settled(_)
        | Input::Unreachable
        | Input::Wait(..)
        | Input::Redeliver
        | Input::NotDelivered(_)
        | Input::Gone
        | Input::Deadline
        | Input::TimedOut
        | Input::Stopped
        | Input::Prerequisite
        | Input::NotNeeded
        | Input::Refused
        | Input::OutsideWindow => Outcome::Nothing,
    }
}

/// A job that begins although its attempt was closed is an attempt of its own: the closed one stays as it was kept.
fn begin(run: &Standing) -> Outcome {
    let attempt = if run.deliveries == 0 { run.attempt + 1 } else { run.attempt };
    let deliveries = run.deliveries.max(1);
    change(Standing { state: RunState::PickedUp, reason: None, waiting_for: None, attempt, deliveries, jid: run.jid })
}

fn judged(run: &Standing, verdict: Verdict, policy: &Policy, now: Timestamp) -> Outcome {
    if verdict.success {
        return change(Standing { state: RunState::Completed, reason: None, waiting_for: None, ..run.clone() });
    }
    again_or(run, policy, false, Reason::ReturnedError, now)
}

fn settled(run: &Standing, good: bool) -> Outcome {
    if good {
        return change(Standing { state: RunState::Completed, reason: None, waiting_for: None, ..run.clone() });
    }
    end(run, RunState::Failed, Reason::Lost)
}

/// Another attempt if the policy allows one, the end if not.
fn again_or(run: &Standing, policy: &Policy, proven: bool, reason: Reason, now: Timestamp) -> Outcome {
    let may = match policy.retry.when {
        RetryWhen::NotStarted => proven,
        RetryWhen::Always => true,
    };
    if !may || run.attempt >= policy.retry.attempts {
        return end(run, RunState::Failed, reason);
    }
    let standing = Standing {
        state: RunState::Queued,
        reason: None,
        waiting_for: Some(WaitingFor::Backoff),
        attempt: run.attempt,
        deliveries: 0,
        // A job that has returned has said all; of any other the truth may still come.
        jid: run.jid.filter(|_| reason != Reason::ReturnedError),
    };
    let due = now.plus(policy.retry.pause_after(run.attempt));
    Outcome::Change(Change { standing, due: Some(due), closes_attempt: run.deliveries > 0 })
}

fn unreachable(run: &Standing, policy: &Policy, now: Timestamp) -> Outcome {
    let waiting = |attempt, due, closes_attempt| {
        let standing = Standing { waiting_for: Some(WaitingFor::Offline), attempt, ..run.clone() };
        Outcome::Change(Change { standing, due, closes_attempt })
    };
    let give_up = || {
        // What was sent once may have arrived after all: a return still counts then.
        let reason = if run.deliveries > 0 { Reason::NotDelivered } else { Reason::Offline };
        end(run, RunState::Failed, reason)
    };
    match policy.offline {
        Offline::Hold => waiting(run.attempt, None, false),
        // A machine that is just restarting its agent is not off.
        Offline::Fail if run.waiting_for != Some(WaitingFor::Offline) => {
            waiting(run.attempt, Some(now.plus(OFFLINE_GRACE)), false)
        }
        Offline::Fail => give_up(),
        // What was sent is still the same attempt, whose job may be heard of yet; its deadline ends it.
        Offline::Retry { every, .. } if run.deliveries > 0 => waiting(run.attempt, Some(now.plus(every)), false),
        Offline::Retry { tries, every } if run.attempt < tries => waiting(run.attempt + 1, Some(now.plus(every)), true),
        Offline::Retry { .. } => give_up(),
    }
}

fn end(run: &Standing, state: RunState, reason: Reason) -> Outcome {
    change(Standing { state, reason: Some(reason), waiting_for: None, ..run.clone() })
}

fn change(standing: Standing) -> Outcome {
    change_due(standing, None)
}

fn change_due(standing: Standing, due: Option<Timestamp>) -> Outcome {
    Outcome::Change(Change { standing, due, closes_attempt: false })
}
