//! Organisations: the walls inside a server. A minion, a user and a group belong to one.

use super::{App, Caller};
use crate::{Error, clock};
use saltern_core::access::{Thing, Wish};
use saltern_core::ids::MinionId;
use saltern_store::{Organisation, Written};

/// Most characters of a name.
const LONGEST_NAME: usize = 64;

impl App {
    /// The organisations he may know of, in the order of names.
    pub fn organisations(&self, caller: &Caller) -> Vec<Organisation> {
        let snapshot = self.master.directory.snapshot();
        let visible = |org: &&Organisation| caller.rights.server_admin || caller.rights.org == org.name;
        snapshot.organisations.values().filter(visible).cloned().collect()
    }

    /// One organisation.
    pub fn organisation(&self, caller: &Caller, name: &str) -> Result<Organisation, Error> {
        let found = self.organisations(caller).into_iter().find(|org| org.name == name);
        found.ok_or_else(|| Error::NotFound(format!("there is no organisation {name:?}")))
    }

    /// Makes an organisation, or changes its description.
    pub async fn put_organisation(
        &self,
        caller: &Caller,
        name: &str,
        description: &str,
        expected: Option<i64>,
    ) -> Result<Organisation, Error> {
        let thing = if expected.is_some() { Thing::Organisation(name) } else { Thing::Organisations };
        self.may(caller, &Wish::Manage(thing))?;
        check_name("organisation", name)?;
        let created = self.organisation(caller, name).map_or_else(|_| clock::now(), |known| known.created);
        let org = Organisation { name: name.into(), description: short(description)?, created, version: 0 };
        let verb = if expected.is_some() { "organisation.change" } else { "organisation.create" };
        let audit = caller.audit(verb, name, serde_json::json!({ "description": description }));
        let written = self.master.store.put_organisation(org.clone(), expected, audit).await?;
        let version = written_or(written, "organisation", name)?;
        self.master.directory.reread(&self.master.store).await?;
        Ok(Organisation { version, ..org })
    }

    /// Removes an organisation that nothing belongs to.
    pub async fn delete_organisation(&self, caller: &Caller, name: &str, expected: Option<i64>) -> Result<(), Error> {
        self.may(caller, &Wish::Manage(Thing::Organisations))?;
        let audit = caller.audit("organisation.delete", name, serde_json::json!({}));
        match self.master.store.delete_organisation(name.to_owned(), expected, audit).await? {
            Written::Exists => {
                return Err(Error::Conflict(format!(
                    "users, groups, states or minions belong to {name:?}; move or delete them first"
                )));
            }
            other => written_or(other, "organisation", name)?,
        };
        self.master.directory.reread(&self.master.store).await
    }

    /// Gives a minion to an organisation.
    pub async fn set_minion_org(&self, caller: &Caller, id: &MinionId, org: &str) -> Result<(), Error> {
        self.may(caller, &Wish::Manage(Thing::Organisations))?;
        if self.master.member(id.as_str()).is_none() {
            return Err(Error::NotFound(format!("there is no accepted minion {:?}", id.as_str())));
        }
        self.organisation(caller, org)?;
        let audit = caller.audit("minion.set", id.as_str(), serde_json::json!({ "org": org }));
        self.master.store.set_minion_org(id.clone(), org.to_owned(), audit).await?;
        self.master.directory.reread(&self.master.store).await
    }
}

/// What a versioned write came to, in words.
pub(super) fn written_or(written: Written, what: &str, name: &str) -> Result<i64, Error> {
    match written {
        Written::Done(version) => Ok(version),
        Written::Exists => Err(Error::Conflict(format!("there is a {what} {name:?} already"))),
        Written::Missing => Err(Error::NotFound(format!("there is no {what} {name:?}"))),
        Written::Stale(version) => {
            Err(Error::Stale(format!("{what} {name:?} was changed meanwhile (it is at version {version} now)")))
        }
    }
}

/// Names are typed, stand in URLs and after a colon in grants.
pub(super) fn check_name(what: &str, name: &str) -> Result<(), Error> {
    let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
    if !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(is_good) && !name.starts_with(['.', '-']) {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "the name of a {what} is 1 to {LONGEST_NAME} letters, digits or - _ . @, and begins with none of - and ."
    )))
}

/// A description that is not a novel.
pub(super) fn short(text: &str) -> Result<String, Error> {
    const LONGEST: usize = 1_000;
    if text.len() > LONGEST {
        return Err(Error::Invalid(format!("a description has at most {LONGEST} bytes")));
    }
    Ok(text.to_owned())
}
