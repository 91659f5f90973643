//! One minion returns far too much, and nobody else notices.

use std::time::Duration;

use saltern_e2e::native::NativeMinion;
use saltern_swarm::Options;
use saltern_testkit::process::Saltern;
use saltern_testkit::wait;

use crate::chance;
use crate::crowd;

const BYTES: usize = 50_000_000;
/// How many minions answer pings meanwhile.
const OTHERS: usize = 20;
/// How long a ping may take beside it: far less than the huge return does on a busy machine.
const PING: Duration = Duration::from_secs(5);
/// How much more memory than before the server may ever have had, however many huge returns came: room for a few copies of
/// what is kept of one, and for an allocator that takes its time.
const MOST_MORE_MIB: u64 = 200;
const PATIENCE: Duration = Duration::from_secs(180);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scenario_25_a_return_of_50_mb_delays_nobody_and_memory_stays_bounded() {
    let _alone = crowd::alone().await;
    let server = Saltern::start("", &["--auto-accept"]).await;
    let big = NativeMinion::start("big", server.ports(), "");
    let swarm = crowd::join(&server, Options { count: OTHERS, ..Options::default() }).await;
    wait::until("the native minion to answer", PATIENCE, || async {
        server.cli_json(&["run", "-t", "5", "big", "test.ping"]).await["big"] == true
    })
    .await;
    let (before, _) = crowd::memory_mib(&server);
    for round in 0..chance::size("HUGE", 3, 10) {
        let command = format!("head -c {BYTES} /dev/zero | tr '\\0' x");
        let job = server.cli_json(&["run", "--async", "big", "cmd.run", &command]).await;
        let jid = job["jid"].as_str().expect("an accepted job has an id").to_owned();
        let pings = std::cell::Cell::new(0);
        wait::until_ok("the huge return", PATIENCE, async || {
            let began = std::time::Instant::now();
            let answers = server.cli_json(&["run", "-t", "10", "swarm-*", "test.ping"]).await;
            assert_eq!(answers.as_object().map(|all| all.values().filter(|one| **one == true).count()), Some(OTHERS));
            assert!(began.elapsed() < PING, "a ping took {:?} beside a huge return", began.elapsed());
            pings.set(pings.get() + 1);
            let shown = server.cli_json(&["action", "show", &job["action"].to_string()]).await;
            if shown["ended"].is_string() { Ok(()) } else { Err(shown["counts"].to_string()) }
        })
        .await;
        let kept = server.cli_json(&["job", "show", &jid]).await["returns"]["big"].clone();
        let text = kept["return"].as_str().unwrap_or_default();
        let is_whole = text.len() == BYTES && text.bytes().all(|byte| byte == b'x');
        let notice: String = text.chars().filter(|character| *character != 'x').collect();
        assert!(is_whole || !notice.is_empty(), "{} bytes without a word on the rest", text.len());
        let (now, most) = crowd::memory_mib(&server);
        println!(
            "round {round}: {} bytes kept{}, {} pings of {OTHERS} meanwhile; {before} MiB before, {now} MiB now, {most} MiB at most",
            text.len(),
            if is_whole { String::new() } else { format!(" ({notice})") },
            pings.get(),
        );
    }
    let (_, most) = crowd::memory_mib(&server);
    assert!(most <= before + MOST_MORE_MIB, "{before} MiB before, {most} MiB at most");
    drop(big);
    swarm.halt().await;
}
