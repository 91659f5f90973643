//! One action on one minion: its states, why it ended, what it waits for, and how a return is judged.
//!
//! [`step`] is the only place that decides what becomes of a run; `store` applies what it decides.

mod step;

pub use step::{Change, Input, OFFLINE_GRACE, Outcome, Refusal, Standing, step};

use crate::value::Value;

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunState {
    /// Nothing was sent yet
    Queued,
    /// Published; the minion has not said anything
    Sent,
    /// The minion said that it has begun
    PickedUp,
    /// Ended well
    Completed,
    /// Ended badly; the reason tells how
    Failed,
    /// Ended before anything was sent
    Cancelled,
}

/// Why a run failed or was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The minion returned, and what it returned is a failure
    ReturnedError,
    /// It began, and nobody knows how it ended
    Lost,
    /// Its deadline passed before it could start
    Expired,
    /// It was sent, and the minion never said anything
    NotDelivered,
    /// The minion was not there
    Offline,
    /// It took longer than its `job_timeout`
    TimedOut,
    /// Somebody had it killed on the minion
    Stopped,
    /// Somebody declared it failed
    FailedByHand,
    /// An earlier step of its chain failed
    Prerequisite,
    /// Somebody cancelled it before it was sent
    Cancelled,
    /// Too many others of its action failed before it was sent
    Budget,
    /// It is for when an earlier step of its chain fails, and none did
    NotNeeded,
    /// It cannot be done on this minion
    Refused,
    /// It was outside of its maintenance window, and is not to wait for the next
    Window,
}

/// What a queued run waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaitingFor {
    /// Its due time
    Due,
    /// A maintenance window
    Window,
    /// The minion, which is not there
    Offline,
    /// A free slot: of its batch, or of the server
    Slot,
    /// The rate of starts that the server allows
    Rate,
    /// The wave before it, or its soak time
    Wave,
    /// An earlier step of its chain
    EarlierStep,
    /// Somebody's approval
    Approval,
    /// Somebody who resumes the action
    Paused,
    /// The time between two attempts
    Backoff,
    /// Being sent again: nothing was heard of it
    Redelivery,
    /// Something that must be known of the minion first
    Facts,
    /// Another chain, which is under way on the minion
    Chain,
    /// The step before, which has not ended on enough minions
    Barrier,
    /// The time before of what recurs, which has not ended on the minion
    Overlap,
}

impl RunState {
    /// Every state, in the order of a run's life.
    pub const ALL: [Self; 6] =
        [Self::Queued, Self::Sent, Self::PickedUp, Self::Completed, Self::Failed, Self::Cancelled];

    /// The word for it, in the database and everywhere else.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Sent => "sent",
            Self::PickedUp => "picked_up",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// Whether nothing more will happen by itself.
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Queued | Self::Sent | Self::PickedUp => false,
            Self::Completed | Self::Failed | Self::Cancelled => true,
        }
    }
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 14] = [
        Self::ReturnedError,
        Self::Lost,
        Self::Expired,
        Self::NotDelivered,
        Self::Offline,
        Self::TimedOut,
        Self::Stopped,
        Self::FailedByHand,
        Self::Prerequisite,
        Self::Cancelled,
        Self::Budget,
        Self::NotNeeded,
        Self::Refused,
        Self::Window,
    ];

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == word)
    }

    /// Whether a return that comes after all may still change the status: nobody knew, and now somebody does.
    pub const fn yields_to_the_truth(self) -> bool {
        matches!(self, Self::Lost | Self::NotDelivered)
    }

    /// Whether it says that the minion could not be reached, rather than that the work failed.
    pub const fn is_unreachable(self) -> bool {
        matches!(self, Self::Offline | Self::NotDelivered | Self::Expired)
    }

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReturnedError => "returned_error",
            Self::Lost => "lost",
            Self::Expired => "expired",
            Self::NotDelivered => "not_delivered",
            Self::Offline => "offline",
            Self::TimedOut => "timed_out",
            Self::Stopped => "stopped",
            Self::FailedByHand => "failed_by_hand",
            Self::Prerequisite => "prerequisite",
            Self::Cancelled => "cancelled",
            Self::Budget => "budget",
            Self::NotNeeded => "not_needed",
            Self::Refused => "refused",
            Self::Window => "window",
        }
    }
}

impl WaitingFor {
    /// Everything a run can wait for.
    pub const ALL: [Self; 15] = [
        Self::Due,
        Self::Window,
        Self::Offline,
        Self::Slot,
        Self::Rate,
        Self::Wave,
        Self::EarlierStep,
        Self::Approval,
        Self::Paused,
        Self::Backoff,
        Self::Redelivery,
        Self::Facts,
        Self::Chain,
        Self::Barrier,
        Self::Overlap,
    ];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Due => "due",
            Self::Window => "window",
            Self::Offline => "offline",
            Self::Slot => "slot",
            Self::Rate => "rate",
            Self::Wave => "wave",
            Self::EarlierStep => "earlier_step",
            Self::Approval => "approval",
            Self::Paused => "paused",
            Self::Backoff => "backoff",
            Self::Redelivery => "redelivery",
            Self::Facts => "facts",
            Self::Chain => "chain",
            Self::Barrier => "barrier",
            Self::Overlap => "overlap",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|what| what.as_str() == word)
    }
}

/// What a return says about its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the run completed
    pub success: bool,
    /// The exit code; of several functions the first that is not 0
    pub retcode: i64,
}

/// Judges a return by its exit code and its success flag. A job of several functions has a map of each, or a list where the
/// minion has `multifunc_ordered`: all must be good.
pub fn judge(retcode: &Value, success: &Value) -> Verdict {
    let codes = |code: &Value| match code {
        Value::Int(int) => *int,
        Value::Bool(true) => 1,
        Value::Nil | Value::Bool(false) => 0,
        other => other.as_i64().unwrap_or(1),
    };
    let retcode = match retcode {
        Value::Map(map) => map.values().map(codes).find(|code| *code != 0).unwrap_or(0),
        Value::List(list) => list.iter().map(codes).find(|code| *code != 0).unwrap_or(0),
        other => codes(other),
    };
    let flagged = match success {
        Value::Map(map) => map.values().all(|flag| *flag != Value::Bool(false)),
        Value::List(list) => list.iter().all(|flag| *flag != Value::Bool(false)),
        other => *other != Value::Bool(false),
    };
    Verdict { success: retcode == 0 && flagged, retcode }
}

impl Verdict {
    /// The state and reason the run ends in.
    pub const fn outcome(self) -> (RunState, Option<Reason>) {
        if self.success { (RunState::Completed, None) } else { (RunState::Failed, Some(Reason::ReturnedError)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_back() {
        for state in RunState::ALL {
            assert_eq!(RunState::parse(state.as_str()), Some(state));
        }
        for reason in Reason::ALL {
            assert_eq!(Reason::parse(reason.as_str()), Some(reason));
        }
        for what in WaitingFor::ALL {
            assert_eq!(WaitingFor::parse(what.as_str()), Some(what));
        }
    }

    #[test]
    fn an_exit_code_or_a_false_flag_is_a_failure() {
        let judged = |code: Value, flag: Value| judge(&code, &flag).success;
        assert!(judged(0.into(), true.into()));
        assert!(judged(0.into(), Value::Nil), "salt-call returns have no flag");
        assert!(!judged(3.into(), true.into()));
        assert!(!judged(0.into(), false.into()));
    }

    #[test]
    fn every_function_of_a_job_must_be_good() {
        let codes = Value::map([("test.ping", 0), ("cmd.run", 3)]);
        let flags = Value::map([("test.ping", true), ("cmd.run", false)]);
        assert_eq!(judge(&codes, &flags), Verdict { success: false, retcode: 3 });
    }

    #[test]
    fn functions_in_order_are_judged_as_those_by_name() {
        let of = |codes: [i64; 2], flags: [bool; 2]| judge(&Value::list(codes), &Value::list(flags));
        assert_eq!(of([0, 0], [true, true]), Verdict { success: true, retcode: 0 });
        assert_eq!(of([0, 3], [true, false]), Verdict { success: false, retcode: 3 });
    }
}
