//! Places for calls of the server's own functions: so many for all, and fewer for each person, so that nobody who may only
//! look can keep everybody else waiting (`test.sleep` takes a place for an hour).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most calls under way at once, those that nobody waits for included.
const MOST: usize = 256;

/// Most of one person.
const MOST_OF_ONE: usize = 64;

/// Who has how many.
#[derive(Debug, Default)]
pub(super) struct Places(Mutex<HashMap<String, usize>>);

/// A place; it is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    user: String,
}

impl Places {
    /// A place for this person, if there is one.
    pub(super) fn take(self: &Arc<Self>, user: &str) -> Option<Place> {
        let mut taken = self.lock();
        let own = taken.get(user).copied().unwrap_or_default();
        if own >= MOST_OF_ONE || taken.values().sum::<usize>() >= MOST {
            return None;
        }
        taken.insert(user.to_owned(), own + 1);
        Some(Place { places: Arc::clone(self), user: user.to_owned() })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        if let Some(own) = taken.get_mut(&self.user) {
            *own -= 1;
            if *own == 0 {
                taken.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(places: &Arc<Places>, user: &str, count: usize) -> Vec<Place> {
        (0..count).map_while(|_| places.take(user)).collect()
    }

    #[test]
    fn one_person_leaves_places_to_the_others() {
        let places = Arc::<Places>::default();
        let held = take(&places, "ann", MOST);
        assert_eq!(held.len(), MOST_OF_ONE);
        assert!(places.take("bob").is_some());
    }

    #[test]
    fn all_together_have_no_more_than_there_are() {
        let places = Arc::<Places>::default();
        let held: Vec<_> = (0..10).flat_map(|n| take(&places, &n.to_string(), MOST)).collect();
        assert_eq!(held.len(), MOST);
    }

    #[test]
    fn a_place_that_is_left_is_free_again() {
        let places = Arc::<Places>::default();
        drop(take(&places, "ann", MOST));
        assert_eq!(take(&places, "ann", MOST).len(), MOST_OF_ONE);
    }
}
