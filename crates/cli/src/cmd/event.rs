//! `saltern event`: the event log, from any number on, then live.

use crate::failure::{Failure, INTERRUPTED};
use crate::interrupt::Interrupt;
use crate::output::{self, text};
use clap::ValueEnum;
use saltern_api::client::{Client, ClientError, EventQuery};
use saltern_api::shape::Event;
use std::process::ExitCode;

/// Follow the event log
///
/// Shows events as they happen, until Ctrl-C. With --since it begins in the past and goes on without a gap.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Only events whose tag matches this shell pattern
    #[arg(long, value_name = "PATTERN")]
    tag: Option<String>,

    /// Begin after the event with this number; 0 is the beginning of the log
    #[arg(long, value_name = "NUMBER")]
    since: Option<i64>,

    /// Only events of this job
    #[arg(long, value_name = "JID")]
    jid: Option<String>,

    /// End with what is stored, instead of waiting for more
    #[arg(long)]
    no_follow: bool,

    /// End after so many events
    #[arg(long, value_name = "N")]
    count: Option<usize>,

    /// How to show them
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    out: Out,
}

const EXAMPLES: &str = "\
Examples:
  saltern event
  saltern event --tag 'salt/job/*/ret/*'
  saltern event --since 0 --no-follow --out json | jq .tag";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Out {
    /// Tag, tab, data
    #[default]
    Text,
    /// One object per line, with number and time
    Json,
}

pub(crate) async fn run(args: Args, client: Client) -> Result<ExitCode, Failure> {
    let mut interrupt = Interrupt::listen()?;
    let query = EventQuery { since: args.since, tag: args.tag, jid: args.jid, stored_only: args.no_follow };
    let mut events = client.events(&query).await?;
    let mut last = args.since;
    let mut left = args.count.unwrap_or(usize::MAX);
    while left > 0 {
        let event = tokio::select! {
            event = events.next() => event,
            () = interrupt.wait() => return Ok(ExitCode::from(INTERRUPTED)),
        };
        let event = match event {
            Some(Ok(event)) => event,
            Some(Err(error)) => return Err(resume(error, last)),
            None if args.no_follow => break,
            None => return Err(resume(ClientError::Lost("the server has stopped".into()), last)),
        };
        last = Some(event.number);
        output::line(&show(&event, args.out)?)?;
        left -= 1;
    }
    Ok(ExitCode::SUCCESS)
}

/// How to go on where it broke off.
fn resume(error: ClientError, last: Option<i64>) -> Failure {
    let failure = Failure::from(error);
    match last {
        Some(number) => failure.hint(format!("go on with --since {number}")),
        None => failure,
    }
}

fn show(event: &Event, out: Out) -> Result<String, Failure> {
    let wrong = |error: serde_json::Error| Failure::new(format!("cannot write JSON: {error}"));
    match out {
        Out::Json => serde_json::to_string(event).map_err(wrong),
        Out::Text => {
            let data = serde_json::to_string(&event.data).map_err(wrong)?;
            Ok(format!("{}\t{}", text::clean(&event.tag), text::clean(&data)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_api::shape::Time;
    use saltern_core::time::Timestamp;
    use saltern_core::value::Value;

    #[test]
    fn an_event_is_its_tag_and_its_data_on_one_line() {
        let event = Event {
            number: 7,
            at: Time(Timestamp::from_secs(1_794_772_591)),
            tag: "salt/auth".into(),
            minion: Some("m1".into()),
            jid: None,
            data: Value::map([("act", "accept")]),
        };
        assert_eq!(show(&event, Out::Text).unwrap(), "salt/auth\t{\"act\":\"accept\"}");
        assert_eq!(
            show(&event, Out::Json).unwrap(),
            r#"{"number":7,"at":"2026-11-15T19:56:31.000000+00:00","tag":"salt/auth","minion":"m1","data":{"act":"accept"}}"#
        );
    }
}
