//! `saltern action explain`: why a run stands where it stands, or all runs in groups that stand alike.

use crate::args::Format;
use crate::failure::Failure;
use crate::output::style::{Colour, Style};
use crate::output::table::Table;
use crate::output::{self, text, when};
use saltern_api::client::{Client, RunQuery};
use saltern_api::shape::{Explanation, Run};
use saltern_core::run::RunState;
use saltern_core::time::Timestamp;
use saltern_server::clock;
use serde::Serialize;
use std::process::ExitCode;

/// Runs read at a time.
const PAGE: usize = 1_000;

/// Runs that stand alike.
#[derive(Debug, Serialize)]
struct Group {
    state: String,
    reason: Option<String>,
    waiting_for: Option<String>,
    runs: usize,
    /// One of them, explained
    example: Explanation,
}

pub(super) async fn run(client: &Client, id: i64, minion: Option<&str>, format: Format) -> Result<ExitCode, Failure> {
    if let Some(minion) = minion {
        let explanation = client.explain(id, minion).await?;
        output::show(format, &explanation, || told(&explanation, clock::now(), Style::of_stdout()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut piles = Piles::default();
    let mut after = None;
    loop {
        let query = RunQuery { after, limit: Some(PAGE), ..RunQuery::default() };
        let page = client.runs(id, &query).await?.runs;
        after = page.last().filter(|_| page.len() == PAGE).map(|run| run.minion.clone());
        piles.add(page);
        if after.is_none() {
            break;
        }
    }
    let mut groups = Vec::new();
    for Pile { first, runs } in piles.in_order() {
        let example = client.explain(id, &first.minion).await?;
        let (state, reason, waiting_for) = (first.status.state, first.status.reason, first.status.waiting_for);
        groups.push(Group { state, reason, waiting_for, runs, example });
    }
    output::show(format, &groups, || table(&groups, Style::of_stdout()))?;
    Ok(ExitCode::SUCCESS)
}

/// Runs by where they stand: of each kind one, and how many there are.
#[derive(Debug, Default)]
struct Piles(Vec<Pile>);

#[derive(Debug)]
struct Pile {
    first: Run,
    runs: usize,
}

impl Piles {
    fn add(&mut self, runs: Vec<Run>) {
        for run in runs {
            let alike = |pile: &&mut Pile| {
                let (a, b) = (&pile.first.status, &run.status);
                (&a.state, &a.reason, &a.waiting_for) == (&b.state, &b.reason, &b.waiting_for)
            };
            // A few dozen kinds at most: as many as there are reasons.
            match self.0.iter_mut().find(alike) {
                Some(pile) => pile.runs += 1,
                None => self.0.push(Pile { first: run, runs: 1 }),
            }
        }
    }

    /// In the order of a run's life, the largest first.
    fn in_order(mut self) -> Vec<Pile> {
        let age = |state: &str| RunState::ALL.iter().position(|known| known.as_str() == state);
        self.0.sort_by_key(|pile| (age(&pile.first.status.state), std::cmp::Reverse(pile.runs)));
        self.0
    }
}

fn table(groups: &[Group], style: Style) -> String {
    let mut table = Table::new(&["RUNS", "STATE", "FOR EXAMPLE", "WHY"]);
    for group in groups {
        let run = &group.example.run;
        table.row([group.runs.to_string(), text::state(&run.status), run.minion.clone(), group.example.why.clone()]);
    }
    table.show("It has no runs.", style)
}

/// One run, explained.
pub(in crate::cmd) fn told(explanation: &Explanation, now: Timestamp, style: Style) -> String {
    let run = &explanation.run;
    let head = format!("Action {} on {}: {}", explanation.action, text::clean(&run.minion), text::state(&run.status));
    let mut lines = vec![
        style.paint(Colour::Cyan, &head),
        format!("    Why        {}", text::clean(&explanation.why)),
        format!("    Next       {}", text::clean(&explanation.next)),
        String::new(),
    ];
    let mut table = Table::new(&["WHEN", "WHAT"]);
    for fact in &explanation.facts {
        table.row([fact.at.map_or_else(String::new, |at| when::when(at.0, now)), fact.what.clone()]);
    }
    lines.push(table.show("Nothing has happened yet.", style));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_api::shape::{Fact, RunStatus, Time};

    const NOW: Timestamp = Timestamp::from_secs(1_794_772_591);

    fn run(minion: &str, state: &str, waiting_for: Option<&str>) -> Run {
        let waiting_for = waiting_for.map(str::to_owned);
        Run { minion: minion.into(), status: RunStatus { state: state.into(), waiting_for, ..RunStatus::default() } }
    }

    fn explanation() -> Explanation {
        let at = Some(Time(Timestamp::from_secs(1_794_772_591 - 60)));
        Explanation {
            action: 7,
            run: run("web1", "queued", Some("offline")),
            why: "it waits for the minion, which is not connected".into(),
            facts: vec![
                Fact { at, what: "asked for by root".into() },
                Fact { at: None, what: "the minion is not accepted any more".into() },
            ],
            next: "sent when the minion is back".into(),
        }
    }

    #[test]
    fn runs_that_stand_alike_are_one_group() {
        let mut piles = Piles::default();
        piles.add(vec![run("a", "completed", None), run("b", "queued", Some("window"))]);
        piles.add(vec![run("c", "queued", Some("offline")), run("d", "queued", Some("offline"))]);
        let piles: Vec<_> = piles.in_order().into_iter().map(|pile| (pile.first.minion, pile.runs)).collect();
        assert_eq!(piles, [("c".to_owned(), 2), ("b".to_owned(), 1), ("a".to_owned(), 1)]);
    }

    #[test]
    fn a_group_is_told_by_one_of_its_runs() {
        let groups = [Group {
            state: "queued".into(),
            reason: None,
            waiting_for: Some("offline".into()),
            runs: 12,
            example: explanation(),
        }];
        assert_eq!(
            table(&groups, Style::PLAIN),
            "\
RUNS  STATE             FOR EXAMPLE  WHY
12    queued (offline)  web1         it waits for the minion, which is not connected"
        );
    }

    #[test]
    fn one_run_is_explained_with_what_has_happened() {
        assert_eq!(
            told(&explanation(), NOW, Style::PLAIN),
            "\
Action 7 on web1: queued (offline)
    Why        it waits for the minion, which is not connected
    Next       sent when the minion is back

WHEN                                WHAT
2026-11-15 19:55:31 UTC (60 s ago)  asked for by root
                                    the minion is not accepted any more"
        );
    }
}
