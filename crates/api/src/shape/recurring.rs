//! What recurs as JSON: the definition, what it does on whom and when, and what somebody does with it.

use super::Time;
use super::fires::Fire;
use super::policy::PolicyShape;
use crate::app;
use saltern_core::action::Policy;
use saltern_core::ids::RecurringId;
use saltern_core::value::Value;
use saltern_server::Error;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use utoipa::ToSchema;

/// What recurs, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecurringList {
    /// The definitions
    pub recurring: Vec<Recurring>,
    /// What `after` is for the next page; nothing: there is none
    #[serde(default)]
    pub next: Option<i64>,
}

/// Something that recurs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Recurring {
    /// Its number
    pub id: i64,
    /// Its name, of which there is one on what it is done on
    pub name: String,
    /// The organisation it belongs to
    pub org: String,
    /// What it is done on
    pub entity: RecurringEntity,
    /// What is done; without parameters for whoever may not change it
    pub what: RecurringWhat,
    /// When: a cron expression
    pub cron: String,
    /// The same in words
    pub words: String,
    /// The time zone of that
    pub zone: String,
    /// Whether it is done at all
    pub active: bool,
    /// Whether the next time is left out
    pub skip_next: bool,
    /// When it is next; nothing: never, as it is
    pub next: Option<Time>,
    /// What became of the last time
    pub last: Option<Fire>,
    /// As whose work it is done
    pub owner: String,
    /// Who made it
    pub creator: String,
    /// Over how many seconds the minions are spread
    pub spread: u64,
    /// What happens where an earlier time has not ended
    pub overlap: Overlap,
    /// What happens with times that the server was not there for
    pub catch_up: CatchUp,
    /// For how many seconds a time is worth catching up with
    pub catch_up_limit: u64,
    /// Whether minions outside of their maintenance window do it in their next one, and are not left out
    pub in_window: bool,
    /// Seconds after it is due in which whatever is open ends; nothing: as configured
    pub deadline: Option<u64>,
    /// The rules it is carried out by
    #[schema(value_type = PolicyShape)]
    pub policy: Policy,
    /// Whether you may change it
    pub changeable: bool,
    /// Since when
    pub created: Time,
    /// When it was last changed
    pub changed: Time,
    /// Counts the changes; the `ETag`
    pub version: i64,
}

/// Something that is to recur; what is left out is as usual.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RecurringDraft {
    /// Its name, of which there is one on what it is done on
    #[schema(min_length = 1, max_length = 200, example = "Nightly updates")]
    pub name: String,
    /// What it is done on
    pub entity: RecurringEntity,
    /// What is done
    pub what: RecurringWhat,
    /// When: a cron expression of five fields, or of six with the seconds first
    #[schema(example = "30 2 * * SUN")]
    pub cron: String,
    /// The time zone of that, by its IANA name; nothing: UTC
    #[serde(default = "utc")]
    #[schema(example = "Europe/Prague", required = false)]
    pub zone: String,
    /// Whether it is done at all
    #[serde(default = "yes")]
    #[schema(default = true, required = false)]
    pub active: bool,
    /// Over how many seconds the minions are spread, never into the next time
    #[serde(default)]
    #[schema(maximum = 604_800)]
    pub spread: u64,
    /// What happens where an earlier time has not ended
    #[serde(default)]
    pub overlap: Overlap,
    /// What happens with times that the server was not there for
    #[serde(default)]
    pub catch_up: CatchUp,
    /// For how many seconds a time is worth catching up with, where all are
    #[serde(default = "a_day")]
    #[schema(default = 86_400, maximum = 2_678_400, required = false)]
    pub catch_up_limit: u64,
    /// Whether minions outside of their maintenance window do it in their next one, and are not left out
    #[serde(default)]
    pub in_window: bool,
    /// Seconds after it is due in which whatever is open ends; nothing: as configured
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 31_622_400)]
    pub deadline: Option<u64>,
    /// The rules it is carried out by
    #[serde(default)]
    #[schema(value_type = PolicyShape)]
    pub policy: Policy,
}

/// What something is done on. Who that is is looked up each time.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RecurringEntity {
    /// What kind of thing
    pub kind: EntityKind,
    /// Its id or name; of a target its expression, which is a compound one
    pub subject: String,
}

/// What kind of thing something is done on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum EntityKind {
    /// One minion
    Minion,
    /// The minions that a group means
    Group,
    /// Every minion of an organisation
    Org,
    /// Whom a target means
    Target,
}

/// What is done each time: an action of some type, or a chain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RecurringWhat {
    /// The action's type
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "states")]
    pub kind: Option<String>,
    /// The number of a chain that is launched, in place of a type
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<i64>,
    /// The parameters; of a chain those that are other than its own, by the number of the step
    #[serde(default, skip_serializing_if = "Value::is_nil")]
    #[schema(value_type = Option<Object>)]
    pub params: Value,
}

/// What happens on a minion where an earlier time has not ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Overlap {
    /// It is left out, and told so
    #[default]
    Skip,
    /// One more waits there, not two
    Queue,
    /// Nobody looks
    Allow,
}

/// What happens with times that the server was not there for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum CatchUp {
    /// They are missed
    None,
    /// The newest is done late, the others are missed
    #[default]
    Once,
    /// All that are not too old are done late
    All,
}

/// What is to be done with something that recurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RecurringVerb {
    /// Do it at once, as your own work
    Run,
    /// Leave out the next time
    SkipNext,
    /// Do not leave out the next time
    UnskipNext,
    /// Let it recur
    Activate,
    /// Do not let it recur
    Deactivate,
    /// Have it done as your own work from now on
    TakeOver,
}

/// What came of that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecurringDone {
    /// As it is now
    pub recurring: Recurring,
    /// The action that was made
    pub action: Option<i64>,
    /// The launch that was made
    pub launch: Option<i64>,
}

fn utc() -> String {
    "UTC".into()
}

const fn yes() -> bool {
    true
}

const fn a_day() -> u64 {
    86_400
}

impl RecurringDraft {
    /// The domain's draft, if this is one.
    pub(crate) fn read(self) -> Result<app::RecurringDraft, Error> {
        Ok(app::RecurringDraft {
            name: self.name,
            entity: self.entity.into(),
            what: self.what.read()?,
            cron: self.cron,
            zone: self.zone,
            active: self.active,
            spread: Duration::from_secs(self.spread),
            overlap: self.overlap.into(),
            catch_up: self.catch_up.into(),
            catch_up_limit: Duration::from_secs(self.catch_up_limit),
            in_window: self.in_window,
            deadline: self.deadline.map(Duration::from_secs),
            policy: self.policy,
        })
    }

    /// A definition as a draft of itself.
    pub fn of(recurring: &Recurring) -> Self {
        let Recurring { name, entity, what, cron, zone, policy, .. } = recurring.clone();
        Self {
            name,
            entity,
            what,
            cron,
            zone,
            active: recurring.active,
            spread: recurring.spread,
            overlap: recurring.overlap,
            catch_up: recurring.catch_up,
            catch_up_limit: recurring.catch_up_limit,
            in_window: recurring.in_window,
            deadline: recurring.deadline,
            policy,
        }
    }
}

impl RecurringWhat {
    fn read(&self) -> Result<app::RecurringWhat, Error> {
        let json = serde_json::to_string(self).map_err(|error| Error::Invalid(error.to_string()))?;
        app::RecurringWhat::read(&json)
    }
}

impl RecurringVerb {
    /// Every one of them.
    pub const ALL: [Self; 6] =
        [Self::Run, Self::SkipNext, Self::UnskipNext, Self::Activate, Self::Deactivate, Self::TakeOver];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::SkipNext => "skip-next",
            Self::UnskipNext => "unskip-next",
            Self::Activate => "activate",
            Self::Deactivate => "deactivate",
            Self::TakeOver => "take-over",
        }
    }

    /// Reads the word.
    pub(crate) fn read(word: &str) -> Result<app::RecurringVerb, Error> {
        let known = || Self::ALL.map(Self::as_str).join(", ");
        let verb = Self::ALL.into_iter().find(|verb| verb.as_str() == word);
        let verb =
            verb.ok_or_else(|| Error::NotFound(format!("nothing is called {word:?} here: there are {}", known())));
        Ok(match verb? {
            Self::Run => app::RecurringVerb::RunNow,
            Self::SkipNext => app::RecurringVerb::SkipNext(true),
            Self::UnskipNext => app::RecurringVerb::SkipNext(false),
            Self::Activate => app::RecurringVerb::Activate(true),
            Self::Deactivate => app::RecurringVerb::Activate(false),
            Self::TakeOver => app::RecurringVerb::TakeOver,
        })
    }
}

impl From<RecurringEntity> for app::EntityRef {
    fn from(RecurringEntity { kind, subject }: RecurringEntity) -> Self {
        let kind = match kind {
            EntityKind::Minion => app::EntityKind::Minion,
            EntityKind::Group => app::EntityKind::Group,
            EntityKind::Org => app::EntityKind::Organisation,
            EntityKind::Target => app::EntityKind::Target,
        };
        Self { kind, subject }
    }
}

impl From<app::EntityRef> for RecurringEntity {
    fn from(app::EntityRef { kind, subject }: app::EntityRef) -> Self {
        let kind = match kind {
            app::EntityKind::Minion => EntityKind::Minion,
            app::EntityKind::Group => EntityKind::Group,
            app::EntityKind::Organisation => EntityKind::Org,
            app::EntityKind::Target => EntityKind::Target,
        };
        Self { kind, subject }
    }
}

impl From<app::RecurringWhat> for RecurringWhat {
    fn from(what: app::RecurringWhat) -> Self {
        let value = what.value();
        let kind = value.get("type").and_then(Value::as_str).map(str::to_owned);
        let chain = value.get("chain").and_then(Value::as_i64);
        let is_said = |params: &&Value| params.as_map().is_some_and(|params| !params.is_empty());
        Self { kind, chain, params: value.get("params").filter(is_said).cloned().unwrap_or_default() }
    }
}

impl From<Overlap> for app::Overlap {
    fn from(overlap: Overlap) -> Self {
        match overlap {
            Overlap::Skip => Self::Skip,
            Overlap::Queue => Self::Queue,
            Overlap::Allow => Self::Allow,
        }
    }
}

impl From<app::Overlap> for Overlap {
    fn from(overlap: app::Overlap) -> Self {
        match overlap {
            app::Overlap::Skip => Self::Skip,
            app::Overlap::Queue => Self::Queue,
            app::Overlap::Allow => Self::Allow,
        }
    }
}

impl From<CatchUp> for app::CatchUp {
    fn from(catch_up: CatchUp) -> Self {
        match catch_up {
            CatchUp::None => Self::None,
            CatchUp::Once => Self::Once,
            CatchUp::All => Self::All,
        }
    }
}

impl From<app::CatchUp> for CatchUp {
    fn from(catch_up: app::CatchUp) -> Self {
        match catch_up {
            app::CatchUp::None => Self::None,
            app::CatchUp::Once => Self::Once,
            app::CatchUp::All => Self::All,
        }
    }
}

impl From<app::RecurringView> for Recurring {
    fn from(view: app::RecurringView) -> Self {
        let row = view.recurring;
        let seconds = |count: i64| u64::try_from(count).unwrap_or(0);
        Self {
            id: row.id.0,
            name: row.name,
            org: row.org,
            entity: view.entity.into(),
            what: view.what.into(),
            cron: row.cron,
            words: view.words,
            zone: row.zone,
            active: row.active,
            skip_next: row.skip_next,
            next: row.next.map(Into::into),
            last: view.last.map(Into::into),
            owner: row.owner,
            creator: row.creator,
            spread: seconds(row.spread),
            overlap: view.overlap.into(),
            catch_up: view.catch_up.into(),
            catch_up_limit: seconds(row.catch_up_limit),
            in_window: row.in_window,
            deadline: row.deadline.map(seconds),
            policy: view.policy,
            changeable: view.is_his,
            created: row.created.into(),
            changed: row.changed.into(),
            version: row.version,
        }
    }
}

impl From<app::RecurringDone> for RecurringDone {
    fn from(done: app::RecurringDone) -> Self {
        Self {
            recurring: done.recurring.into(),
            action: done.action.map(|action| action.0),
            launch: done.launch.map(|launch| launch.0),
        }
    }
}

/// Reads the number of something that recurs out of a path.
pub(crate) fn read_recurring_id(text: &str) -> Result<RecurringId, Error> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.map(RecurringId).ok_or_else(|| Error::Invalid(format!("{text:?} is not the number of a recurring action")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<app::RecurringDraft, String> {
        let draft: RecurringDraft = serde_json::from_str(json).map_err(|error| error.to_string())?;
        draft.read().map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_left_out_is_as_usual() {
        let draft = read(
            r#"{"name": "n", "entity": {"kind": "org", "subject": "default"}, "what": {"type": "states"}, "cron": "@daily"}"#,
        )
        .unwrap();
        assert_eq!((draft.zone.as_str(), draft.active, draft.in_window), ("UTC", true, false));
        assert_eq!(draft.entity, app::EntityRef::new(app::EntityKind::Organisation, "default"));
        assert_eq!((draft.overlap, draft.catch_up), (app::Overlap::Skip, app::CatchUp::Once));
        assert_eq!((draft.catch_up_limit, draft.deadline), (Duration::from_secs(86_400), None));
    }

    #[test]
    fn what_is_done_is_a_type_or_a_chain() {
        let what = |json: &str| {
            let entity = r#"{"kind": "minion", "subject": "web1"}"#;
            read(&format!(r#"{{"name": "n", "entity": {entity}, "what": {json}, "cron": "@daily"}}"#))
                .map(|draft| draft.what)
        };
        for json in [
            r#"{"type":"states","params":{"mods":["web"],"test":true}}"#,
            r#"{"chain":12,"params":{"2":{"fun":"test.ping"}}}"#,
            r#"{"type":"states"}"#,
        ] {
            let shape = RecurringWhat::from(what(json).unwrap());
            assert_eq!(serde_json::to_string(&shape).unwrap(), json);
        }
        for bad in
            [r#"{}"#, r#"{"type": "states", "chain": 1}"#, r#"{"type": "states", "params": 3}"#, r#"{"typ": "x"}"#]
        {
            assert!(what(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_verb_has_a_word_that_is_read_back() {
        for verb in RecurringVerb::ALL {
            assert_eq!(serde_json::to_string(&verb).unwrap(), format!("\"{}\"", verb.as_str()));
            assert!(RecurringVerb::read(verb.as_str()).is_ok());
        }
        assert!(RecurringVerb::read("explode").unwrap_err().to_string().contains("skip-next"));
    }

    #[test]
    fn numbers_are_numbers() {
        assert_eq!(read_recurring_id("7").unwrap(), RecurringId(7));
        assert!(read_recurring_id("0").is_err() && read_recurring_id("nightly").is_err());
    }
}
