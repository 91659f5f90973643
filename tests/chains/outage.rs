//! The server is killed again and again while chains are under way: all of them end, nothing is done twice, and what is told is
//! what the machines' own files say.

use crate::chance::{self, Chance};
use crate::machine::Machine;
use crate::town::{Town, script, turn};
use saltern_testkit::process::{self, Saltern};
use saltern_testkit::{salt, wait};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

const NATIVES: usize = 16;
const STEPS: usize = 3;
/// Machines of one launch.
const EACH: usize = 4;
/// How long the server lives between two kills.
const LEAST_LIFE: Duration = Duration::from_millis(500);
const MOST_LIFE: Duration = Duration::from_secs(8);
/// How long a command is repeated against a server that is killed meanwhile, and launches may take in all.
const PATIENCE: Duration = Duration::from_secs(300);

/// A launch that was accepted, and where it is to be done.
struct Accepted {
    number: usize,
    id: i64,
    machines: Vec<String>,
}

#[tokio::test]
async fn every_launch_ends_once_and_truthfully_while_the_server_is_killed() {
    let _turn = turn().await;
    let (seed, launches) = (chance::seed(), chance::size("LAUNCHES", 50, 50));
    let kills = chance::size("KILLS", 5, 10);
    println!("seed {seed}: {launches} launches, {kills} kills");
    let natives: Vec<String> = (1..=NATIVES).map(|number| format!("n{number}")).collect();
    let natives: Vec<&str> = natives.iter().map(String::as_str).collect();
    let Some(mut town) = Town::open(&natives, &[]).await else { return };
    if let Some(salt) = salt::versions().last() {
        town.machines.push(Machine::stock(salt, "m4", town.server.ports(), &[]));
        town.all_are_ready().await;
    }

    let mut chance = Chance::new(seed);
    let mut draw = |most: usize| {
        let micros = chance.between(Duration::ZERO, Duration::from_micros(most as u64)).as_micros();
        (micros as usize).min(most - 1)
    };
    let mut wanted = Vec::new();
    for number in 0..launches {
        let step = |step: usize| script(&format!("echo {number}.{step} >> \"$NOTES\"; sleep 0.1"));
        town.chain(&format!("chain {number}"), json!((1..=STEPS).map(step).collect::<Vec<_>>())).await;
        let mut ids: Vec<String> = town.ids().into_iter().map(str::to_owned).collect();
        let mine: Vec<String> = (0..EACH).map(|_| ids.swap_remove(draw(ids.len()))).collect();
        wanted.push(mine);
    }
    let lives: Vec<Duration> = (0..kills).map(|_| chance.between(LEAST_LIFE, MOST_LIFE)).collect();
    let gap = lives.iter().sum::<Duration>() / launches as u32;

    let spare = Saltern::prepare("", &[]);
    let server = Mutex::new(std::mem::replace(&mut town.server, spare));
    let began = Instant::now();
    let (accepted, ()) = tokio::join!(launch_all(&server, wanted, gap), kill_again_and_again(&server, &lives));
    town.server = server.into_inner();
    for launch in &accepted {
        town.ended_within(launch.id, PATIENCE).await;
    }
    println!("seed {seed}: all have ended after {:?}", began.elapsed());
    assert_eq!(accepted.len(), launches);
    let listed = town.get("/launches?limit=1000").await;
    assert_eq!(listed["launches"].as_array().unwrap().len(), launches, "none is there twice");
    assert_agreement(&town, &accepted).await;
    // A kill may have cost the word that lets a machine forget what is over: anybody can say it again, without force.
    let mut words = vec!["chain", "clear"];
    words.extend(town.ids());
    let cleared = town.server.cli(&words).await;
    assert!(cleared.status.success(), "{}", String::from_utf8_lossy(&cleared.stdout));
    town.nothing_is_left().await;
}

/// Launches every chain, one after the other.
async fn launch_all(server: &Mutex<Saltern>, wanted: Vec<Vec<String>>, gap: Duration) -> Vec<Accepted> {
    let mut accepted = Vec::new();
    for (number, machines) in wanted.into_iter().enumerate() {
        // No waiting for a fact: when it is asked for is what chance decides.
        tokio::time::sleep(gap).await;
        let (chain, list) = (format!("chain {number}"), machines.join(","));
        let words = ["chain", "launch", &chain, "-L", "--target", &list];
        let id = wait::until_ok("the launch to be accepted", PATIENCE, async || match cli(server, &words).await {
            Ok(launch) => Ok(launch["id"].as_i64().expect("a launch has a number")),
            // An answer that got lost in a kill may have been a yes.
            Err(refusal) => {
                let list = cli(server, &["chain", "launches", &chain]).await?;
                let found = list.as_array().and_then(|list| list.first()?["id"].as_i64());
                found.ok_or(refusal)
            }
        })
        .await;
        accepted.push(Accepted { number, id, machines });
    }
    accepted
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

/// Every step was done once where it is told to be done, in its order, and nowhere else.
async fn assert_agreement(town: &Town, accepted: &[Accepted]) {
    for launch in accepted {
        for machine in &launch.machines {
            let told = town.steps_on(launch.id, machine).await;
            let wanted: Vec<String> = (1..=STEPS).map(|step| format!("{step} completed")).collect();
            assert_eq!(told, wanted.join(", "), "launch {} on {machine}", launch.id);
        }
    }
    for machine in &town.machines {
        let notes = machine.lines("notes");
        let mine = accepted.iter().filter(|launch| launch.machines.iter().any(|id| id == machine.id()));
        let mut count = 0;
        for launch in mine {
            let prefix = format!("{}.", launch.number);
            let done: Vec<&String> = notes.iter().filter(|note| note.starts_with(&prefix)).collect();
            let wanted: Vec<String> = (1..=STEPS).map(|step| format!("{prefix}{step}")).collect();
            assert_eq!(done, wanted.iter().collect::<Vec<_>>(), "{} on {}", launch.number, machine.id());
            count += STEPS;
        }
        assert_eq!(notes.len(), count, "{} did something else, too: {notes:?}", machine.id());
    }
}
