//! The power is cut at every instant between two writes of a minion's store, and the launch always ends with a true account.
//!
//! A chain of three steps: a note, a reboot, a note. The power is cut at a fault point of the first chunk, or at one after the
//! reboot, where the minion is asked how it stands and gets the second chunk. Every cut is a boot.

use crate::chance;
use crate::machine::Machine;
use crate::town::{PATIENCE, Town, note, reboot, turn};
use saltern_testkit::wait;
use serde_json::json;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::LocalSet;

/// When the power is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// While the first chunk is done
    Before,
    /// After the reboot
    After,
}

/// Points of the first chunk: six writes of four points each, and two around each of two calls.
const BEFORE: u32 = 6 * 4 + 2 * 2;
/// Points after the reboot: one write that settles it, then four for the chunk and two around its call.
const AFTER: u32 = 4 + 4 * 4 + 2;
/// How many native machines share the points, and how many stock ones of each line: most of the time they are waited for.
const NATIVES: u32 = 6;
const EACH_LINE: usize = 3;
/// Time between two looks at a launch.
const LOOK: Duration = Duration::from_millis(50);

/// How launches ended, by the states of their steps; and how many points were reached.
#[derive(Debug, Default)]
struct Tally {
    ends: BTreeMap<String, u32>,
    reached: BTreeMap<Phase, u32>,
}

#[tokio::test]
async fn the_account_is_true_wherever_the_power_is_cut_on_native_minions() {
    let _turn = turn().await;
    let ids: Vec<String> = (1..=NATIVES).map(|number| format!("n{number}")).collect();
    let town = Town::of_natives(&ids.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let share = |index: usize| {
        // One more than there are: it must not be reached.
        let all = |phase, most| (1..=most + 1).map(move |point| (phase, point));
        let points = all(Phase::Before, BEFORE).chain(all(Phase::After, AFTER));
        points.skip(index).step_by(NATIVES as usize).collect()
    };
    let tally = cut_everywhere(town, share).await;
    assert_eq!(tally.reached, BTreeMap::from([(Phase::Before, BEFORE), (Phase::After, AFTER)]), "{tally:?}");
    assert_outcomes(&tally);
}

#[tokio::test]
async fn the_account_is_true_wherever_the_power_is_cut_on_stock_minions() {
    let _turn = turn().await;
    let Some(town) = Town::of_stock(EACH_LINE).await else { return };
    // Each job counts its points anew: the first four after the reboot are those of the write that settles it.
    let points = |phase, most| (1..=most).map(move |point| (phase, point));
    let all: Vec<_> = points(Phase::Before, BEFORE).chain(points(Phase::After, AFTER - 4)).collect();
    let machines = town.machines.len();
    // Machines of one line are `lines` apart. The short form cuts at every point on one line; the long one on each.
    let share = |index: usize| match chance::is_long() {
        true => all.iter().copied().skip(index / (machines / EACH_LINE)).step_by(EACH_LINE).collect(),
        false => all.iter().copied().skip(index).step_by(machines).collect::<Vec<_>>(),
    };
    let wanted = |most: u32| if chance::is_long() { most * (machines / EACH_LINE) as u32 } else { most };
    let tally = cut_everywhere(town, share).await;
    let reached = BTreeMap::from([(Phase::Before, wanted(BEFORE)), (Phase::After, wanted(AFTER - 4))]);
    assert_eq!(tally.reached, reached, "{tally:?}");
    assert_outcomes(&tally);
}

/// Cuts the power of every machine at its share of points, all machines at once.
async fn cut_everywhere(mut town: Town, share: impl Fn(usize) -> Vec<(Phase, u32)>) -> Tally {
    let machines = std::mem::take(&mut town.machines);
    let (town, local) = (Rc::new(town), LocalSet::new());
    let mut all = Vec::new();
    for (index, mut machine) in machines.into_iter().enumerate() {
        let (town, points) = (town.clone(), share(index));
        all.push(local.spawn_local(async move {
            let mut tally = Tally::default();
            for (phase, point) in points {
                let began = Instant::now();
                let (is_reached, end) = cut(&town, &mut machine, phase, point).await;
                println!("{} {phase:?} {point}: {end} in {:?}", machine.id(), began.elapsed());
                *tally.ends.entry(end).or_default() += 1;
                *tally.reached.entry(phase).or_default() += u32::from(is_reached);
            }
            tally
        }));
    }
    let mut sum = Tally::default();
    local
        .run_until(async {
            for one in all {
                let tally = one.await.unwrap();
                tally.ends.into_iter().for_each(|(end, count)| *sum.ends.entry(end).or_default() += count);
                tally.reached.into_iter().for_each(|(phase, count)| *sum.reached.entry(phase).or_default() += count);
            }
        })
        .await;
    sum
}

/// Launches the chain, cuts the power at a point, and lets the machine come back. Whether the point was reached, and how the
/// steps ended.
async fn cut(town: &Town, machine: &mut Machine, phase: Phase, point: u32) -> (bool, String) {
    let id = machine.id().to_owned();
    machine.take_notes();
    machine.remove("shutdowns");
    if phase == Phase::Before {
        machine.arm(Some(point));
        town.answers(&id).await;
    }
    let name = format!("{id} {phase:?} {point}");
    let launch = town.launched(&name, &[&id], json!([note("a"), reboot(), note("b")])).await;
    if phase == Phase::After {
        town.part_is(launch, &id, "restarting").await;
        machine.go_down();
        machine.arm(Some(point));
        machine.start();
    }
    let mut handled = if phase == Phase::After { machine.shutdowns() } else { 0 };
    let deadline = Instant::now() + PATIENCE;
    let mut is_reached = false;
    while town.detail(launch).await["state"] != "ended" {
        if machine.is_cut_off() && !is_reached {
            is_reached = true;
            machine.go_down();
            handled = machine.shutdowns();
            machine.arm(None);
            machine.start();
        } else if machine.shutdowns() > handled && town.part(launch, &id).await["state"] == "restarting" {
            // It was told to, and has told so.
            machine.go_down();
            handled = machine.shutdowns();
            machine.arm(None);
            machine.start();
        }
        assert!(Instant::now() < deadline, "{name} does not end: {}", town.story(launch, &id).await);
        tokio::time::sleep(LOOK).await;
    }
    machine.arm(None);
    if !machine.is_up() {
        // A native one that was armed for a point behind the last step.
        machine.start();
        is_reached = true;
    }
    let steps = town.steps_on(launch, &id).await;
    assert_true(&name, &steps, machine);
    wait::until(&format!("{name}: nothing to be kept"), PATIENCE, async || machine.is_clear()).await;
    (is_reached, steps)
}

/// What is told of the steps agrees with what the machine's own files say.
fn assert_true(name: &str, steps: &str, machine: &Machine) {
    let notes = machine.notes();
    let told: Vec<&str> = steps.split(", ").filter_map(|step| step.split_once(' ')).map(|(_, state)| state).collect();
    let times = |word: &str| notes.matches(word).count();
    for (word, state) in [("a", told[0]), ("b", told[2])] {
        let fits = match state {
            "completed" => times(word) == 1,
            // Whether it was done cannot be known.
            "failed(lost)" => times(word) <= 1,
            "failed(prerequisite)" => times(word) == 0,
            _ => false,
        };
        assert!(fits, "{name}: {word} was run {} times: {steps}; {notes}", times(word));
    }
    let fits = match told[1] {
        // A machine that came up again was rebooted, by whomever.
        "completed" => true,
        "failed(prerequisite)" => machine.shutdowns() == 0,
        _ => false,
    };
    assert!(fits, "{name}: {} shutdowns: {steps}", machine.shutdowns());
}

/// Whether all kinds of ends were seen: a test in which everything survives has cut nothing.
fn assert_outcomes(tally: &Tally) {
    println!("{tally:#?}");
    let all_well = "1 completed, 2 completed, 3 completed";
    let first_lost = "1 failed(lost), 2 failed(prerequisite), 3 failed(prerequisite)";
    let last_lost = "1 completed, 2 completed, 3 failed(lost)";
    let known = [all_well, first_lost, last_lost];
    assert!(known.iter().all(|end| tally.ends.contains_key(*end)), "{tally:?}");
    assert!(tally.ends.keys().all(|end| known.contains(&end.as_str())), "{tally:?}");
}
