//! `saltern man`: the manual pages, made from the same definitions that parse the command line.

use crate::args::Cli;
use crate::failure::Failure;
use crate::output;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Print the manual page, or write one for every command
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  saltern man | man -l -\n  saltern man --dir /usr/local/share/man/man1 && man saltern-run"
)]
pub(crate) struct Args {
    /// Write a page for each command into this directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn run(args: Args) -> Result<ExitCode, Failure> {
    let pages = pages()?;
    match args.dir {
        Some(dir) => {
            let failed =
                |path: &Path, error: io::Error| Failure::new(format!("cannot write {}: {error}", path.display()));
            std::fs::create_dir_all(&dir).map_err(|error| failed(&dir, error))?;
            for (name, page) in &pages {
                let path = dir.join(name);
                std::fs::write(&path, page).map_err(|error| failed(&path, error))?;
            }
            output::line(&format!("{} pages are in {}", pages.len(), dir.display()))?;
        }
        None => {
            for (_, page) in pages.iter().take(1) {
                output::line(&String::from_utf8_lossy(page))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Every page with its file name, the main one first.
fn pages() -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    let mut pages = Vec::new();
    collect(&root, &mut pages).map_err(|error| Failure::new(format!("cannot make the pages: {error}")))?;
    Ok(pages)
}

fn collect(command: &Command, pages: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    man.render(&mut page)?;
    pages.push((man.get_filename(), page));
    command.get_subcommands().filter(|verb| !verb.is_hide_set()).try_for_each(|verb| collect(verb, pages))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page() {
        let pages = pages().unwrap();
        assert_eq!(pages[0].0, "saltern.1");
        for name in ["saltern-run.1", "saltern-user-create.1", "saltern-audit-verify.1", "saltern-login.1"] {
            assert!(pages.iter().any(|(page, _)| page == name), "{name}");
        }
    }

    #[test]
    fn a_page_names_its_command_and_options() {
        let pages = pages().unwrap();
        let (_, page) = pages.iter().find(|(name, _)| name == "saltern-token-create.1").unwrap();
        let text = String::from_utf8_lossy(page);
        assert!(text.contains(".TH saltern-token-create 1"), "{text}");
        assert!(text.contains("scope") && text.contains("Make a token"), "{text}");
    }
}
