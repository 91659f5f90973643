//! Servers that are killed at random while ten thousand instants come: none is fired twice, none is forgotten.

use crate::house::House;
use crate::ledger::Ledger;
use crate::planner::{Planned, activate, meddle, on_a, prove};
use saltern_core::ids::RecurringId;
use saltern_core::value::Value;
use saltern_server::app::RecurringDraft;
use saltern_testkit::postgres;
use std::hash::{BuildHasher as _, Hasher as _};
use std::time::Duration;

const DEFINITIONS: u64 = 100;
/// Of each, at the start; more come meanwhile.
const INSTANTS: u64 = 100;
const FIRES: i64 = 10_000;
/// Of one of two servers: where the first of them was killed, the other one waits until that is certain
const KILLS_OF_TWO: i64 = 8;
/// Of the only server
const KILLS: i64 = 20;

/// Numbers that are different each time.
struct Dice(std::hash::RandomState, u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.1 += 1;
        let mut hasher = self.0.build_hasher();
        hasher.write_u64(self.1);
        hasher.finish() % limit
    }

    /// So many instants later a server is killed, if that is to happen so often.
    fn distance(&mut self, kills: i64) -> i64 {
        let most = u64::try_from(FIRES / kills).unwrap();
        1 + i64::try_from(self.below(most)).unwrap()
    }
}

/// Definitions of all kinds that have not fired for a hundred instants.
async fn plans(house: &House) -> Vec<Planned> {
    house.knows_a().await;
    let mut plans = Vec::new();
    for number in 0..DEFINITIONS {
        let seconds = [5, 10, 15, 20][usize::try_from(number % 4).unwrap()];
        let zone = ["UTC", "Europe/Prague", "Australia/Lord_Howe"][usize::try_from(number % 3).unwrap()];
        let draft = on_a(&format!("ping {number}"), &format!("*/{seconds} * * * * *"));
        let draft = RecurringDraft { zone: zone.into(), ..draft };
        plans.push(house.plan(draft, Duration::from_secs(seconds * INSTANTS)).await);
    }
    plans
}

#[tokio::test]
async fn two_servers_of_which_one_is_killed_again_and_again_fire_10_000_instants_once_each() {
    let Some(url) = tokio::task::spawn_blocking(postgres::fresh_database).await.unwrap() else { return };
    let settings =
        |name: &str| vec![("database".to_owned(), Value::from(url.as_str())), ("id".to_owned(), name.into())];
    let one = House::furnished(settings("one"), |_| {}).await;
    let plans = plans(&one).await;
    let mut servers = [one, House::furnished(settings("other"), |_| {}).await];
    let ledger = Ledger::postgres(&url).await;
    activate(&ledger, &plans).await;
    // Only one of the servers fires by itself. Both account for what is due when somebody looks after a definition; so
    // they meet at the same instants all the time, from both ends of the list.
    let ids: Vec<RecurringId> = plans.iter().map(|plan| plan.id).collect();
    let backwards: Vec<RecurringId> = ids.iter().rev().copied().collect();
    let mut meddling = [meddle(&servers[0], ids.clone()), meddle(&servers[1], backwards)];
    let mut dice = Dice(std::hash::RandomState::new(), 0);
    for _ in 0..KILLS_OF_TWO {
        ledger.until_accounted(ledger.accounted().await + dice.distance(KILLS_OF_TWO)).await;
        let victim = usize::try_from(dice.below(2)).unwrap();
        servers[victim].crash().await;
        let again = meddle(&servers[victim], ids.clone());
        std::mem::replace(&mut meddling[victim], again).abort();
    }
    ledger.until_accounted(FIRES).await;
    for (server, meddling) in servers.iter_mut().zip(&meddling) {
        meddling.abort();
        server.kill().await;
    }
    prove(&ledger, &plans).await;
}

#[tokio::test]
async fn a_server_that_is_killed_again_and_again_fires_10_000_instants_once_each() {
    let mut server = House::open().await;
    let plans = plans(&server).await;
    let ledger = Ledger::sqlite(server.dir.path());
    activate(&ledger, &plans).await;
    server.knock().await;
    let mut dice = Dice(std::hash::RandomState::new(), 0);
    for _ in 0..KILLS {
        ledger.until_accounted(ledger.accounted().await + dice.distance(KILLS)).await;
        server.crash().await;
    }
    ledger.until_accounted(FIRES).await;
    server.kill().await;
    prove(&ledger, &plans).await;
}
