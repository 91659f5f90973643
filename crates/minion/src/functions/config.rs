//! `config.*`: one question to the minion's configuration, its grains and its pillar, in this order.

use super::call::Answer;
use super::{Call, Function, Param, lookup};
use saltern_core::target::Glob;
use saltern_core::value::{Map, Value};
use saltern_render::merge::{Strategy, merge};

/// What counts where nobody has set anything.
const DEFAULTS: [(&str, &str); 4] = [
    ("test.foo", "unconfigured"),
    ("ca.cert_base_path", "/etc/pki"),
    ("hosts.file", "/etc/hosts"),
    ("aliases.file", "/etc/aliases"),
];

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "config.get",
        params: &[
            Param::Required("key"),
            Param::Optional("default", "''"),
            Param::Optional("delimiter", "':'"),
            Param::Optional("merge", "None"),
            Param::Optional("omit_opts", "False"),
            Param::Optional("omit_pillar", "False"),
            Param::Optional("omit_master", "False"),
            Param::Optional("omit_grains", "False"),
        ],
        doc: "Give the value under a key: of the configuration, else of the grains, else of the pillar, else of the \
              master's configuration if pillar has it, else the default.\n\n\
              merge\n    'recurse' or 'overwrite': all of them merged, the first ones over the later ones\n\n\
              CLI Example:\n\n    saltern run '*' config.get app:port default=80\n",
        run: |call| call.at_once(get),
    },
    Function {
        name: "config.items",
        params: &[],
        doc: "Give the whole configuration of the minion.\n\nCLI Example:\n\n    saltern run '*' config.items\n",
        run: |call| call.at_once(|call| Ok(opts(call).into())),
    },
    Function {
        name: "config.option",
        params: &[
            Param::Required("value"),
            Param::Optional("default", "None"),
            Param::Optional("omit_opts", "False"),
            Param::Optional("omit_grains", "False"),
            Param::Optional("omit_pillar", "False"),
            Param::Optional("omit_master", "False"),
            Param::Optional("omit_all", "False"),
            Param::Optional("wildcard", "False"),
        ],
        doc: "Give the value under a top-level key, looked for as config.get does; or all keys that fit.\n\n\
              \
              CLI Example:\n\n    saltern run '*' config.option 'mine_*' wildcard=True\n",
        run: |call| call.at_once(option),
    },
];

/// Configuration and pillar merged under a key, for settings that may stand in both.
pub(super) fn merged(call: &Call, key: &str) -> Option<Value> {
    let pillar = call.context.pillar();
    let places = [Some(&*call.context.opts), pillar.get("master").and_then(Value::as_map), Some(&*pillar)];
    let mut values = places.into_iter().flatten().filter_map(|place| place.get(key)).filter(|value| !value.is_nil());
    let first = values.next()?.clone();
    Some(values.fold(first, |found, more| match (found, more) {
        (Value::Map(over), Value::Map(base)) => merge(base.clone(), over, Strategy::Overwrite, false).into(),
        (Value::List(mut items), Value::List(more)) => {
            items.extend(more.iter().cloned());
            items.into()
        }
        (found, _) => found,
    }))
}

/// The configuration as it is in force: the id may come from the machine's name.
fn opts(call: &Call) -> Map {
    let mut opts = (*call.context.opts).clone();
    opts.insert("id", &*call.context.id);
    opts
}

/// The places that are looked at, first to last.
fn places(call: &Call, is_nothing_wanted: bool) -> Vec<Map> {
    let wanted = |omit: &str| !is_nothing_wanted && !call.flag(omit, false);
    let pillar = call.context.pillar();
    let master = pillar.get("master").and_then(Value::as_map).cloned().unwrap_or_default();
    let mut places = Vec::with_capacity(5);
    places.extend(wanted("omit_opts").then(|| opts(call)));
    places.extend(wanted("omit_grains").then(|| (*call.context.grains()).clone()));
    places.extend(wanted("omit_pillar").then(|| (*pillar).clone()));
    places.extend(wanted("omit_master").then_some(master));
    places.push(DEFAULTS.into_iter().map(|(key, value)| (key.into(), value.into())).collect());
    places
}

fn get(call: &Call) -> Answer {
    let (key, delimiter) = (call.text("key")?, lookup::delimiter(call)?);
    let default = || call.given("default").cloned().unwrap_or_else(|| "".into());
    let mut places = places(call, false);
    if let Some(strategy) = call.opt_text("merge")? {
        let strategy = if strategy == "overwrite" { Strategy::Overwrite } else { Strategy::Recurse };
        let all = places.into_iter().rev().reduce(|base, over| merge(base, over, strategy, false));
        places = Vec::from_iter(all);
    }
    let found = places.iter().find_map(|place| lookup::find(place, &key, &delimiter));
    Ok(found.cloned().unwrap_or_else(default).into())
}

fn option(call: &Call) -> Answer {
    let (key, is_pattern) = (call.text("value")?, call.flag("wildcard", false));
    let places = places(call, call.flag("omit_all", false));
    let default = |empty: Value| call.get("default").cloned().unwrap_or(empty);
    if !is_pattern {
        let found = places.iter().find_map(|place| place.get(&key));
        return Ok(found.cloned().unwrap_or_else(|| default("".into())).into());
    }
    let pattern = Glob::new(&key);
    let mut fitting = Map::new();
    for (name, value) in places.iter().flatten() {
        if name.as_str().is_some_and(|text| pattern.matches(text) && fitting.get(text).is_none()) {
            fitting.insert(name.clone(), value.clone());
        }
    }
    Ok(if fitting.is_empty() { default(Map::new().into()) } else { fitting.into() }.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::testing::{Bench, map};

    fn bench() -> Bench {
        let tree = |from: &str| Value::map([("from", Value::from(from)), (from, 1.into())]);
        let opts = map([("a", "opts".into()), ("tree", tree("opts"))]);
        let grains = map([("a", "grains".into()), ("b", "grains".into()), ("tree", tree("grains"))]);
        let master = Value::map([("c", "master"), ("d", "master")]);
        let pillar =
            map([("b", "pillar".into()), ("c", "pillar".into()), ("tree", tree("pillar")), ("master", master)]);
        Bench::with(opts, grains, pillar)
    }

    #[tokio::test]
    async fn the_first_place_that_knows_it_answers() {
        let bench = bench();
        for (key, value) in [("a", "opts"), ("b", "grains"), ("c", "pillar"), ("d", "master"), ("x", ""), ("id", "m1")]
        {
            assert_eq!(bench.call("config.get", &[key.into()], &[]).await, value.into(), "{key}");
            assert_eq!(bench.call("config.option", &[key.into()], &[]).await, value.into(), "{key}");
        }
        assert_eq!(bench.call("config.get", &["tree:from".into()], &[]).await, "opts".into());
        assert_eq!(bench.call("config.get", &["test.foo".into()], &[]).await, "unconfigured".into());
        assert_eq!(bench.call("config.get", &["a".into()], &[("omit_opts", true.into())]).await, "grains".into());
        assert_eq!(bench.call("config.option", &["a".into(), 7.into()], &[("omit_all", true.into())]).await, 7.into());
    }

    #[tokio::test]
    async fn all_places_can_be_merged() {
        let merged = bench().call("config.get", &["tree".into()], &[("merge", "recurse".into())]).await;
        let expected = [("from", Value::from("opts")), ("pillar", 1.into()), ("grains", 1.into()), ("opts", 1.into())];
        assert_eq!(merged, map(expected).into());
    }

    #[tokio::test]
    async fn keys_can_be_patterns() {
        let found = bench().call("config.option", &["[ab]".into()], &[("wildcard", true.into())]).await;
        assert_eq!(found, Value::map([("a", "opts"), ("b", "grains")]));
        assert_eq!(
            bench().call("config.option", &["z*".into()], &[("wildcard", true.into())]).await,
            Map::new().into()
        );
    }
}
