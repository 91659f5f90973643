//! One call of a function: its arguments bound to its parameters, and what it may use of the minion.

use super::{Function, Param};
use crate::jobs::JobHandle;
use crate::link::Link;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use saltern_core::value::{Map, Value};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

/// What functions may use of the minion they run on. Cheap to clone.
#[derive(Clone)]
pub struct Context {
    /// The minion's id
    pub(crate) id: Arc<str>,
    /// The minion's configuration, as `config.get` shows it
    pub(crate) opts: Arc<Map>,
    /// Where the minion keeps what it must not lose
    pub(crate) data_dir: Arc<PathBuf>,
    /// Its grains
    pub(crate) grains: Arc<RwLock<Arc<Map>>>,
    /// Its pillar, as it was last compiled
    pub(crate) pillar: Arc<RwLock<Arc<Map>>>,
    /// The way to the master; a local call has none
    pub(crate) link: Option<Link>,
    /// The job this call belongs to
    pub(crate) job: JobHandle,
}

/// What becomes of a call.
pub(super) type Answer = Result<Outcome, Failure>;

/// One call.
pub struct Call {
    /// What it may use
    pub(crate) context: Context,
    function: &'static Function,
    named: Map,
    rest: Vec<Value>,
    keywords: Map,
}

/// What a function gives back.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The value of the return
    pub value: Value,
    /// The exit code of the return
    pub retcode: i64,
}

/// How a function fails, in the ways stock minions tell apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The arguments do not fit: `Passed invalid arguments to …`
    Arguments(String),
    /// The function could not do it: `ERROR: …`
    Command(String),
    /// The function refuses what it was asked for: `ERROR executing …`
    Invocation(String),
    /// Something nobody expected: `The minion function caused an exception: …`
    Exception(String),
}

impl<V: Into<Value>> From<V> for Outcome {
    fn from(value: V) -> Self {
        let value = value.into();
        // Salt takes a false `result` or `success` in a map for a failure.
        let says_no = |key| value.get(key) == Some(&Value::Bool(false));
        let retcode = i64::from(says_no("result") || says_no("success"));
        Self { value, retcode }
    }
}

impl Failure {
    /// The return a stock minion would send for calling `function`.
    pub fn into_outcome(self, function: &str) -> Outcome {
        let text = match self {
            Self::Arguments(text) => format!("Passed invalid arguments to {function}: {text}"),
            Self::Command(text) => format!("ERROR: {text}"),
            Self::Invocation(text) => format!("ERROR executing '{function}': {text}"),
            Self::Exception(text) => format!("The minion function caused an exception: {text}"),
        };
        Outcome { value: text.into(), retcode: 1 }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Command(error.to_string())
    }
}

impl Context {
    /// The grains now.
    pub fn grains(&self) -> Arc<Map> {
        self.grains.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The pillar as it was last compiled.
    pub fn pillar(&self) -> Arc<Map> {
        self.pillar.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The way to the master, or why there is none.
    pub(crate) fn link(&self) -> Result<&Link, Failure> {
        self.link.as_ref().ok_or_else(|| Failure::Command("there is no master: this is a local call".into()))
    }
}

impl Call {
    /// Binds arguments to the function's parameters as Python would.
    pub fn bind(
        function: &'static Function,
        context: Context,
        args: Vec<Value>,
        mut kwargs: Map,
    ) -> Result<Self, Failure> {
        let (mut named, mut rest, mut keywords) = (Map::new(), Vec::new(), Map::new());
        let mut args = args.into_iter();
        for param in function.params {
            match param {
                Param::Required(name) | Param::Optional(name, _) => match (args.next(), kwargs.remove(name)) {
                    (Some(_), Some(_)) => {
                        return Err(Failure::Arguments(format!("got multiple values for argument '{name}'")));
                    }
                    (Some(value), None) | (None, Some(value)) => named.push(*name, value),
                    (None, None) => {
                        if let Param::Required(name) = param {
                            return Err(Failure::Arguments(format!(
                                "missing 1 required positional argument: '{name}'"
                            )));
                        }
                    }
                },
                Param::Rest(_) => rest = args.by_ref().collect(),
                Param::Keywords(_) => keywords = std::mem::take(&mut kwargs),
            }
        }
        if args.next().is_some() {
            return Err(Failure::Arguments("too many positional arguments".into()));
        }
        // The publisher adds its own names; whoever does not ask for them does not see them.
        if let Some((name, _)) =
            kwargs.iter().find(|(name, _)| !name.as_str().is_some_and(|name| name.starts_with("__pub_")))
        {
            let name = name.key_text();
            return Err(Failure::Arguments(format!("got an unexpected keyword argument '{name}'")));
        }
        Ok(Self { context, function, named, rest, keywords })
    }

    /// Answers with what is in memory.
    pub(super) fn at_once(self, work: fn(&Self) -> Answer) -> BoxFuture<'static, Answer> {
        std::future::ready(work(&self)).boxed()
    }

    /// Does work that waits for the disk, where it holds up nobody.
    pub(super) fn blocking(self, work: fn(&Self) -> Answer) -> BoxFuture<'static, Answer> {
        let done = tokio::task::spawn_blocking(move || work(&self));
        async move { done.await.unwrap_or_else(|error| Err(Failure::Exception(error.to_string()))) }.boxed()
    }

    /// The value of a parameter that was given and is not `None`.
    pub fn get(&self, name: &str) -> Option<&Value> {
        debug_assert!(self.has_param(name), "{} has no parameter {name}", self.function.name);
        self.named.get(name).filter(|value| !value.is_nil())
    }

    /// The value of a parameter that was given, `None` included.
    pub fn given(&self, name: &str) -> Option<&Value> {
        debug_assert!(self.has_param(name), "{} has no parameter {name}", self.function.name);
        self.named.get(name)
    }

    /// A parameter as text; numbers and truth values are written as Python writes them.
    pub fn text(&self, name: &str) -> Result<String, Failure> {
        self.opt_text(name)?
            .ok_or_else(|| Failure::Arguments(format!("missing 1 required positional argument: '{name}'")))
    }

    /// A parameter as text, if it was given.
    pub fn opt_text(&self, name: &str) -> Result<Option<String>, Failure> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Bool(true)) => Ok(Some("True".into())),
            Some(Value::Bool(false)) => Ok(Some("False".into())),
            Some(value @ (Value::Text(_) | Value::Int(_) | Value::UInt(_) | Value::Float(_))) => {
                Ok(Some(value.key_text().into_owned()))
            }
            Some(_) => Err(Failure::Arguments(format!("'{name}' must be text"))),
        }
    }

    /// A parameter as a truth value, by Python's rules and with the words people write.
    pub fn flag(&self, name: &str, default: bool) -> bool {
        match self.get(name) {
            None => default,
            Some(Value::Text(text)) => matches!(text.to_ascii_lowercase().as_str(), "true" | "yes" | "on" | "1"),
            Some(value) => value.is_truthy(),
        }
    }

    /// A parameter as a whole number.
    pub fn int(&self, name: &str, default: i64) -> Result<i64, Failure> {
        match self.get(name) {
            None => Ok(default),
            Some(Value::Text(text)) => {
                text.trim().parse().map_err(|_| Failure::Arguments(format!("'{name}' must be a whole number")))
            }
            Some(Value::Float(float)) => Ok(*float as i64),
            Some(value) => value.as_i64().ok_or_else(|| Failure::Arguments(format!("'{name}' must be a whole number"))),
        }
    }

    /// A parameter as seconds; fractions are allowed.
    pub fn seconds(&self, name: &str) -> Result<Option<std::time::Duration>, Failure> {
        let wrong = || Failure::Arguments(format!("'{name}' must be a number of seconds"));
        let seconds = match self.get(name) {
            None => return Ok(None),
            Some(Value::Float(float)) => *float,
            Some(Value::Text(text)) => text.trim().parse().map_err(|_| wrong())?,
            Some(value) => value.as_i64().ok_or_else(wrong)? as f64,
        };
        std::time::Duration::try_from_secs_f64(seconds).map(Some).map_err(|_| wrong())
    }

    /// Arguments beyond the named ones.
    pub fn rest(&self) -> &[Value] {
        &self.rest
    }

    /// Keyword arguments beyond the named ones, without those the publisher adds.
    pub fn keywords(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.keywords
            .iter()
            .filter_map(|(name, value)| Some((name.as_str()?, value)))
            .filter(|(name, _)| !name.starts_with("__pub_"))
    }

    /// Whether the function has a parameter of this name.
    pub(super) fn has_param(&self, name: &str) -> bool {
        self.function.params.iter().any(|param| match param {
            Param::Required(known) | Param::Optional(known, _) => *known == name,
            Param::Rest(_) | Param::Keywords(_) => false,
        })
    }
}
