//! What a template may know and ask: grains, pillar, options, and the `salt` object with a small table of functions.
//!
//! On a stock master pillar templates can call every execution module *of the master*, `cmd.run` included. Here they can
//! call what needs nothing but the minion's own data; any other function is an error that names it.

use std::fmt;
use std::sync::Arc;

use minijinja::value::{Enumerator, Object, ObjectRepr, ValueKind, from_args};
use minijinja::{Error, ErrorKind, State, Value};
use saltern_core::target::Glob;
use saltern_core::value::{Map, Value as Core};

use super::args::Args;
use super::value::{from_jinja, map_to_jinja, new_dict, to_jinja};
use crate::merge::{self, Strategy};
use crate::targets::Matches;

/// What templates see of one minion. Cheap to clone.
#[derive(Clone)]
pub struct Scope(Arc<Inner>);

struct Inner {
    grains: Value,
    pillar: Value,
    opts: Value,
    matches: Matches,
}

impl Scope {
    /// What templates see of the minion with these grains, this pillar so far and these options.
    pub fn new(grains: &Map, pillar: &Map, opts: &Map, matches: Matches) -> Self {
        Self(Arc::new(Inner {
            grains: map_to_jinja(grains),
            pillar: map_to_jinja(pillar),
            opts: map_to_jinja(opts),
            matches,
        }))
    }

    pub(super) fn grains(&self) -> Value {
        self.0.grains.clone()
    }

    pub(super) fn pillar(&self) -> Value {
        self.0.pillar.clone()
    }

    pub(super) fn opts(&self) -> Value {
        self.0.opts.clone()
    }

    pub(super) fn salt(&self) -> Value {
        Value::from_object(Salt { scope: self.clone(), module: None })
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Grains and pillar may hold secrets.
        f.write_str("Scope")
    }
}

const FUNCTIONS: &[&str] = &[
    "config.get",
    "defaults.merge",
    "grains.fetch",
    "grains.filter_by",
    "grains.get",
    "grains.has_value",
    "grains.item",
    "grains.items",
    "match.compound",
    "match.filter_by",
    "match.glob",
    "match.grain",
    "match.grain_pcre",
    "match.ipcidr",
    "match.list",
    "match.pcre",
    "match.pillar",
    "match.pillar_pcre",
    "pillar.get",
    "pillar.item",
    "pillar.items",
    "slsutil.merge",
    "slsutil.update",
    "test.echo",
    "test.false",
    "test.ping",
    "test.true",
];

/// `salt`, `salt.grains` or `salt['grains.get']`, by what `module` says.
#[derive(Debug)]
struct Salt {
    scope: Scope,
    module: Option<String>,
}

impl Object for Salt {
    /// Iterable, so that `'cmd.run' in salt` looks into the table while `salt['cmd.run']` gives something to complain.
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        if self.module.is_none() { ObjectRepr::Iterable } else { ObjectRepr::Plain }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        if self.module.is_none() { Enumerator::Str(FUNCTIONS) } else { Enumerator::NonEnumerable }
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let key = key.as_str()?;
        let name = match &self.module {
            Some(module) => format!("{module}.{key}"),
            None => key.to_owned(),
        };
        Some(Value::from_object(Self { scope: self.scope.clone(), module: Some(name) }))
    }

    fn call(self: &Arc<Self>, _: &mut State<'_, '_>, args: &[Value]) -> Result<Value, Error> {
        match &self.module {
            Some(function) => call(&self.scope.0, function, args),
            None => Err(Error::new(ErrorKind::InvalidOperation, "salt is not a function")),
        }
    }

    fn call_method(self: &Arc<Self>, state: &mut State<'_, '_>, name: &str, args: &[Value]) -> Result<Value, Error> {
        match self.get_value(&Value::from(name)) {
            // `salt.get('mod.fun')` is how templates ask whether there is a function.
            Some(_) if self.module.is_none() && name == "get" => {
                let (function, default): (&str, Option<Value>) = from_args(args)?;
                let known = FUNCTIONS.contains(&function).then(|| self.get_value(&Value::from(function))).flatten();
                Ok(known.or(default).unwrap_or_else(|| Value::from(())))
            }
            Some(function) => function.call(state, args),
            None => Err(Error::from(ErrorKind::UnknownMethod)),
        }
    }
}

fn call(scope: &Inner, function: &str, args: &[Value]) -> Result<Value, Error> {
    let args = &Args::new(args);
    if let Some(kind) = function.strip_prefix("match.").filter(|_| FUNCTIONS.contains(&function)) {
        return match_call(scope, kind, args);
    }
    match function {
        "test.ping" | "test.true" => Ok(Value::from(true)),
        "test.false" => Ok(Value::from(false)),
        "test.echo" => args.need(0, "text"),
        "grains.get" | "grains.fetch" => get(&scope.grains, args),
        "grains.items" => Ok(scope.grains.clone()),
        "grains.item" => Ok(item(&scope.grains, args)),
        "grains.has_value" => {
            let found = traverse(&scope.grains, &args.need_text(0, "key")?, ":");
            Ok(Value::from(found.is_some_and(|value| value.is_true())))
        }
        "grains.filter_by" => filter_by(scope, args),
        "pillar.get" => get(&scope.pillar, args),
        "pillar.items" => Ok(scope.pillar.clone()),
        "pillar.item" => Ok(item(&scope.pillar, args)),
        "config.get" => config_get(scope, args),
        "slsutil.merge" => merge_call(args),
        // Both take the maps first and `merge_lists` third.
        "slsutil.update" | "defaults.merge" => {
            let merge_lists = args.flag(usize::MAX, "merge_lists");
            merge_values(&args.need(0, "dest")?, &args.need(1, "upd")?, Strategy::Recurse, merge_lists)
        }
        _ => Err(Error::new(
            ErrorKind::UnknownFunction,
            format!("the function '{function}' is not available to templates on this server"),
        )),
    }
}

/// `get(key, default='', merge=False, delimiter=':')`, for grains and pillar.
fn get(from: &Value, args: &Args<'_>) -> Result<Value, Error> {
    let key = args.need_text(0, "key")?;
    let default = args.get(1, "default").unwrap_or_else(|| Value::from(""));
    // `grains.get` has the delimiter third, but nobody passes it without its name.
    let is_merge = args.flag(2, "merge");
    let delimiter = args.text_or(usize::MAX, "delimiter", ":");
    match traverse(from, &key, &delimiter) {
        Some(found) if is_merge && default.kind() == ValueKind::Map && found.kind() == ValueKind::Map => {
            merge_values(&default, &found, Strategy::Recurse, false)
        }
        Some(found) => Ok(found),
        None => Ok(default),
    }
}

fn item(from: &Value, args: &Args<'_>) -> Value {
    new_dict(args.positional().iter().map(|key| {
        let found = traverse(from, key.as_str().unwrap_or_default(), ":");
        (key.clone(), found.unwrap_or_else(|| Value::from("")))
    }))
}

fn config_get(scope: &Inner, args: &Args<'_>) -> Result<Value, Error> {
    let key = args.need_text(0, "key")?;
    let places = [&scope.opts, &scope.grains, &scope.pillar];
    let found = places.into_iter().find_map(|place| traverse(place, &key, ":"));
    Ok(found.or_else(|| args.get(1, "default")).unwrap_or_else(|| Value::from("")))
}

fn match_call(scope: &Inner, kind: &str, args: &Args<'_>) -> Result<Value, Error> {
    if kind == "filter_by" {
        return match_filter_by(scope, args);
    }
    let target = args.need(0, "tgt")?;
    let text = match target.kind() {
        // `match.list` takes a list as well.
        ValueKind::Seq => target.try_iter()?.map(|id| id.to_string()).collect::<Vec<_>>().join(","),
        _ => target.to_string(),
    };
    is_match(scope, &text, kind).map(Value::from)
}

fn is_match(scope: &Inner, target: &str, kind: &str) -> Result<bool, Error> {
    let problem = |err| Error::new(ErrorKind::InvalidOperation, format!("target '{target}': {err}"));
    (scope.matches)(target, kind).map_err(problem)
}

/// `filter_by(lookup, tgt_type='compound', minion_id=None, merge=None, merge_lists=False, default='default')`.
fn match_filter_by(scope: &Inner, args: &Args<'_>) -> Result<Value, Error> {
    let lookup = args.need(0, "lookup")?;
    let kind = args.text_or(1, "tgt_type", "compound");
    let mut key = Value::from(args.text_or(5, "default", "default"));
    for target in lookup.try_iter()? {
        if is_match(scope, &target.to_string(), &kind)? {
            key = target;
            break;
        }
    }
    let found = defined(lookup.get_item(&key)).unwrap_or_else(|| Value::from(()));
    merged(found, args.get(3, "merge"))
}

/// `filter_by(lookup_dict, grain='os_family', merge=None, default='default', base=None)`.
fn filter_by(scope: &Inner, args: &Args<'_>) -> Result<Value, Error> {
    let lookup = args.need(0, "lookup_dict")?;
    let grain = args.text_or(1, "grain", "os_family");
    let default = args.get(3, "default").unwrap_or_else(|| Value::from("default"));

    let values: Vec<Value> = match traverse(&scope.grains, &grain, ":") {
        Some(value) if value.kind() == ValueKind::Seq => value.try_iter()?.collect(),
        Some(value) => vec![value],
        None => Vec::new(),
    };
    let entry = |key: &Value| defined(lookup.get_item(key)).filter(|value| !value.is_none());
    let keys: Vec<Value> = lookup.try_iter()?.collect();
    let key_of = |value: &Value| keys.iter().find(|key| Glob::new(&key.to_string()).matches(&value.to_string()));
    let mut found = values.iter().find_map(|value| entry(key_of(value)?)).or_else(|| entry(&default));
    if let Some(base) = args.get(4, "base").as_ref().and_then(entry) {
        found = Some(match found {
            None => base,
            Some(found) if base.kind() != ValueKind::Map => found,
            Some(found) if found.kind() == ValueKind::Map => merge_values(&base, &found, Strategy::Recurse, false)?,
            Some(_) => {
                let problem = "filter_by default and look-up values must both be dictionaries";
                return Err(Error::new(ErrorKind::InvalidOperation, problem));
            }
        });
    }
    merged(found.unwrap_or_else(|| Value::from(())), args.get(2, "merge"))
}

fn merged(found: Value, merge: Option<Value>) -> Result<Value, Error> {
    match merge.filter(Value::is_true) {
        None => Ok(found),
        Some(merge) if merge.kind() != ValueKind::Map => {
            Err(Error::new(ErrorKind::InvalidOperation, "filter_by merge argument must be a dictionary"))
        }
        Some(merge) if found.is_none() => Ok(merge),
        Some(merge) => merge_values(&found, &merge, Strategy::Recurse, false),
    }
}

/// `slsutil.merge(obj_a, obj_b, strategy='smart', renderer='yaml', merge_lists=False)`.
fn merge_call(args: &Args<'_>) -> Result<Value, Error> {
    let strategy = Strategy::from_name(&args.text_or(2, "strategy", "smart")).unwrap_or_default();
    merge_values(&args.need(0, "obj_a")?, &args.need(1, "obj_b")?, strategy, args.flag(4, "merge_lists"))
}

fn merge_values(base: &Value, over: &Value, strategy: Strategy, merge_lists: bool) -> Result<Value, Error> {
    match (from_jinja(base)?, from_jinja(over)?) {
        (Core::Map(base), Core::Map(over)) => Ok(to_jinja(&Core::Map(merge::merge(base, over, strategy, merge_lists)))),
        _ => Err(Error::new(ErrorKind::InvalidOperation, "only dictionaries can be merged")),
    }
}

/// Salt's `traverse_dict_and_list`: `a:b:0` leads through maps and lists.
pub(super) fn traverse(from: &Value, path: &str, delimiter: &str) -> Option<Value> {
    let mut at = from.clone();
    for part in path.split(delimiter) {
        at = match at.kind() {
            ValueKind::Map => defined(at.get_item(&Value::from(part)))?,
            ValueKind::Seq => match part.parse::<i64>() {
                Ok(index) => defined(at.get_item(&Value::from(index)))?,
                // A name in a list is looked for in the maps of the list.
                Err(_) => at.try_iter().ok()?.find_map(|item| match item.kind() {
                    ValueKind::Map => defined(item.get_item(&Value::from(part))),
                    _ => None,
                })?,
            },
            _ => return None,
        };
    }
    Some(at)
}

fn defined(value: Result<Value, Error>) -> Option<Value> {
    value.ok().filter(|value| !value.is_undefined())
}
