//! Many definitions over many minions that are due in the same second. How fast that is is for `make bench PHASE=recurring`.

use crate::house::House;
use crate::ledger::Ledger;
use crate::planner::{Planned, activate, now, ping, prove};
use saltern_calendar::cron::Cron;
use saltern_calendar::zone::Zone;
use saltern_server::app::{EntityKind, EntityRef, RecurringDraft};
use saltern_testkit::fake_minion::{FakeMinion, SignIn, key_named};
use std::time::Duration;

const DEFINITIONS: usize = 100;
const MINIONS: usize = 200;
/// Minions of each definition.
const EACH: usize = 20;

#[tokio::test]
async fn a_hundred_definitions_over_two_hundred_minions_that_are_due_together_all_fire_once() {
    let house = House::open().await;
    for number in 0..MINIONS {
        let id = format!("m{}-{number}", number % (MINIONS / EACH));
        let mut minion = FakeMinion::connect_with(house.requests, &id, key_named("the crowd")).await;
        assert_eq!(minion.auth().await, SignIn::Accepted);
    }
    let ledger = Ledger::sqlite(house.dir.path());
    let due = now().minus(Duration::from_secs(1));
    let mut plans = Vec::new();
    for number in 0..DEFINITIONS {
        let target = EntityRef::new(EntityKind::Target, format!("m{}-*", number % (MINIONS / EACH)));
        let draft = RecurringDraft::new(format!("ping {number}"), target, ping(), "@yearly");
        let id = house.define(RecurringDraft { active: false, ..draft }).await;
        plans.push(Planned { id, cron: Cron::parse("@yearly", "").unwrap(), zone: Zone::UTC, first: due });
    }
    activate(&ledger, &plans).await;
    house.knock().await;
    ledger.until_accounted(i64::try_from(DEFINITIONS).unwrap()).await;
    prove(&ledger, &plans).await;
    let hit = ledger.rows::<1>("SELECT minions FROM fires").await;
    assert!(hit.iter().all(|[minions]| *minions == i64::try_from(EACH).unwrap()), "{hit:?}");
}
