//! Runner functions: one file per module, one table of all.

mod auth;
mod cache;
mod config;
mod doc;
mod event;
mod jobs;
mod manage;
mod mine;
mod pillar;
mod salt;
mod saltutil;
mod state;
mod test;

use super::function::Function;

/// Every module's functions.
const MODULES: [&[Function]; 13] = [
    auth::FUNCTIONS,
    cache::FUNCTIONS,
    config::FUNCTIONS,
    doc::FUNCTIONS,
    event::FUNCTIONS,
    jobs::FUNCTIONS,
    manage::FUNCTIONS,
    mine::FUNCTIONS,
    pillar::FUNCTIONS,
    salt::FUNCTIONS,
    saltutil::FUNCTIONS,
    state::FUNCTIONS,
    test::FUNCTIONS,
];

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
    fn functions_that_take_passwords_or_give_tokens_are_secret() {
        let secret: Vec<&str> = all().filter(|function| function.secret).map(|function| function.name).collect();
        assert_eq!(secret, ["auth.mk_token", "auth.del_token"]);
    }

    #[test]
    fn what_saltgui_and_pepper_call_is_there() {
        for name in [
            "jobs.list_jobs",
            "jobs.list_job",
            "jobs.active",
            "jobs.lookup_jid",
            "manage.versions",
            "manage.up",
            "state.orchestrate_show_sls",
            "cache.grains",
            "cache.pillar",
            "doc.runner",
            "doc.wheel",
        ] {
            assert!(find(name).is_some(), "{name}");
        }
        assert!(find("nosuch.func").is_none());
    }
}
