//! The whole table of what follows, and of when a step may begin.

use super::*;
use crate::action::Size;
use crate::chain::{Agent, Record, StepTarget, compile};
use crate::value::Map;

/// Plans by the shape of their chunks: each letter a step, `k` after ok, `f` after a failure, `a` always; `|` a new chunk.
fn plan(shape: &str) -> Plan {
    let mut steps = Vec::new();
    for (at, chunk) in shape.split('|').enumerate() {
        for (place, letter) in chunk.chars().enumerate() {
            let word = match letter {
                'f' => "failed",
                'a' => "always",
                _ => "ok",
            };
            let barrier = if at > 0 && place == 0 { "all" } else { "each" };
            let json = format!(
                r#"{{"type":"function","params":{{"fun":"test.ping"}},"after":"{word}","barrier":"{barrier}"}}"#
            );
            steps.push(serde_json::from_str::<Step>(&json).unwrap());
        }
    }
    let numbered: Vec<(usize, &Step)> = steps.iter().enumerate().map(|(at, step)| (at + 1, step)).collect();
    let plan = compile(&numbered, Agent::Stock).unwrap();
    assert_eq!(plan.chunks.len(), shape.split('|').count());
    plan
}

fn answer(state: ChunkState, chunk: u32) -> Answer {
    let launch = Some("1".to_owned());
    Answer { launch, chunk, state, boot_id: "b".into(), alive: false, cancelled: false, steps: Vec::new() }
}

fn shown(next: Next) -> String {
    match next {
        Next::Wait => "wait".into(),
        Next::Ask => "ask".into(),
        Next::Restarting => "restarting".into(),
        Next::Chunk { next, failed } => format!("chunk {next}{}", if failed { " failed" } else { "" }),
        Next::Nothing => "nothing".into(),
        Next::End(end) => format!("{end:?}").to_lowercase(),
    }
}

#[test]
fn past_a_budget_only_what_is_for_failures_is_left() {
    for (shape, chunk, next) in [
        ("k|k", 2, None),
        ("k|kf", 2, Some(2)),
        ("k|ka", 2, Some(2)),
        ("k|kk|ka", 2, Some(3)),
        ("k|k|f", 2, Some(3)),
        ("f|k", 2, None),
        ("k|aa", 2, None),
        ("kf", 1, None),
        ("k|f", 1, None),
        ("k", 7, None),
    ] {
        assert_eq!(past_budget(&plan(shape), chunk), next, "{shape} at {chunk}");
    }
}

/// state, alive, cancelled, then what follows in the first of two chunks and in the last.
const TABLE: &str = "
none      - -         | nothing    | nothing
none      - cancelled | nothing    | nothing
none      alive -     | nothing    | nothing
none      alive cancelled | nothing | nothing
running   - -         | ask        | ask
running   - cancelled | ask        | ask
running   alive -     | wait       | wait
running   alive cancelled | wait   | wait
rebooting - -         | restarting | restarting
rebooting - cancelled | restarting | restarting
rebooting alive -     | wait       | wait
rebooting alive cancelled | wait   | wait
updating  - -         | chunk 2    | stopped
updating  - cancelled | cancelled  | cancelled
updating  alive -     | wait       | wait
updating  alive cancelled | wait   | wait
done      - -         | chunk 2    | completed
done      - cancelled | cancelled  | completed
done      alive -     | chunk 2    | completed
done      alive cancelled | cancelled | completed
failed    - -         | failed     | failed
failed    - cancelled | failed     | failed
failed    alive -     | failed     | failed
failed    alive cancelled | failed | failed
stopped   - -         | stopped    | stopped
stopped   - cancelled | stopped    | stopped
stopped   alive -     | stopped    | stopped
stopped   alive cancelled | stopped | stopped
cancelled - -         | cancelled  | cancelled
cancelled - cancelled | cancelled  | cancelled
cancelled alive -     | cancelled  | cancelled
cancelled alive cancelled | cancelled | cancelled
";

#[test]
fn every_state_has_one_thing_that_follows() {
    let plan = plan("kk|k");
    let mut rows = TABLE.trim().lines();
    for state in ChunkState::ALL {
        for alive in [false, true] {
            for cancelled in [false, true] {
                let mut told = answer(state, 1);
                (told.alive, told.cancelled) = (alive, cancelled);
                let first = shown(follow(&plan, 1, &told));
                told.chunk = 2;
                let last = shown(follow(&plan, 2, &told));
                let row: Vec<&str> = rows.next().unwrap().split('|').map(str::trim).collect();
                let flag = |is: bool, word: &'static str| if is { word } else { "-" };
                let head = [state.as_str(), flag(alive, "alive"), flag(cancelled, "cancelled")].join(" ");
                assert_eq!(row[0].split_whitespace().collect::<Vec<_>>().join(" "), head);
                assert_eq!([first.as_str(), last.as_str()], [row[1], row[2]], "{head}");
            }
        }
    }
    assert_eq!(rows.next(), None);
}

#[test]
fn a_failure_leads_to_the_next_chunk_that_wants_one() {
    for (shape, chunk, wanted) in [
        ("k|k", 1, "failed"),
        ("k|f", 1, "chunk 2 failed"),
        ("k|a", 1, "chunk 2 failed"),
        ("k|kf", 1, "chunk 2 failed"),
        ("k|k|f", 1, "chunk 3 failed"),
        ("k|f|k", 2, "failed"),
        ("k|f|a", 2, "chunk 3 failed"),
        ("f|k", 1, "failed"),
    ] {
        let told = answer(ChunkState::Failed, chunk);
        assert_eq!(shown(follow(&plan(shape), usize::try_from(chunk).unwrap(), &told)), wanted, "{shape}");
    }
}

#[test]
fn without_a_failure_what_is_for_one_is_passed_over() {
    for (shape, wanted) in
        [("k|f", "completed"), ("k|f|k", "chunk 3"), ("k|a", "chunk 2"), ("k|fk", "chunk 2"), ("k|f|f", "completed")]
    {
        assert_eq!(shown(follow(&plan(shape), 1, &answer(ChunkState::Done, 1))), wanted, "{shape}");
    }
}

#[test]
fn an_update_that_took_its_agent_with_it_goes_on_with_what_failed_before() {
    let record = |state| Record { state, ret: None, retcode: 0, started: None, ended: None, cut: false };
    let mut told = answer(ChunkState::Updating, 1);
    told.steps = vec![("1".into(), record(StepState::Failed)), ("2".into(), record(StepState::Started))];
    assert_eq!(follow(&plan("ka|k"), 1, &told), Next::Chunk { next: 2, failed: true });
}

#[test]
fn an_answer_about_another_chunk_tells_nothing_of_this_one() {
    let plan = plan("k|k");
    for state in [ChunkState::Running, ChunkState::Done, ChunkState::Failed, ChunkState::Stopped] {
        assert_eq!(follow(&plan, 2, &answer(state, 1)), Next::Nothing, "{state:?}");
        assert_eq!(follow(&plan, 1, &answer(state, 2)), Next::Nothing, "{state:?}");
    }
    let never_came = Answer { chunk: 0, ..answer(ChunkState::Cancelled, 0) };
    assert_eq!(follow(&plan, 1, &never_came), Next::End(End::Cancelled));
}

#[test]
fn numbers_that_no_plan_has_are_survived() {
    let plan = plan("k");
    for chunk in [0, 2, usize::MAX] {
        for state in ChunkState::ALL {
            follow(&plan, chunk, &answer(state, u32::try_from(chunk).unwrap_or(u32::MAX)));
        }
    }
    assert_eq!(follow(&Plan { chunks: vec![] }, 1, &answer(ChunkState::Done, 1)), Next::End(End::Completed));
}

#[test]
fn when_a_step_may_begin() {
    let count = |n| Some(Size::Count(n));
    let part = |n| Some(Size::Percent(n));
    let (each, all, most) = (Barrier::Each, Barrier::All, Barrier::Percent(80));
    for (barrier, budget, asks, before, approved, wanted) in [
        (each, None, false, Some((4, 0, 0)), false, Gate::Open),
        (all, None, false, None, false, Gate::Open),
        (all, None, false, Some((0, 0, 0)), false, Gate::Open),
        (all, None, false, Some((4, 3, 0)), false, Gate::Barrier),
        (all, None, false, Some((4, 4, 4)), false, Gate::Open),
        (most, None, false, Some((10, 7, 0)), false, Gate::Barrier),
        (most, None, false, Some((10, 8, 0)), false, Gate::Open),
        (most, None, false, Some((3, 2, 0)), false, Gate::Barrier),
        (each, count(0), false, Some((4, 1, 0)), false, Gate::Open),
        (each, count(0), false, Some((4, 1, 1)), false, Gate::OverBudget),
        (all, count(1), false, Some((4, 4, 1)), false, Gate::Open),
        (all, count(1), false, Some((4, 4, 2)), false, Gate::OverBudget),
        (all, count(0), false, Some((4, 3, 2)), false, Gate::Barrier),
        (all, part(50), false, Some((4, 4, 2)), false, Gate::Open),
        (all, part(49), false, Some((4, 4, 2)), false, Gate::OverBudget),
        (each, count(0), false, None, false, Gate::Open),
        (each, None, true, None, false, Gate::Approval),
        (each, None, true, None, true, Gate::Open),
        (all, None, true, Some((4, 3, 0)), true, Gate::Barrier),
        (all, count(0), true, Some((4, 4, 1)), false, Gate::OverBudget),
        (all, count(0), true, Some((4, 4, 0)), false, Gate::Approval),
    ] {
        let step = Step {
            barrier,
            budget,
            approval: asks.then(|| "go on?".to_owned()),
            target: Some(StepTarget::glob("*")),
            ..Step::new("reboot", Map::new())
        };
        let before = before.map(|(total, ended, failed)| Before { total, ended, failed });
        assert_eq!(gate(&step, before, approved), wanted, "{barrier} {budget:?} {before:?} {approved}");
    }
}
