//! `saltern recurring apply` and `export`: what recurs from files, and back into them.
//!
//! Applying twice changes nothing the second time, so nobody becomes the owner of what he has not changed.

use super::file::{self, Entry};
use super::find;
use crate::applied::{Applied, Outcome, tell, tell_all};
use crate::args::Format;
use crate::failure::Failure;
use crate::output;
use saltern_api::client::Client;
use saltern_api::shape::{Recurring, RecurringDraft, RecurringEntity};
use saltern_core::value::Value;
use std::collections::{HashMap, hash_map};
use std::process::ExitCode;

/// Make what recurs what files say
///
/// What is not there by its name on what it is done on is made, what differs is changed, and what is as the file says is left alone.
/// A file has one definition, several documents of one each, or a list of them under `recurring`.
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
    // Everything is read before anything is done: a mistake in the last file leaves all as it is.
    let entries = file::read_all(&args.files)?;
    let (mut known, mut all) = (Known::new(), Vec::new());
    for entry in &entries {
        let about = |failure: Failure| failure.about(&format!("{:?}", entry.name));
        let applied = apply(client, &mut known, entry, args.dry_run).await.map_err(about)?;
        tell(&applied.told("Recurring action", args.dry_run), format)?;
        all.push(applied);
    }
    tell_all(&all, format)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints definitions as files that `apply` reads.
pub(super) async fn export(client: &Client, which: &[String], format: Format) -> Result<ExitCode, Failure> {
    let mut all: Vec<Recurring> = Vec::new();
    for which in which {
        all.push(find(client, which).await?);
    }
    if which.is_empty() {
        all = client.recurrings(None).await?;
        // What one may not change is shown without its parameters.
        all.retain(|one| one.changeable);
    }
    let mut entries = Vec::new();
    for one in &all {
        let chain = match one.what.chain {
            Some(id) => Some(client.chain(&id.to_string()).await?.chain.name),
            None => None,
        };
        entries.push(Entry::of(RecurringDraft::of(one), chain));
    }
    match format {
        Format::Json => output::line(&output::json(&entries)?)?,
        Format::Text | Format::Yaml => output::line(&file::write(&entries)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What is there, by what it is done on and by name: a file with many definitions of one group asks for it once.
type Known = HashMap<RecurringEntity, HashMap<String, Recurring>>;

async fn apply(client: &Client, known: &mut Known, entry: &Entry, dry_run: bool) -> Result<Applied, Failure> {
    let chain = match &entry.chain {
        Value::Nil => None,
        which => Some(client.chain(&which.key_text()).await?.chain.id),
    };
    let wanted = entry.draft(chain).map_err(Failure::usage)?;
    let done = |id: Option<i64>, outcome| Applied { name: wanted.name.clone(), id, outcome };
    // What is overtaken is looked at again, once: the file says all there is to say.
    let mut is_last = false;
    loop {
        let there = match known.entry(wanted.entity.clone()) {
            hash_map::Entry::Occupied(there) => there.into_mut(),
            hash_map::Entry::Vacant(place) => {
                let listed = client.recurrings(Some(&wanted.entity)).await?;
                place.insert(listed.into_iter().map(|one| (one.name.clone(), one)).collect())
            }
        };
        let before = there.get(&wanted.name);
        let outcome = outcome(before, &wanted);
        let written = match before {
            _ if dry_run || outcome == Outcome::Unchanged => return Ok(done(before.map(|one| one.id), outcome)),
            None => client.create_recurring(&wanted).await,
            Some(before) => client.put_recurring(before.id, before.version, &wanted).await,
        };
        match written {
            Err(error) if error.is_stale() && !is_last => {
                is_last = true;
                known.remove(&wanted.entity);
            }
            written => {
                let written = written?;
                let id = written.id;
                there.insert(written.name.clone(), written);
                return Ok(done(Some(id), outcome));
            }
        }
    }
}

fn outcome(known: Option<&Recurring>, wanted: &RecurringDraft) -> Outcome {
    Outcome::of(known, |known| RecurringDraft::of(known) == *wanted)
}

#[cfg(test)]
mod tests {
    use super::super::show::tests::recurring;
    use super::*;

    #[test]
    fn what_is_as_wanted_is_left_alone() {
        let wanted = RecurringDraft::of(&recurring());
        assert_eq!(outcome(Some(&recurring()), &wanted), Outcome::Unchanged);
        assert_eq!(outcome(Some(&recurring()), &RecurringDraft { spread: 0, ..wanted.clone() }), Outcome::Changed);
        assert_eq!(outcome(None, &wanted), Outcome::Created);
    }
}
