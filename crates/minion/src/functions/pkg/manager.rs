//! What a package manager can do, whichever it is; one file each for apt, dnf and zypper.
//!
//! A manager knows which programs to run and what their output means. What packages a call is about, what changed and how it
//! is told is the same for all and stands in `pkg`.

use super::super::command::{Command, Finished};
use super::super::{Context, Failure};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use saltern_core::value::{Map, Value};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Names and their installed versions.
pub(super) type Packages = BTreeMap<String, Vec<String>>;

/// What a manager's work brings.
pub(super) type Answer<'a, T> = BoxFuture<'a, Result<T, Failure>>;

/// One package manager.
pub(super) trait Manager: Send + Sync {
    /// What is installed.
    fn installed<'a>(&'a self, programs: &'a dyn Programs) -> Answer<'a, Packages>;

    /// What was removed and has left its configuration behind.
    fn removed<'a>(&'a self, _programs: &'a dyn Programs) -> Answer<'a, Packages> {
        async { Ok(Packages::new()) }.boxed()
    }

    /// Asks the repositories what they have; the answer has each manager's own shape.
    fn refresh<'a>(&'a self, programs: &'a dyn Programs) -> Answer<'a, Value>;

    /// The version each of these would be installed or upgraded to, whatever is installed now; names without one are left out.
    fn candidates<'a>(
        &'a self,
        programs: &'a dyn Programs,
        names: &'a [String],
        repo: Option<&'a str>,
    ) -> Answer<'a, BTreeMap<String, String>>;

    /// What could be upgraded, and to what.
    fn upgrades<'a>(
        &'a self,
        programs: &'a dyn Programs,
        whole_distribution: bool,
    ) -> Answer<'a, BTreeMap<String, String>>;

    /// Installs. Several commands may be needed; the first that fails is the answer.
    fn install<'a>(
        &'a self,
        programs: &'a dyn Programs,
        targets: &'a [Target],
        how: &'a How,
        installed: &'a Packages,
    ) -> Answer<'a, Finished>;

    /// Removes; `purge` takes the configuration as well.
    fn remove<'a>(&'a self, programs: &'a dyn Programs, names: &'a [String], purge: bool) -> Answer<'a, Finished>;

    /// Upgrades these, or everything.
    fn upgrade<'a>(&'a self, programs: &'a dyn Programs, names: &'a [String], how: &'a How) -> Answer<'a, Finished>;

    /// What is held at its version.
    fn held<'a>(&'a self, programs: &'a dyn Programs) -> Answer<'a, Vec<String>>;

    /// Holds a package, or lets it go.
    fn hold<'a>(&'a self, programs: &'a dyn Programs, name: &'a str, held: bool) -> Answer<'a, Finished>;

    /// The files of these packages.
    fn files<'a>(&'a self, programs: &'a dyn Programs, names: &'a [String]) -> Answer<'a, Vec<String>>;

    /// The package a file belongs to; empty if to none.
    fn owner<'a>(&'a self, programs: &'a dyn Programs, path: &'a str) -> Answer<'a, String>;

    /// What is known of installed packages.
    fn info<'a>(&'a self, programs: &'a dyn Programs, names: &'a [String]) -> Answer<'a, BTreeMap<String, Map>>;

    /// Which of two versions is newer.
    fn compare(&self, a: &str, b: &str) -> Ordering;

    /// The words in which this manager's users are told about a hold.
    fn hold_words(&self) -> &'static HoldWords;

    /// Whether it can be asked for versions such as `>=1.2`.
    fn takes_comparisons(&self) -> bool {
        false
    }

    /// Whether packages that are removed leave their configuration behind.
    fn keeps_configuration(&self) -> bool {
        false
    }

    /// Whether a program that ended with this code did its work.
    fn is_success(&self, code: i32) -> bool {
        code == 0
    }
}

/// Comments and values of `pkg.hold` and `pkg.unhold`; `{}` is the package.
pub(super) struct HoldWords {
    /// It was let go
    pub(super) let_go: &'static str,
    /// It was not held to begin with
    pub(super) was_free: &'static str,
    /// What the state of a package that is not held is called in `changes`
    pub(super) free: &'static str,
}

/// One package to install.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Target {
    /// Its name; for a file, what the operator calls it
    pub(super) name: String,
    /// The version wanted
    pub(super) version: Option<String>,
    /// A package file
    pub(super) file: Option<String>,
}

/// How to install or upgrade.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct How {
    /// The repository or release to take it from
    pub(super) repo: Option<String>,
    /// Do not check signatures
    pub(super) skip_verify: bool,
    /// Install again what is installed
    pub(super) reinstall: bool,
    /// Only fetch
    pub(super) download_only: bool,
    /// Take what is recommended as well, or not; the manager's habit otherwise
    pub(super) recommends: Option<bool>,
    /// Replace configuration files that were changed here
    pub(super) new_config: bool,
    /// Upgrade only what is installed
    pub(super) only_upgrade: bool,
    /// Let other packages go or come where an upgrade needs it
    pub(super) whole_distribution: bool,
}

/// How managers run programs: for real, or from a recording in tests.
pub(super) trait Programs: Send + Sync {
    /// Runs a program that only looks.
    fn look<'a>(&'a self, program: &'a str, args: &'a [String]) -> Answer<'a, Finished>;

    /// Runs a program that changes the machine.
    fn change<'a>(&'a self, program: &'a str, args: &'a [String]) -> Answer<'a, Finished>;

    /// A file of the machine.
    fn read(&self, path: &str) -> Option<String>;
}

/// The programs of this machine.
pub(super) struct Machine<'c> {
    context: &'c Context,
}

impl<'c> Machine<'c> {
    pub(super) const fn new(context: &'c Context) -> Self {
        Self { context }
    }
}

/// What looks must not hang for ever on a repository that does not answer.
const LOOK_PATIENCE: Duration = Duration::from_secs(300);

impl Programs for Machine<'_> {
    fn look<'a>(&'a self, program: &'a str, args: &'a [String]) -> Answer<'a, Finished> {
        Command::tool(program).args(args).timeout(Some(LOOK_PATIENCE)).run(self.context).boxed()
    }

    fn change<'a>(&'a self, program: &'a str, args: &'a [String]) -> Answer<'a, Finished> {
        // In a scope of its own, so that a package that restarts this very agent is still installed to its end.
        let command =
            if Path::new("/run/systemd/system").exists() && super::super::find_program("systemd-run").is_some() {
                Command::tool("systemd-run").args(["--scope", "--quiet", "--description=saltern pkg", "--", program])
            } else {
                Command::tool(program)
            };
        let quiet = [
            ("DEBIAN_FRONTEND", "noninteractive"),
            ("APT_LISTCHANGES_FRONTEND", "none"),
            ("APT_LISTBUGS_FRONTEND", "none"),
            ("UCF_FORCE_CONFFOLD", "1"),
        ];
        quiet
            .into_iter()
            .fold(command.args(args), |command, (name, value)| command.env(name, value))
            .run(self.context)
            .boxed()
    }

    fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(path).ok()
    }
}

/// Arguments as the programs take them.
pub(super) fn words<'w>(words: impl IntoIterator<Item = &'w str>) -> Vec<String> {
    words.into_iter().map(str::to_owned).collect()
}
