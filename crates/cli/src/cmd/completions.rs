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
    output::line(&script(args.shell))?;
    Ok(ExitCode::SUCCESS)
}

fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "saltern", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_knows_every_command() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell);
            for command in Cli::command().get_subcommands() {
                assert!(script.contains(command.get_name()), "{shell}: {}", command.get_name());
            }
            assert!(script.contains("ca-file") && script.contains("password-stdin"), "{shell}");
        }
    }
}
