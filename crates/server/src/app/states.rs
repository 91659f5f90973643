//! The state catalogue: states that are kept here, each of one organisation, and whom they are assigned to.
//!
//! Everybody with a role in an organisation reads its states; its admins write them. Who may act on minions assigns states
//! to them: an operator to a minion, the admin of a group to that group, the admin of the organisation to all of it.

use super::organisations::{short, written_or};
use super::users::own_org;
use super::{App, Caller};
use crate::master::{Shelf, entry};
use crate::{Error, clock};
use saltern_core::access::{Thing, Wish};
use saltern_core::ids::MinionId;
use saltern_core::time::Timestamp;
use saltern_core::value::Value;
use saltern_render::yaml;
use saltern_store::{Assigned, AssigneeKind, NewEvent, State, StateAssignment, StateVersion};
use std::sync::Arc;

/// What a state is to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateDraft {
    /// Its name
    pub name: String,
    /// The organisation; nothing: his own
    pub org: Option<String>,
    /// What it is for
    pub description: String,
    /// The text that minions get
    pub content: String,
}

/// A state, and to whom it is assigned, as far as the caller may know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateEntry {
    /// As it is now
    pub state: State,
    /// To whom, in the order they come in
    pub assignees: Vec<Assignee>,
}

/// Whom a state is assigned to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignee {
    /// Of which kind
    pub kind: AssigneeKind,
    /// Its id or name
    pub subject: String,
}

/// Most characters of a name.
const LONGEST_NAME: usize = 100;

/// Most bytes of a text. A file of this size travels in one piece.
const LONGEST_CONTENT: usize = 256 << 10;

/// Most states of an organisation: they are held in memory.
const MOST_STATES: usize = 1_000;

impl App {
    /// The states of an organisation (nothing: his own), in the order of names.
    pub fn states(&self, caller: &Caller, org: Option<&str>) -> Result<Vec<State>, Error> {
        let (_, shelf) = self.shelf(caller, org)?;
        Ok(shelf.states.values().cloned().collect())
    }

    /// One state.
    pub fn state(&self, caller: &Caller, org: Option<&str>, name: &str) -> Result<StateEntry, Error> {
        let (_, shelf) = self.shelf(caller, org)?;
        let state = shelf.states.get(name).cloned().ok_or_else(|| missing(name))?;
        let sees = |kind, subject: &str| {
            kind != AssigneeKind::Minion || MinionId::new(subject).is_ok_and(|id| caller.sight().sees(&id))
        };
        let assignees = shelf.assignees(name).filter(|(kind, subject)| sees(*kind, subject));
        let assignees = assignees.map(|(kind, subject)| Assignee { kind, subject: subject.to_owned() });
        Ok(StateEntry { assignees: assignees.collect(), state })
    }

    /// The versions of a state that are older than `before`, newest first.
    pub async fn state_versions(
        &self,
        caller: &Caller,
        org: Option<&str>,
        name: &str,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<StateVersion>, Error> {
        let state = self.state(caller, org, name)?.state;
        let before = before.unwrap_or(i64::MAX);
        Ok(self.master.store.state_versions(&state.org, &state.name, before, limit).await?)
    }

    /// One version of a state, with its text.
    pub async fn state_version(
        &self,
        caller: &Caller,
        org: Option<&str>,
        name: &str,
        version: i64,
    ) -> Result<(StateVersion, String), Error> {
        let state = self.state(caller, org, name)?.state;
        let found = self.master.store.state_version(&state.org, &state.name, version).await?;
        found
            .ok_or_else(|| Error::NotFound(format!("there is no version {version} of state {name:?}, or not any more")))
    }

    /// Makes a state (`expected` is nothing) or changes it. What is as it is to be already stays as it is.
    pub async fn put_state(
        &self,
        caller: &Caller,
        draft: StateDraft,
        expected: Option<i64>,
    ) -> Result<StateEntry, Error> {
        let StateDraft { name, org, description, content } = draft;
        let (org, shelf) = self.shelf(caller, org.as_deref())?;
        self.may(caller, &Wish::Manage(Thing::States { org: &org }))?;
        check_name(&name)?;
        check_content(&content)?;
        let (known, at) = (shelf.states.get(&name), clock::now());
        if expected.is_none() && shelf.states.len() >= MOST_STATES {
            return Err(Error::Conflict(format!("organisation {org:?} has {MOST_STATES} states already; delete some")));
        }
        if let Some(known) = known
            && expected == Some(known.version)
            && (known.description == description && known.content == content)
        {
            return self.state(caller, Some(&org), &name);
        }
        let state = State {
            description: short(&description)?,
            version: 0,
            created: at,
            changed: at,
            changed_by: caller.who.clone(),
            org: org.clone(),
            name: name.clone(),
            content,
        };
        let verb = if expected.is_some() { "change" } else { "create" };
        let detail = serde_json::json!({ "org": org, "bytes": state.content.len() });
        let audit = caller.audit(&format!("state.{verb}"), &name, detail);
        let told = Told { org: org.clone(), name: name.clone(), by: caller.who.clone(), at };
        let event = move |version| told.event(verb, [("version", Value::from(version))]);
        let written = self.master.store.put_state(state, expected, audit, Box::new(event)).await?;
        written_or(written, "state", &name)?;
        self.states_changed().await?;
        self.state(caller, Some(&org), &name)
    }

    /// Removes a state with its versions and assignments.
    pub async fn delete_state(
        &self,
        caller: &Caller,
        org: Option<&str>,
        name: &str,
        expected: i64,
    ) -> Result<(), Error> {
        let org = self.state(caller, org, name)?.state.org;
        self.may(caller, &Wish::Manage(Thing::States { org: &org }))?;
        let audit = caller.audit("state.delete", name, serde_json::json!({ "org": org }));
        let event = Told::of(caller, &org, name).event("delete", []);
        let written = self.master.store.delete_state((org, name.to_owned()), Some(expected), audit, event).await?;
        written_or(written, "state", name)?;
        self.states_changed().await
    }

    /// Assigns a state; it is applied with the others when `saltern.assigned` is.
    pub async fn assign_state(
        &self,
        caller: &Caller,
        org: Option<&str>,
        name: &str,
        to: Assignee,
    ) -> Result<(), Error> {
        let org = self.state(caller, org, name)?.state.org;
        self.may_assign(caller, &org, &to)?;
        let (wanted, audit, event) = assignment(caller, "assign", org, name, to);
        let done = self.master.store.assign_state(wanted, audit, event).await?;
        self.assignment_changed(done, name).await
    }

    /// Takes an assignment back.
    pub async fn unassign_state(
        &self,
        caller: &Caller,
        org: Option<&str>,
        name: &str,
        from: Assignee,
    ) -> Result<(), Error> {
        let org = self.state(caller, org, name)?.state.org;
        // Who looks after the states tidies up after minions that have moved away.
        if self.may(caller, &Wish::Manage(Thing::States { org: &org })).is_err() {
            self.may_assign(caller, &org, &from)?;
        }
        let (gone, audit, event) = assignment(caller, "unassign", org, name, from);
        let done = self.master.store.unassign_state(gone, audit, event).await?;
        self.assignment_changed(done, name).await
    }

    /// What is assigned to a minion now, in the order it is applied in, and by which way it comes to it.
    pub async fn assigned_states(&self, caller: &Caller, minion: &MinionId) -> Result<Vec<(State, Assignee)>, Error> {
        self.known_minion(caller, minion)?;
        let shelf = self.readable(caller, self.master.directory.snapshot().org_of(minion));
        let assigned = self.master.assigned_states(minion).await?;
        let state = |StateAssignment { name, kind, subject, .. }: StateAssignment| {
            Some((shelf.states.get(&name)?.clone(), Assignee { kind, subject }))
        };
        Ok(assigned.into_iter().filter_map(state).collect())
    }
}

impl App {
    /// The organisation that is meant (nothing: his own), and its states as far as he may read them.
    fn shelf(&self, caller: &Caller, org: Option<&str>) -> Result<(String, Arc<Shelf>), Error> {
        let own = own_org(caller);
        let org = match org {
            Some(org) if org != own => self.organisation(caller, org)?.name,
            _ => own,
        };
        let shelf = self.readable(caller, &org);
        Ok((org, shelf))
    }

    /// The states of an organisation as far as he may read them: all or none.
    fn readable(&self, caller: &Caller, org: &str) -> Arc<Shelf> {
        let rights = &caller.rights;
        let reads = rights.server_admin || (rights.has_role && rights.org == org);
        if reads { self.master.catalogue.shelf(org) } else { Arc::default() }
    }

    fn known_minion(&self, caller: &Caller, minion: &MinionId) -> Result<(), Error> {
        if caller.sight().sees(minion) && self.master.member(minion.as_str()).is_some() {
            return Ok(());
        }
        Err(Error::NotFound(format!("there is no minion {minion}")))
    }

    fn may_assign(&self, caller: &Caller, org: &str, Assignee { kind, subject }: &Assignee) -> Result<(), Error> {
        let snapshot = self.master.directory.snapshot();
        match kind {
            AssigneeKind::Minion => {
                let minion = MinionId::new(subject).map_err(|error| Error::Invalid(error.to_string()))?;
                self.known_minion(caller, &minion)?;
                if snapshot.org_of(&minion) != org {
                    return Err(Error::Conflict(format!("minion {minion} does not belong to organisation {org:?}")));
                }
                self.may(caller, &Wish::Operate(&[minion]))
            }
            AssigneeKind::Group => {
                let is_known = snapshot.groups.get(subject).is_some_and(|group| group.org == org);
                if !is_known {
                    return Err(Error::NotFound(format!("there is no group {subject:?} in organisation {org:?}")));
                }
                self.may(caller, &Wish::Manage(Thing::Group { org, name: subject }))
            }
            AssigneeKind::Org if subject == org => self.may(caller, &Wish::Manage(Thing::Organisation(org))),
            AssigneeKind::Org => {
                Err(Error::Conflict(format!("a state of organisation {org:?} cannot be assigned to another one")))
            }
        }
    }

    async fn assignment_changed(&self, done: Assigned, name: &str) -> Result<(), Error> {
        match done {
            Assigned::Done => self.states_changed().await,
            Assigned::Already => Ok(()),
            Assigned::Missing => Err(missing(name)),
        }
    }

    async fn states_changed(&self) -> Result<(), Error> {
        self.master.catalogue.reread(&self.master.store).await
    }
}

/// What is told of a change: `saltern/state/<org>/<name>`.
struct Told {
    org: String,
    name: String,
    by: String,
    at: Timestamp,
}

impl Told {
    fn of(caller: &Caller, org: &str, name: &str) -> Self {
        Self { org: org.to_owned(), name: name.to_owned(), by: caller.who.clone(), at: clock::now() }
    }

    fn event<const N: usize>(&self, what: &str, more: [(&'static str, Value); N]) -> NewEvent {
        let Self { org, name, by, at } = self;
        let told = [("org", org.as_str()), ("name", name), ("what", what), ("by", by)];
        let data = Value::map(told.map(|(key, text)| (key, Value::from(text))).into_iter().chain(more));
        entry(*at, format!("saltern/state/{org}/{name}"), data, None, None)
    }
}

fn assignment(
    caller: &Caller,
    verb: &str,
    org: String,
    name: &str,
    Assignee { kind, subject }: Assignee,
) -> (StateAssignment, saltern_store::AuditEntry, NewEvent) {
    let detail = serde_json::json!({ "org": org, "kind": kind.as_str(), "subject": subject });
    let audit = caller.audit(&format!("state.{verb}"), name, detail);
    let more = [("kind", Value::from(kind.as_str())), ("subject", subject.as_str().into())];
    let event = Told::of(caller, &org, name).event(verb, more);
    (StateAssignment { org, name: name.to_owned(), kind, subject }, audit, event)
}

fn missing(name: &str) -> Error {
    Error::NotFound(format!("there is no state {name:?}"))
}

/// Names are paths with dots for slashes, and the same on every file system.
fn check_name(name: &str) -> Result<(), Error> {
    let is_good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let is_part = |part: &str| !part.is_empty() && part.chars().all(is_good);
    if name.len() <= LONGEST_NAME && name.split('.').all(is_part) {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "the name of a state has at most {LONGEST_NAME} characters: small letters, digits and _, with single dots between"
    )))
}

/// Refuses what no minion could make a state of. What a template becomes is known on the minion alone.
fn check_content(content: &str) -> Result<(), Error> {
    if content.len() > LONGEST_CONTENT {
        return Err(Error::Invalid(format!("the text of a state has at most {} KiB", LONGEST_CONTENT >> 10)));
    }
    if content.contains('\0') {
        return Err(Error::Invalid("the text of a state has a NUL byte".into()));
    }
    let is_template = content.starts_with("#!") || ["{{", "{%", "{#"].iter().any(|mark| content.contains(mark));
    if is_template {
        return Ok(());
    }
    match yaml::load(content) {
        Ok(Value::Map(_)) => Ok(()),
        Ok(_) => Err(Error::Invalid("the text of a state is a YAML map of ids to states".into())),
        Err(error) => Err(Error::Invalid(format!("the text of a state is YAML: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_with_dots_between() {
        for good in ["web", "web.nginx", "a1._b.c"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "web.", ".web", "web..nginx", "Web", "web-1", "web/nginx", "wéb", &"a".repeat(101)] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_text_that_no_minion_could_use_is_refused() {
        for bad in
            ["", "# nothing", "- a list", "word", "a: [", "a: 1\na: 2", "a: \0", &"a".repeat(LONGEST_CONTENT + 1)]
        {
            assert!(check_content(bad).is_err(), "{bad:.20}");
        }
        for good in ["vim:\n  pkg.installed: []\n", "include:\n  - a\n", "a: {}"] {
            assert!(check_content(good).is_ok(), "{good}");
        }
    }

    #[test]
    fn what_a_template_becomes_is_not_known_here() {
        for template in ["{% for n in [1] %}\n{{ n }}\n", "#!py\ndef run():\n    return {}\n", "{# a #}- x: ["] {
            assert!(check_content(template).is_ok(), "{template}");
        }
    }
}
