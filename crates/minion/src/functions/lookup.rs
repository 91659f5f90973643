//! Finding a value by a key such as `roles:0:name`, as `pillar.get` and its relatives do.

use super::call::Answer;
use super::{Call, Failure};
use saltern_core::target::{Glob, python_text};
use saltern_core::value::{Map, Value};
use saltern_render::merge::update;

/// What Salt puts between the parts of a key where nothing else is said.
pub(super) const COLON: &str = ":";

/// Walks down by the parts of `key`: keys of maps, indexes of lists, or a key inside any map of a list.
pub(super) fn find<'v>(data: &'v Map, key: &str, delimiter: &str) -> Option<&'v Value> {
    // Splitting at nothing would give the letters.
    let parts: Vec<&str> = if delimiter.is_empty() { vec![key] } else { key.split(delimiter).collect() };
    let (first, rest) = parts.split_first()?;
    rest.iter().try_fold(in_map(data, first)?, |at, part| match at {
        Value::Map(map) => in_map(map, part),
        Value::List(items) => in_list(items, part),
        _ => None,
    })
}

/// The parameter `delimiter`, or a colon.
pub(super) fn delimiter(call: &Call) -> Result<String, Failure> {
    Ok(call.opt_text("delimiter")?.unwrap_or_else(|| COLON.into()))
}

/// The key without its last part, and that part.
pub(super) fn split_last<'k>(key: &'k str, delimiter: &str) -> Option<(&'k str, &'k str)> {
    if delimiter.is_empty() { None } else { key.rsplit_once(delimiter) }
}

/// Chooses from the parameter `lookup_dict` by a value, or by the first value of a list that fits; for `*.filter_by`.
pub(super) fn filter_by(call: &Call, value: Option<&Value>) -> Answer {
    let table = call.get("lookup_dict").and_then(Value::as_map);
    let table = table.ok_or_else(|| Failure::Arguments("'lookup_dict' must be a map".into()))?;
    let values = match value {
        None => &[],
        Some(Value::List(items)) => items.as_slice(),
        Some(value) => std::slice::from_ref(value),
    };
    let fitting = |value: &Value| {
        let entry = table.iter().find(|(key, _)| Glob::new(&python_text(key)).matches(&python_text(value)));
        entry.map(|(_, chosen)| chosen).filter(|chosen| !chosen.is_nil())
    };
    let default = call.opt_text("default")?.unwrap_or_else(|| "default".into());
    let mut chosen = values.iter().find_map(fitting).or_else(|| table.get(&default)).cloned().unwrap_or_default();
    let base = call.opt_text("base")?.and_then(|base| table.get(&base));
    chosen = match (base, chosen) {
        (Some(base), Value::Nil) => base.clone(),
        (Some(Value::Map(base)), Value::Map(over)) => update(base.clone(), over, false).into(),
        (Some(Value::Map(_)), _) => {
            let text = "filter_by default and look-up values must both be dictionaries.";
            return Err(Failure::Exception(text.into()));
        }
        (_, chosen) => chosen,
    };
    match (call.get("merge").filter(|merge| merge.is_truthy()), chosen) {
        (None, chosen) => Ok(chosen.into()),
        (Some(Value::Map(merge)), Value::Nil) => Ok(merge.clone().into()),
        (Some(Value::Map(merge)), Value::Map(chosen)) => Ok(update(chosen, merge.clone(), false).into()),
        (Some(_), _) => Err(Failure::Exception("filter_by merge argument must be a dictionary.".into())),
    }
}

fn in_map<'v>(map: &'v Map, part: &str) -> Option<&'v Value> {
    // Keys that are numbers or truth values are written as YAML.
    map.get(part).or_else(|| saltern_render::yaml::load(part).ok().and_then(|key| map.find(&key)))
}

fn in_list<'v>(items: &'v [Value], part: &str) -> Option<&'v Value> {
    let index = part.trim().parse::<i64>().ok();
    let key = index.map_or_else(|| Value::from(part), Value::from);
    let inside = items.iter().filter_map(Value::as_map).find_map(|map| map.find(&key));
    inside.or_else(|| {
        let index = index?;
        let from_start = if index < 0 { index + i64::try_from(items.len()).ok()? } else { index };
        items.get(usize::try_from(from_start).ok()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::testing::map;

    fn data() -> Map {
        let inner = Value::map([("b", Value::list([Value::from("x"), Value::map([("c", 7)])]))]);
        let mut data = map([("a", inner), ("n:m", "flat".into())]);
        data.insert(1, "one");
        data
    }

    #[test]
    fn keys_lead_through_maps_and_lists() {
        let data = data();
        assert_eq!(find(&data, "a:b:0", ":"), Some(&"x".into()));
        assert_eq!(find(&data, "a:b:-1:c", ":"), Some(&7.into()));
        assert_eq!(find(&data, "a:b:c", ":"), Some(&7.into()));
        assert_eq!(find(&data, "a/b/0", "/"), Some(&"x".into()));
        assert_eq!(find(&data, "1", ":"), Some(&"one".into()));
        assert_eq!(find(&data, "n:m", ""), Some(&"flat".into()));
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        let data = data();
        for key in ["", "x", "a:x", "a:b:2", "a:b:0:c", "n:m"] {
            assert_eq!(find(&data, key, ":"), None, "{key:?}");
        }
    }
}
