//! That the states read well, and that YAML reads of them what the plan says.

use super::*;
use crate::chain::{Agent, Step, compile};
use proptest::prelude::*;
use saphyr_parser::{Event, Parser, ScalarStyle};

fn plan(steps: &[&str]) -> Plan {
    let steps: Vec<Step> = steps.iter().map(|json| serde_json::from_str(json).unwrap()).collect();
    let numbered: Vec<(usize, &Step)> = steps.iter().enumerate().map(|(at, step)| (at + 1, step)).collect();
    compile(&numbered, Agent::Stock).unwrap()
}

#[test]
fn a_plan_reads_as_states() {
    let plan = plan(&[
        r#"{"type":"package_install","params":{"packages":["nginx"]}}"#,
        r##"{"type":"script","params":{"body":"#!/bin/sh\necho one\necho two\n"}}"##,
        r#"{"type":"reboot"}"#,
        r#"{"type":"states","params":{"mods":["web"]},"barrier":"all"}"#,
        r#"{"type":"service_restart","params":{"service":"nginx"},"after":"failed"}"#,
        r#"{"type":"function","params":{"fun":"test.ping"},"after":"always"}"#,
        r#"{"type":"agent_update","params":{"version":"3008.3"}}"#,
    ]);
    let sls = plan.to_sls("launch 17 on web1");
    let wanted = include_str!("wanted.sls").replace("HASH", &plan.hash());
    assert_eq!(sls, wanted, "\n{sls}");
}

#[test]
fn a_step_for_a_failure_with_nothing_before_it_is_only_told() {
    let steps: Vec<Step> = vec![serde_json::from_str(r#"{"type":"reboot","after":"failed"}"#).unwrap()];
    let sls = compile(&[(4, &steps[0])], Agent::Stock).unwrap().to_sls("x");
    assert!(sls.contains("# step 4: reboot\n# is for after a failure"), "{sls}");
    assert_eq!(states(&sls), Value::Nil);
}

#[test]
fn a_title_cannot_add_lines_or_states() {
    let sls = plan(&[r#"{"type":"reboot"}"#]).to_sls("evil\nboom:\n  test.nop: []\u{2028}x");
    assert!(sls.starts_with("#!yaml\n# evil boom: test.nop: [] x\n"), "{sls}");
    assert_eq!(states(&sls).as_map().unwrap().len(), 1);
}

/// What YAML reads, each scalar as the text it is, or as its kind where it is plain.
fn states(sls: &str) -> Value {
    let mut events = Parser::new_from_str(sls).map(|event| event.unwrap_or_else(|error| panic!("{error}:\n{sls}")).0);
    loop {
        match events.next() {
            Some(Event::StreamStart | Event::DocumentStart(_)) => {}
            Some(Event::StreamEnd) | None => return Value::Nil,
            Some(first) => return node(first, &mut events),
        }
    }
}

fn node<'a>(first: Event<'a>, events: &mut impl Iterator<Item = Event<'a>>) -> Value {
    match first {
        Event::Scalar(text, ScalarStyle::Plain, ..) => {
            serde_json::from_str(&text).unwrap_or_else(|_| Value::from(&*text))
        }
        Event::Scalar(text, ..) => Value::from(&*text),
        Event::SequenceStart(..) => {
            let mut items = Vec::new();
            loop {
                match events.next().unwrap() {
                    Event::SequenceEnd => return items.into(),
                    item => items.push(node(item, events)),
                }
            }
        }
        Event::MappingStart(..) => {
            let mut map = Map::new();
            loop {
                match events.next().unwrap() {
                    Event::MappingEnd => return map.into(),
                    key => {
                        let key = node(key, events);
                        let value = events.next().map(|value| node(value, events)).unwrap();
                        assert_eq!(map.insert(key, value), None, "a key twice");
                    }
                }
            }
        }
        other => panic!("{other:?}"),
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "[a-z:#'\"{}%|>!&*@`,?. \n\t-]{0,12}",
        "\\PC{0,8}",
        any::<String>(),
        "([a-z #]{0,6}\n){1,4}",
        prop::sample::select(vec!["yes", "null", "~", "1", "1.5", "0x10", "2026-11-16", "- a", "", "{{ x }}"])
            .prop_map(str::to_owned),
    ];
    let leaf = prop_oneof![
        Just(Value::Nil),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, move |inner| {
        let entries = prop::collection::btree_map(text.clone(), inner.clone(), 0..4);
        prop_oneof![prop::collection::vec(inner, 0..4).prop_map(Value::from), entries.prop_map(Value::map)]
    })
}

proptest! {
    /// Whatever a step is told, its state says exactly that.
    #[test]
    fn what_people_wrote_reads_back(first in any_value(), second in any_value()) {
        let mut step: Step = serde_json::from_str(r#"{"type":"function","params":{"fun":"test.arg"}}"#).unwrap();
        step.params.insert("kwarg", Value::map([("first", first.clone()), ("second thing", second.clone())]));
        let plan = compile(&[(1, &step)], Agent::Stock).unwrap();
        let read = states(&plan.to_sls("x"));
        let calls = read.as_map().unwrap().values().next().unwrap().get("module.run").unwrap().as_list().unwrap();
        let arguments = calls[0].get("test.arg").unwrap().as_list().unwrap();
        prop_assert_eq!(arguments[0].get("first"), Some(&first));
        prop_assert_eq!(arguments[1].get("second thing"), Some(&second));
    }
}
