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
            groups.push(GroupEntry { group: group.clone(), minions });
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
        if expected.is_some() {
            let known = self.group(caller, &group.name).await?.group;
            // Who looks after a group chooses among the minions he sees; whom a target means is beyond that.
            if group.target != known.target {
                self.may(caller, &Wish::Manage(Thing::Users { org: &known.org }))?;
            }
            (group.org, group.created) = (known.org, known.created);
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
        if let Some(hidden) = group.members.iter().find(|id| !caller.sight().sees(id)) {
            return Err(Error::NotFound(format!("there is no minion {hidden}")));
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

fn knows(caller: &Caller, group: &Group) -> bool {
    caller.rights.server_admin || caller.rights.org == group.org
}
