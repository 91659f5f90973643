//! `pillar.*`: what the master tells this minion, and only this one.
//!
//! Most functions look at the pillar as it was last compiled; `items` and those that name an environment ask the
//! master.

use super::call::Answer;
use super::{Call, Failure, Function, Param, lookup};
use futures_util::FutureExt;
use saltern_core::target::python_text;
use saltern_core::value::{Map, Value};
use saltern_render::merge::update;
use std::sync::Arc;

const PILLARENV: Param = Param::Optional("pillarenv", "None");
const SALTENV: Param = Param::Optional("saltenv", "None");
const UNMASK: Param = Param::Optional("unmask", "None");

const GET: &[Param] = &[
    Param::Required("key"),
    Param::Optional("default", "''"),
    Param::Optional("merge", "False"),
    Param::Optional("merge_nested_lists", "None"),
    Param::Optional("delimiter", "':'"),
    PILLARENV,
    SALTENV,
    UNMASK,
];

const ITEMS: &[Param] = &[
    Param::Rest("args"),
    Param::Optional("pillar", "None"),
    Param::Optional("pillar_enc", "None"),
    PILLARENV,
    SALTENV,
    UNMASK,
];

const GET_DOC: &str = "Give the value under a key, or the default.

key
    parts separated by the delimiter lead into maps and lists: 'app:servers:0'
merge
    whether a default that is a map or a list is merged with what is found
pillarenv
    the environment whose pillar is compiled and looked at; the minion's own otherwise

CLI Example:

    saltern run '*' pillar.get app:port default=80
";

const ITEMS_DOC: &str = "Ask the master for the pillar as it is now, without changing the minion's own.

Names given are looked up as pillar.item does.

CLI Example:

    saltern run '*' pillar.items pillar='{\"try\": \"this\"}'
";

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "pillar.data",
        params: ITEMS,
        doc: ITEMS_DOC,
        run: |call| async move { items(&call).await }.boxed(),
    },
    Function { name: "pillar.fetch", params: GET, doc: GET_DOC, run: |call| async move { get(&call).await }.boxed() },
    Function {
        name: "pillar.filter_by",
        params: &[
            Param::Required("lookup_dict"),
            Param::Required("pillar"),
            Param::Optional("merge", "None"),
            Param::Optional("default", "'default'"),
            Param::Optional("base", "None"),
        ],
        doc: "Choose from a map by the value of a pillar key.\n\n\
              CLI Example:\n\n    saltern run '*' pillar.filter_by '{web: {port: 80}, default: {port: 0}}' role\n",
        run: |call| {
            call.at_once(|call| {
                let (pillar, key) = (call.context.pillar(), call.text("pillar")?);
                lookup::filter_by(call, lookup::find(&pillar, &key, lookup::COLON))
            })
        },
    },
    Function { name: "pillar.get", params: GET, doc: GET_DOC, run: |call| async move { get(&call).await }.boxed() },
    Function {
        name: "pillar.item",
        params: &[
            Param::Rest("args"),
            Param::Optional("default", "None"),
            Param::Optional("delimiter", "None"),
            PILLARENV,
            SALTENV,
            UNMASK,
        ],
        doc: "Give the values under several keys.\n\n\
              CLI Example:\n\n    saltern run '*' pillar.item app:port app:name\n",
        run: |call| async move { item(&call).await }.boxed(),
    },
    Function {
        name: "pillar.items",
        params: ITEMS,
        doc: ITEMS_DOC,
        run: |call| async move { items(&call).await }.boxed(),
    },
    Function {
        name: "pillar.keys",
        params: &[Param::Required("key"), Param::Optional("delimiter", "':'"), UNMASK],
        doc: "List the keys of a map in the pillar.\n\nCLI Example:\n\n    saltern run '*' pillar.keys app\n",
        run: |call| call.at_once(keys),
    },
    Function {
        name: "pillar.ls",
        params: ITEMS,
        doc: "List the top-level keys of the pillar as it is now.\n\nCLI Example:\n\n    saltern run '*' pillar.ls\n",
        run: |call| {
            async move {
                let items = items(&call).await?.value;
                let names = items.as_map().into_iter().flatten().map(|(name, _)| name.clone());
                Ok(names.collect::<Vec<_>>().into())
            }
            .boxed()
        },
    },
    Function {
        name: "pillar.raw",
        params: &[Param::Optional("key", "None"), UNMASK],
        doc: "Give the pillar as it was last compiled, or one of its top-level keys.\n\n\
              CLI Example:\n\n    saltern run '*' pillar.raw\n",
        run: |call| call.at_once(raw),
    },
];

/// The pillar that is meant: the minion's own, or that of the environment the call names.
async fn meant(call: &Call) -> Result<Arc<Map>, Failure> {
    let env = call.opt_text("pillarenv")?;
    if env.is_none() && call.get("saltenv").is_none() {
        return Ok(call.context.pillar());
    }
    compile(call, env, Map::new()).await.map(Arc::new)
}

async fn compile(call: &Call, env: Option<String>, over: Map) -> Result<Map, Failure> {
    let configured = call.context.opts.get("pillarenv").and_then(Value::as_str);
    let env = env.as_deref().or(configured);
    let compiled = call.context.compile_pillar(env, over).await;
    compiled.map_err(|error| Failure::Command(format!("the master did not send pillar: {error}")))
}

async fn get(call: &Call) -> Answer {
    let (pillar, key) = (meant(call).await?, call.text("key")?);
    let found = lookup::find(&pillar, &key, &lookup::delimiter(call)?);
    let is_strict = call.context.opts.get("pillar_raise_on_missing").is_some_and(Value::is_truthy);
    if found.is_none() && call.given("default").is_none() && is_strict {
        return Err(not_found(&key));
    }
    let default = call.given("default").cloned().unwrap_or_else(|| "".into());
    if call.flag("merge", false) {
        let lists = || call.context.opts.get("pillar_merge_lists").is_some_and(Value::is_truthy);
        let lists = call.get("merge_nested_lists").map_or_else(lists, Value::is_truthy);
        match (&default, found) {
            (Value::Map(base), Some(Value::Map(over))) => return Ok(update(base.clone(), over.clone(), lists).into()),
            (Value::List(base), Some(Value::List(more))) => {
                let new = more.iter().filter(|item| !base.contains(item));
                return Ok(base.iter().chain(new).cloned().collect::<Vec<_>>().into());
            }
            _ => {}
        }
    }
    Ok(found.cloned().unwrap_or(default).into())
}

async fn item(call: &Call) -> Answer {
    let (pillar, delimiter) = (meant(call).await?, lookup::delimiter(call)?);
    let default = call.get("default").cloned().unwrap_or_else(|| "".into());
    Ok(pick(call, &pillar, &delimiter, &default).into())
}

async fn items(call: &Call) -> Answer {
    if !call.rest().is_empty() {
        let pillar = meant(call).await?;
        return Ok(pick(call, &pillar, lookup::COLON, &"".into()).into());
    }
    if call.get("pillar_enc").is_some() {
        return Err(Failure::Command("Failed to decrypt pillar override: this minion cannot".into()));
    }
    let over = call.get("pillar").and_then(Value::as_map).cloned().unwrap_or_default();
    Ok(compile(call, call.opt_text("pillarenv")?, over).await?.into())
}

fn pick(call: &Call, pillar: &Map, delimiter: &str, default: &Value) -> Map {
    let value = |key: &Value| lookup::find(pillar, &python_text(key), delimiter).unwrap_or(default).clone();
    call.rest().iter().map(|key| (key.clone(), value(key))).collect()
}

fn keys(call: &Call) -> Answer {
    let (pillar, key) = (call.context.pillar(), call.text("key")?);
    match lookup::find(&pillar, &key, &lookup::delimiter(call)?) {
        None => Err(not_found(&key)),
        Some(Value::Map(map)) => Ok(map.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>().into()),
        Some(_) => Err(Failure::Exception(format!("ValueError: Pillar value in key {key} is not a dict"))),
    }
}

fn raw(call: &Call) -> Answer {
    let pillar = call.context.pillar();
    Ok(match call.opt_text("key")?.filter(|key| !key.is_empty()) {
        Some(key) => pillar.get(&key).cloned().unwrap_or_else(|| Map::new().into()).into(),
        None => (*pillar).clone().into(),
    })
}

fn not_found(key: &str) -> Failure {
    Failure::Exception(format!("KeyError: 'Pillar key not found: {key}'"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::testing::{Bench, map};

    fn bench() -> Bench {
        let app = Value::map([("port", Value::from(80)), ("tags", Value::list(["a", "b"]))]);
        Bench::with(Map::new(), Map::new(), map([("app", app), ("role", "web".into()), ("none", Value::Nil)]))
    }

    #[tokio::test]
    async fn values_are_found_by_key_or_the_default_is_given() {
        let bench = bench();
        assert_eq!(bench.call("pillar.get", &["app:port".into()], &[]).await, 80.into());
        assert_eq!(bench.call("pillar.get", &["app/tags/1".into()], &[("delimiter", "/".into())]).await, "b".into());
        assert_eq!(bench.call("pillar.get", &["nope".into()], &[]).await, "".into());
        assert_eq!(bench.call("pillar.get", &["nope".into(), 7.into()], &[]).await, 7.into());
        assert_eq!(bench.call("pillar.get", &["nope".into(), Value::Nil], &[]).await, Value::Nil);
        assert_eq!(bench.call("pillar.fetch", &["none".into(), 7.into()], &[]).await, Value::Nil);
    }

    #[tokio::test]
    async fn defaults_can_be_merged() {
        let bench = bench();
        let default = Value::map([("port", 1), ("host", 2)]);
        let merged = bench.call("pillar.get", &["app".into(), default, true.into()], &[]).await;
        assert_eq!((merged.get("port"), merged.get("host")), (Some(&80.into()), Some(&2.into())));
        let merged = bench.call("pillar.get", &["app:tags".into(), Value::list(["z", "a"]), true.into()], &[]).await;
        assert_eq!(merged, Value::list(["z", "a", "b"]));
    }

    #[tokio::test]
    async fn a_missing_key_can_be_an_error() {
        let opts = map([("pillar_raise_on_missing", true.into())]);
        let text = Bench::with(opts, Map::new(), Map::new()).fail("pillar.get", &["x".into()], &[]).await;
        assert!(text.contains("KeyError: 'Pillar key not found: x'"), "{text}");
    }

    #[tokio::test]
    async fn parts_of_the_pillar_can_be_listed() {
        let bench = bench();
        assert_eq!(bench.call("pillar.keys", &["app".into()], &[]).await, Value::list(["port", "tags"]));
        assert!(bench.fail("pillar.keys", &["role".into()], &[]).await.contains("is not a dict"));
        assert_eq!(bench.call("pillar.ls", &[], &[]).await, Value::list(["app", "role", "none"]));
        assert_eq!(bench.call("pillar.raw", &["role".into()], &[]).await, "web".into());
        assert_eq!(bench.call("pillar.raw", &["nope".into()], &[]).await, Map::new().into());
        let items = bench.call("pillar.item", &["role".into(), "x:y".into()], &[("default", 0.into())]).await;
        assert_eq!(items, map([("role", "web".into()), ("x:y", 0.into())]).into());
        let items = bench.call("pillar.items", &[], &[("pillar", Value::map([("role", "db")]))]).await;
        assert_eq!((items.get("role"), items.get("none")), (Some(&"db".into()), Some(&Value::Nil)));
    }

    #[tokio::test]
    async fn a_map_can_be_chosen_from() {
        let choice = Value::map([("w*", "yes"), ("default", "no")]);
        assert_eq!(bench().call("pillar.filter_by", &[choice.clone(), "role".into()], &[]).await, "yes".into());
        assert_eq!(bench().call("pillar.filter_by", &[choice, "app:port".into()], &[]).await, "no".into());
    }
}
