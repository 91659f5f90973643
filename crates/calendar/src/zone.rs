//! A time zone by its IANA name, with the data in the binary, and the rules by which local times become instants.
//!
//! A clock on the wall is put forward and back, so a local time may name no instant or two. [`Zone::resolve`] tells which it
//! is; [`Zone::first_instant`] applies the rule that everything that recurs follows: a local time that the clock jumps over
//! stands for the instant of the jump, and one that it shows twice for the first of the two.

use chrono::{DateTime, Datelike as _, NaiveDateTime, Offset as _, TimeZone as _};
use chrono_tz::{OffsetName as _, TZ_VARIANTS, Tz};
use saltern_core::time::Timestamp;
use std::fmt;

/// Instants outside the years 1 to 9999 are taken for the nearest inside: beyond them the arithmetic of dates ends.
const YEARS: (i64, i64) = (-62_135_596_800_000_000, 253_402_300_799_000_000);
/// No zone is further from UTC than this, and no clock was ever put forward or back by more.
const FAR: i64 = 36 * 3600;
/// How many names an error offers.
const HINTS: usize = 3;
/// What is longer than this is no misspelt name.
const LONGEST_NAME: usize = 48;

/// A time zone of the IANA database.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Zone(Tz);

impl Zone {
    /// Coordinated universal time.
    pub const UTC: Zone = Zone(Tz::UTC);

    /// The zone of that name, in any case: `Europe/Prague`.
    pub fn parse(name: &str) -> Result<Zone, UnknownZone> {
        let found = Zone::all().find(|zone| zone.name().eq_ignore_ascii_case(name.trim()));
        found.ok_or_else(|| UnknownZone::near(name.trim()))
    }

    /// Every zone of the database, also those that are other names of one.
    pub fn all() -> impl Iterator<Item = Zone> {
        TZ_VARIANTS.iter().copied().map(Zone)
    }

    /// Its name in the database.
    pub fn name(&self) -> &'static str {
        self.0.name()
    }

    /// What its clocks show at an instant.
    pub fn local(&self, at: Timestamp) -> NaiveDateTime {
        let utc = utc(at);
        // A day from either end of the calendar, so that the offset does not lead out of it.
        utc.checked_add_offset(self.0.offset_from_utc_datetime(&utc).fix()).unwrap_or(utc)
    }

    /// By how many seconds its clocks are ahead of UTC at an instant.
    pub fn offset_secs(&self, at: Timestamp) -> i32 {
        self.0.offset_from_utc_datetime(&utc(at)).fix().local_minus_utc()
    }

    /// What people call its time at an instant: `CET`, or `+03` where there is no name.
    pub fn abbreviation(&self, at: Timestamp) -> String {
        self.0.offset_from_utc_datetime(&utc(at)).abbreviation().unwrap_or_default().to_owned()
    }

    /// The instants at which its clocks show a local time.
    pub fn resolve(&self, local: NaiveDateTime) -> Resolved {
        let instant = |offset: i32| Timestamp(micros(local) - i64::from(offset) * 1_000_000);
        match self.0.offset_from_local_datetime(&local).map(|offset| offset.fix().local_minus_utc()) {
            chrono::LocalResult::Single(offset) => Resolved::Once(instant(offset)),
            chrono::LocalResult::Ambiguous(one, other) => {
                let (one, other) = (instant(one), instant(other));
                Resolved::Twice(one.min(other), one.max(other))
            }
            chrono::LocalResult::None => Resolved::Skipped(self.end_of_gap(local)),
        }
    }

    /// The instant that a local time stands for: the first at which clocks show it, or that of the jump that skips it.
    pub fn first_instant(&self, local: NaiveDateTime) -> Timestamp {
        match self.resolve(local) {
            Resolved::Once(at) | Resolved::Twice(at, _) | Resolved::Skipped(at) => at,
        }
    }

    /// The first instant at which clocks show more than a local time that they never show.
    fn end_of_gap(&self, local: NaiveDateTime) -> Timestamp {
        let around = micros(local).div_euclid(1_000_000);
        let (mut before, mut after) = (around - FAR, around + FAR);
        while after - before > 1 {
            let middle = before + (after - before) / 2;
            if self.local(Timestamp::from_secs(middle)) > local {
                after = middle;
            } else {
                before = middle;
            }
        }
        Timestamp::from_secs(after)
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Zone {
    type Err = UnknownZone;

    fn from_str(name: &str) -> Result<Zone, UnknownZone> {
        Zone::parse(name)
    }
}

/// What a local time stands for in a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolved {
    /// The usual case: one instant.
    Once(Timestamp),
    /// Clocks were put back and show it twice: the first and the second instant.
    Twice(Timestamp, Timestamp),
    /// Clocks were put forward over it, at this instant.
    Skipped(Timestamp),
}

/// There is no zone of that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no time zone is called `{name}`; {}", hint(near))]
pub struct UnknownZone {
    /// The name, shortened if it is long.
    pub name: String,
    /// The zones with the most similar names, best first.
    pub near: Vec<&'static str>,
}

impl UnknownZone {
    fn near(name: &str) -> UnknownZone {
        let short: String = name.chars().take(LONGEST_NAME).collect();
        let mut near = Vec::new();
        if !name.is_empty() && short.len() == name.len() {
            let wanted = folded(name);
            // As long as a third of the letters is wrong it may be a slip of the pen.
            let most = (wanted.len() / 3).max(1);
            near = TZ_VARIANTS.iter().map(|zone| (distance_of_names(&wanted, zone.name()), zone.name())).collect();
            near.retain(|(distance, _)| *distance <= most);
            near.sort_unstable();
            // Next to a name with one wrong letter those with three are noise.
            let best = near.first().map_or(0, |(distance, _)| *distance);
            near.retain(|(distance, _)| *distance <= best + 1);
        }
        UnknownZone { name: short, near: near.into_iter().take(HINTS).map(|(_, name)| name).collect() }
    }
}

fn hint(near: &[&str]) -> String {
    match near {
        [] => "names are those of the IANA database, like Europe/Prague, America/New_York or UTC".to_owned(),
        near => format!("did you mean {}?", near.join(" or ")),
    }
}

/// How far a zone's name is from what was asked for. Its city alone is as good as its name: `prague`.
fn distance_of_names(wanted: &[char], name: &str) -> usize {
    let city = name.rsplit('/').next().unwrap_or(name);
    distance(wanted, &folded(name)).min(distance(wanted, &folded(city)))
}

fn folded(name: &str) -> Vec<char> {
    name.chars().map(|c| if matches!(c, ' ' | '-') { '_' } else { c.to_ascii_lowercase() }).collect()
}

/// How many letters have to be put in, left out or changed to make the one of the other.
fn distance(one: &[char], other: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.iter().enumerate() {
            let changed = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

fn utc(at: Timestamp) -> NaiveDateTime {
    let day = 86_400_000_000;
    let inside = at.micros().clamp(YEARS.0 + day, YEARS.1 - day);
    DateTime::from_timestamp_micros(inside).unwrap_or_default().naive_utc()
}

fn micros(local: NaiveDateTime) -> i64 {
    let inside = local.year().clamp(1, 9999) == local.year();
    if inside {
        local.and_utc().timestamp_micros()
    } else if local.year() < 1 {
        YEARS.0
    } else {
        YEARS.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(text: &str) -> NaiveDateTime {
        text.parse().unwrap()
    }

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn prague() -> Zone {
        Zone::parse("Europe/Prague").unwrap()
    }

    #[test]
    fn a_name_is_found_in_any_case_and_kept_as_the_database_writes_it() {
        assert_eq!(Zone::parse(" europe/PRAGUE ").unwrap().name(), "Europe/Prague");
        assert_eq!(Zone::parse("UTC").unwrap(), Zone::UTC);
    }

    #[test]
    fn a_misspelt_name_is_answered_with_the_nearest_ones() {
        let said = |name: &str| Zone::parse(name).unwrap_err().to_string();
        assert_eq!(said("Europe/Pragu"), "no time zone is called `Europe/Pragu`; did you mean Europe/Prague?");
        assert_eq!(said("prague"), "no time zone is called `prague`; did you mean Europe/Prague?");
        assert_eq!(Zone::parse("New York").unwrap_err().near[0], "America/New_York");
        assert!(said("the moon's dark side").contains("IANA database"));
        assert!(said("").contains("IANA database"));
        assert!(said(&"x".repeat(10_000)).len() < 200);
    }

    #[test]
    fn an_ordinary_local_time_is_one_instant() {
        assert_eq!(prague().resolve(local("2026-07-01T12:00:00")), Resolved::Once(at("2026-07-01T10:00:00Z")));
        assert_eq!(prague().local(at("2026-07-01T10:00:00Z")), local("2026-07-01T12:00:00"));
    }

    #[test]
    fn a_zone_is_called_by_another_name_in_summer() {
        assert_eq!(prague().abbreviation(at("2026-01-01T00:00:00Z")), "CET");
        assert_eq!(prague().abbreviation(at("2026-07-01T00:00:00Z")), "CEST");
    }

    #[test]
    fn a_skipped_local_time_stands_for_the_jump() {
        let jump = at("2026-03-29T01:00:00Z");
        for skipped in ["2026-03-29T02:00:00", "2026-03-29T02:30:00", "2026-03-29T02:59:59.999999"] {
            assert_eq!(prague().resolve(local(skipped)), Resolved::Skipped(jump), "{skipped}");
        }
        assert_eq!(prague().resolve(local("2026-03-29T03:00:00")), Resolved::Once(jump));
    }

    #[test]
    fn a_repeated_local_time_is_two_instants() {
        let both = Resolved::Twice(at("2026-10-25T00:30:00Z"), at("2026-10-25T01:30:00Z"));
        assert_eq!(prague().resolve(local("2026-10-25T02:30:00")), both);
    }

    #[test]
    fn a_day_that_an_island_skipped_stands_for_the_next_midnight() {
        let apia = Zone::parse("Pacific/Apia").unwrap();
        let jump = at("2011-12-30T10:00:00Z");
        assert_eq!(apia.resolve(local("2011-12-30T00:00:00")), Resolved::Skipped(jump));
        assert_eq!(apia.resolve(local("2011-12-30T23:59:59")), Resolved::Skipped(jump));
        assert_eq!(apia.local(jump), local("2011-12-31T00:00:00"));
    }

    #[test]
    fn the_ends_of_time_are_no_danger() {
        for zone in Zone::all() {
            for end in [Timestamp(i64::MIN), Timestamp(i64::MAX)] {
                let shown = zone.local(end);
                zone.first_instant(shown);
                zone.offset_secs(end);
            }
            zone.first_instant(NaiveDateTime::MIN);
            zone.first_instant(NaiveDateTime::MAX);
        }
    }
}
