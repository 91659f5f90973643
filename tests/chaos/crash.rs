//! The crash test: thousands of runs while the server is killed again and again, and not one of them is lost, doubled or lied about.

use std::time::{Duration, Instant};

use saltern_swarm::{Options, Swarm};
use saltern_testkit::process::{self, Saltern};
use saltern_testkit::wait;
use serde_json::Value;
use tokio::sync::Mutex;

use crate::chance::{self, Chance};
use crate::crowd;
use crate::verdict::Verdict;

/// Less than a run takes: one whose acknowledgement got lost is sent again while it runs, and must not run twice.
const CONFIG: &str = "ack_timeout: 1";
const WORK: Duration = Duration::from_millis(1_200);
/// How long the server lives between two kills.
const LEAST_LIFE: Duration = Duration::from_millis(300);
const MOST_LIFE: Duration = Duration::from_secs(5);
/// What the engine promises: nothing is open so long after its deadline.
const GRACE: Duration = Duration::from_secs(5);
/// How long a command is repeated against a server that is killed meanwhile.
const PATIENCE: Duration = Duration::from_secs(120);
/// How an action with a due time is put off.
const PUT_OFF: Duration = Duration::from_secs(3);

/// The kinds of actions, in turn: each with other rules, and all of them end by the same deadline.
const RULES: [&[&str]; 5] = [
    &["--when-back"],
    &["--when-back", "--batch", "25%"],
    &["--when-back", "--at", "+3s"],
    &["--offline", "retry:30:1s", "--retry", "3"],
    &[],
];

/// An action that the server has accepted.
struct Accepted {
    id: i64,
    /// When everything of it must have ended
    limit: Instant,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_run_ends_once_and_truthfully_while_the_server_is_killed() {
    let _alone = crowd::alone().await;
    let seed = chance::seed();
    let (minions, actions) = (chance::size("MINIONS", 100, 500), chance::size("ACTIONS", 10, 20));
    let (kills, deadline) = (chance::size("KILLS", 3, 10), chance::size("DEADLINE", 30, 120));
    println!("seed {seed}: {minions} minions, {actions} actions, {kills} kills, deadline {deadline} s");
    let server = Saltern::start(CONFIG, &["--auto-accept"]).await;
    let meanwhile = (LEAST_LIFE + MOST_LIFE) / 2 * kills as u32;
    let options = Options {
        count: minions,
        seed,
        lose_acks: 0.05,
        fail_rate: 0.1,
        // About one in twenty loses its connections by itself, beside those that every kill costs.
        churn: minions as f64 * 0.05 / (meanwhile.as_secs_f64() + deadline as f64 / 2.0),
        // What is lost on the way is sent again.
        drop_publications: 0.02,
        work: WORK,
        ..Options::default()
    };
    let swarm = crowd::join(&server, options).await;

    let began = Instant::now();
    let server = Mutex::new(server);
    let mut chance = Chance::new(seed);
    let gaps: Vec<Duration> =
        (0..actions).map(|_| chance.between(Duration::ZERO, meanwhile * 2 / actions as u32)).collect();
    let lives: Vec<Duration> = (0..kills).map(|_| chance.between(LEAST_LIFE, MOST_LIFE)).collect();
    let (accepted, ()) = tokio::join!(submit(&server, &gaps, deadline), kill_again_and_again(&server, &lives));
    let server = server.into_inner();
    let killed_until = Instant::now();
    until_ended(&server, &accepted, killed_until).await;
    let took = began.elapsed();
    until_quiet(&swarm).await;
    swarm.halt().await;

    let ids: Vec<i64> = accepted.iter().map(|action| action.id).collect();
    let verdict = Verdict::reach(&server, &swarm, &ids).await;
    let report = swarm.report();
    println!("{}", verdict.table());
    println!(
        "  seed {seed}, {kills} kills, {:.1} s, the last {:.1} s without; {} deliveries of known jobs, {} acks lost, \
         {} connections lost, {} returns repeated",
        took.as_secs_f64(),
        (took - (killed_until - began)).as_secs_f64(),
        report.jobs.repeated,
        report.acks.lost,
        report.churned,
        report.returns.repeated,
    );
    assert_eq!(ids.len(), actions);
    verdict.assert_agreement();
}

/// Asks for one action after the other, each after its gap.
async fn submit(server: &Mutex<Saltern>, gaps: &[Duration], deadline: usize) -> Vec<Accepted> {
    let mut accepted = Vec::new();
    for (number, gap) in gaps.iter().enumerate() {
        // No waiting for a fact: when it is asked for is what chance decides.
        tokio::time::sleep(*gap).await;
        let rules = RULES[number % RULES.len()];
        let id = create(server, &format!("chaos-{number}"), rules, deadline).await;
        let put_off = if rules.contains(&"--at") { PUT_OFF } else { Duration::ZERO };
        let limit = Instant::now() + put_off + Duration::from_secs(deadline as u64) + GRACE;
        accepted.push(Accepted { id, limit });
    }
    accepted
}

/// Asks for an action until it is accepted. An answer that got lost in a kill may have been a yes: the action is looked for
/// by its name before it is asked for again.
async fn create(server: &Mutex<Saltern>, name: &str, rules: &[&str], deadline: usize) -> i64 {
    let deadline = deadline.to_string();
    let mut command =
        vec!["action", "create", "function", "*", "fun=test.ping", "--name", name, "--deadline", &deadline];
    command.extend(rules);
    wait::until_ok("the action to be accepted", PATIENCE, async || match cli(server, &command).await {
        Ok(created) => Ok(created["id"].as_i64().expect("an accepted action has an id")),
        Err(refusal) => {
            let list = cli(server, &["action", "list", "--limit", "1000"]).await?;
            let found = list.as_array().into_iter().flatten().find(|action| action["name"] == name);
            found.and_then(|action| action["id"].as_i64()).ok_or(refusal)
        }
    })
    .await
}

/// Runs a command without holding the server: it may be killed while the command speaks to it.
async fn cli(server: &Mutex<Saltern>, arguments: &[&str]) -> Result<Value, String> {
    let mut command = server.lock().await.cli_command(arguments);
    command.args(["--out", "json"]);
    let output = process::run_to_end(command, PATIENCE).await;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.success() {
        true => serde_json::from_slice(&output.stdout).map_err(|error| format!("{error}: {said}")),
        false => Err(said),
    }
}

/// Kills the server at the end of each of its lives, and starts it again.
async fn kill_again_and_again(server: &Mutex<Saltern>, lives: &[Duration]) {
    for life in lives {
        // No waiting for a fact: the moment is what chance decides.
        tokio::time::sleep(*life).await;
        let mut server = server.lock().await;
        server.kill9();
        server.launch().await;
    }
}

/// Waits until every action has ended; fails as soon as one is open past its deadline.
async fn until_ended(server: &Saltern, accepted: &[Accepted], killed_until: Instant) {
    wait::until_ok("every action to end", Duration::from_secs(3600), async || {
        let asked = Instant::now();
        let list = server.cli_json(&["action", "list", "--limit", "1000"]).await;
        let list: Vec<&Value> = list.as_array().into_iter().flatten().collect();
        let mut open = Vec::new();
        for action in accepted {
            let shown = list.iter().find(|shown| shown["id"] == action.id).expect("what was accepted is still there");
            if shown["ended"].is_null() {
                let limit = action.limit.max(killed_until + GRACE);
                assert!(asked < limit, "open {:?} after its deadline: {shown}", asked - limit + GRACE);
                open.push(format!("{} {}", action.id, shown["counts"]));
            }
        }
        if open.is_empty() { Ok(()) } else { Err(open.join(", ")) }
    })
    .await;
}

/// Waits until the swarm has nothing left to do and to say.
async fn until_quiet(swarm: &Swarm) {
    wait::until_ok("every return to be answered", PATIENCE, async || {
        let now = swarm.progress();
        if now.running == 0 && now.unconfirmed == 0 { Ok(()) } else { Err(format!("{now:?}")) }
    })
    .await;
}
