//! An event with all its instances: those of its rules, further ones, without the excluded, and the changed ones in place
//! of what they replace.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{NaiveDate, NaiveDateTime};

use super::BadCalendar;
use super::components::{Event, When};
use super::expand::Recurrence;
use super::values::{Length, later};
use super::work::Work;
use super::zones::Place;

const DAY: i64 = 86_400;

/// A span of time, in seconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Instance<'a> {
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) summary: &'a str,
}

/// All that has the same UID.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) uid: String,
    /// The event that recurs, or the only one; missing where a calendar holds nothing but changed instances.
    main: Option<Main>,
    /// Changed instances, by the start of what they replace.
    changed: BTreeMap<i64, Changed>,
}

#[derive(Debug)]
struct Main {
    line: usize,
    summary: String,
    place: Place,
    start: NaiveDateTime,
    is_date: bool,
    length: Length,
    recurrences: Vec<Recurrence>,
    /// Further instances by their start, some with a length of their own.
    extra: BTreeMap<i64, Option<Length>>,
    excluded: HashSet<i64>,
    excluded_days: HashSet<NaiveDate>,
    /// How long before a moment an instance that is counted may begin and still last then.
    reach_back: i64,
    /// How long after a moment an instance that was moved to it may be counted.
    reach_ahead: i64,
}

#[derive(Debug)]
struct Changed {
    is_cancelled: bool,
    summary: String,
    version: (i64, i64),
    start: i64,
    end: i64,
    length: Length,
    /// How far the local time was moved, if all that follow were, too.
    moves_following_by: Option<i64>,
}

/// Sorts events by their UID; of several versions the newest counts.
pub(super) fn group(events: Vec<Event>, work: &mut Work) -> Result<Vec<Series>, BadCalendar> {
    let mut order = Vec::new();
    let mut groups: HashMap<String, (Option<Event>, Vec<Event>)> = HashMap::new();
    for event in events {
        // Without a UID, which it ought to have, an event stands for itself.
        let uid = event.uid.clone().unwrap_or_else(|| format!("line-{}", event.line));
        let (main, changed) = groups.entry(uid.clone()).or_insert_with(|| {
            order.push(uid);
            (None, Vec::new())
        });
        if event.replaces.is_some() {
            changed.push(event);
        } else if main.as_ref().is_none_or(|main| main.version <= event.version) {
            *main = Some(event);
        }
    }
    let series = order.into_iter().filter_map(|uid| groups.remove_entry(&uid));
    series.map(|(uid, (main, changed))| Series::new(uid, main, changed, work)).collect()
}

impl Series {
    fn new(uid: String, main: Option<Event>, changed: Vec<Event>, work: &mut Work) -> Result<Self, BadCalendar> {
        if main.as_ref().is_some_and(|main| main.is_cancelled) {
            return Ok(Series { uid, main: None, changed: BTreeMap::new() });
        }
        let mut main = main.map(|event| Main::new(event, work)).transpose()?;
        let mut of_series: BTreeMap<i64, Changed> = BTreeMap::new();
        for event in changed {
            let Some((replaced, and_following)) = &event.replaces else { continue };
            let key = main.as_ref().map_or_else(|| replaced.instant(), |main| main.key(replaced));
            if of_series.get(&key).is_some_and(|other| other.version > event.version) {
                continue;
            }
            let start = event.start.instant();
            let moved = main
                .as_ref()
                .filter(|_| *and_following)
                .map(|main| (main.place.local(start) - main.place.local(key)).num_seconds());
            if let (Some(main), Some(moved)) = (&mut main, moved) {
                main.reach_back = main.reach_back.max(event.length.secs() + moved.max(0));
                main.reach_ahead = main.reach_ahead.max(-moved);
            }
            let end = event.length.end(&event.start.place, event.start.local);
            let (is_cancelled, version, length) = (event.is_cancelled, event.version, event.length);
            let changed = Changed {
                is_cancelled,
                summary: event.summary,
                version,
                start,
                end,
                length,
                moves_following_by: moved,
            };
            of_series.insert(key, changed);
        }
        Ok(Series { uid, main, changed: of_series })
    }

    /// The summaries its instances can have.
    pub(super) fn summaries(&self) -> impl Iterator<Item = &str> {
        let changed = self.changed.values().filter(|changed| !changed.is_cancelled);
        self.main.iter().map(|main| main.summary.as_str()).chain(changed.map(|changed| changed.summary.as_str()))
    }

    /// The instances that are not over at `from` and begin before `to`; not in order.
    pub(super) fn between(&self, from: i64, to: i64, work: &mut Work) -> Result<Vec<Instance<'_>>, BadCalendar> {
        let mut found = Vec::new();
        let keep = |instance: Instance<'_>| instance.start < to && instance.end > from && instance.start < instance.end;
        for (key, changed) in &self.changed {
            let is_excluded = self.main.as_ref().is_some_and(|main| main.is_excluded(*key));
            let instance = Instance { start: changed.start, end: changed.end, summary: &changed.summary };
            if !changed.is_cancelled && !is_excluded && keep(instance) {
                found.push(instance);
            }
        }
        if let Some(main) = &self.main {
            for (start, local) in main.starts(from, to, work)? {
                if self.changed.contains_key(&start) || main.is_excluded(start) {
                    continue;
                }
                if let Some(instance) = self.instance(main, start, local)
                    && keep(instance)
                {
                    found.push(instance);
                }
            }
        }
        Ok(found)
    }

    /// The instance of the main event that is counted by this start, moved if an earlier change moves all that follow.
    fn instance<'a>(&'a self, main: &'a Main, start: i64, local: NaiveDateTime) -> Option<Instance<'a>> {
        let own_length = main.extra.get(&start).copied().flatten();
        let following = self.changed.range(..start).rev().find_map(|(_, c)| c.moves_following_by.map(|by| (by, c)));
        let Some((moved_by, changed)) = following else {
            let end = own_length.unwrap_or(main.length).end(&main.place, local);
            return Some(Instance { start, end, summary: &main.summary });
        };
        if changed.is_cancelled {
            return None;
        }
        let local = later(local, moved_by);
        let end = own_length.unwrap_or(changed.length).end(&main.place, local);
        Some(Instance { start: main.place.instant(local), end, summary: &changed.summary })
    }
}

impl Main {
    fn new(event: Event, work: &mut Work) -> Result<Self, BadCalendar> {
        let When { local: start, place, is_date } = event.start;
        let mut recurrences = Vec::new();
        for rule in event.rules {
            recurrences.push(Recurrence::new(rule, start, is_date, &place, event.length.secs(), work)?);
        }
        let longest = event.extra.iter().filter_map(|(_, length)| length.map(Length::secs)).max().unwrap_or(0);
        let mut main = Main {
            line: event.line,
            summary: event.summary,
            start,
            is_date,
            length: event.length,
            recurrences,
            extra: BTreeMap::new(),
            excluded: HashSet::new(),
            excluded_days: HashSet::new(),
            reach_back: event.length.secs().max(longest),
            reach_ahead: 0,
            place,
        };
        let first = main.place.instant(start);
        let is_over = !main.recurrences.is_empty() && main.recurrences.iter().all(|rule| rule.ends_before(first));
        if !is_over {
            main.extra.insert(first, None);
        }
        for (when, length) in event.extra {
            let known = main.extra.entry(when.instant()).or_default();
            *known = length.or(*known);
        }
        for when in event.excluded {
            // Outlook excludes days of an all-day event by their midnight, others days of any event by their date.
            if when.is_date || is_date {
                main.excluded_days.insert(when.local.date());
            } else {
                main.excluded.insert(when.instant());
            }
        }
        Ok(main)
    }

    /// The start of the instance that a RECURRENCE-ID means; where either has no time, only the date matters.
    fn key(&self, replaced: &When) -> i64 {
        if replaced.is_date || self.is_date {
            self.place.instant(replaced.local.date().and_time(self.start.time()))
        } else {
            replaced.instant()
        }
    }

    fn is_excluded(&self, start: i64) -> bool {
        self.excluded.contains(&start)
            || (!self.excluded_days.is_empty() && self.excluded_days.contains(&self.place.local(start).date()))
    }

    /// The starts of all instances that may reach into the span, each once, with the local times they are named by.
    fn starts(&self, from: i64, to: i64, work: &mut Work) -> Result<BTreeMap<i64, NaiveDateTime>, BadCalendar> {
        // Days of an instance may be longer than 24 hours, and local times are off by the change of an offset.
        let from = from.saturating_sub(self.reach_back + 2 * DAY);
        let to = to.saturating_add(self.reach_ahead + 2 * DAY);
        let mut starts = BTreeMap::new();
        for start in self.extra.range(from..=to).map(|(start, _)| *start) {
            work.instance(self.line)?;
            starts.insert(start, self.place.local(start));
        }
        let (local_from, local_to) = (self.place.local(from), self.place.local(to));
        for recurrence in &self.recurrences {
            recurrence.starts(&self.place, local_from, local_to, work, &mut |local| {
                starts.insert(self.place.instant(local), local);
                true
            })?;
        }
        Ok(starts)
    }
}
