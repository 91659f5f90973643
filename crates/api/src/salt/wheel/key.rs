//! `key.*`: which keys there are, and decisions about them.
//!
//! Answers are grouped as Salt's key directories are: `minions`, `minions_pre`, `minions_rejected`, `minions_denied`, and
//! `local` for the server's own.

use crate::salt::function::{Call, Function, Outcome, Trouble, split};
use md5::Md5;
use saltern_core::ids::MinionId;
use saltern_core::keys::KeyState;
use saltern_core::target::Glob;
use saltern_core::value::{Map, Value};
use saltern_server::Class;
use saltern_server::app::{KeyEntry, KeyMatch, KeyVerb};
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha384, Sha512};

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "key.list_all",
        params: "",
        doc: "Lists the keys there are.",
        secret: false,
        run: |call| Box::pin(list_all(call)),
    },
    Function {
        name: "key.list",
        params: "match",
        doc: "Lists the keys in a state: accepted, unaccepted, rejected, denied, or all.",
        secret: false,
        run: |call| Box::pin(list(call)),
    },
    Function {
        name: "key.name_match",
        params: "match",
        doc: "Lists the keys of ids that match a glob.",
        secret: false,
        run: |call| Box::pin(name_match(call)),
    },
    Function {
        name: "key.glob_match",
        params: "match",
        doc: "Lists the keys of ids that match a glob.",
        secret: false,
        run: |call| Box::pin(name_match(call)),
    },
    Function {
        name: "key.finger",
        params: "match, hash_type=sha256",
        doc: "Shows the fingerprints of keys.",
        secret: false,
        run: |call| Box::pin(finger(call)),
    },
    Function {
        name: "key.finger_master",
        params: "hash_type=sha256",
        doc: "Shows the fingerprint of the server's own key, by SHA-256.",
        secret: false,
        run: |call| Box::pin(finger_master(call)),
    },
    Function {
        name: "key.print",
        params: "match",
        doc: "Shows public keys.",
        secret: false,
        run: |call| Box::pin(print(call)),
    },
    Function {
        name: "key.accept",
        params: "match, include_rejected=False, include_denied=False",
        doc: "Accepts keys that wait; told so, also rejected or denied ones.",
        secret: false,
        run: |call| Box::pin(decide(call, KeyVerb::Accept)),
    },
    Function {
        name: "key.accept_dict",
        params: "match, include_rejected=False, include_denied=False",
        doc: "Accepts keys that are named by their state.",
        secret: false,
        run: |call| Box::pin(decide(call, KeyVerb::Accept)),
    },
    Function {
        name: "key.reject",
        params: "match, include_accepted=False, include_denied=False",
        doc: "Rejects keys that wait; told so, also accepted or denied ones.",
        secret: false,
        run: |call| Box::pin(decide(call, KeyVerb::Reject)),
    },
    Function {
        name: "key.reject_dict",
        params: "match, include_accepted=False, include_denied=False",
        doc: "Rejects keys that are named by their state.",
        secret: false,
        run: |call| Box::pin(decide(call, KeyVerb::Reject)),
    },
    Function {
        name: "key.delete",
        params: "match",
        doc: "Deletes keys; their minions may present themselves again.",
        secret: false,
        run: |call| Box::pin(delete(call)),
    },
    Function {
        name: "key.delete_dict",
        params: "match",
        doc: "Deletes keys that are named by their state.",
        secret: false,
        run: |call| Box::pin(delete(call)),
    },
    Function {
        name: "key.gen",
        params: "id_=None, keysize=2048",
        doc: "Makes a pair of keys and keeps neither.",
        secret: true,
        run: |call| Box::pin(make(call, false)),
    },
    Function {
        name: "key.gen_accept",
        params: "id_, keysize=2048, force=False",
        doc: "Makes a pair of keys and accepts the public one; gives nothing if the id has a key, unless forced.",
        secret: true,
        run: |call| Box::pin(make(call, true)),
    },
];

/// The order in which Salt lists states.
const STATES: [KeyState; 4] = [KeyState::Unaccepted, KeyState::Rejected, KeyState::Accepted, KeyState::Denied];

/// The server's own files, as 3006 and 3007 list them.
const OWN: [&str; 2] = ["master.pem", "master.pub"];

const fn folder(state: KeyState) -> &'static str {
    match state {
        KeyState::Accepted => "minions",
        KeyState::Unaccepted => "minions_pre",
        KeyState::Rejected => "minions_rejected",
        KeyState::Denied => "minions_denied",
    }
}

/// Keys by state; states without keys are there if `with_empty`.
fn grouped(keys: &[KeyEntry], with_empty: bool) -> Map {
    let mut all = Map::new();
    for state in STATES {
        let ids: Vec<Value> =
            keys.iter().filter(|key| key.state == state).map(|key| Value::from(&key.minion)).collect();
        if with_empty || !ids.is_empty() {
            all.push(folder(state), Value::List(ids));
        }
    }
    all
}

/// Something of each key, by state and id.
fn each(keys: &[KeyEntry], of: impl Fn(&KeyEntry) -> String) -> Map {
    let mut all = Map::new();
    for state in STATES {
        let told: Map = keys
            .iter()
            .filter(|key| key.state == state)
            .map(|key| (Value::from(&key.minion), of(key).into()))
            .collect();
        if !told.is_empty() {
            all.push(folder(state), told);
        }
    }
    all
}

async fn list_all(call: Call) -> Outcome {
    let mut all = grouped(&call.salt.app.keys(&call.caller), true);
    all.push("local", Value::list(OWN));
    Ok(all.into())
}

async fn list(call: Call) -> Outcome {
    let wanted = call.given.required("match")?;
    if wanted == "all" {
        return list_all(call).await;
    }
    // By its beginning, as salt-key takes it.
    let state = KeyState::parse(&wanted).or_else(|| {
        let beginnings = [
            ("acc", KeyState::Accepted),
            ("pre", KeyState::Unaccepted),
            ("un", KeyState::Unaccepted),
            ("rej", KeyState::Rejected),
            ("den", KeyState::Denied),
        ];
        beginnings.into_iter().find(|(beginning, _)| wanted.starts_with(beginning)).map(|(_, state)| state)
    });
    let Some(state) = state else { return Ok(Value::Map(Map::new())) };
    let keys = call.salt.app.keys(&call.caller);
    let ids = keys.iter().filter(|key| key.state == state).map(|key| Value::from(&key.minion));
    Ok(Value::map([(folder(state), Value::List(ids.collect()))]))
}

/// The keys that `match` means: ids and globs with commas between, or ids by state.
fn meant(call: &Call) -> Result<Vec<KeyEntry>, Trouble> {
    let keys = call.salt.app.keys(&call.caller);
    match call.given.get("match") {
        Some(Value::Map(by_state)) => Ok(of_states(keys, by_state)),
        Some(Value::List(_) | Value::Text(_)) => {
            let patterns = call.given.texts("match")?.unwrap_or_default();
            Ok(matching(keys, &patterns))
        }
        _ => Err(Trouble::Raised("'match' must be a glob, ids with commas between, or ids by state".into())),
    }
}

fn matching(keys: Vec<KeyEntry>, patterns: &[String]) -> Vec<KeyEntry> {
    let globs: Vec<Glob> = patterns.iter().flat_map(|text| split(text)).map(|text| Glob::new(&text)).collect();
    keys.into_iter().filter(|key| globs.iter().any(|glob| glob.matches(key.minion.as_str()))).collect()
}

fn of_states(keys: Vec<KeyEntry>, by_state: &Map) -> Vec<KeyEntry> {
    let named = |key: &KeyEntry| {
        let ids = by_state.get(folder(key.state)).and_then(Value::as_list).unwrap_or_default();
        ids.iter().any(|id| id.as_str() == Some(key.minion.as_str()))
    };
    keys.into_iter().filter(named).collect()
}

async fn name_match(call: Call) -> Outcome {
    Ok(grouped(&meant(&call)?, false).into())
}

/// The fingerprint of a key in the way that is asked for.
fn fingerprint(key: &KeyEntry, hash_type: &str) -> Option<String> {
    // The lines between the first and the last one, as Salt takes them.
    let lines: String =
        key.pem.lines().filter(|line| !line.starts_with("-----")).flat_map(|line| [line, "\n"]).collect();
    let sum = match hash_type {
        "" | "sha256" => return Some(key.fingerprint.clone()),
        "md5" => Md5::digest(&lines).to_vec(),
        "sha1" => Sha1::digest(&lines).to_vec(),
        "sha224" => Sha224::digest(&lines).to_vec(),
        "sha384" => Sha384::digest(&lines).to_vec(),
        "sha512" => Sha512::digest(&lines).to_vec(),
        _ => return None,
    };
    Some(sum.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":"))
}

async fn finger(call: Call) -> Outcome {
    let hash_type = call.given.text("hash_type")?.unwrap_or_default();
    let keys = meant(&call)?;
    if keys.iter().any(|key| fingerprint(key, &hash_type).is_none()) {
        return Err(Trouble::Raised(format!("there is no hash type {hash_type:?}")));
    }
    let mut told = each(&keys, |key| fingerprint(key, &hash_type).unwrap_or_default());
    if call.given.texts("match")?.is_some_and(|patterns| patterns.iter().any(|pattern| pattern == "*")) {
        told.push("local", own_finger(&call));
    }
    Ok(told.into())
}

fn own_finger(call: &Call) -> Value {
    Value::map([("master.pub", call.salt.app.master_fingerprint())])
}

async fn finger_master(call: Call) -> Outcome {
    Ok(Value::map([("local", own_finger(&call))]))
}

async fn print(call: Call) -> Outcome {
    Ok(each(&meant(&call)?, |key| key.pem.clone()).into())
}

/// Accepts or rejects, and tells where the keys that were meant are afterwards.
async fn decide(call: Call, verb: KeyVerb) -> Outcome {
    let usual = [
        (KeyState::Unaccepted, true),
        (KeyState::Accepted, call.given.flag("include_accepted")),
        (KeyState::Rejected, call.given.flag("include_rejected")),
        (KeyState::Denied, call.given.flag("include_denied")),
    ];
    let applies = |state: KeyState| usual.contains(&(state, true));
    let meant = meant(&call)?;
    let decided: Vec<(MinionId, KeyState)> =
        meant.iter().filter(|key| applies(key.state)).map(|key| (key.minion.clone(), key.state)).collect();
    if !decided.is_empty() {
        let also: Vec<KeyState> = usual.iter().filter(|(_, wanted)| *wanted).map(|(state, _)| *state).collect();
        carry_out(&call, verb, decided, &also).await?;
    }
    let ids: Vec<MinionId> = meant.into_iter().map(|key| key.minion).collect();
    let now = call.salt.app.keys(&call.caller).into_iter().filter(|key| ids.contains(&key.minion)).collect::<Vec<_>>();
    Ok(grouped(&now, false).into())
}

async fn delete(call: Call) -> Outcome {
    let meant: Vec<(MinionId, KeyState)> = meant(&call)?.into_iter().map(|key| (key.minion, key.state)).collect();
    if !meant.is_empty() {
        carry_out(&call, KeyVerb::Delete, meant, &[]).await?;
    }
    Ok(Value::Map(Map::new()))
}

async fn carry_out(
    call: &Call,
    verb: KeyVerb,
    keys: Vec<(MinionId, KeyState)>,
    also: &[KeyState],
) -> Result<(), Trouble> {
    match call.salt.app.decide_keys(&call.caller, verb, &KeyMatch::Keys(keys), also).await {
        Ok(_) => Ok(()),
        // Somebody was faster.
        Err(error) if error.class() == Class::NotFound => Ok(()),
        Err(error) => Err(call.trouble(error)),
    }
}

async fn make(call: Call, accept: bool) -> Outcome {
    let wrong = || Trouble::Raised("'keysize' must be a number of bits".into());
    let bits = call.given.number("keysize")?.map(|bits| u32::try_from(bits).map_err(|_| wrong())).transpose()?;
    let id = match call.given.text("id_")? {
        Some(id) if accept => Some(MinionId::new(&id).map_err(|error| Trouble::Raised(error.to_string()))?),
        _ => None,
    };
    match call.salt.app.make_keys(&call.caller, id.as_ref(), bits, call.given.flag("force")).await {
        Ok(pair) => Ok(Value::map([("priv", Value::from(pair.private.as_str())), ("pub", pair.public.into())])),
        Err(error) if error.class() == Class::Conflict => Ok(Value::Map(Map::new())),
        Err(error) => Err(call.trouble(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_core::time::Timestamp;

    fn key(id: &str, state: KeyState) -> KeyEntry {
        KeyEntry {
            minion: MinionId::new(id).unwrap(),
            state,
            fingerprint: format!("aa:{id}"),
            pem: "PEM".into(),
            since: Timestamp(0),
        }
    }

    fn keys() -> Vec<KeyEntry> {
        vec![
            key("db1", KeyState::Accepted),
            key("db1", KeyState::Denied),
            key("pend1", KeyState::Unaccepted),
            key("web1", KeyState::Accepted),
        ]
    }

    fn text(map: Map) -> String {
        serde_json::to_string(&Value::Map(map)).unwrap()
    }

    #[test]
    fn all_lists_are_there_even_if_empty() {
        assert_eq!(
            text(grouped(&keys(), true)),
            r#"{"minions_pre":["pend1"],"minions_rejected":[],"minions":["db1","web1"],"minions_denied":["db1"]}"#
        );
        assert_eq!(text(grouped(&[], false)), "{}");
    }

    #[test]
    fn ids_and_globs_can_be_joined_by_commas() {
        let ids = |patterns: &[&str]| -> Vec<String> {
            let patterns: Vec<String> = patterns.iter().map(|text| (*text).to_owned()).collect();
            matching(keys(), &patterns).iter().map(|key| key.minion.to_string()).collect()
        };
        assert_eq!(ids(&["web1, pend*"]), ["pend1", "web1"]);
        assert_eq!(ids(&["nosuch"]), [""; 0]);
        assert_eq!(ids(&["db1"]), ["db1", "db1"]);
    }

    #[test]
    fn keys_named_by_state_are_those_of_that_state() {
        let by_state = Map::from_iter([("minions_denied".into(), Value::list(["db1", "web1"]))]);
        let found = of_states(keys(), &by_state);
        assert_eq!(
            found.iter().map(|key| (key.minion.as_str(), key.state)).collect::<Vec<_>>(),
            [("db1", KeyState::Denied)]
        );
    }

    #[test]
    fn a_fingerprint_is_that_of_the_lines_between() {
        let key = KeyEntry {
            pem: "-----BEGIN PUBLIC KEY-----\nabc\n-----END PUBLIC KEY-----".into(),
            ..key("a", KeyState::Accepted)
        };
        assert_eq!(fingerprint(&key, "md5").unwrap(), "0b:ee:89:b0:7a:24:8e:27:c8:3f:c3:d5:95:12:13:c1");
        assert_eq!(fingerprint(&key, "sha256").unwrap(), "aa:a");
        assert_eq!(fingerprint(&key, "crc"), None);
    }

    #[test]
    fn fingerprints_are_by_state_and_id() {
        assert_eq!(
            text(each(&keys()[2..], |key| key.fingerprint.clone())),
            r#"{"minions_pre":{"pend1":"aa:pend1"},"minions":{"web1":"aa:web1"}}"#
        );
    }
}
