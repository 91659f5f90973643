//! A server with a swarm of light minions signed in, and what is asked of it.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use saltern_swarm::{Options, Swarm};
use saltern_testkit::process::Saltern;
use saltern_testkit::wait;
use serde_json::Value;
use tokio::sync::{Mutex, MutexGuard};

/// How long a crowd may take to sign in and to be known.
const SIGN_IN: Duration = Duration::from_secs(120);
/// Most runs that one listing shows.
const PAGE: usize = 1_000;

/// One test of this file at a time: each loads the machine, and all of them together only load each other.
pub(crate) async fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::const_new(());
    ALONE.lock().await
}

/// A swarm of this server, once every minion of it is up and nearly all can acknowledge: some may be told to lose what would
/// enable them.
pub(crate) async fn join(server: &Saltern, options: Options) -> Swarm {
    raise_open_files_limit();
    let prefix = options.prefix.clone();
    let options = Options { ret_port: server.ports().return_port, pillar: false, ..options };
    let swarm = Swarm::start(options).await.expect("the options make sense");
    assert!(swarm.all_ready(SIGN_IN).await, "the swarm does not come up: {:?}", swarm.report());
    wait::until_ok("the minions to be able to acknowledge", SIGN_IN, async || {
        let minions = server.cli_json(&["minion", "list"]).await;
        let is_mine = |minion: &&Value| minion["id"].as_str().is_some_and(|id| id.starts_with(&prefix));
        let mine: Vec<&Value> = minions.as_array().into_iter().flatten().filter(is_mine).collect();
        let able = mine.iter().filter(|minion| minion["ack_method"] != "none").count();
        if able as u64 * 10 >= swarm.progress().minions * 9 { Ok(()) } else { Err(format!("{able} of {}", mine.len())) }
    })
    .await;
    swarm
}

/// Asks for `test.ping` on every minion and tells the action's id; `rules` are further flags.
pub(crate) async fn ping_all(server: &Saltern, rules: &[&str]) -> i64 {
    let mut command = vec!["action", "create", "function", "*", "fun=test.ping"];
    command.extend(rules);
    let created = server.cli_json(&command).await;
    created["id"].as_i64().expect("an accepted action has an id")
}

/// Waits until an action has ended.
pub(crate) async fn ended(server: &Saltern, action: i64, patience: Duration) {
    wait::until_ok("the action to end", patience, async || {
        let shown = server.cli_json(&["action", "show", &action.to_string()]).await;
        if shown["ended"].is_string() { Ok(()) } else { Err(shown["counts"].to_string()) }
    })
    .await;
}

/// Every run of an action, in the order of minions.
pub(crate) async fn runs(server: &Saltern, action: i64) -> Vec<Value> {
    let (id, limit) = (action.to_string(), PAGE.to_string());
    let mut runs: Vec<Value> = Vec::new();
    loop {
        let after = runs.last().map(|run| run["minion"].as_str().unwrap_or_default().to_owned());
        let mut command = vec!["action", "runs", &id, "--limit", &limit];
        command.extend(after.iter().flat_map(|after| ["--after", after]));
        let page = server.cli_json(&command).await;
        let page = page.as_array().cloned().expect("an action has a list of runs");
        let is_last = page.len() < PAGE;
        runs.extend(page);
        if is_last {
            return runs;
        }
    }
}

/// How a run ended, or where it stands: `completed`, `failed(lost)`.
pub(crate) fn end(run: &Value) -> String {
    let state = run["state"].as_str().unwrap_or_default();
    match run["reason"].as_str() {
        Some(reason) => format!("{state}({reason})"),
        None => state.to_owned(),
    }
}

/// Resident memory of the server in MiB, now and at its highest.
pub(crate) fn memory_mib(server: &Saltern) -> (u64, u64) {
    let pid = server.pid().expect("the server runs");
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the server runs");
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).expect("the kernel tells") / 1024
    };
    (field("VmRSS:"), field("VmHWM:"))
}

/// Two connections for each light minion are more than a shell usually allows.
fn raise_open_files_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}
