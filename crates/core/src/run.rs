//! One action on one minion: its states, why it ended, and how a return is judged.

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

/// Why a run failed.
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
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReturnedError => "returned_error",
            Self::Lost => "lost",
            Self::Expired => "expired",
            Self::NotDelivered => "not_delivered",
            Self::Offline => "offline",
        }
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

/// Judges a return by its exit code and its success flag. A job of several functions has a map of each: all must be good.
pub fn judge(retcode: &Value, success: &Value) -> Verdict {
    let codes = |code: &Value| match code {
        Value::Int(int) => *int,
        Value::Bool(true) => 1,
        Value::Nil | Value::Bool(false) => 0,
        other => other.as_i64().unwrap_or(1),
    };
    let retcode = match retcode {
        Value::Map(map) => map.values().map(codes).find(|code| *code != 0).unwrap_or(0),
        other => codes(other),
    };
    let flagged = match success {
        Value::Map(map) => map.values().all(|flag| *flag != Value::Bool(false)),
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
}
