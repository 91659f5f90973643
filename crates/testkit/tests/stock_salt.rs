//! The harness itself, proven with Salt on both sides: stock minions against a stock master.

use std::time::Duration;

use saltern_testkit::salt::{self, Line, StockMaster, StockMinion};
use saltern_testkit::wait;

const PATIENCE: Duration = Duration::from_secs(90);

/// Waits until `salt '*' test.ping` has an answer of every minion.
async fn all_answer(master: &StockMaster, minions: &[StockMinion]) {
    wait::until_ok("every minion to answer a ping", PATIENCE, async || {
        let pong = master.cli("salt", &["*", "test.ping", "-t", "2", "--static", "--out", "json"]).await;
        let answers: serde_json::Value = serde_json::from_slice(&pong.stdout).unwrap_or_default();
        let all = minions.iter().all(|minion| answers[minion.id()] == true);
        if all { Ok(()) } else { Err(answers.to_string()) }
    })
    .await;
}

#[tokio::test]
async fn stock_minions_of_every_line_answer_a_stock_master_and_come_back() {
    let versions = salt::versions();
    let Some(newest) = versions.iter().find(|salt| salt.line == Line::L3008) else { return };
    let master = StockMaster::start(newest, "").await;
    let start = |salt: &salt::Salt| StockMinion::start(salt, &format!("m{}", salt.line), master.ports(), "");
    let mut minions: Vec<StockMinion> = versions.iter().map(start).collect();
    all_answer(&master, &minions).await;

    for minion in &mut minions {
        assert!(minion.public_key().exists());
        minion.kill();
        assert!(!minion.is_running());
        minion.launch();
    }
    all_answer(&master, &minions).await;

    // One is enough here: a stock minion takes its time to leave.
    if let Some(mut minion) = minions.pop() {
        minion.stop().await;
        assert!(!minion.is_running());
    }
}

#[tokio::test]
async fn a_minion_without_a_master_keeps_running_and_logs() {
    for salt in salt::versions() {
        let minion = StockMinion::start(&salt, "alone", saltern_testkit::ports::pair(), "grains:\n  role: web");
        wait::until("a line in its log", PATIENCE, || std::future::ready(!minion.log().is_empty())).await;
        let grain = minion.call(&["--local", "--out", "json", "grains.get", "role"]).await;
        let grain: serde_json::Value = serde_json::from_slice(&grain.stdout).unwrap();
        assert_eq!(grain["local"], "web");
        assert!(minion.is_running());
    }
}
