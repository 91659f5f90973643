//! The names of things: minions, jobs, actions, chains, launches, recurring actions. Each is its own type, so one cannot stand in for another.

use crate::time::Timestamp;
use std::fmt;
use std::sync::Arc;

/// A minion's id, checked: `[A-Za-z0-9._@-]`, 1 to 255 bytes, no leading `.` or `-`.
///
/// Ids become file names, event tags and topics, so what is not in that set is refused at the border (wire reference,
/// section 14: path traversal by minion id).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MinionId(Arc<str>);

/// Why a text is not a minion id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a minion id is 1 to 255 of A-Z a-z 0-9 . _ @ - and does not begin with . or -")]
pub struct BadMinionId;

impl MinionId {
    /// Checks `text`.
    pub fn new(text: &str) -> Result<Self, BadMinionId> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'@' | b'-');
        match text.as_bytes() {
            [] | [b'.' | b'-', ..] => Err(BadMinionId),
            bytes if bytes.len() > 255 || !bytes.iter().copied().all(allowed) => Err(BadMinionId),
            _ => Ok(Self(text.into())),
        }
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MinionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for MinionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::borrow::Borrow<str> for MinionId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for MinionId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// A job's id: the 20 digits `YYYYMMDDhhmmssffffff` in UTC that every Salt client knows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Jid([u8; 20]);

impl Jid {
    /// The id that stands for this instant.
    pub fn at(instant: Timestamp) -> Self {
        let text = instant.utc().format("%Y%m%d%H%M%S%6f").to_string();
        let mut digits = [b'0'; 20];
        let len = text.len().min(20);
        digits[..len].copy_from_slice(&text.as_bytes()[..len]);
        Self(digits)
    }

    /// Reads exactly 20 digits; anything else (`req`, `nocache`, a path) is not a job id.
    pub fn parse(text: &str) -> Option<Self> {
        let digits: [u8; 20] = text.as_bytes().try_into().ok()?;
        digits.iter().all(u8::is_ascii_digit).then_some(Self(digits))
    }

    /// The 20 digits.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("")
    }

    /// The instant it was made from, if its digits name one.
    pub fn instant(&self) -> Option<Timestamp> {
        let text = self.as_str();
        let date =
            chrono::NaiveDateTime::parse_from_str(&format!("{}.{}", &text[..14], &text[14..]), "%Y%m%d%H%M%S%.f");
        date.ok().map(|d| Timestamp(d.and_utc().timestamp_micros()))
    }
}

impl fmt::Display for Jid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Jid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Makes job ids that never repeat and never go back, whatever the clock does.
#[derive(Debug, Default)]
pub struct JidSource {
    last: i64,
}

impl JidSource {
    /// Starts after `last`, the newest id already given out.
    pub fn after(last: Option<Jid>) -> Self {
        Self { last: last.and_then(|jid| jid.instant()).map_or(0, Timestamp::micros) }
    }

    /// The next id: the one of `now`, or the first free one after the last.
    pub fn next(&mut self, now: Timestamp) -> Jid {
        self.last = now.micros().max(self.last + 1);
        Jid::at(Timestamp(self.last))
    }
}

/// An action's id: a small number, given out by the store, that a person can type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ActionId(pub i64);

impl fmt::Display for ActionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A chain's id: a small number, given out by the store, that a person can type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ChainId(pub i64);

impl fmt::Display for ChainId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The id of one execution of a chain: a small number, given out by the store, that a person can type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LaunchId(pub i64);

impl fmt::Display for LaunchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The id of a recurring action: a small number, given out by the store, that a person can type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RecurringId(pub i64);

impl fmt::Display for RecurringId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minion_ids_that_could_be_paths_are_refused() {
        for bad in ["", ".", "..", "a/b", "../x", "a\\b", "a\0b", "-rf", ".hidden", "ä", "a b", &"x".repeat(256)] {
            assert_eq!(MinionId::new(bad), Err(BadMinionId), "{bad:?}");
        }
        for good in ["a", "web-1.example.org", "user@host", "X_9", &"x".repeat(255)] {
            assert_eq!(MinionId::new(good).unwrap().as_str(), good);
        }
    }

    #[test]
    fn jid_is_twenty_digits_and_reads_back() {
        let now = Timestamp(1_794_773_067_443_183);
        let jid = Jid::at(now);
        assert_eq!(jid.as_str(), "20261115200427443183");
        assert_eq!(jid.instant(), Some(now));
        assert_eq!(Jid::parse("req"), None);
        assert_eq!(Jid::parse("../../../../etc/pass"), None);
    }

    #[test]
    fn jids_never_repeat_and_never_go_back() {
        let mut source = JidSource::after(Some(Jid::at(Timestamp(1_000_000))));
        let a = source.next(Timestamp(500));
        let b = source.next(Timestamp(2_000_000));
        let c = source.next(Timestamp(2_000_000));
        assert_eq!(
            [a.instant(), b.instant(), c.instant()].map(|t| t.unwrap().micros()),
            [1_000_001, 2_000_000, 2_000_001]
        );
    }
}
