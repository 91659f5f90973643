//! What a definition is done on: a minion, a group, an organisation or a target; who that is at the moment, and who may.

use super::definition::Definition;
use super::instants::Round;
use crate::Error;
use crate::master::Master;
use saltern_core::access::{Entity, Rights, Sight, Thing, Wish};
use saltern_core::ids::MinionId;
use saltern_core::target::{Target, TargetType};
use saltern_store::Recurring;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What a definition is done on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EntityRef {
    /// What kind of thing
    pub kind: EntityKind,
    /// Its name; a target's expression, which is a compound one
    pub subject: String,
}

/// What kind of thing something is done on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntityKind {
    /// One minion
    Minion,
    /// The members of a group
    Group,
    /// The minions of an organisation
    #[serde(rename = "org")]
    Organisation,
    /// Whom a target means
    Target,
}

impl EntityKind {
    /// Every one of them.
    pub const ALL: [Self; 4] = [Self::Minion, Self::Group, Self::Organisation, Self::Target];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Minion => "minion",
            Self::Group => "group",
            Self::Organisation => "org",
            Self::Target => "target",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

impl std::fmt::Display for EntityRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.kind.as_str(), self.subject)
    }
}

impl EntityRef {
    /// A thing of this kind and name.
    pub fn new(kind: EntityKind, subject: impl Into<String>) -> Self {
        Self { kind, subject: subject.into() }
    }

    pub(super) fn read(row: &Recurring) -> Option<Self> {
        Some(Self { kind: EntityKind::parse(&row.entity_kind)?, subject: row.entity.clone() })
    }

    /// Whether somebody may have things recur on it.
    pub(crate) fn check(&self, rights: &Rights, org: &str) -> Result<(), Error> {
        let may = |entity| {
            let wish = Wish::Manage(Thing::Recurring { org, entity });
            rights.may(&wish).map_err(|refusal| Error::Forbidden(refusal.message))
        };
        match self.kind {
            EntityKind::Minion => may(Entity::Minion(&self.minion()?)),
            EntityKind::Group => may(Entity::Group(&self.subject)),
            EntityKind::Organisation => may(Entity::Organisation(&self.subject)),
            EntityKind::Target => may(Entity::Target),
        }
    }

    pub(crate) fn minion(&self) -> Result<MinionId, Error> {
        MinionId::new(&self.subject).map_err(|error| Error::Invalid(error.to_string()))
    }

    pub(crate) fn target(&self) -> Target {
        Target::new(TargetType::Compound, self.subject.as_str())
    }
}

impl Master {
    /// Who it is at this moment, in the order of ids. A group, or an organisation, that is gone is an error.
    pub(crate) async fn minions_of_entity(self: &Arc<Self>, entity: &EntityRef) -> Result<Vec<MinionId>, Error> {
        let snapshot = self.directory.snapshot();
        let name = &entity.subject;
        let sight = match entity.kind {
            EntityKind::Minion => {
                let minion = entity.minion()?;
                return Ok(self.member(minion.as_str()).map(|member| member.id.clone()).into_iter().collect());
            }
            EntityKind::Target => {
                let (members, _) = self.resolve(&entity.target()).await?;
                return Ok(members.iter().map(|member| member.id.clone()).collect());
            }
            EntityKind::Group => {
                let none = || Error::NotFound(format!("there is no group {name:?}"));
                self.minions_of_group(&snapshot, snapshot.groups.get(name).ok_or_else(none)?).await?
            }
            EntityKind::Organisation => {
                if !snapshot.organisations.contains_key(name) {
                    return Err(Error::NotFound(format!("there is no organisation {name:?}")));
                }
                self.minions_of_org(&snapshot, name)
            }
        };
        Ok(match sight {
            Sight::Some(minions) => minions.iter().cloned().collect(),
            Sight::All => {
                let mut all: Vec<MinionId> = self.members().iter().map(|member| member.id.clone()).collect();
                all.sort_unstable();
                all
            }
        })
    }

    /// Whether a definition would be done on this minion if it fired now.
    pub(crate) async fn recurs_on(self: &Arc<Self>, round: &Round, definition: &Definition, minion: &MinionId) -> bool {
        let Ok(owner) = self.owner_in_round(round, definition).await else { return false };
        let may = owner.sees.sees(minion) && definition.entity.check(&owner, &definition.row.org).is_ok();
        may && self.minions_in_round(round, definition).await.is_ok_and(|minions| minions.binary_search(minion).is_ok())
    }

    /// Who it is at this moment, looked up once in a round.
    pub(super) async fn minions_in_round(
        self: &Arc<Self>,
        round: &Round,
        definition: &Definition,
    ) -> Result<Arc<Vec<MinionId>>, Error> {
        let cell = round.minions(&definition.entity);
        let minions = cell
            .get_or_try_init(|| async { Ok::<_, Error>(Arc::new(self.minions_of_entity(&definition.entity).await?)) });
        Ok(minions.await?.clone())
    }
}
