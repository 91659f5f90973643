//! Which phases `check`, `test` and `chaos` have.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::phases::{self, Phase, Work};
use crate::setup;

/// How long each fuzz target runs in its own phase, and everywhere else.
const FUZZ_MS: &str = "10000";
const FUZZ_BRIEFLY_MS: &str = "200";

/// The fast inner loop.
pub(crate) fn check(chosen: &[String]) -> Result<bool> {
    let fast = |arguments: &[&str]| {
        let mut tests = cargo(&["test", "--no-fail-fast"]);
        tests.args(arguments).env("SALTERN_TESTS", "fast").env("BOLERO_RANDOM_TEST_TIME_MS", FUZZ_BRIEFLY_MS);
        tests
    };
    // Beside the unit tests only what needs no sockets: servers under attack and libzmq take a minute of their own.
    let tests = vec![
        fast(&["--workspace", "--exclude", "saltern-e2e", "--lib", "--bins"]),
        fast(&["--package", "saltern-core", "--package", "saltern-render", "--package", "saltern-api", "--tests"]),
    ];
    let phases = vec![fmt(), clippy(), Phase { name: "tests", work: Work::Commands(tests) }];
    phases::run("check", phases, chosen)
}

/// Everything, as continuous integration runs it.
pub(crate) fn test(chosen: &[String]) -> Result<bool> {
    let mut tests = cargo(&["test", "--workspace", "--exclude", "saltern-e2e", "--no-fail-fast"]);
    tests.env("SALTERN_TESTS", "full").env("BOLERO_RANDOM_TEST_TIME_MS", FUZZ_BRIEFLY_MS);

    let fuzz = if has_fuzz_targets() {
        let mut fuzz = cargo(&["test", "--workspace", "--test", "fuzz*", "--no-fail-fast"]);
        fuzz.env("SALTERN_TESTS", "full").env("BOLERO_RANDOM_TEST_TIME_MS", FUZZ_MS);
        vec![fuzz]
    } else {
        Vec::new()
    };

    // The tests there run the binary, which cargo does not build for another package's tests.
    let mut end_to_end = cargo(&["test", "--package", "saltern-e2e", "--no-fail-fast"]);
    end_to_end.env("SALTERN_TESTS", "full");
    let end_to_end = vec![cargo(&["build", "--package", "saltern"]), end_to_end];

    let phases = vec![
        Phase { name: "setup", work: Work::Prepare(setup::setup) },
        fmt(),
        clippy(),
        Phase { name: "tests", work: Work::Commands(vec![tests]) },
        Phase { name: "fuzz", work: Work::Commands(fuzz) },
        Phase { name: "e2e", work: Work::Commands(end_to_end) },
    ];
    phases::run("test", phases, chosen)
}

/// The crash test and the crowd tests at full size; `test` has their short forms.
pub(crate) fn chaos(chosen: &[String]) -> Result<bool> {
    // As it is released, since some are timed; one after the other, for the same reason; and with their tables shown.
    let mut tests = cargo(&["test", "--release", "--package", "saltern-e2e", "--test", "chaos", "--"]);
    tests.args(["--nocapture", "--test-threads=1"]).env("SALTERN_TESTS", "full").env("SALTERN_CHAOS", "long");
    let work = Work::Commands(vec![cargo(&["build", "--release", "--package", "saltern"]), tests]);
    phases::run("chaos", vec![Phase { name: "chaos", work }], chosen)
}

fn fmt() -> Phase {
    Phase { name: "fmt", work: Work::Commands(vec![cargo(&["fmt", "--all", "--check"])]) }
}

fn clippy() -> Phase {
    let clippy = cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]);
    Phase { name: "clippy", work: Work::Commands(vec![clippy]) }
}

/// Whether any crate has a file of fuzz targets: `tests/fuzz….rs`.
fn has_fuzz_targets() -> bool {
    let crates = std::fs::read_dir(crate::root().join("crates")).into_iter().flatten().flatten();
    let is_fuzz = |path: &Path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"fuzz"));
    crates
        .filter_map(|folder| std::fs::read_dir(folder.path().join("tests")).ok())
        .flatten()
        .flatten()
        .any(|file| is_fuzz(&file.path()))
}

/// A cargo command in the root of the checkout, free of what the cargo that started us has set for us.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(crate::root());
    for (name, _) in std::env::vars_os() {
        let bytes = name.as_encoded_bytes();
        if bytes.starts_with(b"CARGO_PKG_") || bytes.starts_with(b"CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    command
}
