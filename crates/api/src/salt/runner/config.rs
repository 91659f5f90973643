//! `config.get`: what clients may know of the configuration.

use crate::salt::function::{Call, Function, Outcome};
use crate::salt::wheel::shown_config;
use saltern_core::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[Function {
    name: "config.get",
    params: "key, default=, delimiter=:",
    doc: "Shows a setting; only those that are meant for clients, see wheel function config.values.",
    secret: false,
    run: |call| Box::pin(get(call)),
}];

async fn get(call: Call) -> Outcome {
    let (key, delimiter) = (call.given.required("key")?, call.given.text("delimiter")?);
    let delimiter = delimiter.filter(|delimiter| !delimiter.is_empty()).unwrap_or_else(|| ":".into());
    let config = Value::Map(shown_config(&call.salt));
    let default = call.given.get("default").cloned().unwrap_or_else(|| "".into());
    Ok(find(&config, &key, &delimiter).cloned().unwrap_or(default))
}

/// The value at a path of keys.
fn find<'a>(config: &'a Value, key: &str, delimiter: &str) -> Option<&'a Value> {
    config.get(key).or_else(|| key.split(delimiter).try_fold(config, |value, part| value.get(part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_may_be_a_path() {
        let config: Value = serde_json::from_str(r#"{"a": {"b": 1}, "c:d": 2}"#).unwrap();
        assert_eq!(find(&config, "a:b", ":"), Some(&1.into()));
        assert_eq!(find(&config, "c:d", ":"), Some(&2.into()));
        assert_eq!(find(&config, "a:x", ":"), None);
    }
}
