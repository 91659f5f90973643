//! Things that several people change: each has a version, and who changes it says which one he has seen.

/// The version to give when it does not matter which one is there, as long as there is one.
pub const ANY_VERSION: i64 = -1;

/// What came of a change. Only [`Written::Done`] changed anything, and only then is there an audit entry of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// It is written, and has this version now; of what was removed, it is the last one
    Done(i64),
    /// There is such a thing already; or, of a removal: others still need it
    Exists,
    /// There is no such thing
    Missing,
    /// Somebody has changed it meanwhile: it has this version now
    Stale(i64),
}

/// The version a thing gets, if it may be written: `found` is the one it has, `expected` what the caller says.
pub(crate) fn next(found: Option<i64>, expected: Option<i64>) -> Result<i64, Written> {
    match (found, expected) {
        (None, None) => Ok(1),
        (Some(_), None) => Err(Written::Exists),
        (None, Some(_)) => Err(Written::Missing),
        (Some(found), Some(expected)) if expected == found || expected == ANY_VERSION => Ok(found + 1),
        (Some(found), Some(_)) => Err(Written::Stale(found)),
    }
}

/// Whether a thing may be removed: the same, but for `expected`, where nothing means whatever there is.
pub(crate) fn removable(found: Option<i64>, expected: Option<i64>) -> Result<i64, Written> {
    next(found, Some(expected.unwrap_or(ANY_VERSION))).map(|next| next - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_expects_nothing_creates() {
        assert_eq!(next(None, None), Ok(1));
        assert_eq!(next(Some(4), None), Err(Written::Exists));
    }

    #[test]
    fn who_expects_a_version_changes_that_one() {
        assert_eq!(next(Some(4), Some(4)), Ok(5));
        assert_eq!(next(Some(4), Some(3)), Err(Written::Stale(4)));
        assert_eq!(next(None, Some(3)), Err(Written::Missing));
    }

    #[test]
    fn who_expects_any_version_changes_what_there_is() {
        assert_eq!(next(Some(4), Some(ANY_VERSION)), Ok(5));
        assert_eq!(next(None, Some(ANY_VERSION)), Err(Written::Missing));
    }

    #[test]
    fn what_is_removed_keeps_its_last_version() {
        assert_eq!(removable(Some(4), None), Ok(4));
        assert_eq!(removable(Some(4), Some(4)), Ok(4));
        assert_eq!(removable(Some(4), Some(5)), Err(Written::Stale(4)));
        assert_eq!(removable(None, None), Err(Written::Missing));
    }
}
