//! What one entry of `external_auth` allows (salt-api reference, section 7).
//!
//! Patterns are Python regular expressions that have to match from the start: `test.ping` also allows `test.pingX`. That is
//! Salt's rule, and sites write their entries for it.

use super::{Invocation, Sight};
use crate::ids::MinionId;
use crate::target::python_text;
use crate::target::regex::Regex;
use crate::value::Value;
use std::fmt;

/// One entry of `external_auth`.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// `test.*`: functions, on every minion
    Function(Pattern),
    /// `{"web*": [...]}`: functions, on the minions of a compound expression
    Target {
        /// The compound expression
        expression: String,
        /// Any of these
        conditions: Vec<Condition>,
    },
    /// `@runner`: every runner function
    AllRunner,
    /// `@wheel`: every wheel function
    AllWheel,
    /// `@jobs`: the runner and wheel functions of a module
    Module(String),
    /// `{"@runner": [...]}`: runner functions, by their full names
    Runner(Vec<Condition>),
    /// `{"@wheel": [...]}`: wheel functions, by their full names
    Wheel(Vec<Condition>),
    /// `{"@jobs": [...]}`: the runner and wheel functions of a module, by what follows the dot
    ModuleConditions(String, Vec<Condition>),
}

/// An entry, and the minions it means now.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The entry
    pub entry: Entry,
    /// The minions of [`Entry::Target`]; all for the others
    pub minions: Sight,
}

/// Functions, and perhaps what they may be called with.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The functions
    pub fun: Pattern,
    /// Any of these; none: whatever arguments
    pub arguments: Option<Vec<Arguments>>,
}

/// What arguments have to look like. More than are named here may be given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arguments {
    /// The leading ones, in order; none: has to be there, whatever it is
    pub args: Vec<Option<Pattern>>,
    /// The named ones; none: has to be there, whatever it is
    pub kwargs: Vec<(String, Option<Pattern>)>,
}

/// A regular expression that has to match from the start.
#[derive(Clone)]
pub struct Pattern {
    text: String,
    regex: Regex,
}

impl Rule {
    /// Whether the function may be called on this minion.
    pub fn allows_call(&self, call: &Invocation<'_>, minion: &MinionId) -> bool {
        self.minions.sees(minion) && self.entry.allows_call(call)
    }

    /// The minions that somebody sees by it. Who may look up jobs sees what any minion returned.
    pub fn sight(&self) -> Sight {
        match &self.entry {
            Entry::Function(_) | Entry::Target { .. } => self.minions.clone(),
            entry if entry.allows_runner(&Invocation::bare("jobs.list_job")) => Sight::All,
            _ => Sight::none(),
        }
    }
}

impl Entry {
    /// Whether it is about functions of minions, not of the server.
    pub fn is_for_minions(&self) -> bool {
        matches!(self, Self::Function(_) | Self::Target { .. })
    }

    /// Whether it allows this function on the minions it is for.
    pub fn allows_call(&self, call: &Invocation<'_>) -> bool {
        match self {
            Self::Function(pattern) => pattern.matches(call.fun),
            Self::Target { conditions, .. } => any_allows(conditions, call.fun, call),
            Self::AllRunner
            | Self::AllWheel
            | Self::Module(_)
            | Self::Runner(_)
            | Self::Wheel(_)
            | Self::ModuleConditions(..) => false,
        }
    }

    /// Whether it allows this runner function.
    pub fn allows_runner(&self, call: &Invocation<'_>) -> bool {
        let Some((module, name)) = split(call.fun) else { return false };
        match self {
            Self::AllRunner => true,
            Self::Runner(conditions) => any_allows(conditions, call.fun, call),
            Self::Module(_) | Self::ModuleConditions(..) => self.allows_in_module(module, name, call),
            Self::Function(_) | Self::Target { .. } | Self::AllWheel | Self::Wheel(_) => false,
        }
    }

    /// Whether it allows this wheel function.
    pub fn allows_wheel(&self, call: &Invocation<'_>) -> bool {
        let Some((module, name)) = split(call.fun) else { return false };
        match self {
            Self::AllWheel => true,
            Self::Wheel(conditions) => any_allows(conditions, call.fun, call),
            Self::Module(_) | Self::ModuleConditions(..) => self.allows_in_module(module, name, call),
            Self::Function(_) | Self::Target { .. } | Self::AllRunner | Self::Runner(_) => false,
        }
    }

    fn allows_in_module(&self, module: &str, name: &str, call: &Invocation<'_>) -> bool {
        match self {
            Self::Module(allowed) => allowed == module,
            Self::ModuleConditions(allowed, conditions) => allowed == module && any_allows(conditions, name, call),
            _ => false,
        }
    }
}

impl Condition {
    /// Whether it allows `name` with the arguments of `call`.
    fn allows(&self, name: &str, call: &Invocation<'_>) -> bool {
        let fits = |any: &Vec<Arguments>| any.iter().any(|arguments| arguments.fit(call));
        self.fun.matches(name) && self.arguments.as_ref().is_none_or(fits)
    }
}

impl Arguments {
    fn fit(&self, call: &Invocation<'_>) -> bool {
        let mut leading = call.arg.iter().filter(|arg| !is_named(arg));
        let in_order =
            self.args.iter().all(|pattern| leading.next().is_some_and(|value| fits(pattern.as_ref(), value)));
        in_order && self.kwargs.iter().all(|(name, pattern)| named_fit(call, name, pattern.as_ref()))
    }
}

impl Pattern {
    /// Compiles it, or says what is wrong with it.
    pub fn new(text: &str) -> Result<Self, String> {
        let regex = Regex::at_start(text).map_err(|fault| {
            format!("`{text}` is not a valid regular expression: {} (at character {})", fault.reason, fault.at)
        })?;
        Ok(Self { text: text.to_owned(), regex })
    }

    /// Whether the text begins with what it describes.
    pub fn matches(&self, text: &str) -> bool {
        self.regex.matches(text)
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text)
    }
}

fn any_allows(conditions: &[Condition], name: &str, call: &Invocation<'_>) -> bool {
    conditions.iter().any(|condition| condition.allows(name, call))
}

/// `module.name`; Salt has no runner or wheel function with more or fewer parts.
fn split(fun: &str) -> Option<(&str, &str)> {
    fun.split_once('.').filter(|(module, name)| !module.is_empty() && !name.is_empty() && !name.contains('.'))
}

fn fits(pattern: Option<&Pattern>, value: &Value) -> bool {
    pattern.is_none_or(|pattern| pattern.matches(&python_text(value)))
}

/// Whether a named argument is given and fits, wherever it is given: a minion takes it from among the positional ones, too.
fn named_fit(call: &Invocation<'_>, name: &str, pattern: Option<&Pattern>) -> bool {
    let among = call.arg.iter().filter(|arg| is_named(arg)).filter_map(|arg| arg.get(name));
    let mut given = call.kwarg.get(name).into_iter().chain(among).peekable();
    given.peek().is_some() && given.all(|value| fits(pattern, value))
}

/// Whether it is Salt's way to send named arguments among the positional ones.
fn is_named(arg: &Value) -> bool {
    arg.get("__kwarg__").is_some_and(Value::is_truthy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Map;

    static NONE: Map = Map::new();

    fn pattern(text: &str) -> Pattern {
        Pattern::new(text).unwrap()
    }

    fn on(text: &str) -> Condition {
        Condition { fun: pattern(text), arguments: None }
    }

    fn plain(fun: &str) -> Invocation<'_> {
        Invocation::bare(fun)
    }

    fn with<'a>(arg: &'a [Value], kwarg: &'a Map) -> Invocation<'a> {
        Invocation { fun: "test.echo", arg, kwarg }
    }

    #[test]
    fn patterns_match_from_the_start() {
        assert!(pattern("grains.items").matches("grains.itemsX"));
        assert!(pattern("test.*").matches("test.ping"));
        assert!(!pattern("ping").matches("test.ping"));
        assert!(!pattern("test.ping$").matches("test.pings"));
        assert!(
            Pattern::new("test.(").is_err_and(|problem| problem.contains("`test.(` is not a valid regular expression"))
        );
    }

    #[test]
    fn functions_of_minions_and_of_the_server_are_apart() {
        let everything = Entry::Function(pattern(".*"));
        assert!(everything.allows_call(&plain("cmd.run")));
        assert!(!everything.allows_runner(&plain("jobs.active")) && !everything.allows_wheel(&plain("key.list")));
        assert!(Entry::AllRunner.allows_runner(&plain("jobs.active")));
        assert!(!Entry::AllRunner.allows_wheel(&plain("key.list")) && !Entry::AllRunner.allows_call(&plain("cmd.run")));
        assert!(Entry::AllWheel.allows_wheel(&plain("key.list")));
        assert!(
            !Entry::AllWheel.allows_runner(&plain("jobs.active")) && !Entry::AllWheel.allows_call(&plain("cmd.run"))
        );
    }

    #[test]
    fn a_module_is_named_exactly() {
        let jobs = Entry::Module("jobs".into());
        assert!(jobs.allows_runner(&plain("jobs.active")) && jobs.allows_wheel(&plain("jobs.active")));
        assert!(!jobs.allows_runner(&plain("jobsx.active")) && !jobs.allows_runner(&plain("manage.up")));
        assert!(!jobs.allows_runner(&plain("jobs")) && !jobs.allows_runner(&plain("jobs.a.b")));
        assert!(!jobs.allows_call(&plain("jobs.active")));
    }

    #[test]
    fn conditions_on_a_module_speak_of_what_follows_the_dot() {
        let entry = Entry::ModuleConditions("jobs".into(), vec![on("list.*")]);
        assert!(entry.allows_runner(&plain("jobs.list_jobs")));
        assert!(!entry.allows_runner(&plain("jobs.active")) && !entry.allows_runner(&plain("list.list")));
        let runner = Entry::Runner(vec![on("jobs.list.*")]);
        assert!(runner.allows_runner(&plain("jobs.list_jobs")) && !runner.allows_wheel(&plain("jobs.list_jobs")));
    }

    #[test]
    fn leading_arguments_have_to_fit_in_order() {
        let arguments = Arguments { args: vec![Some(pattern("ok")), None], kwargs: vec![] };
        assert!(arguments.fit(&with(&["okay".into(), 5.into()], &NONE)));
        assert!(arguments.fit(&with(&["ok".into(), Value::Nil, "more".into()], &NONE)));
        assert!(!arguments.fit(&with(&["ok".into()], &NONE)), "the second has to be there");
        assert!(!arguments.fit(&with(&[5.into(), "ok".into()], &NONE)));
    }

    #[test]
    fn named_arguments_have_to_fit_wherever_they_are_given() {
        let arguments = Arguments { args: vec![], kwargs: vec![("a".into(), Some(pattern("1$")))] };
        let named = |value: i64| -> Map { [(Value::from("a"), Value::from(value))].into_iter().collect() };
        let smuggled = |value: i64| Value::map([("__kwarg__", Value::from(true)), ("a", value.into())]);
        assert!(arguments.fit(&with(&[], &named(1))));
        assert!(arguments.fit(&with(&[smuggled(1)], &NONE)));
        assert!(!arguments.fit(&with(&[], &named(2))));
        assert!(!arguments.fit(&with(&[], &NONE)), "it has to be there");
        assert!(!arguments.fit(&with(&[smuggled(2)], &named(1))));
        assert!(!arguments.fit(&with(&[smuggled(1)], &named(2))));
        assert!(!arguments.fit(&with(&["a".into(), 1.into()], &NONE)));
    }

    #[test]
    fn values_are_compared_as_python_writes_them() {
        let arguments = |text| Arguments { args: vec![Some(pattern(text))], kwargs: vec![] };
        assert!(arguments("True$").fit(&with(&[true.into()], &NONE)));
        assert!(arguments(r"\['a', 1\]$").fit(&with(&[Value::list([Value::from("a"), 1.into()])], &NONE)));
    }

    #[test]
    fn who_may_look_up_jobs_sees_every_minion() {
        let sight = |entry| Rule { entry, minions: Sight::All }.sight();
        assert!(sight(Entry::AllRunner).is_all());
        assert!(sight(Entry::Module("jobs".into())).is_all());
        assert!(sight(Entry::Runner(vec![on("jobs.*")])).is_all());
        assert!(sight(Entry::ModuleConditions("jobs".into(), vec![on("list_job$")])).is_all());
        assert!(sight(Entry::Function(pattern("test.ping"))).is_all());
        for entry in [
            Entry::AllWheel,
            Entry::Module("manage".into()),
            Entry::Runner(vec![on("manage.*")]),
            Entry::Runner(vec![Condition {
                fun: pattern("jobs.*"),
                arguments: Some(vec![Arguments { args: vec![Some(pattern("2026"))], kwargs: vec![] }]),
            }]),
        ] {
            assert!(sight(entry.clone()).is_empty(), "{entry:?}");
        }
        let web: Sight = [MinionId::new("web1").unwrap()].into_iter().collect();
        let rule =
            Rule { entry: Entry::Target { expression: "web*".into(), conditions: vec![] }, minions: web.clone() };
        assert_eq!(rule.sight(), web);
    }
}
