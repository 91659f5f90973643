//! Pages: how much of a list is wanted, in which order, and where the next part begins.

use serde::de::{Deserialize, Deserializer};

/// How many entries a page has at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit(pub(crate) usize);

/// The most that can be asked for.
pub(crate) const MOST: usize = 1_000;

/// What a page has unless told.
const USUAL: usize = 50;

impl Default for Limit {
    fn default() -> Self {
        Self(USUAL)
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let limit = usize::deserialize(from)?;
        match limit {
            1..=MOST => Ok(Self(limit)),
            _ => Err(serde::de::Error::custom(format!("limit is 1 to {MOST}"))),
        }
    }
}

impl Limit {
    /// Where the next page begins: after the last entry, unless this page was not full.
    pub(crate) fn next<T, C>(self, page: &[T], cursor: impl FnOnce(&T) -> C) -> Option<C> {
        page.last().filter(|_| page.len() >= self.0).map(cursor)
    }
}

/// In which order of their names the entries of a list come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Ordering {
    /// From the first to the last
    #[default]
    Asc,
    /// From the last to the first
    Desc,
}

/// The page of `all`, which are in the order of their names, that begins after `after`, and where the next one begins.
///
/// A cursor is a name, not a place: entries that come and go between two pages make no gap and no double of the others.
pub(crate) fn page<T>(
    mut all: Vec<T>,
    name: impl Fn(&T) -> &str,
    after: Option<&str>,
    order: Ordering,
    Limit(limit): Limit,
) -> (Vec<T>, Option<String>) {
    if order == Ordering::Desc {
        all.reverse();
    }
    if let Some(after) = after {
        all.retain(|item| match order {
            Ordering::Asc => name(item) > after,
            Ordering::Desc => name(item) < after,
        });
    }
    let is_last = all.len() <= limit;
    all.truncate(limit);
    let next = all.last().filter(|_| !is_last).map(|item| name(item).to_owned());
    (all, next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Limit, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn a_limit_is_between_one_and_most() {
        assert_eq!(read("7").unwrap(), Limit(7));
        assert!(read("0").is_err() && read("1001").is_err() && read("-1").is_err() && read("1.5").is_err());
    }

    #[test]
    fn a_page_that_is_not_full_is_the_last() {
        assert_eq!(Limit(3).next(&[1, 2], |last| *last), None);
        assert_eq!(Limit(2).next(&[1, 2], |last| *last), Some(2));
        assert_eq!(Limit(2).next(&[], |last: &i32| *last), None);
    }

    proptest! {
        #[test]
        fn pages_have_everything_once_and_in_order(
            names in prop::collection::btree_set("[a-d]{1,4}", 0..40),
            limit in 1_usize..10,
            desc: bool,
        ) {
            let order = if desc { Ordering::Desc } else { Ordering::Asc };
            let all: Vec<String> = names.into_iter().collect();
            let (mut seen, mut after): (Vec<String>, Option<String>) = (Vec::new(), None);
            loop {
                let (got, next) = page(all.clone(), |name| name, after.as_deref(), order, Limit(limit));
                seen.extend(got);
                match next {
                    Some(next) => after = Some(next),
                    None => break,
                }
            }
            if desc {
                seen.reverse();
            }
            prop_assert_eq!(seen, all);
        }
    }
}
