//! Where chunks begin and end, and what holds for every plan.

use super::*;
use proptest::prelude::*;

fn step(json: &str) -> Step {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"))
}

fn ping() -> Step {
    step(r#"{"type":"function","params":{"fun":"test.ping"}}"#)
}

fn planned(steps: &[Step]) -> Plan {
    let numbered: Vec<(usize, &Step)> = steps.iter().enumerate().map(|(at, step)| (at + 1, step)).collect();
    compile(&numbered, Agent::Stock).unwrap()
}

/// The ids of each chunk, as `1 2 | 3`; a gate as `[3]`.
fn shape(plan: &Plan) -> String {
    let chunk = |chunk: &Chunk| {
        let ids: Vec<&str> = chunk.steps.iter().map(|step| step.id.as_str()).collect();
        let gate = chunk.gate.map(|gate| format!("[{gate}] ")).unwrap_or_default();
        gate + &ids.join(" ")
    };
    plan.chunks.iter().map(chunk).collect::<Vec<_>>().join(" | ")
}

#[test]
fn each_minion_of_the_seed_example_has_its_own_plan() {
    let all = [ping(), step(r#"{"type":"reboot"}"#), ping(), ping()];
    let of = |minion: usize| {
        let mine = |number: usize| match number {
            1 | 2 => minion == 1,
            3 => true,
            _ => minion != 1,
        };
        let steps: Vec<(usize, &Step)> = (1..=4).filter(|number| mine(*number)).map(|n| (n, &all[n - 1])).collect();
        compile(&steps, Agent::Stock).unwrap()
    };
    assert_eq!(shape(&of(1)), "1 2 | 3");
    for minion in 2..=4 {
        assert_eq!(shape(&of(minion)), "3 4");
    }
    assert_eq!(of(2).hash(), of(4).hash(), "equal plans are one");
    assert_ne!(of(1).hash(), of(2).hash());
}

#[test]
fn a_chunk_ends_at_a_restart_and_begins_at_a_gate() {
    let reboot = || step(r#"{"type":"reboot"}"#);
    let update = || step(r#"{"type":"agent_update"}"#);
    let gated = |json: &str| step(&format!(r#"{{"type":"function","params":{{"fun":"test.ping"}},{json}}}"#));
    for (steps, wanted) in [
        (vec![ping(), ping()], "1 2"),
        (vec![reboot()], "1"),
        (vec![ping(), reboot(), ping()], "1 2 | 3"),
        (vec![reboot(), reboot()], "1 | 2"),
        (vec![ping(), update()], "1 2 | 2.check"),
        (vec![update(), ping(), ping()], "1 | 1.check 2 3"),
        (vec![update(), reboot(), ping()], "1 | 1.check 2 | 3"),
        (vec![update(), update()], "1 | 1.check 2 | 2.check"),
        (vec![ping(), gated(r#""barrier":"all""#), ping()], "1 | [2] 2 3"),
        (vec![ping(), gated(r#""budget":0"#)], "1 | [2] 2"),
        (vec![gated(r#""approval":"go?""#), ping()], "[1] 1 2"),
        (vec![update(), gated(r#""barrier":"50%""#)], "1 | 1.check | [2] 2"),
        (vec![], ""),
    ] {
        assert_eq!(shape(&planned(&steps)), wanted);
    }
}

#[test]
fn a_step_becomes_the_call_of_its_type() {
    let plan = planned(&[
        step(r#"{"type":"package_install","params":{"packages":"nginx"}}"#),
        step(r#"{"type":"reboot","after":"failed","repeatable":false}"#),
        step(r#"{"type":"agent_update","params":{"version":"3008.3"},"after":"always"}"#),
    ]);
    let steps: Vec<&PlanStep> = plan.steps().collect();
    assert_eq!((steps[0].kind, steps[0].fun.as_str(), steps[0].repeatable), (StepKind::Call, "pkg.install", true));
    assert_eq!((steps[1].kind, steps[1].after), (StepKind::Reboot, After::Failed));
    assert!(steps[1].repeatable, "the boot id tells whether it was done");
    assert_eq!((steps[2].kind, steps[2].after), (StepKind::Update, After::Always));
    assert_eq!((steps[3].id.as_str(), steps[3].number, steps[3].kind), ("3.check", 3, StepKind::Check));
    assert_eq!((steps[3].fun.as_str(), steps[3].after), ("pkg.version", After::Always), "done when its update was");
    assert_eq!(steps[3].expect, Some("3008.3".into()));
}

#[test]
fn the_load_is_what_the_minions_module_takes() {
    let plan = planned(&[step(r#"{"type":"function","params":{"fun":"cmd.run","arg":["ls"],"kwarg":{"cwd":"/"}}}"#)]);
    let wanted = r#"[{"id":"1","kind":"call","fun":"cmd.run","arg":["ls"],"kwarg":{"cwd":"/"},"repeatable":false,"after":"ok"}]"#;
    assert_eq!(serde_json::to_string(&plan.load(1)).unwrap(), wanted);
    assert_eq!((plan.load(0), plan.load(2)), (Value::List(vec![]), Value::List(vec![])));
    let plan = planned(&[step(r#"{"type":"agent_update"}"#)]);
    let load = plan.load(2);
    let check = &load.as_list().unwrap()[0];
    assert_eq!((check.get("kind"), check.get("expect")), (Some(&"check".into()), Some(&"".into())));
}

#[test]
fn the_native_minion_refuses_states_and_takes_the_rest() {
    let on_native = |step: &Step| compile(&[(1, &ping()), (7, step)], Agent::Native);
    for json in [r#"{"type":"states"}"#, r#"{"type":"function","params":{"fun":"state.apply","arg":["web"]}}"#] {
        let refused = on_native(&step(json)).unwrap_err();
        assert_eq!(refused.step, 7);
        assert!(refused.reason.starts_with("the native minion has no state engine"), "{refused}");
        compile(&[(7, &step(json))], Agent::Stock).unwrap();
    }
    on_native(&step(r#"{"type":"reboot"}"#)).unwrap();
}

#[test]
fn a_step_that_cannot_be_done_is_named() {
    let bad = step(r#"{"type":"package_install"}"#);
    let refused = compile(&[(1, &ping()), (3, &bad)], Agent::Stock).unwrap_err();
    assert_eq!(refused.to_string(), "step 3 cannot be done there: the parameter 'packages' is required");
}

#[test]
fn what_is_no_plan_is_refused() {
    for bad in ["", "{}", r#"{"chunks":[{"steps":[{"id":"1"}]}]}"#, r#"{"chunks":[],"more":1}"#] {
        assert!(Plan::read(bad).is_err(), "{bad}");
    }
}

fn any_step() -> impl Strategy<Value = Step> {
    let base = prop::sample::select(vec![
        r#"{"type":"function","params":{"fun":"test.ping"}}"#,
        r#"{"type":"function","params":{"fun":"system.reboot"}}"#,
        r#"{"type":"script","params":{"body":"true\n"}}"#,
        r#"{"type":"states","params":{"mods":"web","pillar":{"a":[1,null,1.5]}}}"#,
        r#"{"type":"package_update"}"#,
        r#"{"type":"package_update","params":{"packages":"vim"}}"#,
        r#"{"type":"reboot"}"#,
        r#"{"type":"agent_update"}"#,
        r#"{"type":"service_restart","params":{"service":"salt-minion"}}"#,
    ]);
    let barrier = prop::sample::select(vec!["each", "each", "each", "all", "80%"]);
    let after = prop::sample::select(vec![After::Ok, After::Ok, After::Failed, After::Always]);
    (base, barrier, after, prop::option::weighted(0.1, 0..3_usize), prop::option::weighted(0.1, Just("go?".to_owned())))
        .prop_map(|(base, barrier, after, budget, approval)| Step {
            barrier: crate::chain::Barrier::parse(barrier).unwrap(),
            after,
            budget: budget.map(crate::action::Size::Count),
            approval,
            ..step(base)
        })
}

proptest! {
    #[test]
    fn what_holds_for_every_plan(steps in prop::collection::vec((any_step(), any::<bool>()), 0..12)) {
        let mine: Vec<(usize, &Step)> =
            steps.iter().enumerate().filter(|(_, (_, mine))| *mine).map(|(at, (step, _))| (at + 1, step)).collect();
        let plan = compile(&mine, Agent::Stock).unwrap();
        // Every step once and in order, checks apart.
        let numbers: Vec<usize> = plan.steps().filter(|step| step.kind != StepKind::Check).map(|step| step.number).collect();
        prop_assert_eq!(numbers, mine.iter().map(|(number, _)| *number).collect::<Vec<_>>());
        for (at, chunk) in plan.chunks.iter().enumerate() {
            prop_assert!(!chunk.steps.is_empty());
            let (last, others) = chunk.steps.split_last().unwrap();
            prop_assert!(others.iter().all(|step| !matches!(step.kind, StepKind::Reboot | StepKind::Update)));
            if last.kind == StepKind::Update {
                let check = &plan.chunks[at + 1].steps[0];
                prop_assert_eq!((&check.id, check.kind), (&format!("{}.check", last.number), StepKind::Check));
            }
            // A gated step is the first of its chunk, and the chunk says so.
            for (place, step) in chunk.steps.iter().enumerate().filter(|(_, step)| step.kind != StepKind::Check) {
                let is_gated = steps[step.number - 1].0.is_gated();
                prop_assert_eq!(is_gated, place == 0 && chunk.gate == Some(step.number));
            }
            prop_assert!(chunk.gate.is_none_or(|gate| gate == chunk.steps[0].number));
        }
        // Ids are unique over the whole plan.
        let mut ids: Vec<&str> = plan.steps().map(|step| step.id.as_str()).collect();
        let many = ids.len();
        ids.sort_unstable();
        ids.dedup();
        prop_assert_eq!(ids.len(), many);
        // It is kept and read back, and equal plans have equal names.
        let kept = Plan::read(&plan.json()).unwrap();
        prop_assert_eq!(&kept, &plan);
        prop_assert_eq!(kept.hash(), plan.hash());
        prop_assert_eq!(compile(&mine, Agent::Stock).unwrap().hash(), plan.hash());
    }

    #[test]
    fn another_order_is_another_plan(a in any_step(), b in any_step()) {
        let (ab, ba) = (planned(&[a.clone(), b.clone()]), planned(&[b, a]));
        prop_assert_eq!(ab == ba, ab.hash() == ba.hash());
    }
}
