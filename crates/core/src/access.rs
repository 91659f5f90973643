//! Who sees which minions. Lists, counts, verbs and events ask here, so that nobody learns of a machine that is not his.

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
    /// Whether this minion is among them.
    pub fn sees(&self, minion: &MinionId) -> bool {
        match self {
            Self::All => true,
            Self::Some(minions) => minions.contains(minion),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sees_some_does_not_see_the_others() {
        let id = |text| MinionId::new(text).unwrap();
        let sight = Sight::Some(Arc::new([id("a")].into()));
        assert!(sight.sees(&id("a")) && !sight.sees(&id("b")));
        assert!(Sight::All.sees(&id("b")));
    }
}
