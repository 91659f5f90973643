//! What a 3008 answer looks like in the dialect of 3006 and 3007, which is the one that is spoken here.
//!
//! The existing clients were written for it, and some of them misread what 3008 says instead.

use serde_json::{Map, Value, json};

/// Rewrites an answer of a newer salt-api to what an older one would have said.
pub(crate) fn older(value: &mut Value) {
    match value {
        Value::Object(object) => {
            ghosts(object);
            keys(object);
            wheel(object);
            object.retain(|key, _| !ONLY_NEWER.contains(&key.as_str()));
            if let Some(Value::Array(clients)) = object.get_mut("clients") {
                clients.retain(|client| client != "destroy");
            }
            object.values_mut().for_each(older);
        }
        Value::Array(list) => list.iter_mut().for_each(older),
        _ => {}
    }
}

/// Fields that 3008 added to what minions are told and say.
const ONLY_NEWER: [&str; 8] = [
    "__pub_resource_targets",
    "__pub_pure_resource_target",
    "__pub_minion_is_target",
    "resource_targets",
    "pure_resource_target",
    "minion_is_target",
    "ts",
    "__state_ran__",
];

/// A minion that has a key and does not answer is `false`; one without a key is a text in every version.
fn ghosts(object: &mut Map<String, Value>) {
    if let Some(ghost) = object.get_mut("ghost1") {
        let is_text = ghost.as_str().is_some_and(|text| text.starts_with("Minion did not return. [No response]"));
        if is_text || ghost["out"] == "no_return" {
            *ghost = json!(false);
        }
    }
}

/// The server's own key is called `master`, whatever the server is called.
fn keys(object: &mut Map<String, Value>) {
    match object.get_mut("local") {
        Some(Value::Array(names)) => *names = vec![json!("master.pem"), json!("master.pub")],
        Some(Value::Object(fingers)) => {
            let finger = fingers.values().next().cloned().unwrap_or_default();
            *fingers = Map::from_iter([("master.pub".to_owned(), finger)]);
        }
        _ => {}
    }
}

/// What a wheel function gives has a stamp.
fn wheel(object: &mut Map<String, Value>) {
    let is_wheel = object.get("fun").and_then(Value::as_str).is_some_and(|fun| fun.starts_with("wheel."));
    if is_wheel && object.contains_key("success") && !object.contains_key("_stamp") {
        object.insert("_stamp".into(), json!("2026-11-15T19:00:00.000000"));
    }
}

/// The set-up behind the captures of 3006 had one minion less: `db1` answers what `web1` does.
pub(crate) fn with_db1(value: &mut Value) {
    match value {
        Value::Object(object) => {
            if let (Some(web1), true, false) =
                (object.get("web1").cloned(), object.contains_key("ghost1"), object.contains_key("db1"))
            {
                object.insert("db1".into(), web1);
            }
            if let Some(Value::Object(results)) = object.get_mut("Result")
                && let Some(web1) = results.get("web1").cloned()
            {
                results.entry("db1").or_insert(web1);
            }
            object.values_mut().for_each(with_db1);
        }
        Value::Array(list) => {
            if list.contains(&json!("web1")) && !list.contains(&json!("db1")) {
                list.push(json!("db1"));
            }
            list.iter_mut().for_each(with_db1);
        }
        _ => {}
    }
}

/// Removes what is said here in addition: what minions are told so that they say when they begin, which functions that give
/// back all they were told show; and when a return came, which 3008 tells, too.
pub(crate) fn without_additions(value: &mut Value) {
    match value {
        Value::Object(object) => {
            for name in ["__pub_metadata", "metadata"] {
                let metadata = object.get_mut(name).and_then(Value::as_object_mut);
                if metadata.is_some_and(|metadata| metadata.remove("saltern").is_some() && metadata.is_empty()) {
                    object.remove(name);
                }
            }
            object.retain(|key, _| key != "__pub_module_executors" && key != "module_executors");
            if object.contains_key("cmd") {
                object.remove("ts");
            }
            object.values_mut().for_each(without_additions);
        }
        Value::Array(list) => list.iter_mut().for_each(without_additions),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn becomes(mut newer: Value, expected: Value) {
        older(&mut newer);
        assert_eq!(newer, expected);
    }

    #[test]
    fn a_silent_minion_is_false_and_an_unknown_one_a_text() {
        let text = "Minion did not return. [No response]\nThe minions may not have …";
        becomes(json!([{ "ghost1": text, "nosuch": text }]), json!([{ "ghost1": false, "nosuch": text }]));
        becomes(json!([{ "ghost1": { "out": "no_return", "ret": text, "retcode": 1 } }]), json!([{ "ghost1": false }]));
        becomes(json!([{ "ghost1": {} }]), json!([{ "ghost1": {} }]));
    }

    #[test]
    fn the_servers_own_key_has_its_old_name() {
        becomes(json!({ "local": ["host1.pem", "host1.pub"] }), json!({ "local": ["master.pem", "master.pub"] }));
        becomes(json!({ "local": { "host1.pub": "02:d7" } }), json!({ "local": { "master.pub": "02:d7" } }));
    }

    #[test]
    fn what_is_said_in_addition_is_removed_and_nothing_else() {
        let mut got = json!({ "__pub_metadata": { "saltern": { "action": 1 } }, "__pub_module_executors": [], "__pub_fun": "x",
            "metadata": { "saltern": {}, "ticket": "T-9" } });
        without_additions(&mut got);
        assert_eq!(got, json!({ "__pub_fun": "x", "metadata": { "ticket": "T-9" } }));
    }

    #[test]
    fn what_wheel_gives_has_a_stamp() {
        let mut newer = json!({ "fun": "wheel.key.list", "success": true });
        older(&mut newer);
        assert!(newer.get("_stamp").is_some());
    }
}
