//! Whom something is for: Salt's target expressions, all types, compiled once and matched against many minions.
//!
//! The server asks these questions to know whom to expect an answer from; the minions ask themselves the same questions
//! when the publication reaches them. So the answers have to be the minion's, corner by corner (wire reference, section
//! 8; `tests/targets_oracle.json` holds Salt's own answers).
//!
//! Where Salt logs an error and matches nobody, [`Target::compile`] fails and says why. The one place where we mean
//! something else than Salt is a nodegroup inside a compound expression, see [`Nodegroups`].
//!
//! Main types: [`Target`] (what was asked), [`Matcher`] (compiled), [`Facts`] (what is known about a minion), [`Glob`].

mod address;
mod compound;
mod error;
mod glob;
mod keyvalue;
mod matcher;
mod nodegroups;
mod python;
pub(crate) mod regex;
pub(crate) mod text;

pub use error::{Place, Problem, TargetError};
pub use glob::Glob;
pub use matcher::{Facts, Matcher, Needs};
pub use nodegroups::Nodegroups;
pub use text::python_text;

use crate::value::Value;
use std::fmt;

/// Salt's `tgt_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TargetType {
    /// Shell-style pattern on the id
    #[default]
    Glob,
    /// Regular expression on the id, anchored at its start
    Pcre,
    /// Ids one by one
    List,
    /// `key:glob` in the grains
    Grain,
    /// `key:regex` in the grains
    GrainPcre,
    /// `key:glob` in the pillar
    Pillar,
    /// `key:regex` in the pillar
    PillarPcre,
    /// `key:value` in the pillar
    PillarExact,
    /// Address or network in the grains `ipv4` and `ipv6`
    Ipcidr,
    /// Words of the other types, joined by operators
    Compound,
    /// The same, with pillar words compared exactly
    CompoundPillarExact,
    /// A named group of the configuration
    Nodegroup,
    /// A range server's expression; known by name, and refused
    Range,
}

impl TargetType {
    /// Every type, in the order of the documentation.
    pub const ALL: [Self; 13] = [
        Self::Glob,
        Self::Pcre,
        Self::List,
        Self::Grain,
        Self::GrainPcre,
        Self::Pillar,
        Self::PillarPcre,
        Self::PillarExact,
        Self::Ipcidr,
        Self::Compound,
        Self::CompoundPillarExact,
        Self::Nodegroup,
        Self::Range,
    ];

    /// Reads Salt's name for it.
    pub fn parse(name: &str) -> Result<Self, TargetError> {
        let found = Self::ALL.into_iter().find(|kind| kind.as_str() == name);
        found.ok_or_else(|| TargetError::UnknownType(name.to_owned()))
    }

    /// Salt's name for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Glob => "glob",
            Self::Pcre => "pcre",
            Self::List => "list",
            Self::Grain => "grain",
            Self::GrainPcre => "grain_pcre",
            Self::Pillar => "pillar",
            Self::PillarPcre => "pillar_pcre",
            Self::PillarExact => "pillar_exact",
            Self::Ipcidr => "ipcidr",
            Self::Compound => "compound",
            Self::CompoundPillarExact => "compound_pillar_exact",
            Self::Nodegroup => "nodegroup",
            Self::Range => "range",
        }
    }
}

impl fmt::Display for TargetType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Salt's `tgt`: text, or a list where the type takes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expression {
    /// Text
    Text(String),
    /// Ids of a list target, or words of a compound one
    List(Vec<String>),
}

impl Expression {
    /// As it goes into a publication.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Text(text) => text.into(),
            Self::List(items) => Value::list(items),
        }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::List(items) => f.write_str(&items.join(",")),
        }
    }
}

/// Whom something is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// How to read the expression
    pub kind: TargetType,
    /// The expression
    pub expression: Expression,
    /// What separates keys from each other and from the value; `grain`, `grain_pcre` and `pillar` heed it
    pub delimiter: char,
}

impl Target {
    /// Salt's default delimiter.
    pub const DELIMITER: char = ':';

    /// A target of any type with the usual delimiter.
    pub fn new(kind: TargetType, expression: impl Into<String>) -> Self {
        Self { kind, expression: Expression::Text(expression.into()), delimiter: Self::DELIMITER }
    }

    /// A list of ids.
    pub fn list<S: Into<String>>(ids: impl IntoIterator<Item = S>) -> Self {
        let ids = ids.into_iter().map(Into::into).collect();
        Self { kind: TargetType::List, expression: Expression::List(ids), delimiter: Self::DELIMITER }
    }

    /// Reads `tgt_type`, `tgt` and `delimiter` as clients send them. The expression itself is checked by
    /// [`Target::compile`].
    pub fn read(tgt_type: &str, tgt: &Value, delimiter: Option<&str>) -> Result<Self, TargetError> {
        let kind = TargetType::parse(tgt_type)?;
        let items = |items: &[Value]| items.iter().map(|item| item.as_str().map(str::to_owned)).collect();
        let expression = match tgt {
            Value::Text(text) => Some(Expression::Text(text.to_string())),
            Value::List(list) => Option::<Vec<String>>::map(items(list), Expression::List),
            _ => None,
        };
        let expected = "text or a list of texts";
        let expression = expression.ok_or(TargetError::WrongShape { kind: kind.as_str(), expected })?;
        let mut chars = delimiter.unwrap_or(":").chars();
        match (chars.next(), chars.next()) {
            (Some(delimiter), None) => Ok(Self { kind, expression, delimiter }),
            _ => Err(TargetError::BadDelimiter(delimiter.unwrap_or_default().to_owned())),
        }
    }

    /// Compiles it, or says what is wrong with it.
    pub fn compile(&self, nodegroups: &Nodegroups) -> Result<Matcher, TargetError> {
        Matcher::compile(self, nodegroups)
    }

    /// The target as stock minions can evaluate it: nodegroups, which they do not know, become a compound expression.
    pub fn expand(&self, nodegroups: &Nodegroups) -> Result<Self, TargetError> {
        let words = match (&self.expression, self.kind) {
            (Expression::Text(name), TargetType::Nodegroup) => nodegroups.expand([format!("N@{name}").as_str()])?,
            (Expression::Text(text), TargetType::Compound) => nodegroups.expand(text.split_whitespace())?,
            (Expression::List(words), TargetType::Compound) => {
                nodegroups.expand(words.iter().flat_map(|word| word.split_whitespace()))?
            }
            _ => return Ok(self.clone()),
        };
        let words: Vec<String> = words.into_iter().map(|word| word.text).collect();
        Ok(Self::new(TargetType::Compound, words.join(" ")))
    }
}

/// `glob web*`, for logs and people.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.expression)
    }
}

#[cfg(test)]
mod tests;
