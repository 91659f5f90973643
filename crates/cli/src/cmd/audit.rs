//! `saltern audit`: who changed what, and whether nobody has changed the log itself.

use crate::args::Out;
use crate::failure::{FAILED, Failure};
use crate::output::style::{Colour, Style};
use crate::output::table::Table;
use crate::output::{self, when};
use clap::Subcommand;
use saltern_api::client::{AuditQuery, Client};
use saltern_api::shape::{AuditCheck, AuditEntry};
use saltern_core::value::Value;
use std::process::ExitCode;

/// See who changed what, and check that the log is whole
///
/// Every entry carries a hash that covers the one before it. Whoever notes the head of the log elsewhere from time to time can
/// prove later that nothing before it was changed, even by somebody who could write to the database.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    out: Out,

    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  saltern audit list --who ann --limit 100
  saltern audit list --what key                whatever was done to keys
  saltern audit list --subject web1
  saltern audit verify
  saltern audit verify --expect 1200:5f3a…     the head of last month";

#[derive(Debug, Subcommand)]
enum Verb {
    /// List what was done, newest first
    List {
        /// Only by this user or program
        #[arg(long, value_name = "NAME")]
        who: Option<String>,
        /// Only this: key.accept, or key for whatever was done to keys
        #[arg(long, value_name = "NOUN[.VERB]")]
        what: Option<String>,
        /// Only what was done to this
        #[arg(long, value_name = "NAME")]
        subject: Option<String>,
        /// Only entries before this number
        #[arg(long, value_name = "NUMBER")]
        before: Option<i64>,
        /// At most so many
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: usize,
    },
    /// Check that no entry was changed, taken out or put in; exit code 1 and the place if one was
    Verify {
        /// A head that was noted earlier: the log has to have it still
        #[arg(long, value_name = "NUMBER:HASH", value_parser = head)]
        expect: Option<String>,
    },
}

pub(crate) async fn run(args: Args, client: Client) -> Result<ExitCode, Failure> {
    let format = args.out.format;
    match args.verb {
        Verb::List { who, what, subject, before, limit } => {
            let query = AuditQuery { who, what, subject, before, limit: Some(limit) };
            let list = client.audit(&query).await?;
            output::show(format, &list.entries, || table(&list.entries, Style::of_stdout()))?;
            if let Some(next) = list.next {
                more(next)?;
            }
        }
        Verb::Verify { expect } => {
            let check = client.verify_audit(expect.as_deref()).await?;
            output::show(format, &check, || verdict(&check, expect.as_deref(), Style::of_stdout()))?;
            return Ok(ExitCode::from(if check.intact { 0 } else { FAILED }));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// How to see what is older, for people at a terminal.
fn more(next: i64) -> Result<(), Failure> {
    use std::io::IsTerminal;
    if std::io::stdout().is_terminal() {
        output::note(&format!("There is more: --before {next}"))?;
    }
    Ok(())
}

/// A noted head, as it is typed.
fn head(text: &str) -> Result<String, String> {
    let is_hash = |hash: &str| hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    match text.trim().split_once(':') {
        Some((number, hash)) if number.parse::<u32>().is_ok() && is_hash(hash) => {
            Ok(format!("{number}:{}", hash.to_ascii_lowercase()))
        }
        _ => Err("a head is a number, a colon and 64 hexadecimal digits, as `saltern audit verify` prints it".into()),
    }
}

fn verdict(check: &AuditCheck, expected: Option<&str>, style: Style) -> String {
    let AuditCheck { entries, head, broken, .. } = check;
    match broken {
        Some(place) => {
            let broken = style.paint(Colour::Red, &format!("The audit log is broken at entry {}", place.number));
            let what = output::text::clean(&place.what);
            // What was noted may differ although the chain itself holds: then somebody has written all of it anew.
            let rest = if *entries < place.number {
                format!("The {entries} entries before it are as they were written.")
            } else {
                "The entries fit each other: somebody has written them anew.".into()
            };
            format!("{broken}: {what}\n{rest}")
        }
        None => {
            let known = expected.map_or("", |_| ", and the head that was noted is in it");
            let whole = style.paint(Colour::Green, "The audit log is whole");
            format!("{whole}: {entries} entries{known}.\nHead, to be noted elsewhere: {entries}:{head}")
        }
    }
}

fn table(entries: &[AuditEntry], style: Style) -> String {
    let mut table = Table::new(&["NUMBER", "WHEN", "WHO", "FROM", "WHAT", "SUBJECT", "DETAIL"]);
    for entry in entries {
        table.row([
            entry.number.to_string(),
            when::instant(entry.at.0),
            entry.who.clone(),
            entry.origin.clone(),
            entry.what.clone(),
            entry.subject.clone(),
            detail(&entry.detail),
        ]);
    }
    table.show("There is no such entry.", style)
}

fn detail(detail: &Value) -> String {
    let is_empty = detail.as_map().is_some_and(saltern_core::value::Map::is_empty) || *detail == Value::Nil;
    if is_empty { String::new() } else { output::text::scalar(detail).chars().take(100).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_api::shape::{AuditBreak, Time};
    use saltern_core::time::Timestamp;

    #[test]
    fn entries_say_who_did_what_from_where() {
        let entry = AuditEntry {
            number: 7,
            at: Time(Timestamp::from_secs(1_794_772_591)),
            who: "ann".into(),
            origin: "10.0.0.7".into(),
            what: "user.create".into(),
            subject: "bob".into(),
            detail: Value::map([("org", "default")]),
        };
        let quiet = AuditEntry { number: 6, detail: Value::Map(Default::default()), ..entry.clone() };
        assert_eq!(
            table(&[entry, quiet], Style::PLAIN),
            "\
NUMBER  WHEN                     WHO  FROM      WHAT         SUBJECT  DETAIL
7       2026-11-15 19:56:31 UTC  ann  10.0.0.7  user.create  bob      {\"org\":\"default\"}
6       2026-11-15 19:56:31 UTC  ann  10.0.0.7  user.create  bob"
        );
    }

    #[test]
    fn a_whole_log_has_a_head_to_note() {
        let check = AuditCheck { intact: true, entries: 7, head: "ab".repeat(32), broken: None };
        let text = verdict(&check, None, Style::PLAIN);
        let noted = text.rsplit(' ').next().unwrap();
        assert_eq!(head(noted).unwrap(), format!("7:{}", "ab".repeat(32)));
        assert!(text.starts_with("The audit log is whole: 7 entries.\n"), "{text}");
    }

    #[test]
    fn a_broken_log_names_the_place() {
        let broken = Some(AuditBreak { number: 5, what: "entry 5 is missing".into() });
        let check = AuditCheck { intact: false, entries: 4, head: String::new(), broken };
        assert_eq!(
            verdict(&check, None, Style::PLAIN),
            "The audit log is broken at entry 5: entry 5 is missing\nThe 4 entries before it are as they were written."
        );
    }

    #[test]
    fn a_log_that_was_written_anew_is_told_as_that() {
        let broken = Some(AuditBreak { number: 5, what: "its hash is not the one that was noted".into() });
        let check = AuditCheck { intact: false, entries: 9, head: String::new(), broken };
        let text = verdict(&check, Some("5:x"), Style::PLAIN);
        assert!(text.ends_with("somebody has written them anew."), "{text}");
    }

    #[test]
    fn a_head_is_a_number_and_a_hash() {
        assert!(head("7:abcd").is_err() && head("x:y").is_err() && head("").is_err());
    }
}
