//! May this minion in? The decision on a key that is presented at sign-in (wire reference, section 5.5).
//!
//! Pure: what is stored, what is configured and what is connected come in; what to answer, what to record and which event
//! to fire go out. The lists of the configuration are read by `keys::lists`.
//!
//! Invariants: an accepted key is never replaced (except in open mode, which means exactly that); a key that cannot be
//! used is never recorded; a rejected minion is told so.
//!
//! Not here: checking the id (`ids::MinionId` did), parsing the key, signing the answer.

mod lists;

pub use lists::{GrainRules, IdPatterns};

use crate::ids::MinionId;
use crate::value::Value;

/// What has been decided about a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyState {
    /// Waiting for somebody to decide (Salt: `minions_pre`)
    Unaccepted,
    /// In
    Accepted,
    /// Out
    Rejected,
    /// Presented under an id whose key is another one
    Denied,
}

impl KeyState {
    /// Every state.
    pub const ALL: [Self; 4] = [Self::Unaccepted, Self::Accepted, Self::Rejected, Self::Denied];

    /// The name, as in the database and the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unaccepted => "unaccepted",
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
            Self::Denied => "denied",
        }
    }

    /// Reads the name; `pending`, `pre` and `un` are Salt's other words for unaccepted, `acc`, `rej` and `den` its short forms.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "unaccepted" | "pending" | "pre" | "un" => Some(Self::Unaccepted),
            "accepted" | "acc" => Some(Self::Accepted),
            "rejected" | "rej" => Some(Self::Rejected),
            "denied" | "den" => Some(Self::Denied),
            _ => None,
        }
    }
}

/// What the configuration says about keys.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Accept every new key (`auto_accept`)
    pub auto_accept: bool,
    /// Accept every key, new or not, and forget the old one (`open_mode`)
    pub open_mode: bool,
    /// Ids whose keys are accepted (`autosign_file`)
    pub autosign: IdPatterns,
    /// Ids whose keys are rejected (`autoreject_file`)
    pub autoreject: IdPatterns,
    /// Grain values that get a key accepted (`autosign_grains_dir`)
    pub autosign_grains: GrainRules,
    /// Most minions connected at once; 0 for no limit (`max_minions`)
    pub max_minions: usize,
    /// Tell a minion that presents another key than the known one to wait, instead of telling it no. A no ends the stock
    /// minion's process: a machine that was installed anew would be gone until somebody logs in.
    pub denied_waits: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            auto_accept: false,
            open_mode: false,
            autosign: IdPatterns::default(),
            autoreject: IdPatterns::default(),
            autosign_grains: GrainRules::default(),
            max_minions: 0,
            denied_waits: true,
        }
    }
}

/// A sign-in: who asks, with which key, and what we know.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Who asks
    pub id: &'a MinionId,
    /// The key presented, PEM
    pub presented: &'a str,
    /// Whether the key presented can be used to encrypt for the minion
    pub usable: bool,
    /// The key we know under that id, and its state. Keys that were denied besides do not count.
    pub known: Option<(KeyState, &'a str)>,
    /// `autosign_grains` of the request
    pub grains: Option<&'a Value>,
    /// Whether there is a valid one-time invitation for this id (`minions_autosign`); spent when the decision is to accept
    pub invited: bool,
    /// Whether a minion of this id is connected
    pub connected: bool,
    /// How many minions are connected
    pub connected_count: usize,
    /// What the configuration says
    pub policy: &'a Policy,
}

/// What to do about a sign-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision<'a> {
    /// What to answer
    pub answer: Answer,
    /// What to record, if anything changed
    pub store: Option<Record<'a>>,
    /// What the `salt/auth` event says
    pub act: Act,
}

/// What the minion is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// In: it gets the session keys
    Accepted,
    /// `ret: true`: it asks again in 10 s, for ever
    Pending,
    /// `ret: false`: its process ends
    Refused,
    /// `ret: "full"`: it asks again in 10 s
    Full,
}

/// A key to record under the id. [`KeyState::Denied`] is recorded besides the key already known; the others replace it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// The new state
    pub state: KeyState,
    /// The key, PEM
    pub pem: &'a str,
}

/// `act` of the `salt/auth` event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// In
    Accept,
    /// Waiting
    Pend,
    /// Rejected, now or earlier
    Reject,
    /// The key is not the known one
    Denied,
    /// Too many minions
    Full,
    /// The key cannot be used
    Error,
}

impl Act {
    /// Salt's word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Pend => "pend",
            Self::Reject => "reject",
            Self::Denied => "denied",
            Self::Full => "full",
            Self::Error => "error",
        }
    }

    /// `result` of the event.
    pub const fn result(self) -> bool {
        matches!(self, Self::Accept | Self::Pend)
    }
}

/// Decides, in the order of stock Salt.
///
/// Two differences, both on purpose: a key that cannot be used is refused wherever it would be recorded (Salt stores it
/// as pending, and fails when it is accepted), and [`Policy::denied_waits`].
pub fn decide<'a>(request: &Request<'a>) -> Decision<'a> {
    let policy = request.policy;
    if policy.max_minions > 0 && request.connected_count > policy.max_minions && !request.connected {
        return Decision { answer: Answer::Full, store: None, act: Act::Full };
    }
    if policy.open_mode {
        return request.accept();
    }
    match request.known {
        Some((KeyState::Rejected, _)) => Decision { answer: Answer::Refused, store: None, act: Act::Reject },
        Some((KeyState::Accepted, known)) if !same_key(known, request.presented) => request.deny(),
        Some((KeyState::Accepted, _)) => request.accept(),
        Some((KeyState::Unaccepted, known)) => {
            if policy.autoreject.matches(request.id) {
                // The key that waited is rejected, not the one presented: they may differ.
                let store = Some(Record { state: KeyState::Rejected, pem: known });
                Decision { answer: Answer::Refused, store, act: Act::Reject }
            } else if !same_key(known, request.presented) {
                request.deny()
            } else if request.is_signed() {
                request.accept()
            } else {
                Decision { answer: Answer::Pending, store: None, act: Act::Pend }
            }
        }
        // An id of which only denied keys are left is a new one.
        None | Some((KeyState::Denied, _)) => {
            if policy.autoreject.matches(request.id) {
                request.record(Answer::Refused, KeyState::Rejected, Act::Reject)
            } else if request.is_signed() {
                request.accept()
            } else {
                request.record(Answer::Pending, KeyState::Unaccepted, Act::Pend)
            }
        }
    }
}

/// Whether two PEM texts hold the same key: line ends and blanks around do not count.
pub fn same_key(a: &str, b: &str) -> bool {
    a.trim().lines().eq(b.trim().lines())
}

impl<'a> Request<'a> {
    fn is_signed(&self) -> bool {
        self.policy.auto_accept
            || self.policy.autosign.matches(self.id)
            || self.invited
            || self.grains.is_some_and(|grains| self.policy.autosign_grains.matches(grains))
    }

    fn accept(&self) -> Decision<'a> {
        let decision = self.record(Answer::Accepted, KeyState::Accepted, Act::Accept);
        let known_already = matches!(self.known, Some((KeyState::Accepted, known)) if same_key(known, self.presented));
        Decision { store: decision.store.filter(|_| !known_already), ..decision }
    }

    fn deny(&self) -> Decision<'a> {
        let answer = if self.policy.denied_waits { Answer::Pending } else { Answer::Refused };
        self.record(answer, KeyState::Denied, Act::Denied)
    }

    fn record(&self, answer: Answer, state: KeyState, act: Act) -> Decision<'a> {
        if !self.usable {
            return Decision { answer: Answer::Refused, store: None, act: Act::Error };
        }
        Decision { answer, store: Some(Record { state, pem: self.presented }), act }
    }
}

#[cfg(test)]
mod tests;
