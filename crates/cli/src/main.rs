//! The binary: `saltern serve` is the server, everything else speaks to one through its API.
//!
//! `args` has what commands share, `cmd` one file per command, `output` how things look. Exit codes are decided in
//! `failure`: 0 good, 1 something failed, 2 wrong usage, 3 no server, 130 interrupted.

mod args;
mod arguments;
mod cmd;
mod failure;
mod interrupt;
mod logging;
mod output;
#[cfg(test)]
mod reference;
mod rules;
mod signals;

use args::{Cli, Command};
use clap::Parser;
use failure::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match dispatch(cli) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}

fn dispatch(cli: Cli) -> Result<ExitCode, Failure> {
    let data_dir = cli.data_dir;
    let client = || args::client(data_dir.as_deref());
    match cli.command {
        Command::Serve(args) => cmd::serve::run(args, data_dir),
        Command::Run(args) => block_on(cmd::run::run(args, client())),
        Command::Key(args) => block_on(cmd::key::run(args, client())),
        Command::Up(args) => cmd::up::run(args, data_dir),
        Command::Minion(args) => block_on(cmd::minion::run(args, client(), data_dir.clone())),
        Command::Call(args) => block_on(cmd::call::run(args, data_dir)),
        Command::Action(args) => block_on(cmd::action::run(args, client())),
        Command::Job(args) => block_on(cmd::job::run(args, client())),
        Command::Event(args) => block_on(cmd::event::run(args, client())),
        Command::Doctor(args) => block_on(cmd::doctor::run(args, data_dir)),
        Command::Swarm(args) => cmd::swarm::run(args),
        Command::Completions(args) => cmd::completions::run(args),
    }
}

/// A client needs one thread.
fn block_on(command: impl Future<Output = Result<ExitCode, Failure>>) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::new(format!("cannot start: {error}")))?.block_on(command)
}
