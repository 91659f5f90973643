//! Events by their tags: how tags are made, read and subscribed to, and which of them a minion may send.
//!
//! Not here: event bodies (built where things happen), the event log (`store`), fan-out (`server`).

mod job_tag;
mod reserved;
pub mod tag;

pub use job_tag::{JobTag, JobTagKind};
pub use reserved::{MAX_TAG, ReservedTag, may_send};

use crate::target::Glob;

/// Which tags a subscriber wants: a shell-style pattern over the whole tag, where `*` crosses `/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagFilter(Glob);

impl TagFilter {
    /// Compiles a pattern such as `salt/job/*/ret/*`. One that is longer than any tag is refused.
    pub fn new(pattern: &str) -> Option<Self> {
        (pattern.len() <= MAX_TAG).then(|| Self(Glob::new(pattern)))
    }

    /// Whether the subscriber wants this tag.
    pub fn matches(&self, tag: &str) -> bool {
        self.0.matches(tag)
    }

    /// The pattern.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_follow_fnmatch() {
        let filter = TagFilter::new("salt/job/*").unwrap();
        assert!(filter.matches("salt/job/20261115200427443183/ret/web1"));
        assert!(!filter.matches("salt/auth"));
        assert!(TagFilter::new("salt/[ak]*").unwrap().matches("salt/auth"));
        assert_eq!(TagFilter::new(&"x".repeat(MAX_TAG + 1)), None);
    }
}
