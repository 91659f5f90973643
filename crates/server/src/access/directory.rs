//! The people, groups and organisations as the database has them, and what they come to on the minions there are now.
//!
//! Read whole into memory: there are thousands at most, and every request asks. A group's members are looked up again after
//! a second, because grains change; everything else when somebody changes it, here or on another server.

use super::Person;
use crate::Error;
use crate::master::Master;
use saltern_core::access::{Entry, Grant, Rights, Role, Rule, Sight};
use saltern_core::ids::MinionId;
use saltern_core::target::{Target, TargetType};
use saltern_store::{Counter, Group, Organisation, Store, User};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How long the members of a group that is given by a target are believed.
const FRESH: Duration = Duration::from_secs(1);

/// The organisation of everything that was not given another one.
pub(crate) const DEFAULT_ORG: &str = "default";

/// What the database has of people.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) users: BTreeMap<String, User>,
    pub(crate) groups: BTreeMap<String, Group>,
    pub(crate) organisations: BTreeMap<String, Organisation>,
    /// The organisations of minions that are not in the default one
    pub(crate) minion_orgs: HashMap<MinionId, String>,
    /// How many changes there had been
    changes: i64,
}

/// The directory.
pub(crate) struct Directory {
    snapshot: RwLock<Arc<Snapshot>>,
    resolved: Mutex<HashMap<String, (Instant, Sight)>>,
    /// Counts changes of people, groups and tokens, for whoever holds on to rights
    changes: watch::Sender<u64>,
}

impl Directory {
    /// Reads everything.
    pub(crate) async fn open(store: &Store) -> Result<Self, Error> {
        let snapshot = Snapshot::read(store).await?;
        Ok(Self {
            snapshot: RwLock::new(Arc::new(snapshot)),
            resolved: Mutex::default(),
            changes: watch::Sender::new(0),
        })
    }

    /// Reads everything again if another server has changed something.
    pub(crate) async fn notice_changes(&self, store: &Store) -> Result<(), Error> {
        let changes = store.taken(Counter::People).await?;
        if self.snapshot().changes != changes {
            self.reread(store).await?;
        }
        Ok(())
    }

    /// Reads everything again: something was changed.
    pub(crate) async fn reread(&self, store: &Store) -> Result<(), Error> {
        let snapshot = Arc::new(Snapshot::read(store).await?);
        *self.snapshot.write().unwrap_or_else(PoisonError::into_inner) = snapshot;
        self.members_changed();
        self.tell_change();
        Ok(())
    }

    /// What is known now.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Minions came or went by somebody's decision: he is not to wait a second until he may do something with them.
    pub(crate) fn members_changed(&self) {
        self.resolved.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Wakes whoever holds on to rights.
    pub(crate) fn tell_change(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Is told when rights may have changed.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn remembered(&self, key: &str) -> Option<Sight> {
        let resolved = self.resolved.lock().unwrap_or_else(PoisonError::into_inner);
        resolved.get(key).filter(|(at, _)| at.elapsed() < FRESH).map(|(_, sight)| sight.clone())
    }

    fn remember(&self, key: String, sight: &Sight) {
        let mut resolved = self.resolved.lock().unwrap_or_else(PoisonError::into_inner);
        resolved.retain(|_, (at, _)| at.elapsed() < FRESH);
        resolved.insert(key, (Instant::now(), sight.clone()));
    }
}

impl Snapshot {
    async fn read(store: &Store) -> Result<Self, Error> {
        // Counted first: what changes while this is read is read again.
        let changes = store.taken(Counter::People).await?;
        Ok(Self {
            changes,
            users: store.users().await?.into_iter().map(|user| (user.name.clone(), user)).collect(),
            groups: store.groups().await?.into_iter().map(|group| (group.name.clone(), group)).collect(),
            organisations: store.organisations().await?.into_iter().map(|org| (org.name.clone(), org)).collect(),
            minion_orgs: store.minion_orgs().await?.into_iter().collect(),
        })
    }

    /// The organisation a minion belongs to.
    pub(crate) fn org_of(&self, minion: &MinionId) -> &str {
        self.minion_orgs.get(minion).map_or(DEFAULT_ORG, String::as_str)
    }
}

impl Master {
    /// What somebody may do now.
    pub(crate) async fn rights(self: &Arc<Self>, person: &Person) -> Result<Rights, Error> {
        let snapshot = self.directory.snapshot();
        let known = snapshot.users.get(&person.name);
        if known.is_some_and(|user| user.disabled) {
            return Err(Error::Unauthenticated("this account is disabled".into()));
        }
        // One name, one person: who is vouched for by something else than the directory says is somebody else.
        if known.is_some_and(|user| user.auth != person.auth) {
            return Err(Error::Unauthenticated("this name belongs to another account".into()));
        }
        let mut rights = Rights::nobody(person.name.as_str());
        rights.scope = person.scope;
        if let Some(user) = known {
            rights.org.clone_from(&user.org);
            for grant in user.grants.iter().filter_map(|text| Grant::parse(text).ok()) {
                self.give(&mut rights, &snapshot, &grant).await?;
            }
        }
        let entries = self.config.login.external_auth.entries(&person.auth, &person.name, &person.groups);
        let mut rules = Vec::with_capacity(entries.len());
        for entry in entries {
            let minions = match &entry {
                Entry::Target { expression, .. } => {
                    self.minions_of(TargetType::Compound, expression).await.unwrap_or_else(|error| {
                        tracing::warn!(expression, %error, "a target in external_auth means nobody");
                        Sight::none()
                    })
                }
                _ => Sight::All,
            };
            rules.push(Rule { entry, minions });
        }
        rights.take_rules(rules);
        Ok(rights)
    }

    async fn give(self: &Arc<Self>, rights: &mut Rights, snapshot: &Snapshot, grant: &Grant) -> Result<(), Error> {
        let minions = match (&grant.role, &grant.group) {
            (Role::ServerAdmin, _) => Sight::All,
            (_, Some(group)) => match snapshot.groups.get(group).filter(|group| group.org == rights.org) {
                Some(group) => self.minions_of_group(snapshot, group).await?,
                // The group is gone, or he is in another organisation now, and the right with it.
                None => return Ok(()),
            },
            (_, None) => self.minions_of_org(snapshot, &rights.org),
        };
        rights.take_grant(grant, minions);
        Ok(())
    }

    /// The minions of a group: named ones and those its target means, as far as they are of its organisation.
    pub(crate) async fn minions_of_group(self: &Arc<Self>, snapshot: &Snapshot, group: &Group) -> Result<Sight, Error> {
        let key = format!("group {}", group.name);
        if let Some(sight) = self.directory.remembered(&key) {
            return Ok(sight);
        }
        let mut minions: BTreeSet<MinionId> =
            group.members.iter().filter(|id| self.member(id.as_str()).is_some()).cloned().collect();
        if let Some((kind, expression)) = &group.target {
            let kind = TargetType::parse(kind).unwrap_or_default();
            // A target that has become wrong means nobody; it was checked when the group was made.
            if let Sight::Some(meant) = self.minions_of(kind, expression).await.unwrap_or_else(|_| Sight::none()) {
                minions.extend(meant.iter().cloned());
            }
        }
        minions.retain(|id| snapshot.org_of(id) == group.org);
        let sight = Sight::Some(Arc::new(minions));
        self.directory.remember(key, &sight);
        Ok(sight)
    }

    /// The minions of an organisation. As long as there is only one, these are all.
    pub(crate) fn minions_of_org(&self, snapshot: &Snapshot, org: &str) -> Sight {
        if snapshot.minion_orgs.is_empty() && org == DEFAULT_ORG {
            return Sight::All;
        }
        let key = format!("org {org}");
        if let Some(sight) = self.directory.remembered(&key) {
            return sight;
        }
        let members = self.members();
        let minions = members.iter().map(|member| &member.id).filter(|id| snapshot.org_of(id) == org).cloned();
        let sight = Sight::Some(Arc::new(minions.collect()));
        self.directory.remember(key, &sight);
        sight
    }

    async fn minions_of(self: &Arc<Self>, kind: TargetType, expression: &str) -> Result<Sight, Error> {
        let key = format!("{kind} {expression}");
        if let Some(sight) = self.directory.remembered(&key) {
            return Ok(sight);
        }
        let target = Target::new(kind, expression);
        let (members, _) = self.resolve(&target).await?;
        let sight = Sight::Some(Arc::new(members.iter().map(|member| member.id.clone()).collect()));
        self.directory.remember(key, &sight);
        Ok(sight)
    }
}
