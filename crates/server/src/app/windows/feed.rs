//! Windows and planned instants as a calendar that other programs can subscribe to.

use crate::app::{App, Caller};
use crate::engine::Hours;
use crate::{Error, clock};
use saltern_calendar::ical::{FeedEvent, write};
use saltern_core::ids::MinionId;
use saltern_core::time::Timestamp;
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
/// Most events of one schedule.
const MOST_OF_ONE: usize = 1_000;
/// Most events.
const MOST: usize = 20_000;
/// Most minions named in an event.
const NAMED: usize = 20;
/// How long an instant is shown: a calendar has no points.
const SHOWN: Duration = Duration::from_secs(15 * 60);

/// The times of a schedule, and the minions it holds for.
type Bound<'a> = (&'a Arc<Hours>, Vec<&'a MinionId>);

impl App {
    /// The windows of the minions he sees, and when what he sees recurs, for the next 90 days as iCal text.
    pub async fn feed(&self, caller: &Caller, filter: &FeedFilter) -> Result<String, Error> {
        self.master.look_at_groups().await?;
        let (from, to) = (clock::now(), clock::now().plus(AHEAD));
        let mut events = self.windows_seen(caller, filter, from, to)?;
        if !filter.windows_only && filter.schedule.is_none() && filter.minion.is_none() {
            for (at, row) in self.planned_until(caller, to, MOST).await? {
                events.push(FeedEvent {
                    uid: format!("recurring-{}-{}@saltern", row.id, at.secs()),
                    start: at,
                    end: at.plus(SHOWN),
                    summary: row.name,
                    description: String::new(),
                });
            }
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
        let mut by_schedule: BTreeMap<(&str, &str), Bound<'_>> = BTreeMap::new();
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
}
