//! The binary: `saltern serve` is the server, everything else speaks to one through its API.
//!
//! `args` has what commands share, `server` which server they speak to and as whom, `cmd` one file per command, `output` how
//! things look. Exit codes are decided in
//! `failure`: 0 good, 1 something failed, 2 wrong usage, 3 no server, 130 interrupted.

mod applied;
mod args;
mod arguments;
mod cmd;
mod documents;
mod failure;
mod interrupt;
mod logging;
mod logins;
mod output;
mod params;
mod password;
#[cfg(test)]
mod reference;
mod rules;
mod server;
mod signals;

use args::{Cli, Command};
use clap::{CommandFactory, FromArgMatches};
use failure::Failure;
use server::Whereabouts;
use std::process::ExitCode;

fn main() -> ExitCode {
    let matches = Cli::command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let server = cli.server.prefer_flags(&matches);
    match dispatch(cli.command, &server) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}

fn dispatch(command: Command, server: &Whereabouts) -> Result<ExitCode, Failure> {
    let data_dir = server.data_dir.clone();
    let client = || server.client();
    match command {
        Command::Serve(args) => cmd::serve::run(args, data_dir),
        Command::Run(args) => block_on(cmd::run::run(args, client()?)),
        Command::Key(args) => block_on(cmd::key::run(args, client()?)),
        Command::Up(args) => cmd::up::run(args, data_dir),
        Command::Minion(args) => block_on(cmd::minion::run(args, client, data_dir)),
        Command::Call(args) => block_on(cmd::call::run(args, data_dir)),
        Command::Action(args) => block_on(cmd::action::run(args, client()?)),
        Command::Chain(args) => block_on(cmd::chain::run(args, client()?)),
        Command::Recurring(args) => block_on(cmd::recurring::run(args, client()?)),
        Command::Window(args) => block_on(cmd::window::run(args, client()?)),
        Command::Job(args) => block_on(cmd::job::run(args, client()?)),
        Command::Event(args) => block_on(cmd::event::run(args, client()?)),
        Command::Function(args) => block_on(cmd::function::run(args, client()?)),
        Command::Login(args) => block_on(cmd::login::log_in(args, server)),
        Command::Logout(args) => block_on(cmd::login::log_out(args, server)),
        Command::Whoami(args) => block_on(cmd::login::who_am_i(args, client()?)),
        Command::User(args) => block_on(cmd::user::run(args, client()?)),
        Command::State(args) => block_on(cmd::state::run(args, client()?)),
        Command::Group(args) => block_on(cmd::group::run(args, client()?)),
        Command::Org(args) => block_on(cmd::org::run(args, client()?)),
        Command::Token(args) => block_on(cmd::token::run(args, client()?)),
        Command::Audit(args) => block_on(cmd::audit::run(args, client()?)),
        Command::Webhook(args) => block_on(cmd::webhook::run(args, client()?)),
        Command::Doctor(args) => block_on(cmd::doctor::run(args, client()?, data_dir)),
        Command::Swarm(args) => cmd::swarm::run(args),
        Command::Completions(args) => cmd::completions::run(args),
        Command::Man(args) => cmd::man::run(args),
    }
}

/// A client needs one thread.
fn block_on(command: impl Future<Output = Result<ExitCode, Failure>>) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::new(format!("cannot start: {error}")))?.block_on(command)
}
