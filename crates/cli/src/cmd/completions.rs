//! `saltern completions`: what a shell needs to complete our commands.

use crate::args::Cli;
use crate::failure::Failure;
use crate::output;
use clap::CommandFactory;
use clap_complete::Shell;
use std::process::ExitCode;

/// Print what a shell needs to complete commands
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  saltern completions bash > /etc/bash_completion.d/saltern")]
pub(crate) struct Args {
    /// Which shell
    shell: Shell,
}

pub(crate) fn run(args: Args) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "saltern", &mut script);
    output::line(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
