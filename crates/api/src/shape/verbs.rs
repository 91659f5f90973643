//! What is done with actions that are there, as JSON: the verb, what goes with it, and what it did.

use super::Time;
use super::actions::{read_action_id, read_minion};
use super::jobs::seconds;
use crate::app;
use saltern_core::ids::{ActionId, MinionId};
use saltern_core::run::RunState;
use saltern_server::Error;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// What is to be done with an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ToSchema)]
#[schema(rename_all = "lowercase")]
pub enum ActionVerb {
    /// What was not sent yet never starts
    Cancel,
    /// The same, and what runs is killed on its minion
    Stop,
    /// What has ended is done again
    Retry,
    /// What is open is declared failed
    Fail,
    /// Nothing more is started
    Pause,
    /// What was paused goes on
    Resume,
    /// What was not sent yet is due at another time
    Reschedule,
    /// It leaves the lists
    Archive,
    /// It comes back to the lists
    Unarchive,
    /// It is removed with everything that came of it
    Delete,
}

/// What goes with a verb.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VerbRequest {
    /// With which actions; not where the path names one
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<i64>,
    /// Only on these minions
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minions: Option<Vec<String>>,
    /// `fail`: why
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// `retry`: only what failed
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_failed: bool,
    /// `reschedule`: the new due time
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Time>,
    /// `reschedule`: seconds after it in which everything ends
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<f64>,
}

/// What a verb did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VerbResult {
    /// With each action, in the order they were named
    pub actions: Vec<Done>,
}

/// What a verb did with one action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Done {
    /// Which
    pub action: i64,
    /// What was done with it as a whole
    pub note: String,
    /// What became of each minion's run
    pub minions: BTreeMap<String, Outcome>,
}

/// What a verb did with one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Outcome {
    /// Whether it did what was asked
    pub done: bool,
    /// The state it has brought the run to, or why it did not
    pub outcome: String,
}

/// Most actions in one request.
const MOST_IDS: usize = 1_000;
/// Most minions in one request.
const MOST_MINIONS: usize = 100_000;
/// The longest message, in bytes.
const LONGEST_MESSAGE: usize = 4_096;

impl ActionVerb {
    /// Every verb.
    pub const ALL: [Self; 10] = [
        Self::Cancel,
        Self::Stop,
        Self::Retry,
        Self::Fail,
        Self::Pause,
        Self::Resume,
        Self::Reschedule,
        Self::Archive,
        Self::Unarchive,
        Self::Delete,
    ];

    /// The word for it, in paths and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Stop => "stop",
            Self::Retry => "retry",
            Self::Fail => "fail",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Reschedule => "reschedule",
            Self::Archive => "archive",
            Self::Unarchive => "unarchive",
            Self::Delete => "delete",
        }
    }

    /// Reads the word.
    pub(crate) fn read(word: &str) -> Result<Self, Error> {
        let known = || Self::ALL.map(Self::as_str).join(", ");
        let verb = Self::ALL.into_iter().find(|verb| verb.as_str() == word);
        verb.ok_or_else(|| Error::NotFound(format!("nothing is called {word:?} here: there are {}", known())))
    }
}

/// A verb and what it applies to, in the domain's words.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) ids: Vec<ActionId>,
    pub(crate) minions: Option<Vec<MinionId>>,
    pub(crate) verb: app::Verb,
}

impl VerbRequest {
    /// The domain's words for it. `id` is the action that the path names.
    pub(crate) fn read(self, verb: ActionVerb, id: Option<ActionId>) -> Result<Order, Error> {
        let invalid = |message: String| Err(Error::Invalid(message));
        let word = verb.as_str();
        for (name, given, of) in [
            ("message", self.message.is_some(), ActionVerb::Fail),
            ("only_failed", self.only_failed, ActionVerb::Retry),
            ("due", self.due.is_some(), ActionVerb::Reschedule),
            ("deadline", self.deadline.is_some(), ActionVerb::Reschedule),
        ] {
            if given && verb != of {
                return invalid(format!("{word} takes no {name}"));
            }
        }
        if verb == ActionVerb::Reschedule && self.minions.is_some() {
            return invalid(format!("{word} is for the whole action, not for some minions"));
        }
        if self.message.as_ref().is_some_and(|message| message.len() > LONGEST_MESSAGE) {
            return invalid(format!("a message has at most {LONGEST_MESSAGE} bytes"));
        }
        // All of an empty list is nothing, and all that are left unsaid is everything: not the same.
        if self.minions.as_ref().is_some_and(Vec::is_empty) {
            return invalid("minions is empty: name some, or leave it out".into());
        }
        let minions = self.minions.unwrap_or_default();
        if self.ids.len() > MOST_IDS || minions.len() > MOST_MINIONS {
            return invalid(format!("at most {MOST_IDS} actions and {MOST_MINIONS} minions at once"));
        }
        let ids = match (id, self.ids.as_slice()) {
            (Some(id), []) => vec![id],
            (Some(_), _) => return invalid("the path names the action already: leave out ids".into()),
            (None, []) => return invalid("ids is empty: name the actions".into()),
            (None, ids) => ids.iter().map(|id| read_action_id(&id.to_string())).collect::<Result<_, _>>()?,
        };
        let minions = minions.iter().map(|minion| read_minion(minion)).collect::<Result<Vec<_>, _>>()?;
        let verb = match verb {
            ActionVerb::Cancel => app::Verb::Cancel,
            ActionVerb::Stop => app::Verb::Stop,
            ActionVerb::Retry => app::Verb::Retry { only_failed: self.only_failed },
            ActionVerb::Fail => {
                app::Verb::Fail { message: self.message.unwrap_or_else(|| "declared failed by hand".into()) }
            }
            ActionVerb::Pause => app::Verb::Pause,
            ActionVerb::Resume => app::Verb::Resume,
            ActionVerb::Reschedule => {
                let Some(Time(due)) = self.due else { return invalid("reschedule needs due".into()) };
                app::Verb::Reschedule { due, deadline: seconds("deadline", self.deadline)? }
            }
            ActionVerb::Archive => app::Verb::Archive,
            ActionVerb::Unarchive => app::Verb::Unarchive,
            ActionVerb::Delete => app::Verb::Delete,
        };
        Ok(Order { ids, minions: (!minions.is_empty()).then_some(minions), verb })
    }
}

impl From<app::Done> for Done {
    fn from(done: app::Done) -> Self {
        let outcome = |(minion, word): (MinionId, &str)| {
            // A run that was changed is told by its new state; one that is killed tells its own end later.
            let done = RunState::parse(word).is_some() || word == "told to stop";
            (minion.to_string(), Outcome { done, outcome: word.into() })
        };
        Self { action: done.action.0, note: done.note, minions: done.minions.into_iter().map(outcome).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(verb: ActionVerb, id: Option<i64>, json: &str) -> Result<Order, Error> {
        serde_json::from_str::<VerbRequest>(json).unwrap().read(verb, id.map(ActionId))
    }

    #[test]
    fn words_read_back() {
        for verb in ActionVerb::ALL {
            assert_eq!(ActionVerb::read(verb.as_str()).unwrap(), verb);
        }
        assert!(ActionVerb::read("explode").is_err());
    }

    #[test]
    fn the_path_names_one_action_and_the_body_many() {
        assert_eq!(read(ActionVerb::Cancel, Some(7), "{}").unwrap().ids, [ActionId(7)]);
        assert_eq!(read(ActionVerb::Cancel, None, r#"{"ids": [7, 8]}"#).unwrap().ids, [ActionId(7), ActionId(8)]);
        assert!(read(ActionVerb::Cancel, Some(7), r#"{"ids": [8]}"#).is_err());
        assert!(read(ActionVerb::Cancel, None, "{}").is_err());
        assert!(read(ActionVerb::Cancel, None, r#"{"ids": [-1]}"#).is_err());
    }

    #[test]
    fn a_verb_takes_only_what_it_can_use() {
        for (verb, json) in [
            (ActionVerb::Cancel, r#"{"message": "x"}"#),
            (ActionVerb::Stop, r#"{"only_failed": true}"#),
            (ActionVerb::Pause, r#"{"due": "2026-12-01T04:00:00Z"}"#),
            (ActionVerb::Retry, r#"{"deadline": 5}"#),
            (ActionVerb::Reschedule, r#"{"due": "2026-12-01T04:00:00Z", "minions": ["a"]}"#),
            (ActionVerb::Reschedule, "{}"),
            (ActionVerb::Fail, r#"{"minions": ["../x"]}"#),
        ] {
            assert!(read(verb, Some(7), json).is_err(), "{verb:?} {json}");
        }
    }

    #[test]
    fn an_empty_list_of_minions_is_not_everybody() {
        assert!(read(ActionVerb::Cancel, Some(7), r#"{"minions": []}"#).is_err());
    }

    #[test]
    fn what_was_done_is_told_apart_from_what_was_not() {
        let id = |text| MinionId::new(text).unwrap();
        let done = app::Done {
            action: ActionId(7),
            minions: [(id("a"), "cancelled"), (id("b"), "too late: it was sent"), (id("c"), "told to stop")].into(),
            note: "1 of 3 runs changed".into(),
        };
        let done = Done::from(done);
        let flags: Vec<bool> = done.minions.values().map(|outcome| outcome.done).collect();
        assert_eq!(flags, [true, false, true]);
    }
}
