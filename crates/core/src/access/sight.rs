//! Sets of minions, as rights speak of them: all there are, or these.

use crate::ids::MinionId;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The minions somebody sees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Sight {
    /// All there are
    #[default]
    All,
    /// These
    Some(Arc<BTreeSet<MinionId>>),
}

impl Sight {
    /// Nobody at all.
    pub fn none() -> Self {
        Self::Some(Arc::default())
    }

    /// Whether this minion is among them.
    pub fn sees(&self, minion: &MinionId) -> bool {
        self.sees_name(minion.as_str())
    }

    /// Whether a minion of this name is among them; what is no minion's name is seen by those who see all.
    pub(super) fn sees_name(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Some(minions) => minions.contains(name),
        }
    }

    /// Whether it is every minion, also those that are yet to come.
    pub fn is_all(&self) -> bool {
        matches!(self, Self::All)
    }

    /// Whether it is nobody, whoever there is.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Some(minions) if minions.is_empty())
    }

    /// Those of either.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::All, _) | (_, Self::All) => Self::All,
            // Sharing matters: most unions are with nobody, and an organisation may have 100,000 minions.
            (Self::Some(a), Self::Some(b)) if b.is_subset(a) => Self::Some(a.clone()),
            (Self::Some(a), Self::Some(b)) if a.is_subset(b) => Self::Some(b.clone()),
            (Self::Some(a), Self::Some(b)) => Self::Some(Arc::new(a.union(b).cloned().collect())),
        }
    }

    /// Those of both.
    #[must_use]
    pub fn meet(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::All, sight) | (sight, Self::All) => sight.clone(),
            (Self::Some(a), Self::Some(b)) if a.is_subset(b) => Self::Some(a.clone()),
            (Self::Some(a), Self::Some(b)) if b.is_subset(a) => Self::Some(b.clone()),
            (Self::Some(a), Self::Some(b)) => Self::Some(Arc::new(a.intersection(b).cloned().collect())),
        }
    }
}

impl FromIterator<MinionId> for Sight {
    fn from_iter<I: IntoIterator<Item = MinionId>>(minions: I) -> Self {
        Self::Some(Arc::new(minions.into_iter().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn id(text: &str) -> MinionId {
        MinionId::new(text).unwrap()
    }

    fn any_sight() -> impl Strategy<Value = Sight> {
        let some =
            prop::collection::btree_set("[a-d]", 0..4).prop_map(|names| names.iter().map(|name| id(name)).collect());
        prop_oneof![1 => Just(Sight::All), 4 => some]
    }

    #[test]
    fn who_sees_some_does_not_see_the_others() {
        let sight: Sight = [id("a")].into_iter().collect();
        assert!(sight.sees(&id("a")) && !sight.sees(&id("b")));
        assert!(Sight::All.sees(&id("b")));
    }

    #[test]
    fn nobody_is_empty_and_all_is_not() {
        assert!(Sight::none().is_empty() && !Sight::none().is_all());
        assert!(Sight::All.is_all() && !Sight::All.is_empty());
    }

    proptest! {
        #[test]
        fn union_and_meet_are_those_of_sets(a in any_sight(), b in any_sight(), name in "[a-e]") {
            let minion = id(&name);
            prop_assert_eq!(a.union(&b).sees(&minion), a.sees(&minion) || b.sees(&minion));
            prop_assert_eq!(a.meet(&b).sees(&minion), a.sees(&minion) && b.sees(&minion));
        }
    }
}
