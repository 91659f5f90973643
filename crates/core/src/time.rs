//! Instants as the whole system keeps them: microseconds since the Unix epoch, UTC.
//!
//! Not here: reading the clock. Whoever needs "now" is given it.

use chrono::{DateTime, SecondsFormat, Utc};
use std::time::Duration;

/// A point in time, in microseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The instant that many whole seconds after the epoch.
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs.saturating_mul(1_000_000))
    }

    /// Microseconds since the epoch.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Whole seconds since the epoch.
    pub const fn secs(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// Time from `earlier` to `self`; zero when `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// `self` moved `by` into the future.
    pub fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(by.as_micros()).unwrap_or(i64::MAX)))
    }

    /// `self` moved `by` into the past.
    pub fn minus(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(by.as_micros()).unwrap_or(i64::MAX)))
    }

    pub(crate) fn utc(self) -> DateTime<Utc> {
        DateTime::from_timestamp_micros(self.0).unwrap_or(DateTime::UNIX_EPOCH)
    }

    /// The form of an event's `_stamp` in Salt 3008: `2026-11-15T19:36:31.867751+00:00`.
    pub fn stamp(self) -> String {
        self.utc().format("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string()
    }

    /// RFC 3339 with whole seconds, for people: `2026-11-15T19:36:31Z`.
    pub fn rfc3339(self) -> String {
        self.utc().to_rfc3339_opts(SecondsFormat::Secs, true)
    }

    /// Reads an RFC 3339 instant.
    pub fn parse(text: &str) -> Option<Self> {
        DateTime::parse_from_rfc3339(text).ok().map(|t| Self(t.timestamp_micros()))
    }
}

impl std::fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.stamp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamp_has_six_digits_and_a_zone() {
        assert_eq!(Timestamp(1_794_772_591_000_000).stamp(), "2026-11-15T19:56:31.000000+00:00");
    }

    #[test]
    fn parse_reads_what_rfc3339_prints() {
        let t = Timestamp::from_secs(1_794_772_591);
        assert_eq!(Timestamp::parse(&t.rfc3339()), Some(t));
    }

    #[test]
    fn differences_never_go_negative() {
        assert_eq!(Timestamp(5).since(Timestamp(9)), Duration::ZERO);
    }
}
