//! `saltern chain apply` and `export`: chains from files, and back into them.
//!
//! Applying twice changes nothing the second time: a chain that is as its file says is left alone.

use super::edit::draft;
use super::file;
use crate::applied::{Applied, Outcome, tell, tell_all};
use crate::args::Format;
use crate::failure::Failure;
use crate::output;
use saltern_api::client::Client;
use saltern_api::shape::{ChainDetail, ChainDraft};
use std::process::ExitCode;

/// Make chains what files say
///
/// A chain that is not there by its name is made, one that differs is changed, and one that is as the file says is left alone.
/// A file has one chain, several documents of one each, or a list of them under `chains`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A YAML file, `-` for standard input; may be given several times
    #[arg(short, long = "file", value_name = "FILE", required = true)]
    files: Vec<String>,

    /// Only tell what would be done
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn run(args: &Args, client: &Client, format: Format) -> Result<ExitCode, Failure> {
    // Everything is read before anything is done: a mistake in the last file leaves all chains as they are.
    let chains = file::read_all(&args.files)?;
    let mut all = Vec::new();
    for wanted in &chains {
        let about = |failure: Failure| failure.about(&format!("chain {:?}", wanted.name));
        let applied = apply(client, wanted, args.dry_run).await.map_err(about)?;
        tell(&applied.told("Chain", args.dry_run), format)?;
        all.push(applied);
    }
    tell_all(&all, format)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints chains as files that `apply` reads.
pub(super) async fn export(client: &Client, which: &[String], format: Format) -> Result<ExitCode, Failure> {
    let mut chains = Vec::new();
    for which in which {
        chains.push(client.chain(which).await?);
    }
    let drafts: Vec<ChainDraft> = chains.iter().map(draft).collect();
    match format {
        Format::Json => output::line(&output::json(&drafts)?)?,
        Format::Text | Format::Yaml => output::line(&file::write(&drafts)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn apply(client: &Client, wanted: &ChainDraft, dry_run: bool) -> Result<Applied, Failure> {
    let done = |id: Option<i64>, outcome| Applied { name: wanted.name.clone(), id, outcome };
    // What is overtaken is looked at again, once: the file says all there is to say about the chain.
    let mut is_last = false;
    loop {
        let known = match client.chain(&wanted.name).await {
            Err(error) if error.is_not_found() => None,
            known => Some(known?),
        };
        let outcome = outcome(known.as_ref(), wanted);
        let id = known.as_ref().map(|known| known.chain.id);
        let written = match known {
            _ if dry_run || outcome == Outcome::Unchanged => return Ok(done(id, outcome)),
            None => client.create_chain(wanted).await,
            Some(known) => client.put_chain(known.chain.id, known.chain.version, wanted).await,
        };
        match written {
            Err(error) if error.is_stale() && !is_last => is_last = true,
            written => return Ok(done(Some(written?.chain.id), outcome)),
        }
    }
}

fn outcome(known: Option<&ChainDetail>, wanted: &ChainDraft) -> Outcome {
    Outcome::of(known, |known| draft(known) == *wanted)
}

#[cfg(test)]
mod tests {
    use super::super::show::tests::chain;
    use super::*;

    #[test]
    fn a_chain_that_is_as_wanted_is_left_alone() {
        let known = chain();
        let wanted = draft(&known);
        assert_eq!(outcome(Some(&known), &wanted), Outcome::Unchanged);
        assert_eq!(outcome(Some(&known), &ChainDraft { shared: false, ..wanted.clone() }), Outcome::Changed);
        assert_eq!(outcome(Some(&known), &ChainDraft { steps: Vec::new(), ..wanted.clone() }), Outcome::Changed);
        assert_eq!(outcome(None, &wanted), Outcome::Created);
    }
}
