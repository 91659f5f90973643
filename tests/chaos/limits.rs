//! A crowd that must not run all at once, and one of which some hang.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use saltern_swarm::{Options, Swarm};
use saltern_testkit::process::Saltern;

use crate::chance;
use crate::crowd;

/// The limit of scenario 27.
const LIMIT: usize = 200;
/// How much longer than ideal it may take.
const SLACK: f64 = 1.15;
const PATIENCE: Duration = Duration::from_secs(300);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scenario_27_never_more_than_the_limit_run_at_once() {
    let _alone = crowd::alone().await;
    let actions = if chance::is_long() { 10 } else { 4 };
    let (server, swarm) = crowd_at_work("max_running: 200").await;
    let began = Instant::now();
    let mut ids = Vec::new();
    for _ in 0..actions {
        ids.push(crowd::ping_all(&server, &[]).await);
    }
    for id in &ids {
        crowd::ended(&server, *id, PATIENCE).await;
    }
    tell_time("max_running", actions, began, &swarm);
    swarm.halt().await;
    let report = swarm.report();
    assert_eq!(report.jobs.forgotten + report.jobs.double_executions + report.jobs.runs_executed_more_than_once, 0);
    assert!(report.jobs.most_at_once <= LIMIT as u64, "{} ran at once", report.jobs.most_at_once);
    for id in ids {
        assert_eq!(ends(&server, id).await, BTreeMap::from([("completed".to_owned(), minions())]));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scenario_27_never_more_than_the_batch_run_at_once() {
    let _alone = crowd::alone().await;
    let (server, swarm) = crowd_at_work("").await;
    let began = Instant::now();
    let id = crowd::ping_all(&server, &["--batch", "200"]).await;
    crowd::ended(&server, id, PATIENCE).await;
    tell_time("batch", 1, began, &swarm);
    swarm.halt().await;
    assert!(swarm.report().jobs.most_at_once <= LIMIT as u64, "{} ran at once", swarm.report().jobs.most_at_once);
    assert_eq!(ends(&server, id).await, BTreeMap::from([("completed".to_owned(), minions())]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scenario_28_minions_that_hang_in_a_batch_time_out_and_others_take_their_places() {
    const HANGING: usize = 10;
    let _alone = crowd::alone().await;
    let server = Saltern::start("", &["--auto-accept"]).await;
    let crowd = |prefix: &str, count, hang| Options {
        prefix: prefix.into(),
        count,
        hang,
        work: Duration::from_millis(100),
        ..Options::default()
    };
    // Those that hang come first in the order of ids: they take every place of the batch.
    let hanging = crowd::join(&server, crowd("a-", HANGING, HANGING)).await;
    let others = crowd::join(&server, crowd("b-", 90, 0)).await;
    let id = crowd::ping_all(&server, &["--batch", "10", "--job-timeout", "5s"]).await;
    crowd::ended(&server, id, Duration::from_secs(60)).await;
    let runs = crowd::runs(&server, id).await;
    assert_eq!(runs.len(), 100);
    for run in &runs {
        let hangs = run["minion"].as_str().is_some_and(|minion| minion.starts_with("a-"));
        assert_eq!(crowd::end(run), if hangs { "failed(timed_out)" } else { "completed" }, "{run}");
    }
    assert_eq!(hanging.stop().await.jobs.most_at_once, HANGING as u64);
    assert!(others.stop().await.jobs.most_at_once <= 10);
}

/// How many minions scenario 27 has, and how long each works.
fn minions() -> usize {
    if chance::is_long() { 1_000 } else { 500 }
}

fn work() -> Duration {
    if chance::is_long() { Duration::from_secs(1) } else { Duration::from_millis(500) }
}

async fn crowd_at_work(config: &str) -> (Saltern, Swarm) {
    let server = Saltern::start(config, &["--auto-accept"]).await;
    let swarm = crowd::join(&server, Options { count: minions(), work: work(), ..Options::default() }).await;
    (server, swarm)
}

/// Prints how long it took beside the ideal, and asserts it in the long form: the short one shares its machine with others.
fn tell_time(what: &str, actions: usize, began: Instant, swarm: &Swarm) {
    let took = began.elapsed().as_secs_f64();
    let runs = minions() * actions;
    let ideal = runs.div_ceil(LIMIT) as f64 * work().as_secs_f64();
    let most = swarm.report().jobs.most_at_once;
    println!("{what}: {runs} runs in {took:.1} s, ideal {ideal:.1} s ({:.2}), at most {most} at once", took / ideal);
    assert!(!chance::is_long() || took <= ideal * SLACK, "it took {took:.1} s instead of {ideal:.1} s");
}

/// How many runs of an action ended how.
async fn ends(server: &Saltern, action: i64) -> BTreeMap<String, usize> {
    let mut ends = BTreeMap::new();
    for run in crowd::runs(server, action).await {
        *ends.entry(crowd::end(&run)).or_default() += 1;
    }
    ends
}
