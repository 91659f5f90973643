//! Wheel functions: one file per module, one table of all.

mod config;
mod file_roots;
mod key;
mod minions;

use super::function::Function;

pub(super) use config::shown_config;

/// Every module's functions.
const MODULES: [&[Function]; 4] = [config::FUNCTIONS, file_roots::FUNCTIONS, key::FUNCTIONS, minions::FUNCTIONS];

/// Every function.
pub(super) fn all() -> impl Iterator<Item = &'static Function> {
    MODULES.into_iter().flatten()
}

/// The function of this name.
pub(super) fn find(name: &str) -> Option<&'static Function> {
    all().find(|function| function.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_function_has_its_own_name_and_is_explained() {
        let names: BTreeSet<&str> = all().map(|function| function.name).collect();
        assert_eq!(names.len(), all().count());
        assert!(all().all(|function| function.name.contains('.') && function.doc.ends_with('.')));
    }

    #[test]
    fn functions_that_make_private_keys_are_secret() {
        let secret: Vec<&str> = all().filter(|function| function.secret).map(|function| function.name).collect();
        assert_eq!(secret, ["key.gen", "key.gen_accept"]);
    }

    #[test]
    fn what_saltgui_calls_is_there() {
        for name in [
            "config.values",
            "key.list_all",
            "key.finger",
            "key.accept",
            "key.reject",
            "key.delete",
            "minions.connected",
        ] {
            assert!(find(name).is_some(), "{name}");
        }
    }
}
