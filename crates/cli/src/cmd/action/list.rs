//! `saltern action list`: what was asked for, newest first.

use crate::args::Format;
use crate::failure::Failure;
use crate::output::style::Style;
use crate::output::table::Table;
use crate::output::{self, text, when};
use clap::ValueEnum;
use saltern_api::client::{ActionQuery, Client};
use saltern_api::shape::Action;
use saltern_core::time::Timestamp;
use saltern_server::clock;
use std::process::ExitCode;

/// List actions, newest first
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only these
    #[arg(long, value_enum)]
    state: Option<State>,

    /// Only what this user asked for
    #[arg(long, value_name = "NAME")]
    user: Option<String>,

    /// Only what is for this minion
    #[arg(long, value_name = "MINION")]
    minion: Option<String>,

    /// The archived ones instead of the others
    #[arg(long)]
    archived: bool,

    /// The server's own housekeeping too
    #[arg(long)]
    all: bool,

    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,

    /// Only actions older than this one
    #[arg(long, value_name = "ID")]
    before: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum State {
    /// Some run has not ended
    Open,
    /// Some run has failed
    Failed,
    /// Everything has ended well
    Completed,
}

pub(super) async fn run(args: Args, client: &Client, format: Format) -> Result<ExitCode, Failure> {
    let word = |state: State| match state {
        State::Open => "open",
        State::Failed => "failed",
        State::Completed => "completed",
    };
    let query = ActionQuery {
        before: args.before,
        limit: Some(args.limit),
        state: args.state.map(|state| word(state).to_owned()),
        archived: args.archived,
        internal: args.all,
        user: args.user,
        minion: args.minion,
    };
    let actions = client.actions(&query).await?.actions;
    output::show(format, &actions, || table(&actions, clock::now(), Style::of_stdout()))?;
    Ok(ExitCode::SUCCESS)
}

fn table(actions: &[Action], now: Timestamp, style: Style) -> String {
    let mut table = Table::new(&["ID", "WHEN", "USER", "STATE", "DONE", "FAILED", "TARGET", "NAME"]);
    for action in actions {
        let counts = action.counts;
        let ended = counts.completed + counts.failed + counts.cancelled;
        table.row([
            action.id.to_string(),
            when::ago(action.created.0, now),
            action.user.clone(),
            state(action, now),
            format!("{ended}/{}", counts.total),
            counts.failed.to_string(),
            text::target(&action.target, &action.tgt_type),
            action.name.chars().take(60).collect(),
        ]);
    }
    table.show("There is no such action.", style)
}

/// Where it stands; of what has not ended, what holds it as a whole.
pub(super) fn state(action: &Action, now: Timestamp) -> String {
    match action.ended {
        None if action.paused.is_some() => "paused".into(),
        None if action.due.0 > now && action.counts.queued == action.counts.total => {
            format!("due {}", when::ago(action.due.0, now))
        }
        _ => action.state.clone(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use saltern_api::shape::{Counts, Pause, Time};
    use std::time::Duration;

    pub(crate) const NOW: Timestamp = Timestamp::from_secs(1_794_772_591);

    pub(crate) fn action() -> Action {
        let at = Time(Timestamp::from_secs(1_794_772_591 - 30));
        Action {
            id: 7,
            kind: "package_install".into(),
            name: "install vim".into(),
            state: "open".into(),
            fun: "pkg.install".into(),
            target: "web*".into(),
            tgt_type: "glob".into(),
            user: "root".into(),
            created: at,
            due: at,
            deadline: Time(at.0.plus(Duration::from_secs(86_400))),
            ended: None,
            jid: Some("20261115195601000000".into()),
            counts: Counts { total: 5, queued: 1, running: 1, completed: 2, failed: 1, ..Counts::default() },
            paused: None,
            archived: None,
            late: false,
            internal: false,
            launch: None,
            step: None,
        }
    }

    #[test]
    fn the_list_tells_how_far_each_is() {
        assert_eq!(
            table(&[action()], NOW, Style::PLAIN),
            "\
ID  WHEN      USER  STATE  DONE  FAILED  TARGET  NAME
7   30 s ago  root  open   3/5   1       web*    install vim"
        );
    }

    #[test]
    fn what_holds_an_action_is_its_state() {
        let pause = Pause { at: Time(NOW), by: "ann".into(), why: String::new() };
        assert_eq!(state(&Action { paused: Some(pause), ..action() }, NOW), "paused");
        let counts = Counts { total: 5, queued: 5, ..Counts::default() };
        let due = Time(NOW.plus(Duration::from_secs(10_800)));
        assert_eq!(state(&Action { due, counts, ..action() }, NOW), "due in 3 h");
        assert_eq!(state(&Action { ended: Some(Time(NOW)), state: "failed".into(), ..action() }, NOW), "failed");
    }
}
