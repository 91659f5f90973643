//! What recurs: make it, change it, see when it fires next and what became of each time, run it at once.
//!
//! Who may have something recur on a thing may do everything with all that recurs there. A definition is done as its owner's
//! work, so whoever changes what it does becomes its owner: nobody can put words into the mouth of somebody with more rights.

mod draft;
mod lists;

pub use draft::RecurringDraft;
pub use lists::{FireEntry, RecurringFilter, RecurringView};

use super::{App, Caller};
use crate::engine::{Definition, PlannedFire, Round, changed, handed_over, kept_owner};
use crate::{Error, clock};
use saltern_core::access::{Rights, Scope};
use saltern_core::ids::{ActionId, LaunchId, RecurringId};
use saltern_core::time::Timestamp;
use saltern_store::{ANY_VERSION, AuditEntry, Recurring, Written};

/// What somebody does with a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecurringVerb {
    /// Leave out the next time, or not
    SkipNext(bool),
    /// Let it fire, or not
    Activate(bool),
    /// Do it at once, as his own work
    RunNow,
    /// Have it done as his own work from now on
    TakeOver,
}

/// What became of that.
#[derive(Clone, Debug)]
pub struct RecurringDone {
    /// The definition as it is now
    pub recurring: RecurringView,
    /// The action that was made
    pub action: Option<ActionId>,
    /// The launch that was made
    pub launch: Option<LaunchId>,
}

/// How often something is tried anew if somebody else has changed the definition meanwhile.
const TRIES: usize = 10;
/// Most instants that are previewed.
const MOST_PREVIEWED: usize = 100;

impl App {
    /// Makes a definition. It is done as his work.
    pub async fn create_recurring(&self, caller: &Caller, draft: RecurringDraft) -> Result<RecurringView, Error> {
        let mut definition = self.read_draft(caller, draft, None).await?;
        self.check_room(&definition).await?;
        let now = clock::now();
        definition.row.next = definition.next_after(now);
        let row = definition.row.clone();
        let audit = caller.audit("recurring.create", &row.name, detail(&row));
        let Some(id) = self.master.store.create_recurring(row.clone(), audit).await? else { return Err(taken(&row)) };
        self.recurring_changed("created", &Recurring { id, ..row }, caller).await?;
        self.recurring(caller, id).await
    }

    /// Changes a definition that is at version `expected`. Whoever does so owns it from then on.
    pub async fn put_recurring(
        &self,
        caller: &Caller,
        id: RecurringId,
        draft: RecurringDraft,
        expected: i64,
    ) -> Result<RecurringView, Error> {
        let before = self.recurring_to_change(caller, id).await?;
        if expected != ANY_VERSION && expected != before.version {
            return Err(stale(id, before.version));
        }
        let mut definition = self.read_draft(caller, draft, Some(&before)).await?;
        let seen = before.changed;
        let mut before = self.settled(before).await?;
        let mut tries = TRIES;
        definition.row.next = loop {
            match self.next_of(&definition, &before).await {
                // What has come in this moment is settled, too.
                Err(Error::Stale(_)) if tries > 0 => (before, tries) = (self.settled(before).await?, tries - 1),
                next => break next?,
            }
        };
        if before.changed != seen {
            return Err(stale(id, before.version));
        }
        definition.row.skip_next = before.skip_next;
        let audit = caller.audit("recurring.change", &definition.row.name, detail(&definition.row));
        self.write_recurring(caller, definition.row, before.version, audit).await?;
        self.recurring(caller, id).await
    }

    /// Removes a definition. What it has done stays, and so does what became of its instants.
    pub async fn delete_recurring(&self, caller: &Caller, id: RecurringId, expected: i64) -> Result<(), Error> {
        let row = self.recurring_to_change(caller, id).await?;
        let audit = caller.audit("recurring.delete", &row.name, detail(&row));
        match self.master.store.delete_recurring(id, expected, audit).await? {
            Written::Done(_) => self.recurring_changed("deleted", &Recurring { next: None, ..row }, caller).await,
            Written::Stale(version) => Err(stale(id, version)),
            Written::Exists | Written::Missing => Err(missing(id)),
        }
    }

    /// Does something with a definition.
    pub async fn act_on_recurring(
        &self,
        caller: &Caller,
        id: RecurringId,
        verb: RecurringVerb,
    ) -> Result<RecurringDone, Error> {
        if verb == RecurringVerb::RunNow {
            let definition = Definition::read(self.recurring_to_change(caller, id).await?)?;
            let (action, launch) = self.master.run_recurring_now(caller, &definition).await?;
            return Ok(RecurringDone { recurring: self.recurring(caller, id).await?, action, launch });
        }
        for _ in 0..TRIES {
            match self.try_act(caller, id, verb).await {
                Err(Error::Stale(_)) => {}
                Err(error) => return Err(error),
                Ok(()) => {
                    let recurring = self.recurring(caller, id).await?;
                    return Ok(RecurringDone { recurring, action: None, launch: None });
                }
            }
        }
        Err(Error::Stale(format!("recurring action {id} is being changed by others")))
    }

    /// The next instants of a definition, and whom each would hit as things are now.
    pub async fn preview_recurring(
        &self,
        caller: &Caller,
        id: RecurringId,
        count: usize,
    ) -> Result<Vec<PlannedFire>, Error> {
        let definition = Definition::read(self.seen_recurring(caller, id).await?)?;
        let after = self.accounted_for(id).await?.max(clock::now());
        self.master.planned_fires(caller, &definition, after, count.clamp(1, MOST_PREVIEWED)).await
    }

    /// The same for one that there is not yet; everything that would refuse it does.
    pub async fn preview_recurring_draft(
        &self,
        caller: &Caller,
        draft: RecurringDraft,
        count: usize,
    ) -> Result<Vec<PlannedFire>, Error> {
        let definition = self.read_draft(caller, draft, None).await?;
        let count = count.clamp(1, MOST_PREVIEWED);
        self.master.planned_fires(caller, &definition, clock::now(), count).await
    }

    async fn try_act(&self, caller: &Caller, id: RecurringId, verb: RecurringVerb) -> Result<(), Error> {
        let before = self.settled(self.recurring_to_change(caller, id).await?).await?;
        let version = before.version;
        let (row, what) = match verb {
            RecurringVerb::SkipNext(skip_next) if skip_next != before.skip_next => {
                (Recurring { skip_next, ..before }, if skip_next { "recurring.skip" } else { "recurring.unskip" })
            }
            RecurringVerb::Activate(active) if active != before.active => {
                let mut definition = Definition::read(Recurring { active, ..before.clone() })?;
                definition.row.next = self.next_of(&definition, &before).await?;
                (definition.row, if active { "recurring.enable" } else { "recurring.disable" })
            }
            RecurringVerb::TakeOver => {
                let person = kept_owner(caller)?;
                let row = Recurring { owner: caller.who.clone(), person, changed: clock::now(), ..before };
                (row, "recurring.take_over")
            }
            // It is so already.
            RecurringVerb::SkipNext(_) | RecurringVerb::Activate(_) | RecurringVerb::RunNow => return Ok(()),
        };
        let audit = caller.audit(what, &row.name, detail(&row));
        self.write_recurring(caller, row, version, audit).await
    }

    async fn write_recurring(
        &self,
        caller: &Caller,
        row: Recurring,
        version: i64,
        audit: AuditEntry,
    ) -> Result<(), Error> {
        match self.master.store.put_recurring(row.clone(), version, audit).await? {
            Written::Done(_) => self.recurring_changed("changed", &row, caller).await,
            Written::Exists => Err(taken(&row)),
            Written::Missing => Err(missing(row.id)),
            Written::Stale(version) => Err(stale(row.id, version)),
        }
    }

    /// A definition with nothing left to account for: what has come is fired as it was planned, before that is changed.
    async fn settled(&self, mut row: Recurring) -> Result<Recurring, Error> {
        for _ in 0..TRIES {
            let now = clock::now();
            if !row.active || row.next.is_none_or(|next| next > now) {
                return Ok(row);
            }
            let id = row.id;
            self.master.account_for(&Round::hasty(now), row).await?;
            row = self.master.store.recurring(id).await?.ok_or_else(|| missing(id))?;
        }
        Err(Error::Busy(format!("recurring action {} is catching up with instants that were missed; wait", row.id)))
    }

    /// When a definition is next, as it is now: as before if nothing about its times has changed, else after now, and after
    /// whatever was accounted for, should the clock have been put back.
    async fn next_of(&self, now: &Definition, before: &Recurring) -> Result<Option<Timestamp>, Error> {
        let times = |row: &Recurring| (row.active, row.cron.clone(), row.zone.clone());
        // One that could not be read had none.
        if times(&now.row) == times(before) && before.next.is_some() {
            return Ok(before.next);
        }
        let from = self.accounted_for(before.id).await?.max(clock::now());
        // What has come since it was settled is to be accounted for as it was planned, and not left out in silence.
        if before.active && before.next.is_some_and(|next| next <= from) {
            return Err(Error::Stale(format!("recurring action {} is due at this moment; try again", before.id)));
        }
        Ok(if now.row.active { now.next_after(from) } else { None })
    }

    /// The newest instant that was accounted for.
    async fn accounted_for(&self, id: RecurringId) -> Result<Timestamp, Error> {
        let newest = self.master.store.fires(id, Timestamp(i64::MAX), 1).await?;
        Ok(newest.first().map_or(Timestamp(0), |fire| fire.planned))
    }

    async fn recurring_to_change(&self, caller: &Caller, id: RecurringId) -> Result<Recurring, Error> {
        let row = self.seen_recurring(caller, id).await?;
        lists::entity_of(&row)?.check(&caller.rights, &row.org)?;
        Ok(row)
    }

    async fn recurring_changed(&self, word: &str, row: &Recurring, caller: &Caller) -> Result<(), Error> {
        self.master.engine.recurrings_changed();
        Ok(self.master.store.log_events(vec![changed(row, word, &caller.who, clock::now())]).await?)
    }

    /// Somebody has removed himself, and what he made to recur has stopped: somebody has to know.
    pub(super) async fn tell_orphans(&self, name: &str, ids: &[RecurringId]) -> Result<(), Error> {
        if ids.is_empty() {
            return Ok(());
        }
        Ok(self.master.store.log_events(vec![handed_over(ids, name, None, clock::now())]).await?)
    }
}

/// What he may do whatever his token is for: to see something is not to change it.
fn without_scope(caller: &Caller) -> Rights {
    let mut rights = (*caller.rights).clone();
    rights.scope = Scope::All;
    rights
}

fn detail(row: &Recurring) -> serde_json::Value {
    serde_json::json!({
        "id": row.id.0, "entity": format!("{} {}", row.entity_kind, row.entity), "owner": row.owner, "cron": row.cron,
        "zone": row.zone, "active": row.active, "skip_next": row.skip_next,
    })
}

fn missing(id: RecurringId) -> Error {
    Error::NotFound(format!("there is no recurring action {id}"))
}

fn taken(row: &Recurring) -> Error {
    let Recurring { name, entity_kind, entity, .. } = row;
    Error::Conflict(format!("there is a recurring action called {name:?} on {entity_kind} {entity} already"))
}

fn stale(id: RecurringId, version: i64) -> Error {
    Error::Stale(format!("recurring action {id} was changed meanwhile, it is at version {version} now; look again"))
}
