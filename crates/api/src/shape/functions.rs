//! What minions say about their functions, as JSON.

use super::jobs::glob;
use super::{Time, Unanswered};
use saltern_core::target::Target;
use saltern_core::value::Value;
use saltern_server::{Error, app};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Functions, in the order of names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FunctionList {
    /// The functions, each as the newest kind of minion describes it
    pub functions: Vec<Function>,
    /// What `after` is for the next page; nothing: there is none
    #[serde(default)]
    pub next: Option<String>,
}

/// A function, as one kind of minion describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Function {
    /// Its name: `test.ping`
    pub name: String,
    /// Version and operating system of the minion that said so: `3008.3 Debian`
    pub kind: String,
    /// Its documentation
    pub doc: String,
    /// Its parameters, as Salt's `sys.argspec` tells them
    #[schema(value_type = Value)]
    pub argspec: Value,
    /// When the minion was asked
    pub at: Time,
}

/// Everything that is said about one function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FunctionDetail {
    /// Its name
    pub name: String,
    /// What each kind of minion says, the newest first
    pub kinds: Vec<Function>,
}

/// What is to be done with the documentation of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ToSchema)]
#[schema(rename_all = "lowercase")]
pub enum FunctionVerb {
    /// Minions are asked anew
    Refresh,
}

impl FunctionVerb {
    /// Reads the word.
    pub(crate) fn read(word: &str) -> Result<Self, Error> {
        match word {
            "refresh" => Ok(Self::Refresh),
            _ => Err(Error::NotFound(format!("nothing is called {word:?} here: there is refresh"))),
        }
    }
}

/// Which minions are to be asked about their functions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FunctionRefresh {
    /// Among which minions: text, or a list where the type takes one. One of each kind is asked
    #[schema(schema_with = super::policy::target)]
    pub target: Value,
    /// How to read the target: Salt's `tgt_type`
    #[serde(default = "glob")]
    #[schema(schema_with = super::policy::tgt_type, required = false)]
    pub tgt_type: String,
    /// What separates keys in a grain or pillar target, if not `:`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<String>,
}

/// What came of asking.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FunctionsRefreshed {
    /// What each kind of minion said
    pub kinds: Vec<RefreshedKind>,
    /// Those that did not answer, and why
    pub unanswered: Vec<Unanswered>,
}

/// What one kind of minion said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefreshedKind {
    /// Version and operating system
    pub kind: String,
    /// The minion that was asked
    pub minion: String,
    /// How many functions it knows; nothing: what it answered was no documentation
    pub functions: Option<usize>,
}

impl FunctionRefresh {
    /// The domain's target.
    pub(crate) fn read(&self) -> Result<Target, Error> {
        let target = Target::read(&self.tgt_type, &self.target, self.delimiter.as_deref());
        target.map_err(|error| Error::Invalid(error.to_string()))
    }
}

impl From<app::FunctionDoc> for Function {
    fn from(said: app::FunctionDoc) -> Self {
        let app::FunctionDoc { name, kind, doc, argspec, at } = said;
        Self { name, kind, doc, argspec: serde_json::from_str(&argspec).unwrap_or_default(), at: at.into() }
    }
}

impl From<app::Refreshed> for FunctionsRefreshed {
    fn from(refreshed: app::Refreshed) -> Self {
        let kinds = refreshed.kinds.into_iter().map(|said| RefreshedKind {
            kind: said.kind,
            minion: said.minion.to_string(),
            functions: said.functions,
        });
        Self { kinds: kinds.collect(), unanswered: refreshed.unanswered.into_iter().map(Into::into).collect() }
    }
}

/// Reads a function's name from a path.
pub(crate) fn read_function(text: &str) -> Result<&str, Error> {
    let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    let is_name = !text.is_empty() && text.len() <= 200 && text.chars().all(is_good);
    is_name.then_some(text).ok_or_else(|| Error::Invalid(format!("{text:?} is not the name of a function")))
}
