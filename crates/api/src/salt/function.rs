//! The server's own functions, one table entry each: name, parameters, what it does, how.
//!
//! Documentation (`doc.runner`, `doc.wheel`) and the checks of arguments are made from the same entry. Parameters are
//! written as in Python (`"jid, missing=False"`, `"*args, **kwargs"`), because that is how errors name them to people.

use super::Salt;
use super::error::{Failure, Proof, Voice};
use super::lowdata::is_set;
use futures_util::future::BoxFuture;
use saltern_core::target::{Target, TargetError};
use saltern_core::value::{Map, Value};
use saltern_server::app::Caller;
use saltern_server::{Class, Error};

/// One function.
pub(super) struct Function {
    /// `module.function`
    pub(super) name: &'static str,
    /// Its parameters
    pub(super) params: &'static str,
    /// What it does
    pub(super) doc: &'static str,
    /// Whether its arguments and its value are kept out of events and of the list of jobs
    pub(super) secret: bool,
    /// Does it
    pub(super) run: fn(Call) -> BoxFuture<'static, Outcome>,
}

/// What a function gives.
pub(super) type Outcome = Result<Value, Trouble>;

/// A call under way, as the function sees it.
pub(super) struct Call {
    pub(super) salt: Salt,
    pub(super) caller: Caller,
    pub(super) proof: Proof,
    pub(super) given: Given,
}

/// Why a function gives no value.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The request is answered with this error
    Refused(Failure),
    /// The function failed: the answer says so in its value
    Raised(String),
}

impl Call {
    /// The error of an App call, told apart: what is refused, and what failed.
    pub(super) fn trouble(&self, error: Error) -> Trouble {
        match error.class() {
            Class::Invalid | Class::NotFound | Class::Conflict | Class::Stale => Trouble::Raised(error.to_string()),
            Class::Forbidden | Class::Unauthenticated | Class::Busy | Class::Internal => {
                Trouble::Refused(Failure::of(error, Voice::Master, self.proof, &self.caller.who))
            }
        }
    }
}

/// Arguments, bound to the names of parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Given {
    named: Map,
    /// What `*args` took
    pub(super) rest: Vec<Value>,
    /// What `**kwargs` took
    pub(super) extra: Map,
}

impl Function {
    /// Its name without the module.
    fn short_name(&self) -> &'static str {
        self.name.rsplit('.').next().unwrap_or(self.name)
    }

    /// The documentation as people read it.
    pub(super) fn text(&self) -> String {
        format!("{}({})\n\n{}\n", self.name, self.params, self.doc)
    }

    /// Binds arguments to parameters; the error is the sentence that Python would say. What is too much is refused where
    /// `strict`, and else dropped if it was given by name.
    pub(super) fn bind(&self, args: &[Value], kwargs: &Map, strict: bool) -> Result<Given, String> {
        let fun = self.short_name();
        let params = self.params.split(',').map(str::trim).filter(|param| !param.is_empty());
        let (mut args, mut kwargs) = (args.iter(), kwargs.clone());
        let mut given = Given::default();
        let mut missing = Vec::new();
        let (mut takes_rest, mut takes_extra, mut places) = (false, false, 0);
        for param in params {
            if param == "**kwargs" {
                takes_extra = true;
            } else if param == "*args" {
                takes_rest = true;
                given.rest = args.by_ref().cloned().collect();
            } else {
                let (name, is_required) = match param.split_once('=') {
                    Some((name, _)) => (name, false),
                    None => (param, true),
                };
                // After `*args` a parameter has no place any more, only a name.
                let placed = if takes_rest { None } else { args.next().cloned() };
                places += usize::from(!takes_rest);
                match (placed, kwargs.remove(name)) {
                    (Some(_), Some(_)) => return Err(format!("{fun}() got multiple values for argument '{name}'")),
                    (Some(value), None) | (None, Some(value)) => given.named.push(name, value),
                    (None, None) if is_required => missing.push(name),
                    (None, None) => {}
                }
            }
        }
        let left = args.count();
        if left > 0 {
            let plural = if places == 1 { "" } else { "s" };
            return Err(format!("{fun}() takes {places} positional argument{plural} but {} were given", places + left));
        }
        if !missing.is_empty() {
            return Err(missing_text(fun, &missing));
        }
        match kwargs.iter().next() {
            _ if takes_extra => given.extra = kwargs,
            Some((name, _)) if strict => {
                return Err(format!("'{}' is an invalid keyword argument for '{}'", name.key_text(), self.name));
            }
            _ => {}
        }
        Ok(given)
    }
}

fn missing_text(fun: &str, missing: &[&str]) -> String {
    let quoted: Vec<String> = missing.iter().map(|name| format!("'{name}'")).collect();
    let names = match quoted.as_slice() {
        [one] => one.clone(),
        [first, second] => format!("{first} and {second}"),
        [first @ .., last] => format!("{}, and {last}", first.join(", ")),
        [] => String::new(),
    };
    let plural = if missing.len() == 1 { "" } else { "s" };
    format!("{fun}() missing {} required positional argument{plural}: {names}", missing.len())
}

impl Given {
    /// An argument, if it was given and is not null.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.named.get(name).filter(|value| !value.is_nil())
    }

    /// A yes or no that is no unless given.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(is_set)
    }

    /// Text, or a number as text; nothing if it was not given.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, Trouble> {
        match self.get(name) {
            None => Ok(None),
            Some(value @ (Value::Text(_) | Value::Int(_) | Value::UInt(_))) => Ok(Some(value.key_text().into_owned())),
            Some(_) => Err(Trouble::Raised(format!("'{name}' must be text"))),
        }
    }

    /// Text that has to be there.
    pub(super) fn required(&self, name: &str) -> Result<String, Trouble> {
        self.text(name)?.ok_or_else(|| Trouble::Raised(format!("'{name}' must be given")))
    }

    /// Texts: a list of them, or one with commas.
    pub(super) fn texts(&self, name: &str) -> Result<Option<Vec<String>>, Trouble> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(split(text))),
            Some(Value::List(items)) => {
                let texts: Option<Vec<String>> = items.iter().map(|item| item.as_str().map(str::to_owned)).collect();
                texts.map(Some).ok_or_else(|| Trouble::Raised(format!("'{name}' must be text or a list of texts")))
            }
            Some(_) => Err(Trouble::Raised(format!("'{name}' must be text or a list of texts"))),
        }
    }

    /// A whole number.
    pub(super) fn number(&self, name: &str) -> Result<Option<i64>, Trouble> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let number = value.as_i64().or_else(|| value.as_str()?.trim().parse().ok());
        number.map(Some).ok_or_else(|| Trouble::Raised(format!("'{name}' must be a number")))
    }

    /// The target in `tgt` and `tgt_type`; nothing for a type nobody knows.
    pub(super) fn target(&self, default: Option<&str>) -> Result<Option<Target>, Trouble> {
        let kind = match self.text("tgt_type")? {
            Some(kind) => kind,
            None if self.get("tgt").is_some_and(|tgt| tgt.as_list().is_some()) => "list".into(),
            None => "glob".into(),
        };
        let tgt = self.get("tgt").cloned().or_else(|| default.map(Value::from));
        let tgt = tgt.ok_or_else(|| Trouble::Raised("'tgt' must be given".into()))?;
        match Target::read(&kind, &tgt, None) {
            Ok(target) => Ok(Some(target)),
            Err(TargetError::UnknownType(_)) => Ok(None),
            Err(error) => Err(Trouble::Raised(error.to_string())),
        }
    }
}

/// The parts of a text with commas.
pub(super) fn split(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(params: &'static str) -> Function {
        Function { name: "jobs.list_job", params, doc: "", secret: false, run: |_| Box::pin(async { Ok(Value::Nil) }) }
    }

    fn bind(params: &'static str, args: &[Value], kwargs: &[(&str, i64)]) -> Result<Given, String> {
        let kwargs = kwargs.iter().map(|(name, value)| (Value::from(*name), Value::from(*value))).collect();
        function(params).bind(args, &kwargs, false)
    }

    #[test]
    fn arguments_are_bound_by_place_and_by_name() {
        let given = bind("a, b=None, c=3", &[1.into()], &[("c", 5)]).unwrap();
        assert_eq!(given.get("a"), Some(&1.into()));
        assert_eq!(given.get("b"), None);
        assert_eq!(given.get("c"), Some(&5.into()));
    }

    #[test]
    fn what_is_wrong_is_said_as_python_says_it() {
        let error = |params, args: &[Value], kwargs: &[(&str, i64)]| bind(params, args, kwargs).unwrap_err();
        assert_eq!(error("jid", &[], &[]), "list_job() missing 1 required positional argument: 'jid'");
        assert_eq!(error("a, b", &[], &[]), "list_job() missing 2 required positional arguments: 'a' and 'b'");
        assert_eq!(error("a, b, c", &[], &[]), "list_job() missing 3 required positional arguments: 'a', 'b', and 'c'");
        assert_eq!(error("a", &[1.into(), 2.into()], &[]), "list_job() takes 1 positional argument but 2 were given");
        assert_eq!(error("a", &[1.into()], &[("a", 2)]), "list_job() got multiple values for argument 'a'");
    }

    #[test]
    fn unknown_names_are_dropped_by_runners_and_refused_by_wheel() {
        let kwargs: Map = Map::from_iter([("foo".into(), Value::from(1))]);
        assert_eq!(function("a=1").bind(&[], &kwargs, false).unwrap(), Given::default());
        let error = function("a=1").bind(&[], &kwargs, true).unwrap_err();
        assert_eq!(error, "'foo' is an invalid keyword argument for 'jobs.list_job'");
    }

    #[test]
    fn functions_can_take_everything() {
        let given = bind("*args, **kwargs", &[1.into(), 2.into()], &[("x", 3)]).unwrap();
        assert_eq!(given.rest, [Value::from(1), 2.into()]);
        assert_eq!(Value::Map(given.extra), Value::map([("x", 3)]));
    }

    #[test]
    fn targets_are_globs_unless_told() {
        let given = bind("tgt=None, tgt_type=None", &["web*".into()], &[]).unwrap();
        assert_eq!(given.target(None).unwrap().unwrap().to_string(), "glob web*");
        assert_eq!(Given::default().target(Some("*")).unwrap().unwrap().to_string(), "glob *");
        assert!(Given::default().target(None).is_err());
    }
}
