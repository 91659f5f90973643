//! The one place that reads the wall clock: a request says when it was made.

use saltern_core::time::Timestamp;
use std::time::UNIX_EPOCH;

/// The time now.
#[expect(clippy::disallowed_methods, reason = "a minion has a clock of its own, and this is it")]
pub(crate) fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}
