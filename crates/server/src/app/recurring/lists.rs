//! Definitions as people see them: one, all of somebody, those that hit a minion; and what became of their instants.

use super::super::{App, Caller};
use super::{missing, without_scope};
use crate::engine::{CatchUp, Definition, EntityKind, EntityRef, Overlap, RecurringWhat, Round, left_out_of};
use crate::{Error, clock};
use futures_util::StreamExt as _;
use saltern_core::access::{Rights, Sight};
use saltern_core::action::Policy;
use saltern_core::ids::{MinionId, RecurringId};
use saltern_core::time::Timestamp;
use saltern_store::{Fire, Recurring};

/// A definition as somebody sees it.
#[derive(Clone, Debug)]
pub struct RecurringView {
    /// As it is kept. Its JSON texts may have more in them than he may see: use what is read here
    pub recurring: Recurring,
    /// What it is done on
    pub entity: EntityRef,
    /// What is done; without its parameters for whoever may not change it
    pub what: RecurringWhat,
    /// What happens where an earlier time has not ended
    pub overlap: Overlap,
    /// What happens with instants that nobody was there for
    pub catch_up: CatchUp,
    /// The rules it is carried out by
    pub policy: Policy,
    /// When it fires, in words
    pub words: String,
    /// What became of its last instant
    pub last: Option<FireEntry>,
    /// Whether he may change it
    pub is_his: bool,
}

/// What became of an instant, as somebody sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FireEntry {
    /// As it is kept
    pub fire: Fire,
    /// Who was left out, and why
    pub left_out: Vec<(MinionId, String)>,
}

/// Which definitions are wanted, in the order of their numbers.
#[derive(Clone, Debug, Default)]
pub struct RecurringFilter {
    /// Only after this one
    pub after: Option<RecurringId>,
    /// At most so many
    pub limit: usize,
    /// Only what recurs on this
    pub entity: Option<EntityRef>,
}

/// Most rows in one answer.
const PAGE: usize = 1_000;
/// Last instants that are looked up at the same time.
const AT_ONCE: usize = 16;
/// Most instants of one definition that a feed tells of.
const MOST_OF_ONE: usize = 1_000;

impl App {
    /// The definitions he may know of.
    pub async fn recurrings(&self, caller: &Caller, filter: &RecurringFilter) -> Result<Vec<RecurringView>, Error> {
        let limit = filter.limit.clamp(1, PAGE);
        let rights = without_scope(caller);
        let mut after = filter.after.unwrap_or(RecurringId(0));
        if let Some(entity) = &filter.entity {
            let mut rows = self.master.store.recurrings_of(entity.kind.as_str(), &entity.subject).await?;
            rows.retain(|row| row.id > after && sees(caller, &rights, row));
            rows.sort_by_key(|row| row.id);
            rows.truncate(limit);
            return self.views(caller, &rights, rows).await;
        }
        let mut seen = Vec::new();
        loop {
            let page = self.master.store.recurrings(after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.id;
            seen.extend(page.into_iter().filter(|row| sees(caller, &rights, row)));
            if seen.len() >= limit {
                seen.truncate(limit);
                break;
            }
        }
        self.views(caller, &rights, seen).await
    }

    /// One definition.
    pub async fn recurring(&self, caller: &Caller, id: RecurringId) -> Result<RecurringView, Error> {
        let row = self.seen_recurring(caller, id).await?;
        self.view(caller, &without_scope(caller), row).await
    }

    /// Everything that recurs on a minion: its own, that of its groups, of its organisation, and of targets that mean it.
    pub async fn recurrings_hitting(&self, caller: &Caller, minion: &MinionId) -> Result<Vec<RecurringView>, Error> {
        if !caller.sight().sees(minion) || self.master.member(minion.as_str()).is_none() {
            return Err(Error::NotFound(format!("there is no accepted minion {:?}", minion.as_str())));
        }
        let (store, snapshot) = (&self.master.store, self.master.directory.snapshot());
        let mut rows = store.recurrings_of(EntityKind::Minion.as_str(), minion.as_str()).await?;
        for group in snapshot.groups.values() {
            if self.master.minions_of_group(&snapshot, group).await?.sees(minion) {
                rows.extend(store.recurrings_of(EntityKind::Group.as_str(), &group.name).await?);
            }
        }
        rows.extend(store.recurrings_of(EntityKind::Organisation.as_str(), snapshot.org_of(minion)).await?);
        let (round, mut after) = (Round::new(clock::now()), RecurringId(0));
        loop {
            let page = store.recurrings(after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.id;
            for row in page.into_iter().filter(|row| row.entity_kind == EntityKind::Target.as_str()) {
                let Some(definition) = readable(&row) else { continue };
                if self.master.recurs_on(&round, &definition, minion).await {
                    rows.push(row);
                }
            }
        }
        rows.sort_by_key(|row| row.id);
        self.views(caller, &without_scope(caller), rows).await
    }

    /// What became of the instants of a definition before this one, newest first.
    pub async fn fires(
        &self,
        caller: &Caller,
        id: RecurringId,
        before: Option<Timestamp>,
        limit: usize,
    ) -> Result<Vec<FireEntry>, Error> {
        // Of one that was removed there is nobody left to ask whose it was.
        if !(caller.rights.server_admin && self.master.store.recurring(id).await?.is_none()) {
            self.seen_recurring(caller, id).await?;
        }
        let before = before.unwrap_or(Timestamp(i64::MAX));
        let fires = self.master.store.fires(id, before, limit.clamp(1, PAGE)).await?;
        Ok(fires.into_iter().map(|fire| entry(fire, caller.sight())).collect())
    }

    /// The instants until then of every definition that he may know of, in their order, `most` at most.
    pub async fn planned_until(
        &self,
        caller: &Caller,
        until: Timestamp,
        most: usize,
    ) -> Result<Vec<(Timestamp, Recurring)>, Error> {
        let (rights, now) = (without_scope(caller), clock::now());
        let (mut planned, mut after) = (Vec::new(), RecurringId(0));
        loop {
            let page = self.master.store.recurrings(after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.id;
            for row in page.into_iter().filter(|row| row.active && sees(caller, &rights, row)) {
                let Some(definition) = readable(&row) else { continue };
                let instants = definition.cron.fires(now, &definition.zone);
                let instants = instants.take_while(|at| *at <= until).take(MOST_OF_ONE.min(most));
                planned.extend(instants.map(|at| (at, row.clone())));
            }
            // What is later than the earliest `most` is in nobody's way while the rest is read.
            planned.sort_by_key(|(at, row)| (*at, row.id));
            planned.truncate(most);
        }
        Ok(planned)
    }

    /// The definitions that somebody owns.
    pub(in super::super) async fn owned_by(&self, name: &str) -> Result<Vec<RecurringId>, Error> {
        let (mut owned, mut after) = (Vec::new(), RecurringId(0));
        loop {
            let page = self.master.store.recurrings(after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(owned) };
            after = last.id;
            owned.extend(page.iter().filter(|row| row.owner == name).map(|row| row.id));
        }
    }

    pub(super) async fn seen_recurring(&self, caller: &Caller, id: RecurringId) -> Result<Recurring, Error> {
        let found = self.master.store.recurring(id).await?;
        found.filter(|row| sees(caller, &without_scope(caller), row)).ok_or_else(|| missing(id))
    }

    async fn views(&self, caller: &Caller, rights: &Rights, rows: Vec<Recurring>) -> Result<Vec<RecurringView>, Error> {
        let readable = rows.into_iter().filter(|row| readable(row).is_some());
        let views = readable.map(|row| self.view(caller, rights, row));
        let views: Vec<_> = futures_util::stream::iter(views).buffered(AT_ONCE).collect().await;
        views.into_iter().collect()
    }

    async fn view(&self, caller: &Caller, rights: &Rights, row: Recurring) -> Result<RecurringView, Error> {
        let last = self.master.store.fires(row.id, Timestamp(i64::MAX), 1).await?.pop();
        let is_his = manages(rights, &row);
        let is_known = is_his || row.owner == caller.who;
        let Definition { row, entity, what, cron, overlap, catch_up, policy, .. } = Definition::read(row)?;
        // A target may name minions that he does not see.
        let is_secret = !is_known && entity.kind == EntityKind::Target;
        Ok(RecurringView {
            entity: if is_secret { EntityRef::new(entity.kind, "…") } else { entity },
            what: if is_known { what } else { what.without_params() },
            overlap,
            catch_up,
            policy,
            words: cron.describe(),
            last: last.map(|fire| entry(fire, caller.sight())),
            is_his,
            recurring: row,
        })
    }
}

/// A definition of a list. One that cannot be read, after a downgrade perhaps, does not keep the others from being shown: whoever
/// asks for it by its number is told why.
fn readable(row: &Recurring) -> Option<Definition> {
    let read = Definition::read(row.clone());
    read.inspect_err(|error| tracing::warn!(recurring = %row.id, %error, "a definition is left out of a list")).ok()
}

/// What a definition is done on.
pub(super) fn entity_of(row: &Recurring) -> Result<EntityRef, Error> {
    let broken = || Error::Internal(format!("recurring action {} cannot be read: what it is done on", row.id));
    let kind = EntityKind::parse(&row.entity_kind).ok_or_else(broken)?;
    Ok(EntityRef::new(kind, row.entity.as_str()))
}

fn manages(rights: &Rights, row: &Recurring) -> bool {
    entity_of(row).is_ok_and(|entity| entity.check(rights, &row.org).is_ok())
}

fn sees(caller: &Caller, rights: &Rights, row: &Recurring) -> bool {
    row.owner == caller.who || manages(rights, row)
}

fn entry(fire: Fire, sight: &Sight) -> FireEntry {
    let left_out = left_out_of(&fire.detail, sight);
    FireEntry { fire, left_out }
}
