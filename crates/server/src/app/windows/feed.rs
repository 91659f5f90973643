//! Windows and planned instants as a calendar that other programs can subscribe to.

use crate::app::{App, Caller};
use crate::engine::Hours;
use crate::{Error, clock};
use saltern_calendar::cron::Cron;
use saltern_calendar::ical::{FeedEvent, write};
use saltern_calendar::zone::Zone;
use saltern_core::access::{Entity, Thing, Wish};
use saltern_core::ids::{MinionId, RecurringId};
use saltern_core::time::Timestamp;
use saltern_store::Recurring;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What a feed is to tell of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeedFilter {
    /// Only of this schedule
    pub schedule: Option<String>,
    /// Only of this minion
    pub minion: Option<MinionId>,
    /// Without what recurs
    pub windows_only: bool,
}

/// How far ahead it tells.
const AHEAD: Duration = Duration::from_secs(90 * 86_400);
/// Most events of one schedule or recurring action: what happens every minute is no news in a calendar.
const MOST_OF_ONE: usize = 1_000;
/// Most events.
const MOST: usize = 20_000;
/// Most minions named in an event.
const NAMED: usize = 20;
/// Definitions read at once.
const PAGE: usize = 1_000;
/// How long an instant is shown: a calendar has no points.
const SHOWN: Duration = Duration::from_secs(15 * 60);

impl App {
    /// The windows of the minions he sees, and when what he sees recurs, for the next 90 days as iCal text.
    pub async fn feed(&self, caller: &Caller, filter: &FeedFilter) -> Result<String, Error> {
        self.master.look_at_groups().await?;
        let (from, to) = (clock::now(), clock::now().plus(AHEAD));
        let mut events = self.windows_seen(caller, filter, from, to)?;
        if !filter.windows_only && filter.schedule.is_none() && filter.minion.is_none() {
            self.add_fires(caller, from, to, &mut events).await?;
        }
        events.truncate(MOST);
        Ok(write(&events, "Saltern"))
    }

    fn windows_seen(
        &self,
        caller: &Caller,
        filter: &FeedFilter,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<FeedEvent>, Error> {
        if let Some(minion) = &filter.minion {
            self.check_seen(caller, minion)?;
        }
        let snapshot = self.master.windows.snapshot();
        let mut by_schedule: BTreeMap<(&str, &str), (&Arc<Hours>, Vec<&MinionId>)> = BTreeMap::new();
        let members = self.master.members();
        let meant = |id: &MinionId| filter.minion.as_ref().is_none_or(|minion| minion == id);
        for member in members.iter().filter(|member| caller.sight().sees(&member.id) && meant(&member.id)) {
            let Some(rules) = snapshot.rules(&member.id) else { continue };
            for hours in rules.windows.iter().chain(&rules.blackouts) {
                if filter.schedule.as_ref().is_none_or(|schedule| *schedule == hours.name) {
                    let key = (hours.org.as_str(), hours.name.as_str());
                    by_schedule.entry(key).or_insert_with(|| (hours, Vec::new())).1.push(&member.id);
                }
            }
        }
        let mut events = Vec::new();
        for ((org, name), (hours, mut minions)) in by_schedule {
            minions.sort();
            let named: Vec<&str> = minions.iter().take(NAMED).map(|minion| minion.as_str()).collect();
            let more =
                if minions.len() > NAMED { format!(" and {} more", minions.len() - NAMED) } else { String::new() };
            let description = format!("{}{more}", named.join(", "));
            let word = if hours.is_blackout { "blackout" } else { "maintenance" };
            for window in hours.table.windows(from, to).into_iter().take(MOST_OF_ONE) {
                events.push(FeedEvent {
                    uid: format!("window-{org}-{name}-{}-{}@saltern", window.uid, window.start.secs()),
                    start: window.start,
                    end: window.end,
                    summary: format!("{name} ({word})"),
                    description: description.clone(),
                });
            }
        }
        Ok(events)
    }

    async fn add_fires(
        &self,
        caller: &Caller,
        from: Timestamp,
        to: Timestamp,
        events: &mut Vec<FeedEvent>,
    ) -> Result<(), Error> {
        let mut after = RecurringId(0);
        loop {
            let page = self.master.store.recurrings(after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.id;
            let is_last = page.len() < PAGE;
            for row in page.iter().filter(|row| row.active && self.may_know(caller, row)) {
                let (Ok(cron), Ok(zone)) = (Cron::parse(&row.cron, &row.seed), Zone::parse(&row.zone)) else {
                    continue;
                };
                let instants = cron.fires(from, &zone).take_while(|at| *at < to);
                let skipped = usize::from(row.skip_next);
                events.extend(instants.skip(skipped).take(MOST_OF_ONE).map(|at| FeedEvent {
                    uid: format!("recurring-{}-{}@saltern", row.id, at.secs()),
                    start: at,
                    end: at.plus(SHOWN),
                    summary: row.name.clone(),
                    description: format!("{} {}: {}", row.entity_kind, row.entity, cron.describe()),
                }));
            }
            if is_last || events.len() >= MOST {
                return Ok(());
            }
        }
    }

    fn may_know(&self, caller: &Caller, row: &Recurring) -> bool {
        let minion = MinionId::new(row.entity.as_str()).ok();
        let entity = match (row.entity_kind.as_str(), &minion) {
            ("minion", Some(minion)) => Entity::Minion(minion),
            ("group", _) => Entity::Group(&row.entity),
            ("org", _) => Entity::Organisation(&row.entity),
            _ => Entity::Target,
        };
        row.owner == caller.who || self.may(caller, &Wish::Manage(Thing::Recurring { org: &row.org, entity })).is_ok()
    }
}
