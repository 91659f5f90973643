//! `match.*`: does a target mean this minion?

use super::call::Answer;
use super::{Call, Context, Failure, Function, Param};
use saltern_core::target::{Facts, Nodegroups, Target, python_text};
use saltern_core::value::{Map, Value};
use saltern_render::merge::update;

const BY_ID: &[Param] = &[Param::Required("tgt"), Param::Optional("minion_id", "None")];
const BY_DATA: &[Param] = &[Param::Required("tgt"), Param::Optional("delimiter", "':'")];

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "match.compound",
        params: BY_ID,
        doc: "Tell whether a compound target means this minion.\n\n\
              CLI Example:\n\n    saltern run '*' match.compound 'G@os:Debian and not web1'\n",
        run: |call| call.at_once(|call| is_match(call, "compound")),
    },
    Function {
        name: "match.filter_by",
        params: &[
            Param::Required("lookup"),
            Param::Optional("tgt_type", "'compound'"),
            Param::Optional("minion_id", "None"),
            Param::Optional("merge", "None"),
            Param::Optional("merge_lists", "False"),
            Param::Optional("default", "'default'"),
        ],
        doc: "Give the value of the first target in a map that means this minion.\n\n\
              CLI Example:\n\n    saltern run '*' match.filter_by '{\"web*\": true, \"default\": false}'\n",
        run: |call| call.at_once(filter_by),
    },
    Function {
        name: "match.glob",
        params: BY_ID,
        doc: "Tell whether the id fits a pattern.\n\nCLI Example:\n\n    saltern run '*' match.glob 'web*'\n",
        run: |call| call.at_once(|call| is_match(call, "glob")),
    },
    Function {
        name: "match.grain",
        params: BY_DATA,
        doc: "Tell whether a grain fits a pattern.\n\nCLI Example:\n\n    saltern run '*' match.grain 'os:Deb*'\n",
        run: |call| call.at_once(|call| is_match(call, "grain")),
    },
    Function {
        name: "match.grain_pcre",
        params: BY_DATA,
        doc: "Tell whether a grain fits a regular expression.\n\n\
              CLI Example:\n\n    saltern run '*' match.grain_pcre 'os:Debian|Ubuntu'\n",
        run: |call| call.at_once(|call| is_match(call, "grain_pcre")),
    },
    Function {
        name: "match.ipcidr",
        params: &[Param::Required("tgt")],
        doc: "Tell whether the minion has an address, or one of a network.\n\n\
              CLI Example:\n\n    saltern run '*' match.ipcidr '192.168.44.0/24'\n",
        run: |call| call.at_once(|call| is_match(call, "ipcidr")),
    },
    Function {
        name: "match.list",
        params: BY_ID,
        doc: "Tell whether the id is in a list.\n\nCLI Example:\n\n    saltern run '*' match.list 'web1,web2'\n",
        run: |call| call.at_once(|call| is_match(call, "list")),
    },
    Function {
        name: "match.pcre",
        params: BY_ID,
        doc: "Tell whether the id fits a regular expression.\n\n\
              CLI Example:\n\n    saltern run '*' match.pcre 'web\\d+'\n",
        run: |call| call.at_once(|call| is_match(call, "pcre")),
    },
    Function {
        name: "match.pillar",
        params: BY_DATA,
        doc: "Tell whether a pillar value fits a pattern.\n\n\
              CLI Example:\n\n    saltern run '*' match.pillar 'role:w*'\n",
        run: |call| call.at_once(|call| is_match(call, "pillar")),
    },
    Function {
        name: "match.pillar_pcre",
        params: BY_DATA,
        doc: "Tell whether a pillar value fits a regular expression.\n\n\
              CLI Example:\n\n    saltern run '*' match.pillar_pcre 'role:web|db'\n",
        run: |call| call.at_once(|call| is_match(call, "pillar_pcre")),
    },
    Function {
        name: "match.search_by",
        params: &[
            Param::Required("lookup"),
            Param::Optional("tgt_type", "'compound'"),
            Param::Optional("minion_id", "None"),
        ],
        doc: "List the keys of a map of targets that have one that means this minion, or None.\n\n\
              CLI Example:\n\n    saltern run '*' match.search_by '{\"web\": [\"web*\"], \"db\": [\"db*\"]}'\n",
        run: |call| call.at_once(search_by),
    },
];

/// What is known of the minion that is asked about.
struct Known {
    id: String,
    grains: Value,
    pillar: Value,
}

impl Known {
    fn new(context: &Context, id: Option<String>) -> Self {
        Self {
            id: id.unwrap_or_else(|| context.id.to_string()),
            grains: (*context.grains()).clone().into(),
            pillar: (*context.pillar()).clone().into(),
        }
    }

    /// Whether a target means it; one that cannot be understood means nobody.
    fn is_meant(&self, kind: &str, target: &Value, delimiter: Option<&str>, nodegroups: &Nodegroups) -> bool {
        let target = Target::read(kind, target, delimiter).and_then(|target| target.compile(nodegroups));
        match target {
            Ok(matcher) => matcher.matches(self),
            Err(error) => {
                tracing::warn!(%error, "a target could not be understood");
                false
            }
        }
    }
}

impl Facts for Known {
    fn id(&self) -> &str {
        &self.id
    }

    fn grains(&self) -> Option<&Value> {
        Some(&self.grains)
    }

    fn pillar(&self) -> Option<&Value> {
        Some(&self.pillar)
    }
}

fn known(call: &Call) -> Result<Known, Failure> {
    let id = if call.has_param("minion_id") { call.opt_text("minion_id")? } else { None };
    Ok(Known::new(&call.context, id))
}

fn nodegroups(call: &Call) -> Nodegroups {
    let configured = call.context.opts.get("nodegroups").map(Nodegroups::from_value);
    configured.and_then(Result::ok).unwrap_or_default()
}

fn is_match(call: &Call, kind: &str) -> Answer {
    let delimiter = if call.has_param("delimiter") { call.opt_text("delimiter")? } else { None };
    let target = call.get("tgt").cloned().unwrap_or_default();
    Ok(known(call)?.is_meant(kind, &target, delimiter.as_deref(), &nodegroups(call)).into())
}

fn filter_by(call: &Call) -> Answer {
    let (known, nodegroups, lookup) = (known(call)?, nodegroups(call), lookup(call)?);
    let kind = call.opt_text("tgt_type")?.unwrap_or_else(|| "compound".into());
    let Some((_, found)) = lookup.iter().find(|(target, _)| known.is_meant(&kind, target, None, &nodegroups)) else {
        let default = call.opt_text("default")?.unwrap_or_else(|| "default".into());
        return Ok(lookup.get(&default).cloned().unwrap_or_default().into());
    };
    match (call.get("merge").filter(|merge| merge.is_truthy()), found) {
        (None, found) => Ok(found.clone().into()),
        (Some(Value::Map(merge)), Value::Nil) => Ok(merge.clone().into()),
        (Some(Value::Map(merge)), Value::Map(found)) => {
            Ok(update(found.clone(), merge.clone(), call.flag("merge_lists", false)).into())
        }
        (Some(_), _) => Err(Failure::Exception("filter_by merge argument must be a dictionary.".into())),
    }
}

fn search_by(call: &Call) -> Answer {
    let (known, nodegroups) = (known(call)?, nodegroups(call));
    let kind = call.opt_text("tgt_type")?.unwrap_or_else(|| "compound".into());
    let fits = |targets: &Value| match targets {
        Value::List(items) => items.iter().any(|target| known.is_meant(&kind, target, None, &nodegroups)),
        target => python_text(target).split(',').any(|word| known.is_meant(&kind, &word.into(), None, &nodegroups)),
    };
    let matches: Vec<Value> =
        lookup(call)?.iter().filter(|(_, targets)| fits(targets)).map(|(key, _)| key.clone()).collect();
    Ok(if matches.is_empty() { Value::Nil.into() } else { matches.into() })
}

fn lookup(call: &Call) -> Result<&Map, Failure> {
    let lookup = call.get("lookup").and_then(Value::as_map);
    lookup.ok_or_else(|| Failure::Arguments("'lookup' must be a map".into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::testing::{Bench, map};

    async fn check(name: &str, target: impl Into<Value>, expected: bool) {
        let bench = Bench::with(Map::new(), map([("os", "Debian".into())]), map([("role", "web".into())]));
        let target = target.into();
        assert_eq!(bench.call(name, std::slice::from_ref(&target), &[]).await, expected.into(), "{name} {target:?}");
    }

    #[tokio::test]
    async fn every_kind_of_target_can_be_asked() {
        check("match.glob", "m*", true).await;
        check("match.glob", "x*", false).await;
        check("match.list", "a,m1", true).await;
        check("match.list", Value::list(["m1"]), true).await;
        check("match.pcre", "m[0-9]", true).await;
        check("match.grain", "os:Deb*", true).await;
        check("match.grain_pcre", "os:deb.an", true).await;
        check("match.pillar", "role:w*", true).await;
        check("match.compound", "G@os:Debian and not m2", true).await;
        check("match.compound", "G@os:Debian and", false).await;
        check("match.ipcidr", "10.0.0.0/8", false).await;
    }

    #[tokio::test]
    async fn another_id_can_be_asked_about() {
        let bench = Bench::new();
        assert_eq!(bench.call("match.glob", &["web*".into(), "web1".into()], &[]).await, true.into());
    }

    #[tokio::test]
    async fn maps_are_searched_by_target() {
        let bench = Bench::new();
        let lookup = Value::map([("x*", Value::from(1)), ("m*", Value::map([("a", 1)])), ("default", 3.into())]);
        let kwargs = [("merge", Value::map([("b", 2)]))];
        assert_eq!(bench.call("match.filter_by", &[lookup], &kwargs).await, Value::map([("a", 1), ("b", 2)]));
        let lookup = Value::map([("x*", 1), ("default", 3)]);
        assert_eq!(bench.call("match.filter_by", &[lookup], &[]).await, 3.into());
        let lookup = Value::map([("a", Value::list(["x", "m*"])), ("b", "y".into()), ("c", "z,m1".into())]);
        assert_eq!(bench.call("match.search_by", &[lookup], &[]).await, Value::list(["a", "c"]));
    }
}
