//! Calendars in iCal form (RFC 5545), expanded into the spans of time they name, and feeds in the same form.
//!
//! [`Calendar::parse`] reads a text and refuses it with the line and a hint; a calendar that was read answers which windows
//! there are and whether one is open. Every answer is bounded, however the calendar was written: by the size and the number
//! of events, by the instances of one expansion, and by the work it takes.
//!
//! How it reads what the standard leaves open, or what calendars do in spite of it:
//! * A local time that the clocks skip is read with the offset before the gap, also for an instance of a rule, which the
//!   standard would drop: a window that vanishes once a year helps nobody, and every calendar program shows it. A local time
//!   that comes twice is the first of the two.
//! * A DTEND gives all instances the same exact duration, a DURATION in days the same by the clock (3.8.5.3).
//! * Times without a zone, and all-day events, are in the calendar's X-WR-TIMEZONE, else in the zone the caller gives.
//! * DTSTART is always an instance. What lasts no time is none.
//!
//! The parts: `lines` (folding), `values` (times), `components` (events), `rule`, `days` and `expand` (recurrence rules),
//! `zones`, `series` (instances of one event), `work` (what an answer may cost), `feed` (writing).

mod components;
mod days;
mod expand;
mod feed;
mod lines;
mod rule;
mod series;
mod values;
mod windows_names;
mod work;
mod zones;

use std::collections::BTreeSet;

use saltern_core::time::Timestamp;

pub use feed::{FeedEvent, write};

use self::components::{Components, Event};
use self::series::{Instance, Series};
use self::work::Work;
use self::zones::Zones;
use crate::zone::Zone;

const DAY: i64 = 86_400;
/// How far ahead an opening is looked for, in steps: most are near.
const AHEAD_DAYS: [i64; 4] = [0, 32, 366, 5 * 366];

/// What a calendar may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The size of the text.
    pub bytes: usize,
    /// VEVENTs in it.
    pub events: usize,
    /// Instances that one expansion looks at; also what a rule may have in a year.
    pub instances: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { bytes: 5_000_000, events: 10_000, instances: 100_000 }
    }
}

/// Why a calendar is refused, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}; {hint}")]
pub struct BadCalendar {
    /// Where in the text, counted from 1.
    pub line: usize,
    /// What is wrong there.
    pub problem: String,
    /// What to do.
    pub hint: String,
}

impl BadCalendar {
    fn at(line: usize, problem: impl Into<String>, hint: impl Into<String>) -> Self {
        BadCalendar { line, problem: problem.into(), hint: hint.into() }
    }
}

/// One instance of an event: from `start` until just before `end`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Window {
    /// Its first moment.
    pub start: Timestamp,
    /// The first moment after it.
    pub end: Timestamp,
    /// The event's SUMMARY, or that of the changed instance.
    pub summary: String,
    /// The event's UID; `line-7` for the event of line 7 that has none.
    pub uid: String,
}

/// A calendar that was read.
#[derive(Debug)]
pub struct Calendar {
    series: Vec<Series>,
    limits: Limits,
}

impl Calendar {
    /// Reads a calendar; times without a zone are in UTC.
    pub fn parse(text: &str, limits: &Limits) -> Result<Self, BadCalendar> {
        Self::parse_in(text, Zone::UTC, limits)
    }

    /// Reads a calendar; times without a zone are in the given one, unless the calendar names one for them.
    pub fn parse_in(text: &str, default_zone: Zone, limits: &Limits) -> Result<Self, BadCalendar> {
        if text.len() > limits.bytes {
            let problem = format!("the calendar has {} bytes, {} are allowed", text.len(), limits.bytes);
            return Err(BadCalendar::at(1, problem, "leave out old events, or split it"));
        }
        let found = Components::read(text, limits)?;
        let named = found.zone_name.as_ref().and_then(|line| zones::known(line.value.trim()));
        let mut zones = Zones::new(named.unwrap_or(default_zone), found.zones);
        let mut work = Work::new(limits.instances);
        let mut events = Vec::with_capacity(found.events.len());
        for (line, properties) in &found.events {
            events.push(Event::read(*line, properties, &mut zones, &mut work)?);
        }
        Ok(Calendar { series: series::group(events, &mut work)?, limits: *limits })
    }

    /// The windows that are not over at `from` and begin before `to`, in order; with a summary only those that have it.
    pub fn windows(&self, from: Timestamp, to: Timestamp, summary: Option<&str>) -> Result<Vec<Window>, BadCalendar> {
        if from >= to {
            return Ok(Vec::new());
        }
        let mut work = self.work();
        let mut windows = Vec::new();
        for series in self.series_with(summary) {
            let instances = series.between(from.secs(), secs_up(to), &mut work)?;
            let wanted = instances.into_iter().filter(|instance| has_summary(instance, summary));
            windows.extend(wanted.map(|instance| window(series, instance)));
        }
        windows.sort_unstable();
        Ok(windows)
    }

    /// Whether a window is open at an instant.
    pub fn is_open(&self, at: Timestamp, summary: Option<&str>) -> Result<bool, BadCalendar> {
        let (from, to) = (at.secs(), at.secs().saturating_add(1));
        let mut work = self.work();
        for series in self.series_with(summary) {
            let instances = self.between(series, from, to, &mut work)?;
            if instances.iter().any(|instance| has_summary(instance, summary)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The first window that begins at an instant or later, within five years.
    pub fn next_opening(&self, at: Timestamp, summary: Option<&str>) -> Result<Option<Window>, BadCalendar> {
        let at = secs_up(at);
        let mut work = self.work();
        let mut next: Option<Window> = None;
        for series in self.series_with(summary) {
            for ahead in AHEAD_DAYS.windows(2) {
                let (from, to) = (at.saturating_add(ahead[0] * DAY), at.saturating_add(ahead[1] * DAY));
                if next.as_ref().is_some_and(|next| next.start.secs() < from) {
                    break;
                }
                let instances = self.between(series, from, to, &mut work)?;
                let wanted = instances.into_iter().filter(|found| found.start >= at && has_summary(found, summary));
                if let Some(first) = wanted.map(|instance| window(series, instance)).min() {
                    next = Some(next.map_or_else(|| first.clone(), |next| next.min(first.clone())));
                    break;
                }
            }
        }
        Ok(next)
    }

    /// The summaries that windows of this calendar have.
    pub fn summaries(&self) -> BTreeSet<String> {
        self.series.iter().flat_map(Series::summaries).map(str::to_owned).collect()
    }

    fn series_with(&self, summary: Option<&str>) -> impl Iterator<Item = &Series> {
        let is_wanted = move |text: &str| summary.is_none_or(|summary| summary.trim() == text);
        self.series.iter().filter(move |series| series.summaries().any(is_wanted))
    }

    /// Instances of which most are only looked at: each series has an allowance of its own, the work is shared.
    fn between<'a>(
        &self,
        series: &'a Series,
        from: i64,
        to: i64,
        work: &mut Work,
    ) -> Result<Vec<Instance<'a>>, BadCalendar> {
        let mut part = work.part(self.limits.instances);
        let instances = series.between(from, to, &mut part)?;
        work.join(&part);
        Ok(instances)
    }

    fn work(&self) -> Work {
        Work::new(self.limits.instances)
    }
}

fn has_summary(instance: &Instance<'_>, summary: Option<&str>) -> bool {
    summary.is_none_or(|summary| summary.trim() == instance.summary)
}

fn window(series: &Series, instance: Instance<'_>) -> Window {
    Window {
        start: Timestamp::from_secs(instance.start),
        end: Timestamp::from_secs(instance.end),
        summary: instance.summary.to_owned(),
        uid: series.uid.clone(),
    }
}

/// The instant in whole seconds, the next one if it is not whole.
fn secs_up(at: Timestamp) -> i64 {
    at.secs().saturating_add(i64::from(at.micros().rem_euclid(1_000_000) != 0))
}
