//! System groups: minions by name, by target expression, or both; always of one organisation.

use super::organisations::{check_name, short, written_or};
use super::users::own_org;
use super::{App, Caller};
use crate::{Error, clock};
use saltern_core::access::{Sight, Thing, Wish};
use saltern_core::ids::MinionId;
use saltern_core::target::{Target, TargetType};
use saltern_store::Group;

/// A group with the minions it means now, as far as the caller sees them.
#[derive(Clone, Debug)]
pub struct GroupEntry {
    /// As it was made
    pub group: Group,
    /// Whom it means now
    pub minions: Vec<MinionId>,
}

/// Most minions that can be named one by one.
const MOST_MEMBERS: usize = 100_000;

impl App {
    /// The groups he may know of, in the order of names.
    pub async fn groups(&self, caller: &Caller) -> Result<Vec<GroupEntry>, Error> {
        let snapshot = self.master.directory.snapshot();
        let mut groups = Vec::new();
        for group in snapshot.groups.values().filter(|group| knows(caller, group)) {
            let minions = match self.master.minions_of_group(&snapshot, group).await? {
                Sight::Some(minions) => minions.iter().filter(|id| caller.sight().sees(id)).cloned().collect(),
                Sight::All => Vec::new(),
            };
            let mut group = group.clone();
            if !self.looks_after(caller, &group.org) {
                group.members.retain(|id| caller.sight().sees(id));
            }
            groups.push(GroupEntry { group, minions });
        }
        Ok(groups)
    }

    /// One group.
    pub async fn group(&self, caller: &Caller, name: &str) -> Result<GroupEntry, Error> {
        let found = self.groups(caller).await?.into_iter().find(|entry| entry.group.name == name);
        found.ok_or_else(|| Error::NotFound(format!("there is no group {name:?}")))
    }

    /// Makes a group (`expected` is nothing) or changes it. Its organisation stays what it was.
    pub async fn put_group(&self, caller: &Caller, group: Group, expected: Option<i64>) -> Result<GroupEntry, Error> {
        check_name("group", &group.name)?;
        let mut group = group;
        let mut before = Vec::new();
        if expected.is_some() {
            self.group(caller, &group.name).await?;
            let missing = || Error::NotFound(format!("there is no group {:?}", group.name));
            let known = self.master.directory.snapshot().groups.get(&group.name).cloned().ok_or_else(missing)?;
            self.may(caller, &Wish::Manage(Thing::Group { org: &known.org, name: &known.name }))?;
            // Who looks after a group chooses among the minions he operates; whom a target means is beyond that.
            if !self.looks_after(caller, &known.org) {
                if group.target != known.target {
                    return Err(Error::Forbidden(
                        "the target of a group is set by admins of its organisation and by server admins".into(),
                    ));
                }
                // Those he does not see were not in what he has read: they stay.
                group.members.extend(known.members.iter().filter(|id| !caller.sight().sees(id)).cloned());
            }
            (group.org, group.created, before) = (known.org, known.created, known.members);
        } else {
            group.created = clock::now();
            if group.org.is_empty() {
                group.org = own_org(caller);
            }
            self.organisation(caller, &group.org)?;
        }
        self.may(caller, &Wish::Manage(Thing::Group { org: &group.org, name: &group.name }))?;
        group.description = short(&group.description)?;
        if let Some((kind, expression)) = &group.target {
            let invalid = |error: saltern_core::target::TargetError| Error::Invalid(error.to_string());
            let target = Target::new(TargetType::parse(kind).map_err(invalid)?, expression.as_str());
            target.compile(&self.master.config.nodegroups).map_err(invalid)?;
        }
        if group.members.len() > MOST_MEMBERS {
            return Err(Error::Invalid(format!("at most {MOST_MEMBERS} minions are named one by one; use a target")));
        }
        for new in group.members.iter().filter(|id| !before.contains(id)) {
            if !caller.sight().sees(new) {
                return Err(Error::NotFound(format!("there is no minion {new}")));
            }
            // With a group go the roles on it, his own among them: who only reads a minion must not take it in.
            self.may(caller, &Wish::Operate(std::slice::from_ref(new)))?;
        }
        group.members.sort();
        group.members.dedup();
        let detail = serde_json::json!({ "org": group.org, "target": group.target, "members": group.members.len() });
        let verb = if expected.is_some() { "group.change" } else { "group.create" };
        let audit = caller.audit(verb, &group.name, detail);
        let name = group.name.clone();
        let written = self.master.store.put_group(group, expected, audit).await?;
        written_or(written, "group", &name)?;
        self.people_changed().await?;
        self.group(caller, &name).await
    }

    /// Removes a group, and the roles that were given on it.
    pub async fn delete_group(&self, caller: &Caller, name: &str, expected: i64) -> Result<(), Error> {
        let known = self.group(caller, name).await?.group;
        // Who looks after a group may change it; to remove it is for those who made it.
        self.may(caller, &Wish::Manage(Thing::Users { org: &known.org }))?;
        let audit = caller.audit("group.delete", name, serde_json::json!({}));
        let written = self.master.store.delete_group(name.to_owned(), Some(expected), audit).await?;
        written_or(written, "group", name)?;
        self.people_changed().await
    }
}

impl App {
    /// Whether he looks after an organisation, and with it after all of its groups.
    fn looks_after(&self, caller: &Caller, org: &str) -> bool {
        self.may(caller, &Wish::Manage(Thing::Users { org })).is_ok()
    }
}

fn knows(caller: &Caller, group: &Group) -> bool {
    caller.rights.server_admin || caller.rights.org == group.org
}
