//! How two pillar sources become one: Salt's merging strategies.

use std::collections::HashMap;

use saltern_core::value::{Map, Value};

/// `pillar_source_merging_strategy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// What fits the renderer: for `jinja|yaml` and `json`, recursion.
    #[default]
    Smart,
    /// Maps are merged at every level; of other things the later wins.
    Recurse,
    /// As `Overwrite`: only the yamlex renderer, which is not here, can mark what to aggregate.
    Aggregate,
    /// Of each top-level key the later wins.
    Overwrite,
    /// A top-level key in both becomes a list of both; a key only in the later is dropped. So does Salt.
    List,
    /// One environment only; inside it, recursion.
    None,
}

impl Strategy {
    /// The strategy of that name. An unknown one is recursion in Salt, which logs it: so should the caller.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "smart" => Self::Smart,
            "recurse" => Self::Recurse,
            "aggregate" => Self::Aggregate,
            "overwrite" => Self::Overwrite,
            "list" => Self::List,
            "none" => Self::None,
            _ => return None,
        })
    }
}

/// Merges `over` into `base`; what `over` says wins where both speak.
pub fn merge(base: Map, over: Map, strategy: Strategy, merge_lists: bool) -> Map {
    match strategy {
        Strategy::Smart | Strategy::Recurse => update(base, over, merge_lists),
        Strategy::None => update(base, over, false),
        Strategy::Overwrite | Strategy::Aggregate => overwrite(base, over),
        Strategy::List => list(base, &over),
    }
}

/// Salt's `dictupdate.update`: maps are merged at every level, lists appended without repeating if `merge_lists`.
pub fn update(base: Map, over: Map, merge_lists: bool) -> Map {
    let mut entries: Vec<(Value, Value)> = base.into_iter().collect();
    // Where the text keys are: a pillar may have thousands, and a map alone would look through all of them each time.
    let places = entries.iter().enumerate().filter_map(|(at, (key, _))| Some((key.as_str()?.to_owned(), at)));
    let places: HashMap<String, usize> = places.collect();
    for (key, value) in over {
        let at = match key.as_str() {
            Some(text) => places.get(text).copied(),
            None => entries.iter().position(|(known, _)| *known == key),
        };
        let Some(at) = at else {
            entries.push((key, value));
            continue;
        };
        let slot = &mut entries[at].1;
        *slot = match (std::mem::take(slot), value) {
            (Value::Map(below), Value::Map(above)) => Value::Map(update(below, above, merge_lists)),
            (Value::List(mut below), Value::List(above)) if merge_lists => {
                let known = below.len();
                below.extend(above);
                Value::List(without_repeats(below, known))
            }
            (_, above) => above,
        };
    }
    entries.into_iter().collect()
}

/// Drops the items from `known` on that are among the first `known` already, as Python's `x not in merged` does.
fn without_repeats(items: Vec<Value>, known: usize) -> Vec<Value> {
    let mut kept: Vec<Value> = Vec::with_capacity(items.len());
    for (n, item) in items.into_iter().enumerate() {
        if n < known || !kept[..known].contains(&item) {
            kept.push(item);
        }
    }
    kept
}

fn overwrite(mut base: Map, over: Map) -> Map {
    for (key, value) in over {
        base.insert(key, value);
    }
    base
}

fn list(base: Map, over: &Map) -> Map {
    base.into_iter()
        .map(|(key, value)| match over.find(&key) {
            Some(above) => (key, Value::List(vec![value, above.clone()])),
            None => (key, value),
        })
        .collect()
}
