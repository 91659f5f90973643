//! The rules an action is carried out by: who is waited for, what is tried again, how many at once, and when it is enough.
//!
//! Kept with the action as JSON, so a rule that is left out is the default of the server that reads it.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The rules of one action.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// What happens where the minion is not there
    pub offline: Offline,
    /// What is tried again
    pub retry: Retry,
    /// How long one attempt may take once it was sent
    #[serde(with = "seconds_or_none", skip_serializing_if = "Option::is_none")]
    pub job_timeout: Option<Duration>,
    /// How many at once
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<Batch>,
    /// How many may fail before the rest is held
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Parts that are begun one after the other
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waves: Vec<Wave>,
    /// Whether minions are asked to acknowledge; nothing: as configured
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack: Option<bool>,
    /// Whether somebody waits for it: it does not queue behind large actions
    pub interactive: bool,
    /// What happens outside of a maintenance window
    #[serde(skip_serializing_if = "is_default")]
    pub window: WindowRule,
    /// For what reason maintenance windows are not asked; nothing: they are
    #[serde(skip_serializing_if = "Option::is_none")]
    pub override_window: Option<String>,
}

/// What happens where the minion is not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Offline {
    /// It fails, after a moment
    #[default]
    Fail,
    /// It is tried so often, so far apart
    Retry {
        /// How often in all
        tries: u32,
        /// How far apart
        #[serde(with = "seconds")]
        every: Duration,
    },
    /// It waits until the minion is back, or until its deadline
    Hold,
}

/// What happens outside of a maintenance window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowRule {
    /// It waits for the next one
    #[default]
    Hold,
    /// It fails
    Fail,
}

/// What is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retry {
    /// Attempts in all
    pub attempts: u32,
    /// When another attempt may be made
    pub when: RetryWhen,
    /// How long to wait before it
    pub backoff: Backoff,
}

/// When another attempt may be made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryWhen {
    /// Only if the one before provably did not start
    #[default]
    NotStarted,
    /// After any failure: the action may be done twice
    Always,
}

/// How long to wait before another attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Backoff {
    /// After the first
    #[serde(with = "seconds")]
    pub first: Duration,
    /// Each is twice as long as the one before, up to this
    #[serde(with = "seconds")]
    pub most: Duration,
}

/// A number of minions, or a part of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Size {
    /// So many
    Count(usize),
    /// So many in a hundred
    Percent(u8),
}

/// How many at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// At most so many at a time
    pub size: Size,
    /// How long a place stays free after a minion has finished
    #[serde(default, with = "seconds")]
    pub wait: Duration,
}

/// How many may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// More failures than this are too many
    pub failures: Size,
    /// More unreachable minions than this are too many; nothing: any number
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreachable: Option<Size>,
    /// What happens then
    #[serde(default)]
    pub then: OverBudget,
}

/// What happens when too many have failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverBudget {
    /// The rest waits for somebody's decision
    #[default]
    Pause,
    /// The rest is cancelled
    Stop,
}

/// A part of an action that is begun when the part before is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wave {
    /// How many minions, counted over all waves so far
    pub size: Size,
    /// How long to wait after it before the next
    #[serde(default, with = "seconds")]
    pub soak: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 3, when: RetryWhen::default(), backoff: Backoff::default() }
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self { first: Duration::from_secs(5), most: Duration::from_secs(300) }
    }
}

impl Retry {
    /// How long to wait after attempt number `attempt`, which begins at 1.
    pub fn pause_after(&self, attempt: u32) -> Duration {
        let doublings = attempt.saturating_sub(1).min(20);
        self.backoff.first.saturating_mul(1 << doublings).min(self.backoff.most)
    }
}

impl Size {
    /// How many of `total` that is; at least one of any, so that a small percentage of few does not mean nobody.
    pub fn of(self, total: usize) -> usize {
        match self {
            Self::Count(count) => count,
            Self::Percent(percent) => (total * usize::from(percent) / 100).max(1),
        }
    }

    /// How many of `total` may fail: a percentage of few may well be none.
    pub fn allowed_of(self, total: usize) -> usize {
        match self {
            Self::Count(count) => count,
            Self::Percent(percent) => total * usize::from(percent) / 100,
        }
    }

    /// Reads `10` or `25%`.
    pub fn parse(text: &str) -> Option<Self> {
        match text.strip_suffix('%') {
            Some(percent) => percent.trim().parse().ok().filter(|percent| *percent <= 100).map(Self::Percent),
            None => text.trim().parse().ok().map(Self::Count),
        }
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Count(count) => count.fmt(f),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Durations as seconds, with a fraction where there is one.
mod seconds {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    pub(super) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(time.as_secs_f64())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        read(f64::deserialize(from)?)
            .ok_or_else(|| serde::de::Error::custom("seconds are not negative, and at most a century"))
    }

    /// A century: what is longer is a mistake, and would overflow sums of times.
    const MOST: f64 = 3_155_760_000.0;

    pub(super) fn read(seconds: f64) -> Option<Duration> {
        (seconds <= MOST).then(|| Duration::try_from_secs_f64(seconds).ok())?
    }
}

mod seconds_or_none {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    pub(super) fn serialize<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => to.serialize_some(&time.as_secs_f64()),
            None => to.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        match Option::<f64>::deserialize(from)? {
            None => Ok(None),
            Some(seconds) => super::seconds::read(seconds)
                .map(Some)
                .ok_or_else(|| serde::de::Error::custom("seconds are not negative, and at most a century")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_the_default() {
        let policy: Policy = serde_json::from_str("{}").unwrap();
        assert_eq!(policy, Policy::default());
        let kept: Policy = serde_json::from_str(&serde_json::to_string(&policy).unwrap()).unwrap();
        assert_eq!(kept, policy);
    }

    #[test]
    fn windows_are_not_mentioned_where_their_rules_are_the_default() {
        let text = serde_json::to_string(&Policy::default()).unwrap();
        assert!(!text.contains("window"), "{text}");
    }

    #[test]
    fn every_rule_reads_back() {
        let text = r#"{"offline":{"retry":{"tries":3,"every":300.0}},"retry":{"attempts":5,"when":"always","backoff":{"first":1.0,"most":60.0}},
            "job_timeout":90.5,"batch":{"size":{"percent":10},"wait":2.0},"budget":{"failures":{"count":3},"then":"stop"},
            "waves":[{"size":{"count":1},"soak":60.0},{"size":{"percent":100}}],"ack":false,"interactive":true,"window":"fail","override_window":"a disk burns"}"#;
        let policy: Policy = serde_json::from_str(text).unwrap();
        assert_eq!(policy.job_timeout, Some(Duration::from_millis(90_500)));
        assert_eq!((policy.window, policy.override_window.as_deref()), (WindowRule::Fail, Some("a disk burns")));
        let again: Policy = serde_json::from_str(&serde_json::to_string(&policy).unwrap()).unwrap();
        assert_eq!(again, policy);
    }

    #[test]
    fn unknown_rules_and_impossible_times_are_refused() {
        for bad in [
            r#"{"offlien":"hold"}"#,
            r#"{"job_timeout":-1.0}"#,
            r#"{"job_timeout":1e300}"#,
            r#"{"offline":"sometimes"}"#,
            r#"{"window":"sometimes"}"#,
        ] {
            assert!(serde_json::from_str::<Policy>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let retry = Retry::default();
        let pauses: Vec<u64> = [1, 2, 3, 7, 30].map(|attempt| retry.pause_after(attempt).as_secs()).into();
        assert_eq!(pauses, [5, 10, 20, 300, 300]);
    }

    #[test]
    fn sizes_are_counts_or_percentages() {
        assert_eq!(Size::parse("10"), Some(Size::Count(10)));
        assert_eq!(Size::parse("25%"), Some(Size::Percent(25)));
        assert_eq!([Size::parse("101%"), Size::parse("x"), Size::parse("")], [None; 3]);
        assert_eq!((Size::Percent(1).of(3), Size::Percent(1).allowed_of(3)), (1, 0));
    }
}
