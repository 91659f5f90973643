//! A definition as somebody wants it, and everything that can be known to be wrong with it.

use super::super::users::own_org;
use super::super::{App, Caller};
use crate::engine::{CatchUp, Definition, EntityKind, EntityRef, Overlap, RecurringWhat, kept_owner};
use crate::{Error, clock};
use saltern_calendar::cron::Cron;
use saltern_calendar::zone::Zone;
use saltern_core::access::{Thing, Wish};
use saltern_core::action::Policy;
use saltern_core::ids::RecurringId;
use saltern_core::value::Value;
use saltern_store::Recurring;
use std::time::Duration;

/// A definition as somebody wants it.
#[derive(Clone, Debug)]
pub struct RecurringDraft {
    /// Its name, of which there is one on what it is done on
    pub name: String,
    /// What it is done on
    pub entity: EntityRef,
    /// What is done
    pub what: RecurringWhat,
    /// When
    pub cron: String,
    /// In which time zone that is meant
    pub zone: String,
    /// Whether it is done at all
    pub active: bool,
    /// How long the minions are spread over
    pub spread: Duration,
    /// What happens where an earlier time has not ended
    pub overlap: Overlap,
    /// What happens with instants that nobody was there for
    pub catch_up: CatchUp,
    /// For how long they are worth it
    pub catch_up_limit: Duration,
    /// Whether minions outside of their maintenance window do it in their next one
    pub in_window: bool,
    /// How long after it is due whatever is open ends; nothing: as configured
    pub deadline: Option<Duration>,
    /// The rules it is carried out by
    pub policy: Policy,
}

/// Most characters of a name.
const LONGEST_NAME: usize = 200;
/// Most characters of an expression, of times or of a target.
const LONGEST_TEXT: usize = 10_000;
/// Most bytes of what is to be done.
const LARGEST: usize = 256 * 1024;
/// The longest that minions are spread over.
const LONGEST_SPREAD: Duration = Duration::from_secs(7 * 86_400);
/// The longest that is caught up with.
const LONGEST_CATCH_UP: Duration = Duration::from_secs(31 * 86_400);
/// The longest deadline.
const LONGEST_DEADLINE: Duration = Duration::from_secs(366 * 86_400);
/// Most definitions on one thing.
const MOST_ON_ONE: usize = 1_000;

impl RecurringDraft {
    /// One that is done at these times in UTC, with nothing special about it.
    pub fn new(name: impl Into<String>, entity: EntityRef, what: RecurringWhat, cron: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            entity,
            what,
            cron: cron.into(),
            zone: Zone::UTC.name().into(),
            active: true,
            spread: Duration::ZERO,
            overlap: Overlap::default(),
            catch_up: CatchUp::default(),
            catch_up_limit: Duration::from_secs(86_400),
            in_window: false,
            deadline: None,
            policy: Policy::default(),
        }
    }

    /// A definition as a draft of itself.
    pub fn of(row: &Recurring) -> Result<Self, Error> {
        let seconds = |count: i64| Duration::from_secs(u64::try_from(count).unwrap_or(0));
        let Definition { row, entity, what, overlap, catch_up, policy, .. } = Definition::read(row.clone())?;
        Ok(Self {
            name: row.name,
            entity,
            what,
            cron: row.cron,
            zone: row.zone,
            active: row.active,
            spread: seconds(row.spread),
            overlap,
            catch_up,
            catch_up_limit: seconds(row.catch_up_limit),
            in_window: row.in_window,
            deadline: row.deadline.map(seconds),
            policy,
        })
    }
}

impl App {
    /// Reads a draft, as a change of what was before or as a new one. He is the owner then. Its next instant is for the
    /// caller to set.
    pub(super) async fn read_draft(
        &self,
        caller: &Caller,
        draft: RecurringDraft,
        before: Option<&Recurring>,
    ) -> Result<Definition, Error> {
        let org = self.org_of_entity(caller, &draft.entity, before)?;
        draft.entity.check(&caller.rights, &org)?;
        check_name(&draft.name)?;
        check_times(&draft)?;
        self.check_what(caller, &draft, &org)?;
        let seed = match before {
            // What `H` stands for stays what it was.
            Some(before) => before.seed.clone(),
            None => format!("{}/{}", draft.entity, draft.name),
        };
        let cron = Cron::parse(&draft.cron, &seed)
            .map_err(|error| Error::Invalid(format!("cron {:?}: {error}", draft.cron)))?;
        let zone = Zone::parse(&draft.zone).map_err(|error| Error::Invalid(format!("zone: {error}")))?;
        let (now, owner) = (clock::now(), caller.who.clone());
        let whole = |time: Duration| i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
        let policy = Policy { interactive: false, ..draft.policy };
        let row = Recurring {
            id: before.map_or(RecurringId(0), |before| before.id),
            name: draft.name,
            org,
            entity_kind: draft.entity.kind.as_str().into(),
            entity: draft.entity.subject.clone(),
            creator: before.map_or_else(|| owner.clone(), |before| before.creator.clone()),
            owner,
            person: kept_owner(caller)?,
            what: draft.what.json(),
            cron: cron.text().into(),
            zone: zone.name().into(),
            seed,
            active: draft.active,
            skip_next: before.is_some_and(|before| before.skip_next),
            spread: whole(draft.spread),
            overlap: draft.overlap.as_str().into(),
            catch_up: draft.catch_up.as_str().into(),
            catch_up_limit: whole(draft.catch_up_limit),
            in_window: draft.in_window,
            deadline: draft.deadline.map(whole),
            policy: serde_json::to_string(&policy).map_err(|error| Error::Internal(error.to_string()))?,
            created: before.map_or(now, |before| before.created),
            changed: now,
            version: before.map_or(0, |before| before.version),
            next: None,
        };
        let definition = Definition {
            row,
            entity: draft.entity,
            what: draft.what,
            cron,
            zone,
            overlap: draft.overlap,
            catch_up: draft.catch_up,
            policy,
        };
        self.master.check_recurring(caller, &definition).await?;
        Ok(definition)
    }

    /// Nobody fills the server with definitions.
    pub(super) async fn check_room(&self, definition: &Definition) -> Result<(), Error> {
        let there = self.master.store.recurrings_of(&definition.row.entity_kind, &definition.row.entity).await?.len();
        if there >= MOST_ON_ONE {
            let entity = &definition.entity;
            return Err(Error::Conflict(format!("{there} things recur on {entity}, which is the most; delete some")));
        }
        Ok(())
    }

    /// The organisation a thing belongs to. What he does not see is not there.
    fn org_of_entity(&self, caller: &Caller, entity: &EntityRef, before: Option<&Recurring>) -> Result<String, Error> {
        let snapshot = self.master.directory.snapshot();
        let name = &entity.subject;
        match entity.kind {
            EntityKind::Minion => {
                let minion = entity.minion()?;
                if !caller.sight().sees(&minion) || self.master.member(minion.as_str()).is_none() {
                    return Err(Error::NotFound(format!("there is no accepted minion {name:?}")));
                }
                Ok(snapshot.org_of(&minion).to_owned())
            }
            EntityKind::Group => {
                let known = |org: &str| caller.rights.server_admin || caller.rights.org == org;
                let group = snapshot.groups.get(name).filter(|group| known(&group.org));
                group
                    .map(|group| group.org.clone())
                    .ok_or_else(|| Error::NotFound(format!("there is no group {name:?}")))
            }
            EntityKind::Organisation => Ok(self.organisation(caller, name)?.name),
            EntityKind::Target => {
                if name.len() > LONGEST_TEXT {
                    return Err(Error::Invalid(format!("a target has at most {LONGEST_TEXT} bytes")));
                }
                let compiled = entity.target().compile(&self.master.config.nodegroups);
                compiled.map_err(|error| Error::Invalid(format!("target: {error}")))?;
                // Whom a target means is a matter of its organisation, whoever changes it.
                let is_target = |row: &&Recurring| row.entity_kind == EntityKind::Target.as_str();
                Ok(before.filter(is_target).map_or_else(|| own_org(caller), |before| before.org.clone()))
            }
        }
    }

    fn check_what(&self, caller: &Caller, draft: &RecurringDraft, org: &str) -> Result<(), Error> {
        if draft.what.json().len() > LARGEST {
            return Err(Error::Invalid(format!("what is to be done has at most {LARGEST} bytes")));
        }
        if draft.policy.override_window.is_some() {
            self.may(caller, &Wish::Manage(Thing::Windows { org }))?;
        }
        match &draft.what {
            RecurringWhat::Action { kind, params } if kind == "states" => {
                let is_empty = match params.get("mods") {
                    Some(Value::List(mods)) => mods.is_empty(),
                    Some(mods) => mods.as_str().is_some_and(|mods| mods.trim().is_empty()),
                    None => false,
                };
                if is_empty {
                    return Err(Error::Invalid(
                        "mods: the list of states is empty; leave it out for the highstate".into(),
                    ));
                }
            }
            RecurringWhat::Chain { .. } if draft.spread > Duration::ZERO => {
                return Err(Error::Invalid(
                    "spread: a launch of a chain begins everywhere at once; leave it out".into(),
                ));
            }
            RecurringWhat::Action { .. } | RecurringWhat::Chain { .. } => {}
        }
        Ok(())
    }
}

fn check_name(name: &str) -> Result<(), Error> {
    let is_good = !name.is_empty() && name.trim() == name && !name.contains(char::is_control);
    if is_good && name.chars().count() <= LONGEST_NAME {
        return Ok(());
    }
    Err(Error::Invalid(format!("name: write 1 to {LONGEST_NAME} characters, without blanks at its ends")))
}

fn check_times(draft: &RecurringDraft) -> Result<(), Error> {
    if draft.cron.len() > LONGEST_TEXT {
        return Err(Error::Invalid(format!("cron: an expression has at most {LONGEST_TEXT} bytes")));
    }
    let most = |name: &str, time: Duration, longest: Duration| {
        let days = longest.as_secs() / 86_400;
        if time <= longest { Ok(()) } else { Err(Error::Invalid(format!("{name}: at most {days} days"))) }
    };
    most("spread", draft.spread, LONGEST_SPREAD)?;
    most("catch_up_limit", draft.catch_up_limit, LONGEST_CATCH_UP)?;
    if let Some(deadline) = draft.deadline {
        most("deadline", deadline, LONGEST_DEADLINE)?;
        if deadline < Duration::from_secs(1) {
            return Err(Error::Invalid("deadline: at least a second".into()));
        }
    }
    Ok(())
}
