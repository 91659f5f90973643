//! The state catalogue as JSON.

use super::Time;
use saltern_server::{Error, app};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// States, in the order of names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StateList {
    /// The states
    pub states: Vec<CatalogueState>,
    /// What `after` is for the next page; nothing: there is none
    #[serde(default)]
    pub next: Option<String>,
}

/// A state in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CatalogueState {
    /// Its name; minions know it as `catalogue.<name>`
    pub name: String,
    /// The organisation it belongs to
    pub org: String,
    /// What it is for
    pub description: String,
    /// How long its text is, in bytes
    pub size: usize,
    /// Since when
    pub created: Time,
    /// When it was last changed
    pub changed: Time,
    /// Who changed it last
    pub changed_by: String,
    /// Counts the changes; the `ETag`
    pub version: i64,
}

/// A state with its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StateDetail {
    /// What a list shows
    #[serde(flatten)]
    pub state: CatalogueState,
    /// The text that minions get
    pub content: String,
}

/// Whom a state is assigned to, as far as you see them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AssigneeList {
    /// The organisation, groups and minions
    pub assigned_to: Vec<Assignee>,
}

/// Whom a state is assigned to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Assignee {
    /// Of which kind
    pub kind: AssigneeKind,
    /// Its id or name
    pub subject: String,
}

/// What a state can be assigned to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum AssigneeKind {
    /// Every minion of the organisation
    Org,
    /// The minions that a group means
    Group,
    /// One minion
    Minion,
}

/// A state to be made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewState {
    /// Its name: words of small letters, digits and `_` with dots between them
    #[schema(pattern = r"^[a-z0-9_]+(\.[a-z0-9_]+)*$", max_length = 100)]
    pub name: String,
    /// The organisation; nothing: one's own
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub org: Option<String>,
    /// What it is for
    #[serde(default)]
    #[schema(max_length = 1000)]
    pub description: String,
    /// The text that minions get: an SLS file
    #[schema(max_length = 262_144)]
    pub content: String,
}

/// What a state is; a description that is left out is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StateContent {
    /// What it is for
    #[serde(default)]
    #[schema(max_length = 1000)]
    pub description: String,
    /// The text that minions get: an SLS file
    #[schema(max_length = 262_144)]
    pub content: String,
}

/// Versions of a state, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StateVersionList {
    /// The versions
    pub versions: Vec<StateVersion>,
    /// What `before` is for the next page; nothing: there is none
    #[serde(default)]
    pub next: Option<i64>,
}

/// One version of a state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StateVersion {
    /// Its number
    pub version: i64,
    /// Since when
    pub at: Time,
    /// Who made it
    pub by: String,
}

/// One version of a state with its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StateVersionDetail {
    /// What a list shows
    #[serde(flatten)]
    pub version: StateVersion,
    /// The text that minions got
    pub content: String,
}

/// What is assigned to a minion now, in the order it is applied in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AssignedStateList {
    /// The states; one that comes to the minion in several ways is there several times, and applied once
    pub states: Vec<AssignedState>,
}

/// A state that is assigned to a minion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AssignedState {
    /// Its name
    pub name: String,
    /// What it is for
    pub description: String,
    /// Its version
    pub version: i64,
    /// In which way it comes to the minion
    pub by: Assignee,
}

impl From<NewState> for app::StateDraft {
    fn from(NewState { name, org, description, content }: NewState) -> Self {
        Self { name, org, description, content }
    }
}

impl StateContent {
    /// The domain's draft of a state of that name.
    pub(crate) fn read(self, name: String, org: Option<String>) -> app::StateDraft {
        let Self { description, content } = self;
        app::StateDraft { name, org, description, content }
    }
}

impl Assignee {
    /// The domain's assignee; the kind is a word of a path.
    pub(crate) fn read(kind: &str, subject: String) -> Result<app::Assignee, Error> {
        let unknown = || Error::Invalid(format!("{kind:?} is nothing to assign a state to: minion, group or org"));
        Ok(app::Assignee { kind: app::AssigneeKind::parse(kind).ok_or_else(unknown)?, subject })
    }
}

impl AssigneeKind {
    /// Its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Org => "org",
            Self::Group => "group",
            Self::Minion => "minion",
        }
    }
}

impl From<app::AssigneeKind> for AssigneeKind {
    fn from(kind: app::AssigneeKind) -> Self {
        match kind {
            app::AssigneeKind::Org => Self::Org,
            app::AssigneeKind::Group => Self::Group,
            app::AssigneeKind::Minion => Self::Minion,
        }
    }
}

impl From<app::Assignee> for Assignee {
    fn from(app::Assignee { kind, subject }: app::Assignee) -> Self {
        Self { kind: kind.into(), subject }
    }
}

impl From<&app::State> for CatalogueState {
    fn from(state: &app::State) -> Self {
        Self {
            name: state.name.clone(),
            org: state.org.clone(),
            description: state.description.clone(),
            size: state.content.len(),
            created: state.created.into(),
            changed: state.changed.into(),
            changed_by: state.changed_by.clone(),
            version: state.version,
        }
    }
}

impl From<app::StateEntry> for StateDetail {
    fn from(app::StateEntry { state, .. }: app::StateEntry) -> Self {
        Self { state: (&state).into(), content: state.content }
    }
}

impl From<app::StateEntry> for AssigneeList {
    fn from(app::StateEntry { assignees, .. }: app::StateEntry) -> Self {
        Self { assigned_to: assignees.into_iter().map(Into::into).collect() }
    }
}

impl From<app::StateVersion> for StateVersion {
    fn from(app::StateVersion { version, at, by }: app::StateVersion) -> Self {
        Self { version, at: at.into(), by }
    }
}

impl From<(app::State, app::Assignee)> for AssignedState {
    fn from((state, by): (app::State, app::Assignee)) -> Self {
        let app::State { name, description, version, .. } = state;
        Self { name, description, version, by: by.into() }
    }
}
