//! `kill -9` of servers while ten thousand instants of what recurs come: none is fired twice, none is forgotten.
//!
//! The instants lie in the past and are caught up with, a batch at a time; in the middle of each batch a server is killed and started
//! again. What is asserted is read from the tables when all servers are dead.
//!
//! `SALTERN_CHAOS_SEED` brings the same moments again.

#![expect(clippy::unwrap_used, reason = "a helper that meets the unexpected fails its test")]

#[path = "../chaos/chance.rs"]
mod chance;
#[path = "../../crates/server/tests/schedule/ledger.rs"]
mod ledger;
mod pair;
mod plans;

use chance::Chance;
use ledger::Ledger;
use pair::Pair;
use plans::{INSTANTS, Plans};
use saltern_testkit::fake_minion::FakeMinion;
use saltern_testkit::postgres;
use saltern_testkit::process::Saltern;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::sync::{Mutex, MutexGuard};

const FIRES: i64 = 10_000;
/// Of one of two servers
const KILLS_OF_TWO: usize = 6;
/// Definitions that become due together while both live, and while one of them does
const BATCH_OF_TWO: usize = 16;
const BATCH_OF_ONE: usize = 3;
/// Of the only server
const KILLS: usize = 15;
const BATCH: usize = 7;

/// One test at a time: each loads the machine, and both together only load each other.
async fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::const_new(());
    ALONE.lock().await
}

fn chance() -> Chance {
    let seed = chance::seed();
    println!("seed {seed}");
    Chance::new(seed)
}

/// The minion `a` is known to a server, and away.
async fn knows_a(server: &Saltern) {
    FakeMinion::accepted(SocketAddr::from((Ipv4Addr::LOCALHOST, server.ports().return_port)), "a").await;
}

/// Waits until some of the instants that have just become due are accounted for: a moment in the middle of the work.
async fn amidst(ledger: &Ledger, chance: &mut Chance, definitions: usize) {
    let due = INSTANTS * definitions as u64;
    let more = chance.between(Duration::from_secs(1), Duration::from_secs(due)).as_secs();
    ledger.until_accounted(ledger.accounted().await + more as i64).await;
}

/// Everything is right in the tables, and if it were not it would show.
async fn prove(plans: &Plans, ledger: &Ledger) {
    assert_eq!(plans.faults(ledger).await, Vec::<String>::new());
    plans.faults_are_found(ledger).await;
}

#[tokio::test]
async fn two_servers_of_which_one_is_killed_again_and_again_fire_10_000_instants_once_each() {
    let Some(url) = tokio::task::spawn_blocking(postgres::fresh_database).await.unwrap() else { return };
    let _alone = alone().await;
    let mut chance = chance();
    let mut pair = Pair::start(&url).await;
    let mut plans = Plans::make(&pair.servers[0], KILLS_OF_TWO * BATCH_OF_TWO + 2 * BATCH_OF_ONE).await;
    let ledger = Ledger::postgres(&url).await;
    pair::sign_rows(&ledger).await;
    for _ in 0..KILLS_OF_TWO {
        let due = plans.release(&ledger, BATCH_OF_TWO).await;
        // Only one of the servers fires by itself. Both account for what is due when somebody looks after a definition, so
        // they meet at the same instants.
        let clients = [0, 1].map(|server| pair.look_after(server, &due));
        amidst(&ledger, &mut chance, BATCH_OF_TWO).await;
        let victim = usize::from(chance.between(Duration::ZERO, Duration::from_secs(2)) < Duration::from_secs(1));
        pair.servers[victim].kill9();
        pair.servers[victim].launch().await;
        for client in clients {
            client.join_all().await;
        }
    }
    let both = pair::signed(&ledger).await;
    println!("while both lived: {both:?}");
    assert!(both.iter().all(|count| *count > 0), "both take part: {both:?}");
    // The first is gone and nobody asks for anything: the other one takes its place.
    let first = pair::first(&ledger).await;
    pair.servers[first].kill9();
    let due = plans.release(&ledger, BATCH_OF_ONE).await;
    pair::until_settled(&ledger, &due, 1 - first).await;
    // And the other way round, when somebody asks.
    pair.servers[first].launch().await;
    pair.servers[1 - first].kill9();
    let due = plans.release(&ledger, BATCH_OF_ONE).await;
    pair.look_after(first, &due).join_all().await;
    pair::until_settled(&ledger, &due, first).await;
    ledger.until_accounted(FIRES).await;
    pair.servers[first].kill9();
    pair::until_gone(&ledger).await;
    println!("in all: {:?}", pair::signed(&ledger).await);
    prove(&plans, &ledger).await;
}

#[tokio::test]
async fn a_server_that_is_killed_again_and_again_fires_10_000_instants_once_each() {
    let _alone = alone().await;
    let mut chance = chance();
    let mut server = Saltern::start("", &["--auto-accept"]).await;
    knows_a(&server).await;
    let mut plans = Plans::make(&server, KILLS * BATCH).await;
    for _ in 0..KILLS {
        // Nobody else has the file open when the server dies: what it leaves is for the next one to put in order.
        plans.release(&Ledger::sqlite(server.root()), BATCH).await;
        server.kill9();
        server.launch().await;
        amidst(&Ledger::sqlite(server.root()), &mut chance, BATCH).await;
    }
    let ledger = Ledger::sqlite(server.root());
    ledger.until_accounted(FIRES).await;
    server.kill9();
    prove(&plans, &ledger).await;
}
