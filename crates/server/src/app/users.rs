//! Users: who there is, in which organisation, with which roles.
//!
//! Nobody can give more than he has: an administrator of an organisation gives roles in it, and only in it.

use super::organisations::{check_name, short, written_or};
use super::sign_in::LOCAL;
use super::{App, Caller};
use crate::engine::{handed_over, kept_owner};
use crate::{Error, clock};
use saltern_core::access::{Grant, Role, Thing, Wish};
use saltern_core::time::Timestamp;
use saltern_store::{Heir, User};

/// A user, without his password.
#[derive(Clone, Debug)]
pub struct UserEntry {
    /// His name
    pub name: String,
    /// His organisation
    pub org: String,
    /// What vouches for him
    pub auth: String,
    /// How he is called
    pub full_name: String,
    /// Whether he is kept out
    pub disabled: bool,
    /// What he was given: `role` or `role:group`
    pub roles: Vec<String>,
    /// Since when
    pub created: Timestamp,
    /// Counts the changes
    pub version: i64,
}

/// What a user is to be; nothing: as it is.
#[derive(Clone, Default)]
pub struct UserChange {
    /// His organisation
    pub org: Option<String>,
    /// What vouches for him
    pub auth: Option<String>,
    /// His password, if we keep it
    pub password: Option<String>,
    /// How he is called
    pub full_name: Option<String>,
    /// Whether he is kept out
    pub disabled: Option<bool>,
    /// What he is given
    pub roles: Option<Vec<String>>,
}

/// What people are called who ask about themselves.
const MYSELF: &str = "me";

/// Ways to vouch for somebody.
const AUTHS: [&str; 5] = [LOCAL, "pam", "ldap", "file", "sharedsecret"];

impl App {
    /// The users he may know of, in the order of names: himself, and those of the organisations he looks after.
    pub fn users(&self, caller: &Caller) -> Vec<UserEntry> {
        let snapshot = self.master.directory.snapshot();
        let visible = |user: &&User| user.name == caller.who || may_manage(caller, &user.org);
        snapshot.users.values().filter(visible).map(entry).collect()
    }

    /// One user.
    pub fn user(&self, caller: &Caller, name: &str) -> Result<UserEntry, Error> {
        let found = self.users(caller).into_iter().find(|user| user.name == name);
        found.ok_or_else(|| Error::NotFound(format!("there is no user {name:?}")))
    }

    /// Makes a user.
    pub async fn create_user(&self, caller: &Caller, name: &str, change: UserChange) -> Result<UserEntry, Error> {
        check_name("user", name)?;
        if name == MYSELF {
            return Err(Error::Invalid(format!("{MYSELF:?} means whoever asks; take another name")));
        }
        let org = change.org.clone().unwrap_or_else(|| own_org(caller));
        let fresh = User {
            name: name.into(),
            org,
            auth: LOCAL.into(),
            password: None,
            full_name: String::new(),
            disabled: false,
            created: clock::now(),
            version: 0,
            grants: Vec::new(),
        };
        self.write_user(caller, fresh, change, None, "user.create").await
    }

    /// Changes a user.
    pub async fn change_user(
        &self,
        caller: &Caller,
        name: &str,
        change: UserChange,
        expected: i64,
    ) -> Result<UserEntry, Error> {
        let known = self.known_user(caller, name)?;
        self.may(caller, &Wish::Manage(Thing::Users { org: &known.org }))?;
        self.write_user(caller, known, change, Some(expected), "user.change").await
    }

    /// Changes his own password; he has to know the old one.
    pub async fn change_password(&self, caller: &Caller, old: &str, new: &str) -> Result<(), Error> {
        self.may(caller, &Wish::Manage(Thing::Own))?;
        let known = self.known_user(caller, &caller.who)?;
        // Whoever has got hold of a session must not be able to guess, nor to keep the others who log in waiting.
        let guess = self.master.passwords.guess(&caller.who)?;
        if !self.check_password(&caller.who, old).await {
            return Err(Error::Forbidden("the old password is not right".into()));
        }
        guess.was_right();
        let password = Some(self.master.passwords.keep(new).await?);
        let audit = caller.audit("user.password", &caller.who, serde_json::json!({}));
        let (name, version) = (known.name.clone(), known.version);
        let written = self.master.store.put_user(User { password, ..known }, Some(version), audit).await?;
        written_or(written, "user", &name)?;
        self.people_changed().await
    }

    /// Removes a user with his tokens.
    pub async fn delete_user(&self, caller: &Caller, name: &str, expected: i64) -> Result<(), Error> {
        let known = self.known_user(caller, name)?;
        self.may(caller, &Wish::Manage(Thing::Users { org: &known.org }))?;
        check_rank(caller, &known)?;
        self.check_rules(caller, &known)?;
        let audit = caller.audit("user.delete", name, serde_json::json!({}));
        let heir = self.heir_of(caller, name)?;
        let orphans = if heir.is_none() { self.owned_by(name).await? } else { Vec::new() };
        let written = self.master.store.delete_user(name.to_owned(), Some(expected), heir, audit).await?;
        written_or(written, "user", name)?;
        self.tell_orphans(name, &orphans).await?;
        self.people_changed().await
    }

    /// Who takes over what somebody has made to recur: whoever removes him. Who removes himself leaves it to nobody.
    fn heir_of(&self, caller: &Caller, name: &str) -> Result<Option<Heir>, Error> {
        if caller.who == name {
            return Ok(None);
        }
        let (from, to) = (name.to_owned(), caller.who.clone());
        Ok(Some(Heir {
            owner: caller.who.clone(),
            person: kept_owner(caller)?,
            events: Box::new(move |ids| vec![handed_over(ids, &from, Some(&to), clock::now())]),
        }))
    }

    fn known_user(&self, caller: &Caller, name: &str) -> Result<User, Error> {
        self.user(caller, name)?;
        let found = self.master.directory.snapshot().users.get(name).cloned();
        found.ok_or_else(|| Error::NotFound(format!("there is no user {name:?}")))
    }

    async fn write_user(
        &self,
        caller: &Caller,
        user: User,
        change: UserChange,
        expected: Option<i64>,
        verb: &str,
    ) -> Result<UserEntry, Error> {
        check_rank(caller, &user)?;
        let mut user = user;
        let mut roles = change.roles;
        if let Some(org) = change.org {
            self.may(caller, &Wish::Manage(Thing::Users { org: &org }))?;
            self.organisation(caller, &org)?;
            if user.org != org && roles.is_none() {
                // Roles on groups of the old organisation do not move along unseen.
                roles = Some(user.grants.clone());
            }
            user.org = org;
        }
        self.may(caller, &Wish::Manage(Thing::Users { org: &user.org }))?;
        self.check_rules(caller, &user)?;
        if let Some(auth) = change.auth {
            if !AUTHS.contains(&auth.as_str()) {
                return Err(Error::Invalid(format!("{auth:?} is no way to log in; there are {}", AUTHS.join(", "))));
            }
            user.auth = auth;
        }
        if let Some(roles) = roles {
            user.grants = self.check_roles(caller, &user.org, &roles)?;
        }
        if let Some(full_name) = change.full_name {
            user.full_name = short(&full_name)?;
        }
        user.disabled = change.disabled.unwrap_or(user.disabled);
        match change.password {
            Some(_) if user.auth != LOCAL => {
                return Err(Error::Invalid(format!("the password of {:?} is kept by {}", user.name, user.auth)));
            }
            Some(password) => user.password = Some(self.master.passwords.keep(&password).await?),
            None if user.auth == LOCAL && user.password.is_none() => {
                return Err(Error::Invalid("a local user needs a password".into()));
            }
            None => {}
        }
        let detail = serde_json::json!({
            "org": user.org, "auth": user.auth, "roles": user.grants, "disabled": user.disabled,
        });
        let audit = caller.audit(verb, &user.name, detail);
        let written = self.master.store.put_user(user.clone(), expected, audit).await?;
        user.version = written_or(written, "user", &user.name)?;
        self.people_changed().await?;
        Ok(entry(&user))
    }

    /// Salt's rules know no organisations. Whoever looks after one must not take the name of somebody they speak of: neither
    /// to have his rights nor to shut him out.
    fn check_rules(&self, caller: &Caller, user: &User) -> Result<(), Error> {
        if caller.rights.server_admin || !self.master.config.login.external_auth.names(&user.name) {
            return Ok(());
        }
        let name = &user.name;
        Err(Error::Forbidden(format!(
            "external_auth has rules for {name:?}: only a server admin looks after that user"
        )))
    }

    /// Roles in their usual form, if they make sense and are his to give.
    fn check_roles(&self, caller: &Caller, org: &str, roles: &[String]) -> Result<Vec<String>, Error> {
        let snapshot = self.master.directory.snapshot();
        let mut grants = Vec::new();
        for text in roles {
            let grant = Grant::parse(text).map_err(|error| Error::Invalid(error.to_string()))?;
            if grant.role == Role::ServerAdmin && !caller.rights.server_admin {
                return Err(Error::Forbidden("only a server admin makes server admins".into()));
            }
            if let Some(name) = &grant.group
                && snapshot.groups.get(name).is_none_or(|group| group.org != org)
            {
                return Err(Error::NotFound(format!("there is no group {name:?} in organisation {org:?}")));
            }
            grants.push(grant.to_string());
        }
        grants.sort();
        grants.dedup();
        Ok(grants)
    }

    /// Users, groups or their rights were changed: here at once, for those who hold on to rights too.
    pub(super) async fn people_changed(&self) -> Result<(), Error> {
        self.master.directory.reread(&self.master.store).await?;
        self.forget_tokens(|_| true);
        Ok(())
    }
}

/// An administrator of an organisation has no say over a server admin who happens to be in it.
pub(super) fn check_rank(caller: &Caller, user: &User) -> Result<(), Error> {
    let is_admin = |text: &String| Grant::parse(text).is_ok_and(|grant| grant.role == Role::ServerAdmin);
    if user.grants.iter().any(is_admin) && !caller.rights.server_admin {
        return Err(Error::Forbidden("only a server admin changes a server admin".into()));
    }
    Ok(())
}

fn may_manage(caller: &Caller, org: &str) -> bool {
    caller.rights.may(&Wish::Manage(Thing::Users { org })).is_ok()
}

/// The organisation that what he makes belongs to unless he says otherwise.
pub(super) fn own_org(caller: &Caller) -> String {
    match caller.rights.org.as_str() {
        "" => crate::access::DEFAULT_ORG.to_owned(),
        org => org.to_owned(),
    }
}

fn entry(user: &User) -> UserEntry {
    UserEntry {
        name: user.name.clone(),
        org: user.org.clone(),
        auth: user.auth.clone(),
        full_name: user.full_name.clone(),
        disabled: user.disabled,
        roles: user.grants.clone(),
        created: user.created,
        version: user.version,
    }
}
