//! Definitions whose instants lie in the past, and the proof that each instant was accounted for once.
//!
//! When something is due is not asked of our own cron: every so many seconds is simple enough to be reckoned here.

use crate::ledger::Ledger;
use saltern_testkit::process::Saltern;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Of each definition that are due from the start; more come meanwhile.
pub(crate) const INSTANTS: u64 = 100;

const SECOND: i64 = 1_000_000;
/// Where clocks never change: there a number of seconds is that number all the year round.
const ZONES: [&str; 3] = ["UTC", "Asia/Kolkata", "Asia/Kathmandu"];

struct Plan {
    id: i64,
    every: i64,
    first: i64,
}

/// Definitions, the first so many of which are active.
pub(crate) struct Plans {
    all: Vec<Plan>,
    active: usize,
}

impl Plans {
    /// Has a server make so many definitions: pings of the minion `a`, which is away. Each time is an action, whatever became
    /// of the last one.
    pub(crate) async fn make(server: &Saltern, count: usize) -> Self {
        let mut file = String::from("recurring:\n");
        for number in 0..count {
            let (seconds, zone) = (seconds(number), ZONES[number % ZONES.len()]);
            let _ = writeln!(
                file,
                "- {{name: ping {number:03}, minion: a, cron: '*/{seconds} * * * * *', zone: {zone}, type: function, \
                 params: {{fun: test.ping}}, active: false, overlap: allow, catch_up: all}}"
            );
        }
        let file = server.write("recurring.yml", file);
        let applied = server.cli(&["recurring", "apply", "-f", file.to_str().unwrap()]).await;
        assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
        let list = server.cli_json(&["recurring", "list"]).await;
        let mut ids: Vec<(&str, i64)> = list
            .as_array()
            .unwrap()
            .iter()
            .map(|one| (one["name"].as_str().unwrap(), one["id"].as_i64().unwrap()))
            .collect();
        ids.sort_unstable();
        assert_eq!(ids.len(), count);
        let plan = |(number, (_, id))| Plan { id, every: seconds(number) * SECOND, first: 0 };
        Self { all: ids.into_iter().enumerate().map(plan).collect(), active: 0 }
    }

    /// Lets so many more definitions fire, all at once, from a hundred instants ago on; gives their ids.
    pub(crate) async fn release(&mut self, ledger: &Ledger, count: usize) -> Vec<i64> {
        let now = ledger.rows::<1>("SELECT max(created) FROM recurring").await[0][0];
        let due = &mut self.all[self.active..self.active + count];
        let mut changes = Vec::new();
        for plan in &mut *due {
            plan.first = now - now % plan.every - (INSTANTS as i64 - 1) * plan.every;
            changes.push(format!("UPDATE recurring SET active = 1, next = {} WHERE id = {}", plan.first, plan.id));
        }
        ledger.change(&changes.join("; ")).await;
        self.active += count;
        due.iter().map(|plan| plan.id).collect()
    }

    /// What is wrong in the tables. Nothing is, if every instant of every definition from its first to its next has one row
    /// and was fired as one action, nobody has made an action without a row, and each was told of once.
    pub(crate) async fn faults(&self, ledger: &Ledger) -> Vec<String> {
        let mut faults = Vec::new();
        let (mut accounted, mut fired) = (BTreeSet::new(), BTreeSet::new());
        let rows = "SELECT recurring, planned, CAST(CASE WHEN outcome = 'fired' THEN 1 ELSE 0 END AS BIGINT), \
            coalesce(action, 0) FROM fires";
        for [recurring, planned, is_fired, action] in ledger.rows(rows).await {
            if !accounted.insert([recurring, planned]) {
                faults.push(format!("{planned} of {recurring} has two rows"));
            }
            if is_fired == 0 {
                faults.push(format!("{planned} of {recurring} was not fired"));
            } else if !fired.insert([recurring, action]) {
                faults.push(format!("action {action} of {recurring} is of two instants"));
            }
        }
        let made = ledger.rows("SELECT recurring, id FROM actions WHERE recurring IS NOT NULL").await;
        faults.extend(differences("action", &made.into_iter().collect(), &fired));
        let next = ledger.rows::<2>("SELECT id, coalesce(next, 0) FROM recurring").await;
        let next: BTreeMap<i64, i64> = next.into_iter().map(|[id, next]| (id, next)).collect();
        let mut planned = BTreeSet::new();
        for Plan { id, every, first } in &self.all[..self.active] {
            planned.extend((*first..next[id]).step_by(*every as usize).map(|at| [*id, at]));
            if (next[id] - first) % every != 0 {
                faults.push(format!("{} is no instant of {id}", next[id]));
            }
        }
        faults.extend(differences("instant", &planned, &accounted));
        let told = "SELECT count(*) FROM events WHERE tag LIKE 'saltern/recurring/%/fired'";
        let told = ledger.rows::<1>(told).await[0][0];
        if told != fired.len() as i64 {
            faults.push(format!("{} instants were fired and {told} told of", fired.len()));
        }
        faults
    }

    /// The proof is worth something: whatever goes wrong in tables that were right so far is one more fault.
    pub(crate) async fn faults_are_found(&self, ledger: &Ledger) {
        let of = |number: usize| self.all[number].id;
        let newest = |number: usize| {
            format!("recurring = {0} AND planned = (SELECT max(planned) FROM fires WHERE recurring = {0})", of(number))
        };
        let twin = format!(
            "CREATE TEMP TABLE twin AS SELECT * FROM actions WHERE recurring = {} LIMIT 1; \
             UPDATE twin SET id = (SELECT max(id) + 1 FROM actions); INSERT INTO actions SELECT * FROM twin",
            of(0)
        );
        let mut known = 0;
        for (what, change) in [
            ("an instant that was fired twice", twin),
            ("an instant that was missed", format!("UPDATE fires SET outcome = 'missed' WHERE {}", newest(1))),
            ("an instant that is forgotten", format!("DELETE FROM fires WHERE {}", newest(2))),
            ("an instant that was not planned", format!("UPDATE fires SET planned = planned + 1 WHERE {}", newest(3))),
            ("a definition that is put back", format!("UPDATE recurring SET next = next - 1 WHERE id = {}", of(4))),
            ("rows of nobody", format!("UPDATE fires SET recurring = -recurring WHERE recurring = {}", of(5))),
        ] {
            ledger.change(&change).await;
            let faults = self.faults(ledger).await.len();
            assert!(faults > known, "{what} is not noticed");
            known = faults;
        }
    }
}

/// What is to be accounted for and is not, and the other way round.
fn differences<'a>(
    what: &'a str,
    due: &'a BTreeSet<[i64; 2]>,
    accounted: &'a BTreeSet<[i64; 2]>,
) -> impl Iterator<Item = String> + 'a {
    let forgotten = due.difference(accounted).map(move |[of, which]| format!("{what} {which} of {of} has no row"));
    let made_up = accounted.difference(due).map(move |[of, which]| format!("a row tells of {what} {which} of {of}"));
    forgotten.chain(made_up)
}

fn seconds(number: usize) -> i64 {
    [5, 10, 15, 20][number % 4]
}
