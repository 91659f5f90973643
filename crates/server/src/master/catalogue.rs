//! The state catalogue as minions see it: files that are in no root, and for each minion one that names what is assigned to it.
//!
//! Read whole into memory, because minions ask for files far more often than people change states; read again when somebody
//! changes something, here or on another server.
//!
//! Invariant: a minion finds the states of its own organisation, and nothing says whether another has one of that name.

use super::{Master, Member};
use crate::Error;
use bytes::Bytes;
use saltern_core::access::Sight;
use saltern_core::ids::MinionId;
use saltern_render::fileserver::clean_path;
use saltern_store::{AssigneeKind, Counter, State, StateAssignment, Store};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::{Arc, PoisonError, RwLock};

/// The folder that the states are in.
const FOLDER: &str = "catalogue";

/// The state that includes what is assigned to whoever applies it, as a file.
const ASSIGNED_FILE: &str = "saltern/assigned.sls";

/// What a minion gets that nothing is assigned to. Salt takes a run without any state for a failed one.
const NOTHING_ASSIGNED: &str = "nothing is assigned:\n  test.nop: []\n";

/// The catalogue.
pub(crate) struct Catalogue {
    snapshot: RwLock<Arc<Snapshot>>,
}

/// What the database has of it.
#[derive(Default)]
pub(crate) struct Snapshot {
    shelves: BTreeMap<String, Arc<Shelf>>,
    /// The shelf of an organisation that has no states
    empty: Arc<Shelf>,
    /// How many changes there had been
    changes: i64,
}

/// What one organisation has of it.
pub(crate) struct Shelf {
    /// The states, by name
    pub(crate) states: BTreeMap<String, State>,
    /// Whom they are assigned to, in the order they are applied in: those of the organisation first, then those of groups,
    /// then the minion's own
    assignments: BTreeSet<(AssigneeKind, String, String)>,
    /// The files there are, and the folders they seem to be in; sorted
    files: Vec<String>,
    folders: Vec<String>,
    hashes: BTreeMap<String, String>,
}

/// What the catalogue has for one minion.
pub(super) struct Offer {
    shelf: Arc<Shelf>,
    /// The text that names what is assigned to it, if that is what it asks for
    assigned: Option<String>,
}

/// A file of the catalogue.
pub(super) struct Served {
    pub(super) path: String,
    pub(super) content: Bytes,
    pub(super) hash: String,
    /// When it was changed, in seconds
    pub(super) changed: i64,
}

impl Catalogue {
    /// Reads everything.
    pub(crate) async fn open(store: &Store) -> Result<Self, Error> {
        Ok(Self { snapshot: RwLock::new(Arc::new(Snapshot::read(store).await?)) })
    }

    /// Reads everything again if another server has changed something.
    pub(crate) async fn notice_changes(&self, store: &Store) -> Result<(), Error> {
        let changes = store.taken(Counter::State).await?;
        if self.snapshot().changes != changes {
            self.reread(store).await?;
        }
        Ok(())
    }

    /// Reads everything again: something was changed.
    pub(crate) async fn reread(&self, store: &Store) -> Result<(), Error> {
        let fresh = Arc::new(Snapshot::read(store).await?);
        let mut known = self.snapshot.write().unwrap_or_else(PoisonError::into_inner);
        // Of two who read at the same time, the slower one may have read before the other's change.
        if fresh.changes >= known.changes {
            *known = fresh;
        }
        Ok(())
    }

    /// What an organisation has.
    pub(crate) fn shelf(&self, org: &str) -> Arc<Shelf> {
        let snapshot = self.snapshot();
        snapshot.shelves.get(org).unwrap_or(&snapshot.empty).clone()
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Snapshot {
    async fn read(store: &Store) -> Result<Self, Error> {
        // Counted first: what changes while this is read is read again.
        let changes = store.taken(Counter::State).await?;
        let mut parts: BTreeMap<String, (Vec<State>, Vec<StateAssignment>)> = BTreeMap::new();
        for state in store.states().await? {
            parts.entry(state.org.clone()).or_default().0.push(state);
        }
        for assignment in store.state_assignments().await? {
            parts.entry(assignment.org.clone()).or_default().1.push(assignment);
        }
        let shelf = |(org, (states, assignments))| (org, Arc::new(Shelf::new(states, assignments)));
        Ok(Self { shelves: parts.into_iter().map(shelf).collect(), empty: Arc::default(), changes })
    }
}

impl Default for Shelf {
    fn default() -> Self {
        Self::new(Vec::new(), Vec::new())
    }
}

impl Shelf {
    fn new(states: Vec<State>, assignments: Vec<StateAssignment>) -> Self {
        let files: BTreeSet<String> =
            states.iter().map(|state| path_of(&state.name)).chain([ASSIGNED_FILE.to_owned()]).collect();
        let above =
            |path: &String| -> Vec<String> { path.match_indices('/').map(|(at, _)| path[..at].into()).collect() };
        let folders: BTreeSet<String> = files.iter().flat_map(above).collect();
        let sort = |assignment: StateAssignment| (assignment.kind, assignment.subject, assignment.name);
        Self {
            hashes: states.iter().map(|state| (state.name.clone(), sha256(&state.content))).collect(),
            states: states.into_iter().map(|state| (state.name.clone(), state)).collect(),
            assignments: assignments.into_iter().map(sort).collect(),
            files: files.into_iter().collect(),
            folders: folders.into_iter().collect(),
        }
    }

    /// To whom a state is assigned.
    pub(crate) fn assignees(&self, name: &str) -> impl Iterator<Item = (AssigneeKind, &str)> {
        let of_it = self.assignments.iter().filter(move |(_, _, state)| state == name);
        of_it.map(|(kind, subject, _)| (*kind, subject.as_str()))
    }
}

impl Offer {
    /// The paths of all files, sorted.
    pub(super) fn files(&self) -> &[String] {
        &self.shelf.files
    }

    /// The folders they seem to be in, sorted.
    pub(super) fn folders(&self) -> &[String] {
        &self.shelf.folders
    }

    /// The file at a path.
    pub(super) fn file(&self, path: &str) -> Option<Served> {
        let path = clean_path(path).ok()?;
        if path == ASSIGNED_FILE {
            let content = self.assigned.clone()?;
            return Some(Served { hash: sha256(&content), path, content: content.into(), changed: 0 });
        }
        let name = name_of(&path)?;
        let (state, hash) = (self.shelf.states.get(&name)?, self.shelf.hashes.get(&name)?);
        let content = Bytes::copy_from_slice(state.content.as_bytes());
        Some(Served { path, content, hash: hash.clone(), changed: state.changed.secs() })
    }
}

impl Master {
    /// What the catalogue has for a minion that asks for this path.
    pub(super) async fn offer(self: &Arc<Self>, member: &Member, path: &str) -> Result<Offer, Error> {
        let shelf = self.catalogue.shelf(self.directory.snapshot().org_of(&member.id));
        let is_asked = clean_path(path).is_ok_and(|path| path == ASSIGNED_FILE);
        let assigned = match is_asked {
            true => Some(include(&member.id, &self.assigned_states(&member.id).await?)),
            false => None,
        };
        Ok(Offer { shelf, assigned })
    }

    /// What is assigned to a minion now, in the order it is applied in. A state that comes to it in several ways is there
    /// several times.
    pub(crate) async fn assigned_states(self: &Arc<Self>, minion: &MinionId) -> Result<Vec<StateAssignment>, Error> {
        let people = self.directory.snapshot();
        let org = people.org_of(minion);
        let shelf = self.catalogue.shelf(org);
        let mut found = Vec::new();
        for (kind, subject, name) in &shelf.assignments {
            let is_meant = match kind {
                AssigneeKind::Org => subject == org,
                AssigneeKind::Minion => subject == minion.as_str(),
                AssigneeKind::Group => match people.groups.get(subject).filter(|group| group.org == org) {
                    Some(group) => match self.minions_of_group(&people, group).await? {
                        Sight::All => true,
                        Sight::Some(minions) => minions.contains(minion),
                    },
                    None => false,
                },
            };
            if is_meant && shelf.states.contains_key(name) {
                let (org, name, subject) = (org.to_owned(), name.clone(), subject.clone());
                found.push(StateAssignment { org, name, kind: *kind, subject });
            }
        }
        Ok(found)
    }
}

/// The text that includes these states, each once.
fn include(minion: &MinionId, assigned: &[StateAssignment]) -> String {
    let mut text = format!("# What is assigned to {minion}.\n");
    let mut seen = BTreeSet::new();
    let names = assigned.iter().map(|assignment| assignment.name.as_str());
    for (at, name) in names.filter(|name| seen.insert(*name)).enumerate() {
        let head = if at == 0 { "include:\n" } else { "" };
        let _ = writeln!(text, "{head}  - {FOLDER}.{name}");
    }
    if assigned.is_empty() {
        text.push_str(NOTHING_ASSIGNED);
    }
    text
}

fn path_of(name: &str) -> String {
    format!("{FOLDER}/{}.sls", name.replace('.', "/"))
}

fn name_of(path: &str) -> Option<String> {
    let inner = path.strip_prefix(FOLDER)?.strip_prefix('/')?.strip_suffix(".sls")?;
    // A dot in a path is not the dot of a name.
    (!inner.contains('.')).then(|| inner.replace('/', "."))
}

fn sha256(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_core::time::Timestamp;

    fn state(name: &str) -> State {
        State {
            org: "default".into(),
            name: name.into(),
            description: String::new(),
            content: format!("# {name}\n"),
            version: 1,
            created: Timestamp::from_secs(5),
            changed: Timestamp::from_secs(7),
            changed_by: "ann".into(),
        }
    }

    fn assignment(name: &str, kind: AssigneeKind, subject: &str) -> StateAssignment {
        StateAssignment { org: "default".into(), name: name.into(), kind, subject: subject.into() }
    }

    fn web1() -> MinionId {
        MinionId::new("web1").unwrap()
    }

    #[test]
    fn states_are_files_in_folders() {
        let shelf = Shelf::new(vec![state("web.nginx"), state("web"), state("base")], vec![]);
        let wanted = ["catalogue/base.sls", "catalogue/web.sls", "catalogue/web/nginx.sls", "saltern/assigned.sls"];
        assert_eq!(shelf.files, wanted);
        assert_eq!(shelf.folders, ["catalogue", "catalogue/web", "saltern"]);
        let offer = Offer { shelf: shelf.into(), assigned: None };
        let file = offer.file("catalogue//web/nginx.sls").unwrap();
        assert_eq!(
            (file.path.as_str(), &file.content[..], file.changed),
            ("catalogue/web/nginx.sls", &b"# web.nginx\n"[..], 7)
        );
        assert_eq!(file.hash, sha256("# web.nginx\n"));
        for none in ["catalogue/web.nginx.sls", "catalogue/db.sls", "catalogue", "web.sls", "../catalogue/web.sls", ""]
        {
            assert!(offer.file(none).is_none(), "{none}");
        }
    }

    #[test]
    fn what_is_assigned_is_included_from_the_general_to_the_special() {
        use AssigneeKind::{Group, Minion, Org};
        let shelf = Shelf::new(
            vec![],
            vec![
                assignment("a", Minion, "web1"),
                assignment("b", Group, "web"),
                assignment("z", Org, "default"),
                assignment("c", Org, "default"),
                assignment("y", Group, "all"),
            ],
        );
        let names: Vec<&str> = shelf.assignments.iter().map(|(_, _, name)| name.as_str()).collect();
        assert_eq!(names, ["c", "z", "y", "b", "a"]);
    }

    #[test]
    fn a_state_that_comes_in_two_ways_is_included_once() {
        let assigned = [
            assignment("web", AssigneeKind::Org, "default"),
            assignment("web.nginx", AssigneeKind::Group, "web"),
            assignment("web", AssigneeKind::Minion, "web1"),
        ];
        let text = include(&web1(), &assigned);
        assert_eq!(text, "# What is assigned to web1.\ninclude:\n  - catalogue.web\n  - catalogue.web.nginx\n");
    }

    #[test]
    fn where_nothing_is_assigned_there_is_a_state_that_does_nothing() {
        let text = include(&web1(), &[]);
        let read = saltern_render::yaml::load(&text).unwrap();
        assert!(read.get("nothing is assigned").is_some_and(|state| state.get("test.nop").is_some()), "{text}");
    }

    #[test]
    fn every_name_has_a_path_of_its_own() {
        for name in ["a", "web.nginx", "web_1.a.b", "web.init", "sls", "catalogue.sls.x"] {
            assert_eq!(name_of(&path_of(name)).as_deref(), Some(name));
        }
    }
}
