//! The verbs behind the Makefile: run, check, test, chaos, bench, setup.
//!
//! One command per need, and continuous integration uses the same ones. `phases` runs a list of phases and reports on
//! it, `plan` says which phases a verb has, `setup` installs what the slow ones need, `tidy` holds the house rules that no
//! compiler checks.

mod bench;
mod phases;
mod plan;
mod serve;
mod setup;
mod stream;
#[cfg(test)]
mod tidy;

use std::path::Path;
use std::process::ExitCode;

const HELP: &str = "\
make run           build it, then a server and three minions on .data/, loopback only; Ctrl-C stops it
make check         the fast loop: format, clippy, unit tests; neither Salt nor PostgreSQL nor a network
make test          everything: setup, format, clippy, all tests on SQLite and PostgreSQL, fuzzing, stock minions
make chaos         the crash test and the crowd tests at full size, with a table of what became of every run (5 minutes)
make bench         the stock salt-master and this server under the same load; writes docs/benchmarks.md (15 minutes)
make setup         only the installations: PostgreSQL, and in a cache outside the tree Salt, pepper, schemathesis, oracles and slapd
make clean-cache   remove what `make setup` keeps in that cache
make help          this list

`make test PHASE=e2e` runs one phase; the same verbs are there as `cargo xtask VERB [PHASE…]`.
The cache is $SALTERN_CACHE, else ~/.cache/saltern. Rust 1.89 or newer, a C compiler and python3 are needed.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (verb, chosen) = match arguments.split_first() {
        Some((verb, chosen)) => (verb.as_str(), chosen),
        None => ("help", [].as_slice()),
    };
    let done = match verb {
        "help" | "--help" | "-h" => {
            println!("{HELP}");
            Ok(true)
        }
        "run" => serve::run().map(|()| true),
        "check" => plan::check(chosen),
        "test" => plan::test(chosen),
        "chaos" => plan::chaos(chosen),
        "bench" => bench::run(chosen).map(|()| true),
        "setup" => setup::setup().map(|()| true),
        "clean-cache" => setup::clean_cache().map(|()| true),
        unknown => {
            eprintln!("there is no verb `{unknown}`\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the checkout.
fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here)
}
