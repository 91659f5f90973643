//! One step of a chain as a person writes it, and whether it can be one.
//!
//! Its serde form is *the* form: in the database, in the API's JSON and in YAML files.

use super::form::{self, Barrier};
use super::target::StepTarget;
use crate::action::Size;
use crate::action::types::{self, ActionType, BadParams, Call};
use crate::target::TargetError;
use crate::value::{Map, Value};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// One step of a chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The action type
    #[serde(rename = "type")]
    pub kind: String,
    /// Its parameters
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub params: Map,
    /// What people call it; none: what it does
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whom it is for; none: whom the chain is launched for
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<StepTarget>,
    /// How much of the step before must have ended before it begins
    #[serde(default, skip_serializing_if = "Barrier::is_each")]
    pub barrier: Barrier,
    /// How many runs of the step before may have failed for it to begin at all; none: any number
    #[serde(default, with = "form::size", skip_serializing_if = "Option::is_none")]
    pub budget: Option<Size>,
    /// After what it is done
    #[serde(default, skip_serializing_if = "After::is_ok")]
    pub after: After,
    /// The question that somebody with the right has to answer with yes before it begins
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// How long it may take; none: [`DEFAULT_LIMIT`]
    #[serde(default, with = "form::duration", skip_serializing_if = "Option::is_none")]
    pub limit: Option<Duration>,
    /// Whether it may be done again where it was interrupted; none: what its type says
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeatable: Option<bool>,
}

/// After what a step is done, on one minion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum After {
    /// Nothing before it failed there
    #[default]
    Ok,
    /// Something before it failed there
    Failed,
    /// Whatever happened
    Always,
}

/// Why something cannot be a step, or steps cannot be a chain.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BadStep {
    /// A step of the chain is wrong
    #[error("step {number}: {source}")]
    InStep {
        /// Its number, from 1
        number: usize,
        /// What is wrong
        source: Box<BadStep>,
    },
    /// No action type has this name
    #[error("there is no action type '{0}', only {known}", known = known_types())]
    UnknownType(String),
    /// The parameters cannot be used
    #[error(transparent)]
    Params(#[from] BadParams),
    /// More than one function
    #[error("a step calls one function; make a step of each")]
    SeveralFunctions,
    /// The module that runs chains
    #[error("`{0}` is how the server runs chains; a step cannot call it")]
    OwnModule(String),
    /// An argument that Salt would read as a named one, and the chain would not
    #[error("the argument {0:?} looks like a named one; give it in `kwarg`")]
    NamedArgument(String),
    /// Bytes, dates or numbers that JSON has not
    #[error("the parameters must be what JSON can carry: no bytes, no dates, no infinite numbers")]
    NotJson,
    /// The target cannot be resolved
    #[error("its target: {0}")]
    Target(#[from] TargetError),
    /// A group without a name
    #[error("its target names no group; write {{group: name}}")]
    NoGroup,
    /// A target beyond all measure
    #[error("its target is too large; make a group of the minions and name that")]
    LargeTarget,
    /// A percentage that means nobody, or more than there are
    #[error("a percentage is 1% to 100%; leave it out where any number will do, and write 0 for none")]
    Percent,
    /// A limit out of bounds
    #[error("a limit is 1 second to 7 days")]
    Limit,
    /// A text that is empty, too long, or more than one line
    #[error("the {0} must be one line of 1 to {LONGEST_TEXT} characters")]
    Text(&'static str),
    /// A step for a failure that cannot have happened
    #[error("nothing comes before the first step, so it cannot be for after a failure")]
    NothingToFail,
    /// None, or too many
    #[error("a chain has 1 to {MOST_STEPS} steps")]
    Count,
    /// Larger than a job should be
    #[error("the steps are larger than {} KiB together; put what is large into files", MOST_BYTES / 1024)]
    Large,
    /// Not a name of a chain
    #[error("a chain's name is one line of 1 to 255 characters, without spaces around it")]
    Name,
}

/// How long a step may take where it does not say.
pub const DEFAULT_LIMIT: Duration = Duration::from_secs(60 * 60);
/// Most steps of a chain.
pub const MOST_STEPS: usize = 200;

const LONGEST_LIMIT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
const LONGEST_TEXT: usize = 1000;
const LONGEST_NAME: usize = 255;
/// All steps of a chain together, as JSON: a chunk travels in one job.
const MOST_BYTES: usize = 1024 * 1024;

/// Checks the steps of a chain, one by one and together. The error names the step.
pub fn check_all(steps: &[Step]) -> Result<(), BadStep> {
    if steps.is_empty() || steps.len() > MOST_STEPS {
        return Err(BadStep::Count);
    }
    let in_step = |at: usize, source: BadStep| BadStep::InStep { number: at + 1, source: source.into() };
    for (at, step) in steps.iter().enumerate() {
        step.check().map_err(|source| in_step(at, source))?;
    }
    if steps[0].after == After::Failed {
        return Err(in_step(0, BadStep::NothingToFail));
    }
    let bytes = serde_json::to_string(steps).map_or(usize::MAX, |json| json.len());
    if bytes > MOST_BYTES { Err(BadStep::Large) } else { Ok(()) }
}

/// Checks the name of a chain.
pub fn check_name(name: &str) -> Result<(), BadStep> {
    let is_good = is_line(name, LONGEST_NAME) && name.trim() == name;
    if is_good { Ok(()) } else { Err(BadStep::Name) }
}

impl Step {
    /// A step of this type with nothing else said.
    pub fn new(kind: &str, params: Map) -> Self {
        Self {
            kind: kind.into(),
            params,
            name: None,
            target: None,
            barrier: Barrier::Each,
            budget: None,
            after: After::Ok,
            approval: None,
            limit: None,
            repeatable: None,
        }
    }

    /// Checks whether it can be a step.
    pub fn check(&self) -> Result<(), BadStep> {
        self.call()?;
        if let Some(target) = &self.target {
            target.check()?;
        }
        let is_odd = |percent: u8| percent == 0 || percent > 100;
        let odd_barrier = matches!(self.barrier, Barrier::Percent(percent) if is_odd(percent));
        let odd_budget = matches!(self.budget, Some(Size::Percent(percent)) if is_odd(percent));
        if odd_barrier || odd_budget {
            return Err(BadStep::Percent);
        }
        if !(Duration::from_secs(1)..=LONGEST_LIMIT).contains(&self.limit()) {
            return Err(BadStep::Limit);
        }
        for (what, text) in [("name", &self.name), ("approval", &self.approval)] {
            if text.as_ref().is_some_and(|text| !is_line(text, LONGEST_TEXT)) {
                return Err(BadStep::Text(what));
            }
        }
        Ok(())
    }

    /// The one call that it comes to.
    pub(super) fn call(&self) -> Result<Call, BadStep> {
        let kind = self.action_type().ok_or_else(|| BadStep::UnknownType(self.kind.chars().take(60).collect()))?;
        let Call { mut funs, mut arg, mut kwarg } = kind.compile(&self.params)?;
        let fun = match (funs.pop(), funs.is_empty()) {
            (Some(fun), true) => fun,
            _ => return Err(BadStep::SeveralFunctions),
        };
        if fun.starts_with("saltern_chain.") {
            return Err(BadStep::OwnModule(fun));
        }
        named_arguments(&mut arg, &mut kwarg)?;
        let is_exact = arg.iter().all(Value::is_json_exact)
            && kwarg.iter().all(|(name, value)| name.as_str().is_some() && value.is_json_exact());
        if is_exact { Ok(Call { funs: vec![fun], arg, kwarg }) } else { Err(BadStep::NotJson) }
    }

    /// Its action type, if there is one of that name.
    pub fn action_type(&self) -> Option<&'static dyn ActionType> {
        types::find(&self.kind)
    }

    /// One line that tells what it is: its name, or what it does.
    pub fn describe(&self) -> String {
        match (&self.name, self.action_type()) {
            (Some(name), _) => name.clone(),
            (None, Some(kind)) => kind.describe(&self.params),
            (None, None) => self.kind.clone(),
        }
    }

    /// Whether it may be done again where it was interrupted.
    pub fn is_repeatable(&self) -> bool {
        self.repeatable.unwrap_or_else(|| self.action_type().is_some_and(|kind| kind.is_repeatable(&self.params)))
    }

    /// How long it may take.
    pub fn limit(&self) -> Duration {
        self.limit.unwrap_or(DEFAULT_LIMIT)
    }

    /// Whether others have a say in when it begins: the step before on other minions, or a person.
    pub fn is_gated(&self) -> bool {
        self.barrier != Barrier::Each || self.budget.is_some() || self.approval.is_some()
    }

    /// Replaces the parameters named here, for one launch.
    pub fn changes(&mut self, params: &Map) {
        for (name, value) in params {
            self.params.insert(name.clone(), value.clone());
        }
    }
}

impl After {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Always => "always",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Ok, Self::Failed, Self::Always].into_iter().find(|after| after.as_str() == word)
    }

    /// Whether a step is done, given whether anything before it failed.
    pub const fn wants(self, failed: bool) -> bool {
        match self {
            Self::Ok => !failed,
            Self::Failed => failed,
            Self::Always => true,
        }
    }

    fn is_ok(&self) -> bool {
        *self == Self::Ok
    }
}

/// Named arguments that are written among the others. A minion takes them out of a job's arguments, but it is the chain's
/// module that calls the function here, and that passes on what it is given.
fn named_arguments(arg: &mut Vec<Value>, kwarg: &mut Map) -> Result<(), BadStep> {
    let is_marked = |value: &Value| value.get("__kwarg__").is_some_and(Value::is_truthy);
    for value in arg.extract_if(.., |value| is_marked(value)) {
        let Value::Map(map) = value else { continue };
        for (name, value) in map.into_iter().filter(|(name, _)| name.as_str() != Some("__kwarg__")) {
            kwarg.insert(name, value);
        }
    }
    match arg.iter().filter_map(Value::as_str).find(|text| is_named(text)) {
        Some(text) => Err(BadStep::NamedArgument(text.chars().take(60).collect())),
        None => Ok(()),
    }
}

/// `name=value`, as Salt recognises it.
fn is_named(text: &str) -> bool {
    let Some((name, value)) = text.split_once('=') else { return false };
    let is_first = |c: char| c == '_' || c.is_alphabetic();
    let is_rest = |c: char| c == '_' || c == '.' || c == '-' || c.is_alphanumeric();
    !value.starts_with('=') && name.starts_with(is_first) && name.chars().all(is_rest)
}

fn is_line(text: &str, most: usize) -> bool {
    !text.trim().is_empty() && text.chars().count() <= most && !text.contains(char::is_control)
}

fn known_types() -> String {
    types::ALL.map(|kind| kind.name()).join(", ")
}

#[cfg(test)]
mod tests;
