//! A set of small numbers: the seconds, minutes, hours, days or months that a field allows.

/// Numbers from 0 to 63, one bit each.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Set(u64);

impl Set {
    /// Every number from the first to the last.
    pub(super) fn range(first: u32, last: u32) -> Set {
        let up_to = |count: u32| !u64::MAX.checked_shl(count).unwrap_or(0);
        Set(up_to(last + 1) & !up_to(first))
    }

    pub(super) fn insert(&mut self, number: u32) {
        self.0 |= 1_u64.checked_shl(number).unwrap_or(0);
    }

    pub(super) fn contains(self, number: u32) -> bool {
        self.0 & 1_u64.checked_shl(number).unwrap_or(0) != 0
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn len(self) -> u32 {
        self.0.count_ones()
    }

    pub(super) fn union(self, other: Set) -> Set {
        Set(self.0 | other.0)
    }

    pub(super) fn common(self, other: Set) -> Set {
        Set(self.0 & other.0)
    }

    /// The numbers from `least` on, rising.
    pub(super) fn from(self, least: u32) -> impl Iterator<Item = u32> {
        let mut left = self.0 & u64::MAX.checked_shl(least).unwrap_or(0);
        std::iter::from_fn(move || {
            let lowest = left.trailing_zeros();
            left &= left.wrapping_sub(1);
            (lowest < 64).then_some(lowest)
        })
    }

    /// All numbers, rising.
    pub(super) fn iter(self) -> impl Iterator<Item = u32> {
        self.from(0)
    }

    /// The smallest number that is not below `least`.
    pub(super) fn at_least(self, least: u32) -> Option<u32> {
        let lowest = (self.0 & u64::MAX.checked_shl(least).unwrap_or(0)).trailing_zeros();
        (lowest < 64).then_some(lowest)
    }

    /// The smallest number; 0 for an empty set, which no field is.
    pub(super) fn first(self) -> u32 {
        self.at_least(0).unwrap_or(0)
    }

    /// The largest number; 0 for an empty set, which no field is.
    pub(super) fn last(self) -> u32 {
        63_u32.saturating_sub(self.0.leading_zeros())
    }
}

impl FromIterator<u32> for Set {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Set {
        let mut set = Set::default();
        numbers.into_iter().for_each(|number| set.insert(number));
        set
    }
}

impl std::fmt::Debug for Set {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_both_its_ends() {
        assert_eq!(Set::range(3, 5).iter().collect::<Vec<_>>(), [3, 4, 5]);
        assert_eq!(Set::range(0, 63).len(), 64);
        assert_eq!(Set::range(0, 0).iter().collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn numbers_come_out_rising_from_where_one_asks() {
        let set: Set = [63, 5, 0, 17].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 5, 17, 63]);
        assert_eq!(set.at_least(6), Some(17));
        assert_eq!(set.at_least(64), None);
        assert_eq!((set.first(), set.last(), set.len()), (0, 63, 4));
        assert!(set.contains(17) && !set.contains(16) && !set.contains(64));
    }
}
