//! Times for people: the instant in UTC, and how long ago that is.

use saltern_core::time::Timestamp;
use std::time::Duration;

/// `2026-11-15 19:36:31 UTC (3 min ago)`.
pub(crate) fn when(at: Timestamp, now: Timestamp) -> String {
    format!("{} ({})", instant(at), ago(at, now))
}

/// `2026-11-15 19:36:31 UTC`.
pub(crate) fn instant(at: Timestamp) -> String {
    at.rfc3339().replace('T', " ").replace('Z', " UTC")
}

/// `3 min ago`; of what is to come, `in 3 min`.
pub(crate) fn ago(at: Timestamp, now: Timestamp) -> String {
    if at > now { format!("in {}", span(at.since(now))) } else { format!("{} ago", span(now.since(at))) }
}

/// `3 min`: the largest unit that is not nothing.
pub(crate) fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds / 60),
        7_200..=172_799 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_say_how_long_ago_they_are() {
        let at = Timestamp::from_secs(1_794_772_591);
        let later = |seconds: i64| Timestamp::from_secs(1_794_772_591 + seconds);
        assert_eq!(when(at, later(5)), "2026-11-15 19:56:31 UTC (5 s ago)");
        assert_eq!(ago(at, later(180)), "3 min ago");
        assert_eq!(ago(at, later(3 * 3_600)), "3 h ago");
        assert_eq!(ago(at, later(5 * 86_400)), "5 days ago");
        assert_eq!(ago(later(600), at), "in 10 min");
    }
}
