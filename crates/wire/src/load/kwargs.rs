//! Keyword arguments, which travel as a marked map among the positional ones.

use saltern_core::value::{Map, Value};

const MARK: &str = "__kwarg__";

/// One argument that holds these keyword arguments.
pub fn kwargs(named: Map) -> Value {
    let mut map = Map::with_capacity(named.len() + 1);
    map.push(MARK, true);
    for (name, value) in named {
        if name.as_str() != Some(MARK) {
            map.push(name, value);
        }
    }
    Value::Map(map)
}

/// Parts arguments into positional and named ones; of two with the same name the later wins.
pub fn split_kwargs(args: &[Value]) -> (Vec<&Value>, Map) {
    let (mut positional, mut named) = (Vec::with_capacity(args.len()), Map::new());
    for arg in args {
        match arg.as_map().filter(|map| map.get(MARK).is_some_and(Value::is_truthy)) {
            // Normally there is one such map, whose own names do not repeat.
            Some(map) if named.is_empty() => {
                named = map.iter().filter(|(name, _)| name.as_str() != Some(MARK)).cloned().collect();
            }
            Some(map) => {
                for (name, value) in map.iter().filter(|(name, _)| name.as_str() != Some(MARK)) {
                    named.insert(name.clone(), value.clone());
                }
            }
            None => positional.push(arg),
        }
    }
    (positional, named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_arguments_go_there_and_back() {
        let mut named = Map::new();
        named.push("cmd", "FOO=bar env");
        let args = [Value::from("x"), kwargs(named), Value::map([("plain", 1)])];
        assert_eq!(args[1].get("__kwarg__"), Some(&Value::Bool(true)));
        let (positional, named) = split_kwargs(&args);
        assert_eq!(positional, [&args[0], &args[2]]);
        assert_eq!(named.get("cmd").unwrap().as_str(), Some("FOO=bar env"));
        assert_eq!(named.len(), 1);
    }

    #[test]
    fn a_map_whose_mark_is_false_is_positional() {
        let args = [Value::map([("__kwarg__", false)])];
        assert_eq!(split_kwargs(&args).0.len(), 1);
    }
}
