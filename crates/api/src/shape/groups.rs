//! System groups as JSON.

use super::Time;
use super::actions::read_minion;
use super::jobs::texts;
use saltern_core::time::Timestamp;
use saltern_server::{Error, app};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Groups, in the order of names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GroupList {
    /// The groups
    pub groups: Vec<Group>,
    /// What `after` is for the next page; nothing: there is none
    #[serde(default)]
    pub next: Option<String>,
}

/// A group in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Group {
    /// Its name
    pub name: String,
    /// The organisation it belongs to
    pub org: String,
    /// What it is for
    pub description: String,
    /// The target expression that its minions match
    pub target: Option<String>,
    /// The target's type
    pub tgt_type: Option<String>,
    /// How many minions it means now
    pub minion_count: usize,
    /// Since when
    pub created: Time,
    /// Counts the changes; the `ETag`
    pub version: i64,
}

/// A group with its minions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GroupDetail {
    /// What a list shows
    #[serde(flatten)]
    pub group: Group,
    /// The minions that were named one by one
    pub members: Vec<String>,
    /// The minions it means now
    pub minions: Vec<String>,
}

/// A group to be made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewGroup {
    /// Its name: letters, digits and `- _ . @`
    #[schema(pattern = "^[A-Za-z0-9_@][A-Za-z0-9_.@-]{0,63}$")]
    pub name: String,
    /// The organisation; nothing: one's own
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub org: Option<String>,
    /// What it is for
    #[serde(default)]
    #[schema(max_length = 1000)]
    pub description: String,
    /// A target expression: whoever matches it belongs to the group
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The target's type; nothing: `compound`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tgt_type: Option<String>,
    /// Minions that belong to it whatever they match
    #[serde(default)]
    pub members: Vec<String>,
}

/// What a group is; what is left out is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupContent {
    /// What it is for
    #[serde(default)]
    #[schema(max_length = 1000)]
    pub description: String,
    /// A target expression: whoever matches it belongs to the group
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The target's type; nothing: `compound`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tgt_type: Option<String>,
    /// Minions that belong to it whatever they match
    #[serde(default)]
    pub members: Vec<String>,
}

impl NewGroup {
    /// The domain's group.
    pub(crate) fn read(self) -> Result<app::Group, Error> {
        let Self { name, org, description, target, tgt_type, members } = self;
        GroupContent { description, target, tgt_type, members }.read(name, org.unwrap_or_default())
    }
}

impl GroupContent {
    /// The domain's group of that name.
    pub(crate) fn read(self, name: String, org: String) -> Result<app::Group, Error> {
        if self.target.is_none() && self.tgt_type.is_some() {
            return Err(Error::Invalid("tgt_type says how to read target: give that, too".into()));
        }
        let kind = self.tgt_type.unwrap_or_else(|| "compound".into());
        Ok(app::Group {
            name,
            org,
            description: self.description,
            target: self.target.map(|target| (kind, target)),
            members: self.members.iter().map(|id| read_minion(id)).collect::<Result<_, _>>()?,
            created: Timestamp(0),
            version: 0,
        })
    }
}

impl From<&app::GroupEntry> for Group {
    fn from(app::GroupEntry { group, minions }: &app::GroupEntry) -> Self {
        let (tgt_type, target) = group.target.clone().unzip();
        Self {
            name: group.name.clone(),
            org: group.org.clone(),
            description: group.description.clone(),
            target,
            tgt_type,
            minion_count: minions.len(),
            created: group.created.into(),
            version: group.version,
        }
    }
}

impl From<app::GroupEntry> for GroupDetail {
    fn from(entry: app::GroupEntry) -> Self {
        Self { group: (&entry).into(), members: texts(&entry.group.members), minions: texts(&entry.minions) }
    }
}
