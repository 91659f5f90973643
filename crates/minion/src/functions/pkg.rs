//! `pkg.*`: packages, whichever manager looks after them.
//!
//! Here stands what is the same for all: what a call is about, what changed, how it is told. `manager` says what a manager must
//! be able to do; `apt`, `dnf` and `zypper` do it.

mod apt;
mod dnf;
mod manager;
mod rpm;
#[cfg(test)]
mod tests;
mod versions;
mod work;
mod zypper;

use super::{Call, Failure, Function, Outcome, Param, find_program};
use futures_util::FutureExt;
use manager::{Machine, Manager};
use saltern_core::value::Value;
use work::Work;

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "pkg.available_version",
        params: &[Param::Rest("names"), Param::Keywords("kwargs")],
        doc: "The same as pkg.latest_version.\n\nCLI Example:\n\n    saltern run '*' pkg.available_version zsh\n",
        run: |call| async move { on(&call)?.latest_version(&call).await }.boxed(),
    },
    Function {
        name: "pkg.file_list",
        params: &[Param::Rest("packages"), Param::Keywords("kwargs")],
        doc: "List the files of installed packages.\n\nCLI Example:\n\n    saltern run '*' pkg.file_list bash\n",
        run: |call| async move { on(&call)?.file_list(&call).await }.boxed(),
    },
    Function {
        name: "pkg.get_selections",
        params: &[Param::Optional("pattern", "None"), Param::Optional("state", "None")],
        doc: "Tell what dpkg is asked to do with its packages: install, hold, deinstall, purge.\n\n\
              CLI Example:\n\n    saltern run '*' pkg.get_selections\n    saltern run '*' pkg.get_selections 'python-*' state=hold\n",
        run: |call| async move { selections(&call).await }.boxed(),
    },
    Function {
        name: "pkg.hold",
        params: HOLD,
        doc: "Hold packages at their versions.\n\n\
              CLI Example:\n\n    saltern run '*' pkg.hold vim\n    saltern run '*' pkg.hold pkgs='[\"vim\", \"zsh\"]'\n",
        run: |call| async move { on(&call)?.hold(&call, true).await }.boxed(),
    },
    Function {
        name: "pkg.info_installed",
        params: &[Param::Rest("names"), Param::Keywords("kwargs")],
        doc: "Tell what is known of installed packages.\n\n\
              CLI Example:\n\n    saltern run '*' pkg.info_installed bash zsh\n",
        run: |call| async move { on(&call)?.info_installed(&call).await }.boxed(),
    },
    Function {
        name: "pkg.install",
        params: &[
            Param::Optional("name", "None"),
            Param::Optional("refresh", "False"),
            Param::Optional("fromrepo", "None"),
            Param::Optional("skip_verify", "False"),
            Param::Optional("debconf", "None"),
            Param::Optional("pkgs", "None"),
            Param::Optional("sources", "None"),
            Param::Optional("reinstall", "False"),
            Param::Optional("downloadonly", "False"),
            Param::Optional("ignore_epoch", "False"),
            Param::Optional("normalize", "True"),
            Param::Keywords("kwargs"),
        ],
        doc: "Install packages, and tell what changed.\n\n\
              name may be several names with commas between them; version belongs to a single name. pkgs is a list of names or of maps from\n\
              name to version. sources is a list of maps from name to the path of a package file on the minion. install_recommends,\n\
              only_upgrade and force_conf_new (apt) are taken as keyword arguments.\n\n\
              CLI Example:\n\n    saltern run '*' pkg.install zsh refresh=True\n    saltern run '*' pkg.install zsh version=5.9-4\n    saltern run '*' pkg.install pkgs='[\"foo\", {\"bar\": \"1.2.3-4\"}]'\n",
        run: |call| async move { on(&call)?.install(&call).await }.boxed(),
    },
    Function {
        name: "pkg.latest_version",
        params: &[Param::Rest("names"), Param::Keywords("kwargs")],
        doc: "The version that could be installed or upgraded to; empty if the newest is installed. One name gives a text, several a map.\n\
              The repositories are asked first unless refresh=False.\n\n\
              CLI Example:\n\n    saltern run '*' pkg.latest_version zsh\n    saltern run '*' pkg.latest_version zsh vim refresh=False\n",
        run: |call| async move { on(&call)?.latest_version(&call).await }.boxed(),
    },
    Function {
        name: "pkg.list_pkgs",
        params: &[
            Param::Optional("versions_as_list", "False"),
            Param::Optional("removed", "False"),
            Param::Optional("purge_desired", "False"),
            Param::Keywords("kwargs"),
        ],
        doc: "List the installed packages and their versions. removed=True lists those that have left only their configuration.\n\n\
              CLI Example:\n\n    saltern run '*' pkg.list_pkgs\n    saltern run '*' pkg.list_pkgs versions_as_list=True\n",
        run: |call| async move { on(&call)?.list_pkgs(&call).await }.boxed(),
    },
    Function {
        name: "pkg.list_upgrades",
        params: &[
            Param::Optional("refresh", "True"),
            Param::Optional("dist_upgrade", "True"),
            Param::Keywords("kwargs"),
        ],
        doc: "List what could be upgraded, and to which version.\n\n\
              CLI Example:\n\n    saltern run '*' pkg.list_upgrades\n",
        run: |call| async move { on(&call)?.list_upgrades(&call).await }.boxed(),
    },
    Function {
        name: "pkg.owner",
        params: &[Param::Rest("paths"), Param::Keywords("kwargs")],
        doc: "Tell which package a file belongs to. One path gives a text, several a map.\n\n\
              CLI Example:\n\n    saltern run '*' pkg.owner /bin/sh\n",
        run: |call| async move { on(&call)?.owner(&call).await }.boxed(),
    },
    Function {
        name: "pkg.purge",
        params: REMOVE,
        doc: "Remove packages with their configuration, and tell what changed.\n\n\
              CLI Example:\n\n    saltern run '*' pkg.purge zsh\n    saltern run '*' pkg.purge pkgs='[\"foo\", \"bar\"]'\n",
        run: |call| async move { on(&call)?.remove(&call, true).await }.boxed(),
    },
    Function {
        name: "pkg.refresh_db",
        params: &[
            Param::Optional("cache_valid_time", "0"),
            Param::Optional("failhard", "False"),
            Param::Keywords("kwargs"),
        ],
        doc: "Ask the repositories what they have.\n\n\
              CLI Example:\n\n    saltern run '*' pkg.refresh_db\n    saltern run '*' pkg.refresh_db cache_valid_time=3600\n",
        run: |call| async move { on(&call)?.refresh_db(&call).await }.boxed(),
    },
    Function {
        name: "pkg.remove",
        params: REMOVE,
        doc: "Remove packages, and tell what changed. Names may have wildcards.\n\n\
              CLI Example:\n\n    saltern run '*' pkg.remove zsh\n    saltern run '*' pkg.remove pkgs='[\"foo\", \"bar\"]'\n",
        run: |call| async move { on(&call)?.remove(&call, false).await }.boxed(),
    },
    Function {
        name: "pkg.unhold",
        params: HOLD,
        doc: "Let held packages go.\n\nCLI Example:\n\n    saltern run '*' pkg.unhold vim\n",
        run: |call| async move { on(&call)?.hold(&call, false).await }.boxed(),
    },
    Function {
        name: "pkg.upgrade",
        params: &[
            Param::Optional("name", "None"),
            Param::Optional("pkgs", "None"),
            Param::Optional("refresh", "True"),
            Param::Optional("dist_upgrade", "False"),
            Param::Optional("fromrepo", "None"),
            Param::Optional("skip_verify", "False"),
            Param::Keywords("kwargs"),
        ],
        doc: "Upgrade everything, or the packages named, and tell what changed.\n\n\
              CLI Example:\n\n    saltern run '*' pkg.upgrade\n    saltern run '*' pkg.upgrade dist_upgrade=True\n",
        run: |call| async move { on(&call)?.upgrade(&call).await }.boxed(),
    },
    Function {
        name: "pkg.upgrade_available",
        params: &[Param::Required("name"), Param::Keywords("kwargs")],
        doc: "Tell whether a newer version can be installed.\n\n\
              CLI Example:\n\n    saltern run '*' pkg.upgrade_available zsh\n",
        run: |call| async move { on(&call)?.upgrade_available(&call).await }.boxed(),
    },
    Function {
        name: "pkg.version",
        params: &[Param::Rest("names"), Param::Keywords("kwargs")],
        doc: "The installed version; empty if it is not installed. One name gives a text, several a map; names may have wildcards.\n\n\
              CLI Example:\n\n    saltern run '*' pkg.version zsh\n    saltern run '*' pkg.version 'python3*'\n",
        run: |call| async move { on(&call)?.version(&call).await }.boxed(),
    },
    Function {
        name: "pkg.version_cmp",
        params: &[
            Param::Required("pkg1"),
            Param::Required("pkg2"),
            Param::Optional("ignore_epoch", "False"),
            Param::Keywords("kwargs"),
        ],
        doc: "Compare two versions: -1 if the first is older, 0 if they are the same, 1 if it is newer.\n\n\
              CLI Example:\n\n    saltern run '*' pkg.version_cmp '0.2.4-0ubuntu1' '0.2.4.1-0ubuntu1'\n",
        run: |call| async move { on(&call)?.version_cmp(&call) }.boxed(),
    },
];

const HOLD: &[Param] = &[
    Param::Optional("name", "None"),
    Param::Optional("pkgs", "None"),
    Param::Optional("sources", "None"),
    Param::Keywords("kwargs"),
];

const REMOVE: &[Param] = &[Param::Optional("name", "None"), Param::Optional("pkgs", "None"), Param::Keywords("kwargs")];

/// The work of a call, done by the manager of this machine.
fn on(call: &Call) -> Result<Work<Machine<'_>>, Failure> {
    Ok(Work { manager: choose(call)?, programs: Machine::new(&call.context) })
}

/// The manager of the distribution's family, if its program is there; else whichever is.
fn choose(call: &Call) -> Result<Box<dyn Manager>, Failure> {
    const PROGRAMS: [(&str, &str); 6] = [
        ("Debian", "apt-get"),
        ("RedHat", "dnf5"),
        ("RedHat", "dnf"),
        ("RedHat", "tdnf"),
        ("RedHat", "yum"),
        ("Suse", "zypper"),
    ];
    let grains = call.context.grains();
    let text = |name: &str| grains.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (family, arch) = (text("os_family"), text("osarch"));
    let there = |(_, program): &&(&str, &str)| find_program(program).is_some();
    let program = PROGRAMS.iter().filter(|(of, _)| *of == family).find(there).or_else(|| PROGRAMS.iter().find(there));
    match program.map(|(_, program)| *program) {
        Some("apt-get") => Ok(Box::new(apt::Apt { arch })),
        Some("zypper") => Ok(Box::new(zypper::Zypper { arch })),
        Some(program) => Ok(Box::new(dnf::Dnf { program: program.to_owned(), arch })),
        None => Err(Failure::Command(
            "no package manager is installed that this minion knows: apt-get, dnf, yum or zypper".into(),
        )),
    }
}

async fn selections(call: &Call) -> Result<Outcome, Failure> {
    let pattern = call.opt_text("pattern")?.unwrap_or_else(|| "*".into());
    work::check_name(&pattern)?;
    let done = super::command::Command::tool("dpkg").args(["--get-selections", &pattern]).run(&call.context).await?;
    let mut states = apt::read_selections(&done.text());
    if let Some(state) = call.opt_text("state")? {
        let names = states.remove(&state).unwrap_or_default();
        return Ok(Value::map([(state, Value::list(names))]).into());
    }
    Ok(Value::map(states.into_iter().map(|(state, names)| (state, Value::list(names)))).into())
}
