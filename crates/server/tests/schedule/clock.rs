//! Clocks that are put forward or back by an hour: nothing is fired twice, and nothing is left out.
//!
//! A test cannot change the machine's clock. To put all times of the tables back by an hour is the same for the server as
//! to have its clock put forward by one, and the other way round.

use crate::house::{House, caller};
use crate::ledger::Ledger;
use crate::planner::{Planned, activate, now, on_a, prove};
use saltern_core::time::Timestamp;
use saltern_server::app::{ANY_VERSION, RecurringDraft};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);
/// Larger than any distance between rows: they are moved over each other in two steps.
const ASIDE: i64 = 1 << 60;

/// Which way the clock is put.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Forward,
    Back,
}

/// Puts the clock by an hour, for the server and for the plan.
async fn put(ledger: &Ledger, plan: &mut Planned, step: Step) {
    let micros = i64::try_from(HOUR.as_micros()).unwrap();
    let by = if step == Step::Forward { -micros } else { micros };
    ledger
        .change(&format!(
            "UPDATE recurring SET next = next + {by}, created = created + {by}, changed = changed + {by}; \
             UPDATE fires SET planned = planned - {ASIDE}, at = at + {by}; \
             UPDATE fires SET planned = planned + {ASIDE} + {by}; \
             UPDATE actions SET created = created + {by}, due = due + {by}, deadline = deadline + {by}"
        ))
        .await;
    plan.first = Timestamp(plan.first.0 + by);
}

/// A ping each minute that has just fired for the first time.
async fn each_minute() -> (House, Ledger, Planned) {
    let house = House::open().await;
    house.knows_a().await;
    let plan = house.plan(on_a("each minute", "* * * * *"), Duration::from_secs(60)).await;
    let ledger = Ledger::sqlite(house.dir.path());
    activate(&ledger, std::slice::from_ref(&plan)).await;
    house.knock().await;
    ledger.until_accounted(1).await;
    (house, ledger, plan)
}

/// Waits until the server has looked at what is due: it fires something else that is.
async fn has_looked(house: &House, ledger: &Ledger) {
    let witness = house.define(on_a(&format!("witness {}", now().0), "* * * * * *")).await;
    let fires = format!("SELECT count(*) FROM fires WHERE recurring = {witness}");
    saltern_testkit::wait::until("the witness", crate::ledger::LONG, async || {
        ledger.rows::<1>(&fires).await[0][0] >= 2
    })
    .await;
    house.app().delete_recurring(&caller(), witness, ANY_VERSION).await.unwrap();
    let forget = "DELETE FROM fires WHERE recurring = {}; DELETE FROM actions WHERE recurring = {}";
    ledger.change(&forget.replace("{}", &witness.to_string())).await;
}

/// Forward, back, and forward again: to where it was.
async fn there_and_back(house: &mut House, ledger: &Ledger, plan: &mut Planned, is_down: bool) {
    let fires = format!("SELECT count(*) FROM fires WHERE recurring = {}", plan.id);
    let fires = async || ledger.rows::<1>(&fires).await[0][0];
    for step in [Step::Forward, Step::Back, Step::Forward] {
        if is_down {
            house.kill().await;
        }
        let before = fires().await;
        put(ledger, plan, step).await;
        if is_down {
            house.reopen().await;
        }
        has_looked(house, ledger).await;
        let more = fires().await - before;
        // A minute may begin at any time.
        match step {
            Step::Forward if before < 10 => assert!((60..=62).contains(&more), "{more} in the hour that was skipped"),
            Step::Forward => assert!((0..=2).contains(&more), "{more} that had been accounted for"),
            Step::Back => assert_eq!(more, 0, "in the hour that comes again"),
        }
    }
    // Nobody writes while it is proven.
    house.kill().await;
    prove(ledger, std::slice::from_ref(plan)).await;
    house.reopen().await;
    let cron = "*/30 * * * * *";
    let faster = RecurringDraft { cron: cron.into(), ..on_a("each minute", cron) };
    let newest = "SELECT max(planned) FROM fires";
    let newest = Timestamp(ledger.rows::<1>(newest).await[0][0]);
    let changed = house.app().put_recurring(&caller(), plan.id, faster, ANY_VERSION).await.unwrap();
    assert!(changed.recurring.next.unwrap() > newest, "a change plans nothing that was accounted for");
}

#[tokio::test]
async fn a_clock_that_is_put_by_an_hour_under_a_running_server_fires_nothing_twice() {
    let (mut house, ledger, mut plan) = each_minute().await;
    there_and_back(&mut house, &ledger, &mut plan, false).await;
}

#[tokio::test]
async fn a_clock_that_was_put_by_an_hour_while_the_server_was_down_fires_nothing_twice() {
    let (mut house, ledger, mut plan) = each_minute().await;
    there_and_back(&mut house, &ledger, &mut plan, true).await;
}
