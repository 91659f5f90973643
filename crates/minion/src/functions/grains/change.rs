//! Changing the operator's grains: in the file `grains` of the data directory and in memory, at once.

use super::super::call::Answer;
use super::super::{Call, Context, Failure, Function, Param, lookup};
use crate::files::replace_file;
use futures_util::FutureExt;
use saltern_core::target::python_text;
use saltern_core::value::{Map, Value};
use std::sync::{Arc, Mutex, PoisonError};

/// One change at a time: two jobs must not undo each other's work.
static TURN: Mutex<()> = Mutex::new(());

const KEY: Param = Param::Required("key");
const VAL: Param = Param::Required("val");
const DELIMITER: Param = Param::Optional("delimiter", "':'");
const DESTRUCTIVE: Param = Param::Optional("destructive", "False");
const FORCE: Param = Param::Optional("force", "False");
const REFRESH: Param = Param::Optional("refresh_pillar", "True");

pub(in super::super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "grains.append",
        params: &[KEY, VAL, Param::Optional("convert", "False"), DELIMITER],
        doc: "Add a value to a grain that is a list.\n\nconvert\n    whether a grain that is not a list becomes one\n\n\
              CLI Example:\n\n    saltern run '*' grains.append roles web\n",
        run: |call| changed(call, append).boxed(),
    },
    Function {
        name: "grains.delkey",
        params: &[KEY, FORCE],
        doc: "Remove a grain. One that is a map or a list is only removed with force.\n\n\
              CLI Example:\n\n    saltern run '*' grains.delkey roles force=True\n",
        run: |call| changed(call, |call| set(call, &Value::Nil, true, lookup::COLON)).boxed(),
    },
    Function {
        name: "grains.delval",
        params: &[KEY, DESTRUCTIVE, FORCE],
        doc: "Set a grain to None, or remove it if destructive is set.\n\n\
              CLI Example:\n\n    saltern run '*' grains.delval roles\n",
        run: |call| {
            changed(call, |call| set(call, &Value::Nil, call.flag("destructive", false), lookup::COLON)).boxed()
        },
    },
    Function {
        name: "grains.remove",
        params: &[KEY, VAL, DELIMITER],
        doc: "Take a value out of a grain that is a list.\n\n\
              CLI Example:\n\n    saltern run '*' grains.remove roles web\n",
        run: |call| changed(call, remove).boxed(),
    },
    Function {
        name: "grains.set",
        params: &[KEY, Param::Optional("val", "''"), FORCE, DESTRUCTIVE, DELIMITER],
        doc: "Set a grain, which may be inside others: 'app:tier'. Maps and lists are only replaced with force.\n\n\
              CLI Example:\n\n    saltern run '*' grains.set app:tier front\n",
        run: |call| {
            changed(call, |call| {
                let empty = Value::from("");
                let value = call.given("val").unwrap_or(&empty);
                set(call, value, call.flag("destructive", false), &lookup::delimiter(call)?)
            })
            .boxed()
        },
    },
    Function {
        name: "grains.setval",
        params: &[KEY, VAL, DESTRUCTIVE, REFRESH],
        doc: "Set a grain to a value, whatever it was.\n\n\
              CLI Example:\n\n    saltern run '*' grains.setval roles '[web]'\n",
        run: |call| {
            changed(call, |call| {
                let mut entries = Map::new();
                entries.insert(call.text("key")?, call.given("val").cloned().unwrap_or_default());
                store(&call.context, entries, call.flag("destructive", false))
            })
            .boxed()
        },
    },
    Function {
        name: "grains.setvals",
        params: &[Param::Required("grains"), DESTRUCTIVE, REFRESH],
        doc: "Set several grains, whatever they were.\n\n\
              CLI Example:\n\n    saltern run '*' grains.setvals '{a: 1, b: 2}'\n",
        run: |call| {
            changed(call, |call| match call.get("grains") {
                Some(Value::Map(entries)) => store(&call.context, entries.clone(), call.flag("destructive", false)),
                _ => Err(Failure::Exception("setvals grains must be a dictionary.".into())),
            })
            .boxed()
        },
    },
];

/// Changes grains, then asks for the pillar that may depend on them.
async fn changed(call: Call, change: fn(&Call) -> Answer) -> Answer {
    let context = call.context.clone();
    let wants_pillar = !call.has_param("refresh_pillar") || call.flag("refresh_pillar", true);
    let answer = call.blocking(change).await?;
    if wants_pillar && let Err(error) = context.refresh_pillar().await {
        tracing::warn!(%error, "grains changed, but pillar could not be asked for");
    }
    Ok(answer)
}

fn append(call: &Call) -> Answer {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let (key, delimiter) = (call.text("key")?, lookup::delimiter(call)?);
    let value = call.given("val").cloned().unwrap_or_default();
    let grains = call.context.grains();
    let mut items = match lookup::find(&grains, &key, &delimiter) {
        None => Vec::new(),
        Some(Value::List(items)) => items.clone(),
        Some(other) if call.flag("convert", false) => Vec::from_iter((!other.is_nil()).then(|| other.clone())),
        Some(_) => return Ok(format!("The key {key} is not a valid list").into()),
    };
    if items.contains(&value) {
        return Ok(format!("The val {} was already in the list {key}", python_text(&value)).into());
    }
    match value {
        Value::List(more) => items.extend(more),
        one => items.push(one),
    }
    store_inside(&call.context, &grains, key, items.into(), &delimiter)
}

fn remove(call: &Call) -> Answer {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let (key, delimiter) = (call.text("key")?, lookup::delimiter(call)?);
    let value = call.given("val").cloned().unwrap_or_default();
    let grains = call.context.grains();
    let mut items = match lookup::find(&grains, &key, &delimiter) {
        None => Vec::new(),
        Some(Value::List(items)) => items.clone(),
        Some(_) => return Ok(format!("The key {key} is not a valid list").into()),
    };
    let Some(at) = items.iter().position(|item| *item == value) else {
        return Ok(format!("The val {} was not in the list {key}", python_text(&value)).into());
    };
    items.remove(at);
    store_inside(&call.context, &grains, key, items.into(), &delimiter)
}

/// Stores a value that may be inside other grains; those around it that are no maps are replaced by maps.
fn store_inside(context: &Context, grains: &Map, mut key: String, mut value: Value, delimiter: &str) -> Answer {
    while let Some((outer, inner)) = lookup::split_last(&key, delimiter) {
        let mut around = match lookup::find(grains, outer, delimiter) {
            Some(Value::Map(map)) => map.clone(),
            _ => Map::new(),
        };
        around.insert(inner, value);
        (key, value) = (outer.to_owned(), around.into());
    }
    let mut entries = Map::new();
    entries.insert(key, value);
    write(context, entries, false)
}

fn set(call: &Call, value: &Value, is_destructive: bool, delimiter: &str) -> Answer {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut key, is_forced) = (call.text("key")?, call.flag("force", false));
    let grains = call.context.grains();
    let is_complex = |value: &Value| matches!(value, Value::Map(_) | Value::List(_));
    let existing = lookup::find(&grains, &key, delimiter);
    if let Some(existing) = existing {
        if existing == value && (!value.is_nil() || !is_destructive) {
            return Ok(told("Grain is already set", Map::new(), true));
        }
        if !is_forced && is_complex(existing) {
            let text = format!("The key '{key}' exists but is a dict or a list. Use 'force=True' to overwrite.");
            return Ok(told(&text, Map::new(), false));
        }
        if !is_forced && !existing.is_nil() && is_complex(value) {
            let text = format!(
                "The key '{key}' exists and the given value is a dict or a list. Use 'force=True' to overwrite."
            );
            return Ok(told(&text, Map::new(), false));
        }
    }
    let mut value = value.clone();
    while let Some((outer, inner)) = lookup::split_last(&key, delimiter) {
        let around = lookup::find(&grains, outer, delimiter).cloned().unwrap_or_else(|| Map::new().into());
        let shown = python_text(&around).into_owned();
        let Some(changed) = put_inside(around, inner, value, is_destructive, is_forced) else {
            let text = format!(
                "The key '{outer}' value is '{shown}', which is different from the provided key '{inner}'. \
                 Use 'force=True' to overwrite."
            );
            return Ok(told(&text, Map::new(), false));
        };
        (key, value) = (outer.to_owned(), changed);
    }
    let mut entries = Map::new();
    entries.insert(key, value);
    write(&call.context, entries.clone(), is_destructive)?;
    Ok(told("", entries, true))
}

/// A grain with a value put under a key of it; nothing if it is something else that must be forced away.
fn put_inside(around: Value, key: &str, value: Value, is_destructive: bool, is_forced: bool) -> Option<Value> {
    match around {
        Value::Map(mut map) => {
            if value.is_nil() && is_destructive {
                map.remove(key);
            } else {
                map.insert(key, value);
            }
            Some(map.into())
        }
        Value::List(mut items) => {
            let mut is_there = false;
            for item in &mut items {
                match item {
                    Value::Map(map) if map.get(key).is_some() => drop(map.insert(key, value.clone())),
                    item if item.as_str() == Some(key) => *item = Value::map([(key, value.clone())]),
                    _ => continue,
                }
                is_there = true;
            }
            if !is_there {
                items.push(Value::map([(key, value)]));
            }
            Some(items.into())
        }
        other if is_forced || other.as_str() == Some(key) => Some(Value::map([(key, value)])),
        _ => None,
    }
}

fn told(comment: &str, changes: Map, result: bool) -> super::super::Outcome {
    Value::map([("comment", Value::from(comment)), ("changes", changes.into()), ("result", result.into())]).into()
}

fn store(context: &Context, entries: Map, is_destructive: bool) -> Answer {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    write(context, entries, is_destructive)
}

/// Writes grains down, then lets them count; gives them back. Whoever calls this has the turn.
fn write(context: &Context, entries: Map, is_destructive: bool) -> Answer {
    let path = context.data_dir.join("grains");
    let mut kept = match std::fs::read_to_string(&path).map(|text| saltern_render::yaml::load(&text)) {
        Ok(Ok(Value::Map(map))) => map,
        Ok(Ok(_)) => Map::new(),
        Ok(Err(error)) => return Err(Failure::Command(format!("Unable to read existing grains file: {error}"))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Map::new(),
        Err(error) => return Err(Failure::Command(format!("Unable to read existing grains file: {error}"))),
    };
    apply(&mut kept, &entries, is_destructive);
    let text = saltern_render::yaml::to_yaml(&Value::Map(kept));
    replace_file(&path, text.as_bytes(), 0o600).map_err(|error| {
        let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        Failure::Command(format!("Unable to write to grains file at {}: {cause}", path.display()))
    })?;
    let mut now = context.grains.write().unwrap_or_else(PoisonError::into_inner);
    let mut fresh = (**now).clone();
    apply(&mut fresh, &entries, is_destructive);
    *now = Arc::new(fresh);
    Ok(entries.into())
}

fn apply(grains: &mut Map, entries: &Map, is_destructive: bool) {
    for (name, value) in entries {
        match name.as_str() {
            Some(name) if value.is_nil() && is_destructive => drop(grains.remove(name)),
            _ => drop(grains.insert(name.clone(), value.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::testing::{Bench, map};

    fn bench() -> Bench {
        let deep = Value::map([("a", Value::map([("b", 1)]))]);
        Bench::with(
            Map::new(),
            map([("roles", Value::list(["web", "db"])), ("deep", deep), ("os", "X".into())]),
            Map::new(),
        )
    }

    fn file(bench: &Bench) -> Value {
        let text = std::fs::read_to_string(bench.at("data/grains")).unwrap_or_default();
        saltern_render::yaml::load(&text).unwrap()
    }

    /// Answers of stock Salt, here and below.
    #[tokio::test]
    async fn lists_grow_and_shrink() {
        let bench = bench();
        let append = |key: &str, value: &str| [Value::from(key), Value::from(value)];
        let told = bench.call("grains.append", &append("roles", "web"), &[]).await;
        assert_eq!(told, "The val web was already in the list roles".into());
        let told = bench.call("grains.append", &append("roles", "cache"), &[]).await;
        assert_eq!(told, Value::map([("roles", Value::list(["web", "db", "cache"]))]));
        assert_eq!(file(&bench), told);
        assert_eq!(bench.call("grains.get", &["roles:2".into()], &[]).await, "cache".into());
        let told = bench.call("grains.append", &append("deep", "x"), &[]).await;
        assert_eq!(told, "The key deep is not a valid list".into());
        let told = bench.call("grains.append", &append("deep:c:l", "one"), &[]).await;
        let inner =
            Value::map([("a", Value::map([("b", 1)])), ("c", saltern_render::yaml::load("{l: [one]}").unwrap())]);
        assert_eq!(told, Value::map([("deep", inner)]));
        let told = bench.call("grains.remove", &append("roles", "db"), &[]).await;
        assert_eq!(told, Value::map([("roles", Value::list(["web", "cache"]))]));
        let told = bench.call("grains.remove", &append("roles", "nix"), &[]).await;
        assert_eq!(told, "The val nix was not in the list roles".into());
    }

    #[tokio::test]
    async fn maps_and_lists_are_only_removed_by_force() {
        let bench = bench();
        let told = bench.try_call("grains.delkey", &["roles".into()], &[]).await.unwrap();
        let text = "The key 'roles' exists but is a dict or a list. Use 'force=True' to overwrite.";
        assert_eq!((told.retcode, told.value.get("comment")), (1, Some(&text.into())));
        let told = bench.call("grains.delkey", &["roles".into()], &[("force", true.into())]).await;
        assert_eq!(told.get("changes"), Some(&Value::map([("roles", Value::Nil)])));
        assert_eq!(bench.call("grains.has_value", &["roles".into()], &[]).await, false.into());
        let told = bench.call("grains.delval", &["os".into()], &[]).await;
        assert_eq!(told.get("changes"), Some(&Value::map([("os", Value::Nil)])));
        assert_eq!(bench.call("grains.get", &["os".into(), 1.into()], &[]).await, Value::Nil);
    }

    #[tokio::test]
    async fn grains_inside_others_are_set() {
        let bench = bench();
        let told = bench.call("grains.set", &["deep:a:b".into(), 2.into()], &[]).await;
        assert_eq!(told.get("changes"), Some(&saltern_render::yaml::load("{deep: {a: {b: 2}}}").unwrap()));
        let told = bench.call("grains.set", &["deep:a:b".into(), 2.into()], &[]).await;
        assert_eq!(told.get("comment"), Some(&"Grain is already set".into()));
        let told = bench.call("grains.set", &["new:x:y".into(), 5.into()], &[]).await;
        assert_eq!(told.get("changes"), Some(&saltern_render::yaml::load("{new: {x: {y: 5}}}").unwrap()));
        let told = bench.call("grains.set", &["os:x".into(), 5.into()], &[]).await;
        let text = "The key 'os' value is 'X', which is different from the provided key 'x'. \
                    Use 'force=True' to overwrite.";
        assert_eq!(told.get("comment"), Some(&text.into()));
    }

    #[tokio::test]
    async fn values_are_stored_whatever_was_there() {
        let bench = bench();
        let value = Value::map([("x", 1)]);
        assert_eq!(
            bench.call("grains.setval", &["roles".into(), value.clone()], &[]).await,
            Value::map([("roles", value.clone())])
        );
        bench.call("grains.setvals", &[Value::map([("a", 1), ("b", 2)])], &[]).await;
        assert_eq!(file(&bench), map([("roles", value), ("a", 1.into()), ("b", 2.into())]).into());
        bench.call("grains.setval", &["a".into(), Value::Nil], &[("destructive", true.into())]).await;
        assert_eq!(file(&bench).get("a"), None);
    }

    #[tokio::test]
    async fn a_broken_file_is_not_written_over() {
        let bench = bench();
        std::fs::create_dir_all(bench.at("data")).unwrap();
        std::fs::write(bench.at("data/grains"), "a: [").unwrap();
        let text = bench.fail("grains.setval", &["a".into(), 1.into()], &[]).await;
        assert!(text.starts_with("ERROR: Unable to read existing grains file"), "{text}");
        assert_eq!(std::fs::read_to_string(bench.at("data/grains")).unwrap(), "a: [");
    }
}
