//! `grains.*`: what this machine says of itself, and what the operator says of it.
//!
//! Reading is here; changing the operator's grains is in `change`.

mod change;

use super::call::Answer;
use super::{Call, Function, Param, lookup};
use saltern_core::target::python_text;
use saltern_core::value::{Map, Value};

pub(super) use change::FUNCTIONS as CHANGING;

const GET: &[Param] = &[
    Param::Required("key"),
    Param::Optional("default", "''"),
    Param::Optional("delimiter", "':'"),
    Param::Optional("ordered", "True"),
];

const GET_DOC: &str = "Give the value under a key, or the default.\n\n\
    Parts separated by the delimiter lead into maps and lists: 'ip_interfaces:eth0:0'.\n\n\
    CLI Example:\n\n    saltern run '*' grains.get roles default='[]'\n";

/// Grains that tell which machine this is, and what is said instead where nobody may know.
const TELLING: [(&str, &str); 6] = [
    ("domain", "DOMAINNAME"),
    ("fqdn", "MINION.DOMAINNAME"),
    ("host", "MINION"),
    ("id", "MINION.DOMAINNAME"),
    ("localhost", "MINION"),
    ("nodename", "MINION"),
];

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "grains.equals",
        params: &[Param::Required("key"), Param::Required("value")],
        doc: "Tell whether a grain has this value; both are compared as text.\n\n\
              CLI Example:\n\n    saltern run '*' grains.equals os Debian\n",
        run: |call| {
            call.at_once(|call| {
                let grains = call.context.grains();
                let grain =
                    lookup::find(&grains, &call.text("key")?, lookup::COLON).map(python_text).unwrap_or_default();
                Ok((grain == python_text(call.given("value").unwrap_or(&Value::Nil))).into())
            })
        },
    },
    Function { name: "grains.fetch", params: GET, doc: GET_DOC, run: |call| call.at_once(get) },
    Function {
        name: "grains.filter_by",
        params: &[
            Param::Required("lookup_dict"),
            Param::Optional("grain", "'os_family'"),
            Param::Optional("merge", "None"),
            Param::Optional("default", "'default'"),
            Param::Optional("base", "None"),
        ],
        doc: "Choose from a map by the value of a grain.\n\n\
              CLI Example:\n\n    saltern run '*' grains.filter_by '{Debian: apache2, RedHat: httpd, default: none}'\n",
        run: |call| {
            call.at_once(|call| {
                let grains = call.context.grains();
                let grain = call.opt_text("grain")?.unwrap_or_else(|| "os_family".into());
                lookup::filter_by(call, lookup::find(&grains, &grain, lookup::COLON))
            })
        },
    },
    Function { name: "grains.get", params: GET, doc: GET_DOC, run: |call| call.at_once(get) },
    Function {
        name: "grains.has_value",
        params: &[Param::Required("key")],
        doc: "Tell whether there is a grain under a key.\n\n\
              CLI Example:\n\n    saltern run '*' grains.has_value roles:0\n",
        run: |call| {
            call.at_once(|call| {
                Ok(lookup::find(&call.context.grains(), &call.text("key")?, lookup::COLON).is_some().into())
            })
        },
    },
    Function {
        name: "grains.item",
        params: &[
            Param::Rest("args"),
            Param::Optional("default", "''"),
            Param::Optional("delimiter", "':'"),
            Param::Optional("sanitize", "False"),
        ],
        doc: "Give the values under several keys.\n\nsanitize\n    whether what names the machine is left out\n\n\
              CLI Example:\n\n    saltern run '*' grains.item os osrelease\n",
        run: |call| call.at_once(item),
    },
    Function {
        name: "grains.items",
        params: &[Param::Optional("sanitize", "False")],
        doc: "Give all grains.\n\nsanitize\n    whether what names the machine is left out\n\n\
              CLI Example:\n\n    saltern run '*' grains.items\n",
        run: |call| call.at_once(|call| Ok(sanitized(call, (*call.context.grains()).clone()).into())),
    },
    Function {
        name: "grains.ls",
        params: &[],
        doc: "List the names of the grains.\n\nCLI Example:\n\n    saltern run '*' grains.ls\n",
        run: |call| {
            call.at_once(|call| {
                let grains = call.context.grains();
                let mut names: Vec<_> = grains.iter().map(|(name, _)| python_text(name).into_owned()).collect();
                names.sort();
                Ok(Value::list(names).into())
            })
        },
    },
];

fn get(call: &Call) -> Answer {
    let grains = call.context.grains();
    let found = lookup::find(&grains, &call.text("key")?, &lookup::delimiter(call)?);
    let default = || call.given("default").cloned().unwrap_or_else(|| "".into());
    Ok(found.cloned().unwrap_or_else(default).into())
}

fn item(call: &Call) -> Answer {
    let (grains, delimiter) = (call.context.grains(), lookup::delimiter(call)?);
    let default = call.given("default").cloned().unwrap_or_else(|| "".into());
    let value = |key: &Value| lookup::find(&grains, &python_text(key), &delimiter).unwrap_or(&default).clone();
    let items = call.rest().iter().map(|key| (key.clone(), value(key))).collect();
    Ok(sanitized(call, items).into())
}

fn sanitized(call: &Call, mut grains: Map) -> Map {
    if !call.flag("sanitize", false) {
        return grains;
    }
    for (name, instead) in TELLING {
        if let Some(value) = grains.get_mut(name) {
            *value = instead.into();
        }
    }
    if let Some(serial) = grains.get_mut("serialnumber") {
        // The last quarter is what tells one machine from the next.
        let text = python_text(serial).into_owned();
        let kept = text.chars().count() - text.chars().count() / 4;
        let hidden = text.chars().skip(kept).map(|_| 'X');
        *serial = text.chars().take(kept).chain(hidden).collect::<String>().into();
    }
    grains
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::testing::{Bench, map};

    fn bench() -> Bench {
        let deep = Value::map([("a", Value::map([("b", 1)]))]);
        let grains = [
            ("os_family", "Debian".into()),
            ("roles", Value::list(["web", "db"])),
            ("deep", deep),
            ("id", "m1".into()),
        ];
        Bench::with(Map::new(), map(grains), Map::new())
    }

    #[tokio::test]
    async fn grains_are_found_by_key_or_the_default_is_given() {
        let bench = bench();
        assert_eq!(bench.call("grains.get", &["deep:a:b".into()], &[]).await, 1.into());
        assert_eq!(bench.call("grains.get", &["nope".into()], &[]).await, "".into());
        assert_eq!(bench.call("grains.get", &["nope".into()], &[("default", 7.into())]).await, 7.into());
        assert_eq!(bench.call("grains.has_value", &["roles:1".into()], &[]).await, true.into());
        assert_eq!(bench.call("grains.has_value", &["roles:2".into()], &[]).await, false.into());
        assert_eq!(bench.call("grains.equals", &["deep:a:b".into(), "1".into()], &[]).await, true.into());
        let items = bench.call("grains.item", &["os_family".into(), "nope".into()], &[]).await;
        assert_eq!(items, map([("os_family", "Debian".into()), ("nope", "".into())]).into());
    }

    #[tokio::test]
    async fn all_grains_are_given_with_or_without_names() {
        let bench = bench();
        assert_eq!(bench.call("grains.ls", &[], &[]).await, Value::list(["deep", "id", "os_family", "roles"]));
        assert_eq!(bench.call("grains.items", &[], &[]).await.get("id"), Some(&"m1".into()));
        let items = bench.call("grains.items", &[], &[("sanitize", true.into())]).await;
        assert_eq!(items.get("id"), Some(&"MINION.DOMAINNAME".into()));
    }

    /// Answers of stock Salt.
    #[tokio::test]
    async fn a_map_is_chosen_from_merged_and_based() {
        let bench = bench();
        let one = Value::map([("Debian", "x"), ("default", "y")]);
        assert_eq!(bench.call("grains.filter_by", std::slice::from_ref(&one), &[]).await, "x".into());
        assert_eq!(bench.call("grains.filter_by", &[one, "nope".into()], &[]).await, "y".into());
        let table = Value::map([
            ("Deb*", Value::map([("a", 1)])),
            ("default", Value::map([("b", 2)])),
            ("base", Value::map([("c", 3)])),
        ]);
        let kwargs = [("merge", Value::map([("z", 9)])), ("base", "base".into())];
        let chosen = bench.call("grains.filter_by", &[table], &kwargs).await;
        assert_eq!(chosen, Value::map([("c", 3), ("a", 1), ("z", 9)]));
    }
}
