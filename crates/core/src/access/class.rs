//! How much the runner and wheel functions of salt-api need, for people whose rights are roles.
//!
//! Names are listed one by one, and what is not listed is for server admins: Salt's modules mix harmless functions with
//! others (`manage.safe_accept` accepts keys, `test.get_opts` shows the configuration with its secrets), and releases add
//! more.

use super::Invocation;

/// How much a wish needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A look at what one sees. Whoever answers leaves out what the caller does not see.
    Read,
    /// Something done on minions, or their secrets. Whoever answers asks for the minions it is about as well.
    Operate,
    /// Something that changes the server, keys or people, or shows its secrets
    Admin,
}

/// How much a runner function needs.
pub fn runner_class(fun: &str) -> Class {
    look_up(RUNNERS, fun)
}

/// How much a wheel function needs.
pub fn wheel_class(fun: &str) -> Class {
    look_up(WHEELS, fun)
}

/// How much this call of a runner function needs: `manage.down` only looks, unless it is told to delete keys.
pub(super) fn runner_call_class(call: &Invocation<'_>) -> Class {
    let names_it = |arg: &crate::value::Value| arg.as_str().is_some_and(|text| text.starts_with("removekeys"));
    let removes_keys = call.arg.first().is_some_and(|first| first.is_truthy())
        || call.arg.iter().any(|arg| arg.as_map().is_some() || names_it(arg))
        || call.kwarg.get("removekeys").is_some_and(|value| value.is_truthy());
    if call.fun == "manage.down" && removes_keys { Class::Admin } else { runner_class(call.fun) }
}

/// The functions of a class, for showing them.
pub(super) fn runners(class: Class) -> impl Iterator<Item = &'static str> {
    of_class(RUNNERS, class)
}

/// The same for wheel functions.
pub(super) fn wheels(class: Class) -> impl Iterator<Item = &'static str> {
    of_class(WHEELS, class)
}

type Table = &'static [(Class, &'static [&'static str])];

const RUNNERS: Table = &[
    (
        Class::Read,
        &[
            "cache.grains",
            "cache.list",
            "cache.mine",
            "doc.execution",
            "doc.runner",
            "doc.wheel",
            "jobs.active",
            "jobs.exit_success",
            "jobs.last_run",
            "jobs.list_job",
            "jobs.list_jobs",
            "jobs.list_jobs_filter",
            "jobs.lookup_jid",
            "jobs.master",
            "jobs.print_job",
            "manage.alived",
            "manage.allowed",
            "manage.down",
            "manage.joined",
            "manage.list_not_state",
            "manage.list_state",
            "manage.not_alived",
            "manage.not_allowed",
            "manage.not_joined",
            "manage.not_present",
            "manage.not_reaped",
            "manage.present",
            "manage.reaped",
            "manage.status",
            "manage.up",
            "manage.versions",
            "state.orchestrate_show_sls",
            "test.arg",
            "test.metasyntactic",
            "test.raw_arg",
            "test.sleep",
            "test.stdout_print",
            "test.stream",
        ],
    ),
    // `salt.cmd` is not among them: it runs on the server, not on a minion.
    (Class::Operate, &["cache.pillar", "mine.get", "pillar.show_pillar", "salt.execute"]),
];

const WHEELS: Table = &[(
    Class::Read,
    &[
        "config.values",
        "key.finger",
        "key.finger_master",
        "key.glob_match",
        "key.list",
        "key.list_all",
        "key.name_match",
        "key.print",
        "minions.connected",
    ],
)];

fn look_up(table: Table, fun: &str) -> Class {
    table.iter().find(|(_, names)| names.contains(&fun)).map_or(Class::Admin, |(class, _)| *class)
}

fn of_class(table: Table, class: Class) -> impl Iterator<Item = &'static str> {
    table.iter().filter(move |row| row.0 == class).flat_map(|(_, names)| names.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Map, Value};

    #[test]
    fn what_only_looks_is_for_readers() {
        for fun in ["jobs.list_jobs", "manage.versions", "cache.grains", "doc.runner", "test.arg"] {
            assert_eq!(runner_class(fun), Class::Read, "{fun}");
        }
        for fun in ["key.list_all", "key.finger", "key.name_match", "minions.connected", "config.values"] {
            assert_eq!(wheel_class(fun), Class::Read, "{fun}");
        }
    }

    #[test]
    fn what_works_on_minions_is_for_operators() {
        for fun in ["salt.execute", "cache.pillar", "pillar.show_pillar", "mine.get"] {
            assert_eq!(runner_class(fun), Class::Operate, "{fun}");
        }
    }

    #[test]
    fn everything_else_is_for_admins_whatever_module_it_is_in() {
        for fun in [
            "manage.safe_accept",
            "manage.key_regen",
            "manage.bootstrap",
            "test.get_opts",
            "config.get",
            "cache.fetch",
            "cache.clear_all",
            "salt.cmd",
            "event.send",
            "state.orchestrate",
            "jobs.unheard_of",
            "jobs",
            "",
            "JOBS.ACTIVE",
            "jobs.active ",
        ] {
            assert_eq!(runner_class(fun), Class::Admin, "{fun}");
        }
        for fun in ["key.accept", "key.gen_accept", "key.delete", "config.apply", "file_roots.read", "jobs.active"] {
            assert_eq!(wheel_class(fun), Class::Admin, "{fun}");
        }
    }

    #[test]
    fn manage_down_that_deletes_keys_is_for_admins() {
        let class = |arg: &[Value], kwarg: &Map| runner_call_class(&Invocation { fun: "manage.down", arg, kwarg });
        let none = Map::new();
        assert_eq!(class(&[], &none), Class::Read);
        assert_eq!(class(&[false.into()], &none), Class::Read);
        assert_eq!(class(&[true.into()], &none), Class::Admin);
        assert_eq!(class(&[false.into(), "removekeys=True".into()], &none), Class::Admin);
        assert_eq!(class(&[false.into(), Value::map([("removekeys", true)])], &none), Class::Admin);
        let kwarg: Map = [(Value::from("removekeys"), Value::from("yes"))].into_iter().collect();
        assert_eq!(class(&[], &kwarg), Class::Admin);
    }
}
