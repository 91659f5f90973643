//! Targets against Salt's own answers: what three stock minions did (`vectors/targets.json`), and what Salt's matchers
//! say (`targets_oracle.json`, made by `targets_oracle.py`).

use saltern_core::target::{Expression, Facts, Nodegroups, Target, TargetType};
use saltern_core::value::{Map, Value};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    tgt_type: String,
    tgt: Value,
    #[serde(default)]
    delimiter: Option<String>,
    matched: Vec<String>,
    /// We refuse to compile it
    #[serde(default)]
    refused: bool,
    /// Whom we mean where that is not whom Salt means
    #[serde(default)]
    ours: Option<Vec<String>>,
    /// Why we mean something else
    #[serde(default)]
    why: Option<String>,
}

#[derive(Deserialize)]
struct Oracle {
    minions: Vec<Minion>,
    nodegroups: Value,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Minion {
    id: String,
    grains: Value,
    pillar: Value,
}

impl Facts for Minion {
    fn id(&self) -> &str {
        &self.id
    }
    fn grains(&self) -> Option<&Value> {
        Some(&self.grains)
    }
    fn pillar(&self) -> Option<&Value> {
        Some(&self.pillar)
    }
}

#[test]
fn salts_own_answers_are_ours() {
    let mut file: Oracle = serde_json::from_str(include_str!("targets_oracle.json")).unwrap();
    for minion in &mut file.minions {
        minion.grains = with_typed_keys(&minion.grains);
    }
    let nodegroups = Nodegroups::from_value(&file.nodegroups).unwrap();
    assert!(file.cases.len() > 500, "the file is complete");
    let wrong: Vec<String> = file.cases.iter().filter_map(|case| check(case, &file.minions, &nodegroups)).collect();
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), file.cases.len(), wrong.join("\n"));
}

#[test]
fn what_stock_minions_did_is_what_we_expect() {
    #[derive(Deserialize)]
    struct File {
        pillar_of_each: Value,
        cases: Vec<Case>,
    }
    let mut file: File = serde_json::from_str(include_str!("vectors/targets.json")).unwrap();
    let minions: Vec<Minion> = ["x3006", "x3007", "x3008"]
        .map(|id| {
            let mut grains = Map::new();
            grains.insert("id", id);
            grains.insert("os", "Debian");
            grains.insert("ipv4", Value::list(["127.0.0.1"]));
            Minion { id: id.into(), grains: grains.into(), pillar: file.pillar_of_each.clone() }
        })
        .into();
    let refused = ["os", "127.0.0.1/8", "(x3006 or x3007)", "and x3006", "N@grp", "grp", "%x"];
    for case in &mut file.cases {
        case.refused = case.tgt.as_str().is_some_and(|tgt| refused.contains(&tgt));
    }
    assert_eq!(file.cases.len(), 51);
    let wrong: Vec<String> = file.cases.iter().filter_map(|case| check(case, &minions, &Nodegroups::new())).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The grains a matcher names are all it needs.
#[test]
fn a_map_of_the_named_grains_decides_alike() {
    let file: Oracle = serde_json::from_str(include_str!("targets_oracle.json")).unwrap();
    let nodegroups = Nodegroups::from_value(&file.nodegroups).unwrap();
    let mut checked = 0;
    for case in file.cases.iter().filter(|case| !case.refused) {
        let target = Target::read(&case.tgt_type, &case.tgt, case.delimiter.as_deref()).unwrap();
        let matcher = target.compile(&nodegroups).unwrap();
        let Some(keys) = matcher.grain_keys() else { continue };
        for minion in &file.minions {
            let grains =
                keys.iter().filter_map(|key| Some((Value::from(*key), minion.grains.get(key)?.clone()))).collect();
            let less = Minion { id: minion.id.clone(), grains: Value::Map(grains), pillar: minion.pillar.clone() };
            assert_eq!(matcher.matches(minion), matcher.matches(&less), "{target} on {}", minion.id);
        }
        checked += 1;
    }
    assert!(checked > 300);
}

/// What is sent to stock minions in place of a nodegroup has to mean to them what the nodegroup means to us.
#[test]
fn expanded_targets_mean_the_same_minions() {
    let mut nodegroups = Nodegroups::new();
    nodegroups.define("a", ["web1 or web2"]);
    nodegroups.define("b", ["N@a and not web2", "or", "db1"]);
    nodegroups.define("none", []);
    for text in ["N@a and not web1", "not N@b", "* and not N@none", "N@none or N@b"] {
        let target = Target::new(TargetType::Compound, text);
        let expanded = target.expand(&nodegroups).unwrap();
        assert!(matches!(&expanded.expression, Expression::Text(text) if !text.contains("N@")));
        let (ours, theirs) = (target.compile(&nodegroups).unwrap(), expanded.compile(&Nodegroups::new()).unwrap());
        for id in ["web1", "web2", "db1", "x"] {
            let minion = Minion { id: id.into(), grains: Value::Nil, pillar: Value::Nil };
            assert_eq!(ours.matches(&minion), theirs.matches(&minion), "{text} on {id}");
        }
    }
}

/// Says what differs, if anything.
fn check(case: &Case, minions: &[Minion], nodegroups: &Nodegroups) -> Option<String> {
    let what = format!("{} {:?}", case.tgt_type, case.tgt);
    let compiled =
        Target::read(&case.tgt_type, &case.tgt, case.delimiter.as_deref()).and_then(|t| t.compile(nodegroups));
    let matcher = match compiled {
        Err(_) if case.refused && (case.matched.is_empty() || case.why.is_some()) => return None,
        Err(error) => return Some(format!("{what}: refused ({error}), Salt: {:?}", case.matched)),
        Ok(_) if case.refused => return Some(format!("{what}: should be refused")),
        Ok(matcher) => matcher,
    };
    let found: Vec<&String> =
        minions.iter().filter(|minion| matcher.matches(*minion)).map(|minion| &minion.id).collect();
    if let Some(candidates) = matcher.candidates()
        && let Some(left_out) = found.iter().find(|id| !candidates.contains(&id.as_str()))
    {
        return Some(format!("{what}: {left_out} matches and is no candidate"));
    }
    let expected: Vec<&String> = case.ours.as_ref().unwrap_or(&case.matched).iter().collect();
    (found != expected).then(|| format!("{what}: ours {found:?}, Salt {expected:?}"))
}

/// Keys that are not text stand in the file as `{"$map": [[key, value], …]}`.
fn with_typed_keys(value: &Value) -> Value {
    match value {
        Value::Map(map) => match map.get("$map").and_then(Value::as_list) {
            Some(pairs) => {
                let pair = |pair: &Value| pair.as_list().map(|pair| (pair[0].clone(), with_typed_keys(&pair[1])));
                Value::Map(pairs.iter().filter_map(pair).collect())
            }
            None => Value::Map(map.iter().map(|(key, item)| (key.clone(), with_typed_keys(item))).collect()),
        },
        Value::List(items) => Value::List(items.iter().map(with_typed_keys).collect()),
        scalar => scalar.clone(),
    }
}
