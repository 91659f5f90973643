//! Salt's `external_auth`: read, checked, and asked whose entries are whose (salt-api reference, section 7).
//!
//! Salt passes over what it does not understand; here it is an error that names its place, because an entry that is passed
//! over is a right somebody believes to have given, or to have limited. Names are compared exactly: in Salt the name in
//! the request is a pattern, and who calls himself `.*` has everybody's rights.

use super::{Arguments, Condition, Entry, Pattern};
use crate::target::python_text;
use crate::value::{Map, Value};

/// The whole of `external_auth`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RawRules {
    backends: Vec<Backend>,
}

#[derive(Clone, Debug, PartialEq)]
struct Backend {
    eauth: String,
    /// `^filename` and the like, without the `^`
    options: Map,
    /// In the order of the configuration
    names: Vec<(Name, Vec<Written>)>,
}

#[derive(Clone, Debug, PartialEq)]
enum Name {
    /// `*`: whoever has no entry of his own
    Others,
    /// `name%`
    Group(String),
    User(String),
}

/// An entry, and how it was written: the log-in shows it so.
#[derive(Clone, Debug, PartialEq)]
struct Written {
    value: Value,
    entry: Entry,
}

/// What is wrong in `external_auth`, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct RulesError {
    /// The way to it, such as `file.ops[1]`
    pub place: String,
    /// What is wrong
    pub problem: String,
}

impl RawRules {
    /// Reads the value of `external_auth`.
    pub fn read(value: &Value) -> Result<Self, RulesError> {
        let mut backends = Vec::new();
        for (eauth, names) in map(value, "external_auth")? {
            let eauth = text(eauth, "external_auth")?;
            backends.push(Backend::read(eauth, names)?);
        }
        Ok(Self { backends })
    }

    /// Whether it has nothing at all.
    pub fn is_empty(&self) -> bool {
        self.backends.is_empty()
    }

    /// The ways to log in that it names.
    pub fn eauths(&self) -> impl Iterator<Item = &str> {
        self.backends.iter().map(|backend| backend.eauth.as_str())
    }

    /// The options of one of them (`^filename` …), without the `^`; none if it is not named.
    pub fn options(&self, eauth: &str) -> Option<&Map> {
        self.backend(eauth).map(|backend| &backend.options)
    }

    /// Whether somebody is called by his name, by whatever way to log in.
    pub fn names(&self, user: &str) -> bool {
        self.backends.iter().any(|backend| backend.names.iter().any(|(name, _)| name.is_user(user)))
    }

    /// The entries that apply to somebody: his own and those of his groups, and those of `*` if he has none of his own.
    pub fn entries(&self, eauth: &str, user: &str, groups: &[String]) -> Vec<Entry> {
        let Some(backend) = self.backend(eauth) else { return Vec::new() };
        let is_named = backend.names.iter().any(|(name, _)| name.is_user(user));
        let apply = |name: &Name| name.is_user(user) || name.is_group(groups) || (!is_named && *name == Name::Others);
        backend.of(apply).map(|written| written.entry.clone()).collect()
    }

    /// What salt-api's log-in shows somebody as his permissions: his own, his groups' and those of `*` whether or not they
    /// apply, each once, texts first. Nothing is shown as an empty map, not as an empty list: clients know it so.
    pub fn perms(&self, eauth: &str, user: &str, groups: &[String]) -> Value {
        let Some(backend) = self.backend(eauth) else { return Value::Map(Map::new()) };
        let shown = |name: &Name| name.is_user(user) || name.is_group(groups) || *name == Name::Others;
        let mut perms: Vec<&Value> = Vec::new();
        for Written { value, .. } in backend.of(shown) {
            if !perms.contains(&value) {
                perms.push(value);
            }
        }
        perms.sort_by_cached_key(|value| (value.as_str().is_none(), python_text(value).into_owned()));
        if perms.is_empty() { Value::Map(Map::new()) } else { Value::list(perms.into_iter().cloned()) }
    }

    fn backend(&self, eauth: &str) -> Option<&Backend> {
        self.backends.iter().find(|backend| backend.eauth == eauth)
    }
}

impl Backend {
    fn read(eauth: &str, value: &Value) -> Result<Self, RulesError> {
        let mut backend = Self { eauth: eauth.to_owned(), options: Map::new(), names: Vec::new() };
        for (name, entries) in map(value, eauth)? {
            let name = text(name, eauth)?;
            if let Some(option) = name.strip_prefix('^') {
                backend.options.insert(option, entries.clone());
                continue;
            }
            let place = format!("{eauth}.{name}");
            let entries = match entries {
                Value::Nil => &[],
                other => other.as_list().ok_or_else(|| fault(&place, "has to be a list of entries"))?,
            };
            let written = entries.iter().enumerate().map(|(n, value)| {
                let entry = Entry::read(value, &format!("{place}[{n}]"))?;
                Ok(Written { value: value.clone(), entry })
            });
            backend.names.push((Name::read(name), written.collect::<Result<_, _>>()?));
        }
        Ok(backend)
    }

    /// The entries under the names that `pick` takes.
    fn of(&self, pick: impl Fn(&Name) -> bool) -> impl Iterator<Item = &Written> {
        self.names.iter().filter(move |(name, _)| pick(name)).flat_map(|(_, written)| written)
    }
}

impl Name {
    fn read(text: &str) -> Self {
        match text.strip_suffix('%') {
            Some(group) => Self::Group(group.to_owned()),
            None if text == "*" => Self::Others,
            None => Self::User(text.to_owned()),
        }
    }

    fn is_user(&self, user: &str) -> bool {
        matches!(self, Self::User(name) if name == user)
    }

    fn is_group(&self, groups: &[String]) -> bool {
        matches!(self, Self::Group(name) if groups.contains(name))
    }
}

impl Entry {
    fn read(value: &Value, place: &str) -> Result<Self, RulesError> {
        if let Some(text) = value.as_str() {
            return Self::read_text(text, place);
        }
        let (key, value) = only_entry(value, place, "has to be text, or a map with one key")?;
        let Some(module) = key.strip_prefix('@') else {
            if key.starts_with("ldap(") {
                return Err(fault(place, "`ldap(…)` is not supported; name the minions by a target"));
            }
            let place = format!("{place}.{key}");
            let conditions = conditions(value, &place)?;
            return match key {
                "" => Err(fault(&place, "the target is empty")),
                _ => Ok(Self::Target { expression: key.to_owned(), conditions }),
            };
        };
        let conditions = conditions(value, &format!("{place}.{key}"))?;
        match module {
            "" => Err(fault(place, "`@` needs the name of a module, or `runner` or `wheel`")),
            "runner" | "runners" => Ok(Self::Runner(conditions)),
            "wheel" | "wheels" => Ok(Self::Wheel(conditions)),
            module => Ok(Self::ModuleConditions(module.to_owned(), conditions)),
        }
    }

    fn read_text(text: &str, place: &str) -> Result<Self, RulesError> {
        match text.strip_prefix('@') {
            None if text.is_empty() => {
                Err(fault(place, "the pattern is empty, which would allow everything; write `.*`"))
            }
            None => Ok(Self::Function(pattern(text, place)?)),
            Some("") => Err(fault(place, "`@` needs the name of a module, or `runner` or `wheel`")),
            Some("runner" | "runners") => Ok(Self::AllRunner),
            Some("wheel" | "wheels") => Ok(Self::AllWheel),
            Some(module) => Ok(Self::Module(module.to_owned())),
        }
    }
}

/// A condition, or a list of them.
fn conditions(value: &Value, place: &str) -> Result<Vec<Condition>, RulesError> {
    match value {
        Value::Nil => Err(fault(place, "names no function; write `.*` for all of them")),
        value => one_or_many(value, place, condition),
    }
}

fn condition(value: &Value, place: &str) -> Result<Condition, RulesError> {
    if let Some(text) = value.as_str() {
        return Ok(Condition { fun: pattern(text, place)?, arguments: None });
    }
    let (fun, value) = only_entry(value, place, "has to be a function, or a map of one function to its arguments")?;
    let fun = pattern(fun, place)?;
    Ok(Condition { arguments: Some(one_or_many(value, &format!("{place}.{}", fun.as_str()), arguments)?), fun })
}

fn arguments(value: &Value, place: &str) -> Result<Arguments, RulesError> {
    let what = "has to be a map of `args` and `kwargs`";
    let mut arguments = Arguments::default();
    for (key, value) in value.as_map().ok_or_else(|| fault(place, what))? {
        let place = format!("{place}.{}", python_text(key));
        match key.as_str() {
            Some("args") => {
                let items = value.as_list().ok_or_else(|| fault(&place, "has to be a list of patterns"))?;
                arguments.args = items.iter().map(|item| any_or_pattern(item, &place)).collect::<Result<_, _>>()?;
            }
            Some("kwargs") => {
                let items = value.as_map().ok_or_else(|| fault(&place, "has to be a map of names to patterns"))?;
                let read =
                    |(name, item): &(Value, Value)| Ok((text(name, &place)?.to_owned(), any_or_pattern(item, &place)?));
                arguments.kwargs = items.iter().map(read).collect::<Result<_, _>>()?;
            }
            _ => return Err(fault(&place, what)),
        }
    }
    Ok(arguments)
}

fn any_or_pattern(value: &Value, place: &str) -> Result<Option<Pattern>, RulesError> {
    if value.is_nil() { Ok(None) } else { pattern(text(value, place)?, place).map(Some) }
}

fn pattern(text: &str, place: &str) -> Result<Pattern, RulesError> {
    Pattern::new(text).map_err(|problem| fault(place, problem))
}

/// Salt takes a single thing where a list of them may be.
fn one_or_many<T>(
    value: &Value,
    place: &str,
    read: impl Fn(&Value, &str) -> Result<T, RulesError>,
) -> Result<Vec<T>, RulesError> {
    match value {
        Value::List(items) => items.iter().enumerate().map(|(n, item)| read(item, &format!("{place}[{n}]"))).collect(),
        single => Ok(vec![read(single, place)?]),
    }
}

/// The key and value of a map that has one.
fn only_entry<'a>(value: &'a Value, place: &str, what: &str) -> Result<(&'a str, &'a Value), RulesError> {
    let map = value.as_map().ok_or_else(|| fault(place, what))?;
    match map.iter().as_slice() {
        [(key, value)] => Ok((text(key, place)?, value)),
        _ => Err(fault(place, what)),
    }
}

/// The map, or none where nothing was written.
fn map<'a>(value: &'a Value, place: &str) -> Result<&'a Map, RulesError> {
    const NOTHING: &Map = &Map::new();
    match value {
        Value::Nil => Ok(NOTHING),
        other => other.as_map().ok_or_else(|| fault(place, "has to be a map")),
    }
}

fn text<'a>(value: &'a Value, place: &str) -> Result<&'a str, RulesError> {
    value.as_str().ok_or_else(|| fault(place, format!("`{}` has to be text; put it in quotes", python_text(value))))
}

fn fault(place: &str, problem: impl Into<String>) -> RulesError {
    RulesError { place: place.to_owned(), problem: problem.into() }
}
