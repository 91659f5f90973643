//! All that is known of windows at a moment, put together so that each minion's rules are at hand.

use super::Opening;
use super::timetable::{LIMITS, Span, Timetable};
use saltern_calendar::ical;
use saltern_calendar::zone::Zone;
use saltern_core::ids::MinionId;
use saltern_core::time::Timestamp;
use saltern_store::{Calendar, Mode, Schedule, WindowData};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The members of groups that schedules are assigned to.
pub(super) type Groups = BTreeMap<String, BTreeSet<MinionId>>;

/// Steps after which the search for an opening is given up: blackouts that always begin where windows do.
const MOST_STEPS: usize = 10_000;

/// A schedule with the times it means.
pub(crate) struct Hours {
    pub(crate) org: String,
    pub(crate) name: String,
    pub(crate) is_blackout: bool,
    /// Whether what finds it closed fails
    fails: bool,
    pub(crate) table: Arc<Timetable>,
}

/// What holds for one minion.
#[derive(Clone, Default)]
pub(crate) struct Rules {
    /// Open while any of them is; none: always
    pub(crate) windows: Vec<Arc<Hours>>,
    /// Closed while any of them is
    pub(crate) blackouts: Vec<Arc<Hours>>,
}

/// All that is known of windows.
#[derive(Default)]
pub(crate) struct Snapshot {
    pub(crate) data: Arc<WindowData>,
    pub(super) groups: Groups,
    pub(super) made: Timestamp,
    hours: BTreeMap<(String, String), Arc<Hours>>,
    rules: HashMap<MinionId, Rules>,
    modes: HashMap<MinionId, Mode>,
}

impl Snapshot {
    /// Puts together what the tables say. What was expanded for `before` and is still right is not expanded again. This may
    /// take a while: not for a thread that others wait for.
    pub(super) fn build(data: WindowData, groups: Groups, before: &Self, now: Timestamp) -> Self {
        let mut expanded = Expanded { before, read: HashMap::new(), tables: HashMap::new(), now };
        let mut hours = BTreeMap::new();
        for schedule in &data.schedules {
            let calendar = schedule.calendar.as_ref();
            let calendar = calendar.and_then(|name| find(&data.calendars, &schedule.org, name));
            let table = expanded.table(schedule, calendar);
            let one = Hours {
                org: schedule.org.clone(),
                name: schedule.name.clone(),
                is_blackout: schedule.kind == "blackout",
                fails: schedule.away == "fail",
                table,
            };
            hours.insert((schedule.org.clone(), schedule.name.clone()), Arc::new(one));
        }
        let rules = rules(&data, &groups, &hours);
        let modes = data.modes.iter().map(|mode| (mode.minion.clone(), mode.clone())).collect();
        Self { data: Arc::new(data), groups, made: now, hours, rules, modes }
    }

    /// The same with other members of groups.
    pub(super) fn with_groups(&self, groups: Groups) -> Self {
        Self {
            rules: rules(&self.data, &groups, &self.hours),
            data: self.data.clone(),
            groups,
            made: self.made,
            hours: self.hours.clone(),
            modes: self.modes.clone(),
        }
    }

    /// The groups that schedules are assigned to.
    pub(super) fn assigned_groups(data: &WindowData) -> BTreeSet<String> {
        let of_groups = data.assignments.iter().filter(|one| one.kind == "group");
        of_groups.map(|one| one.subject.clone()).collect()
    }

    /// Whether what changes a minion may start there at an instant, and when it may if not. Beyond the horizon of what is
    /// expanded the answer is an early guess, which is looked at again.
    pub(super) fn opening(&self, minion: &MinionId, at: Timestamp) -> Opening {
        self.find_opening(minion, at, false)
    }

    /// The same, right at any distance: it may take an expansion.
    pub(in crate::engine) fn opening_far(&self, minion: &MinionId, at: Timestamp) -> Opening {
        self.find_opening(minion, at, true)
    }

    fn find_opening(&self, minion: &MinionId, at: Timestamp, far: bool) -> Opening {
        if self.mode(minion, at).is_some() {
            return Opening::Open;
        }
        match self.rules.get(minion).map(|rules| rules.next_open(at, far)) {
            None => Opening::Open,
            Some(Some(next)) if next <= at => Opening::Open,
            Some(next) => Opening::Closed(next),
        }
    }

    /// The window that is open at an instant or opens next, with the schedule it is of; nothing where none ends.
    pub(crate) fn window_from(&self, minion: &MinionId, at: Timestamp) -> Option<(Span, &Hours)> {
        let rules = self.rules.get(minion)?;
        let start = rules.next_open(at, true)?;
        let open = rules.windows.iter().filter_map(|hours| Some((hours.table.span_at(start)?, hours)));
        let (span, hours) = open.max_by_key(|(span, _)| span.end)?;
        let cut = rules.blackouts.iter().filter_map(|hours| hours.table.next_start(start)).min();
        let end = cut.map_or(span.end, |cut| cut.min(span.end));
        Some((Span { start, end }, hours))
    }

    /// Whether a minion's window was open at some moment since then.
    pub(super) fn was_open_since(&self, minion: &MinionId, since: Timestamp, now: Timestamp) -> bool {
        self.rules.get(minion).is_some_and(|rules| rules.windows.iter().any(|hours| hours.table.was_open(since, now)))
    }

    /// Whether what finds the window of this minion closed fails by its schedules.
    pub(super) fn fails_outside(&self, minion: &MinionId) -> bool {
        let fails = |rules: &Rules| rules.windows.iter().chain(&rules.blackouts).any(|hours| hours.fails);
        self.rules.get(minion).is_some_and(fails)
    }

    /// The maintenance mode that a minion is in at an instant.
    pub(crate) fn mode(&self, minion: &MinionId, at: Timestamp) -> Option<&Mode> {
        self.modes.get(minion).filter(|mode| mode.until.is_none_or(|until| at < until))
    }

    /// What holds for a minion.
    pub(crate) fn rules(&self, minion: &MinionId) -> Option<&Rules> {
        self.rules.get(minion)
    }

    /// The times of a schedule.
    pub(crate) fn hours(&self, org: &str, name: &str) -> Option<&Arc<Hours>> {
        self.hours.get(&(org.to_owned(), name.to_owned()))
    }

    /// Every minion that a schedule holds for.
    pub(crate) fn minions_of(&self, org: &str, name: &str) -> BTreeSet<&MinionId> {
        let has = |hours: &Arc<Hours>| hours.org == org && hours.name == name;
        let bound = |rules: &Rules| rules.windows.iter().chain(&rules.blackouts).any(has);
        self.rules.iter().filter(|(_, rules)| bound(rules)).map(|(minion, _)| minion).collect()
    }

    /// Minions for which something else holds in the other one.
    pub(super) fn differing(&self, other: &Self) -> Vec<MinionId> {
        let all: BTreeSet<&MinionId> =
            self.rules.keys().chain(other.rules.keys()).chain(self.modes.keys()).chain(other.modes.keys()).collect();
        let same = |minion: &MinionId| {
            let rules = match (self.rules.get(minion), other.rules.get(minion)) {
                (None, None) => true,
                (Some(one), Some(other)) => one.is_as(other),
                _ => false,
            };
            rules && self.modes.get(minion) == other.modes.get(minion)
        };
        all.into_iter().filter(|minion| !same(minion)).cloned().collect()
    }
}

impl Rules {
    /// The first instant, this one or later, at which it is open.
    fn next_open(&self, from: Timestamp, far: bool) -> Option<Timestamp> {
        let mut at = from;
        let tables = self.windows.iter().chain(&self.blackouts).map(|hours| &hours.table);
        let horizon = tables.filter_map(|table| table.horizon()).min();
        for _ in 0..MOST_STEPS {
            if !far && at > from && horizon.is_some_and(|horizon| at >= horizon) {
                return Some(at);
            }
            // Nobody knows when a blackout without a calendar ends.
            if self.blackouts.iter().any(|hours| hours.table.problem().is_some()) {
                return None;
            }
            if let Some(end) =
                self.blackouts.iter().filter_map(|hours| hours.table.span_at(at)).map(|span| span.end).max()
            {
                at = end;
            } else if self.windows.is_empty() || self.windows.iter().any(|hours| hours.table.span_at(at).is_some()) {
                return Some(at);
            } else {
                at = self.windows.iter().filter_map(|hours| hours.table.next_start(at)).min()?;
            }
        }
        None
    }

    fn is_as(&self, other: &Self) -> bool {
        let same = |one: &[Arc<Hours>], other: &[Arc<Hours>]| {
            let alike = |(a, b): (&Arc<Hours>, &Arc<Hours>)| a.fails == b.fails && Arc::ptr_eq(&a.table, &b.table);
            one.len() == other.len() && one.iter().zip(other).all(alike)
        };
        same(&self.windows, &other.windows) && same(&self.blackouts, &other.blackouts)
    }
}

/// What is expanded while a snapshot is made.
struct Expanded<'a> {
    before: &'a Snapshot,
    read: HashMap<(String, String), Result<Arc<ical::Calendar>, String>>,
    tables: HashMap<(String, String, Option<String>), Arc<Timetable>>,
    now: Timestamp,
}

impl Expanded<'_> {
    fn table(&mut self, schedule: &Schedule, calendar: Option<&Calendar>) -> Arc<Timetable> {
        let known = self.before.hours(&schedule.org, &schedule.name);
        let Some(calendar) = calendar else {
            let gone = |name| format!("its calendar {name} is gone");
            let why = schedule.calendar.as_ref().map_or_else(|| "it has no calendar".to_owned(), gone);
            let as_before = known.filter(|hours| hours.table.problem() == Some(&why));
            let made = || Arc::new(Timetable::without_calendar(&why, self.now));
            return as_before.map_or_else(made, |hours| hours.table.clone());
        };
        if let Some(hours) = known.filter(|hours| self.is_as_before(schedule, calendar, hours)) {
            return hours.table.clone();
        }
        let summary = (schedule.kind == "multi").then(|| schedule.name.clone());
        let key = (calendar.org.clone(), calendar.name.clone(), summary.clone());
        if let Some(table) = self.tables.get(&key) {
            return table.clone();
        }
        let place = (calendar.org.clone(), calendar.name.clone());
        let zone = Zone::parse(&calendar.zone).unwrap_or(Zone::UTC);
        let read = self.read.entry(place).or_insert_with(|| {
            let read = ical::Calendar::parse_in(&calendar.ical, zone, &LIMITS);
            read.map(Arc::new).map_err(|error| error.to_string())
        });
        let table = Arc::new(Timetable::new(read.clone(), zone, summary, self.now));
        self.tables.insert(key, table.clone());
        table
    }

    fn is_as_before(&self, schedule: &Schedule, calendar: &Calendar, hours: &Hours) -> bool {
        let known = self.before.data.schedules.iter().find(|one| one.org == schedule.org && one.name == schedule.name);
        let same_schedule = known.is_some_and(|known| {
            known.calendar == schedule.calendar && (known.kind == "multi") == (schedule.kind == "multi")
        });
        let known = find(&self.before.data.calendars, &calendar.org, &calendar.name);
        let same_calendar = known.is_some_and(|known| known.ical == calendar.ical && known.zone == calendar.zone);
        same_schedule && same_calendar && hours.table.is_fresh(self.now)
    }
}

fn find<'a>(calendars: &'a [Calendar], org: &str, name: &str) -> Option<&'a Calendar> {
    calendars.iter().find(|calendar| calendar.org == org && calendar.name == name)
}

/// What holds for each minion that anything is assigned to.
fn rules(
    data: &WindowData,
    groups: &Groups,
    hours: &BTreeMap<(String, String), Arc<Hours>>,
) -> HashMap<MinionId, Rules> {
    let (mut own, mut inherited) = (HashMap::<MinionId, Rules>::new(), HashMap::<MinionId, Rules>::new());
    for one in &data.assignments {
        let Some(hours) = hours.get(&(one.org.clone(), one.schedule.clone())) else { continue };
        let add = |rules: &mut Rules| {
            let list = if hours.is_blackout { &mut rules.blackouts } else { &mut rules.windows };
            list.push(hours.clone());
        };
        if one.kind == "group" {
            for minion in groups.get(&one.subject).into_iter().flatten() {
                add(inherited.entry(minion.clone()).or_default());
            }
        } else if let Ok(minion) = MinionId::new(one.subject.as_str()) {
            add(own.entry(minion).or_default());
        }
    }
    for (minion, of_groups) in inherited {
        let rules = own.entry(minion).or_default();
        if rules.windows.is_empty() {
            rules.windows = of_groups.windows;
        }
        rules.blackouts.extend(of_groups.blackouts);
    }
    own
}
