//! Finding a value by a key such as `roles:0:name`, as `pillar.get` and its relatives do.

use super::{Call, Failure};
use saltern_core::value::{Map, Value};

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
