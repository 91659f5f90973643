//! Why a target cannot be compiled: what is wrong, where, and what to write instead.

use std::fmt;

/// Why a target is refused.
///
/// Stock Salt logs most of these on the minion and matches nobody, so a typing error looks like an empty fleet. Here they
/// stop the request. [`TargetError::hint`] says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// No target type has this name.
    #[error("unknown target type `{0}`")]
    UnknownType(String),
    /// A target type, or a letter before `@`, that Salt has and we do not.
    #[error("{what} targets are not supported")]
    NotSupported {
        /// Which
        what: &'static str,
    },
    /// Nothing to match with.
    #[error("the target is empty")]
    Empty,
    /// A list where this type takes text, or something that is neither.
    #[error("a {kind} target has to be {expected}")]
    WrongShape {
        /// The target type
        kind: &'static str,
        /// What it takes
        expected: &'static str,
    },
    /// The delimiter is not exactly one character.
    #[error("the delimiter has to be one character, not `{0}`")]
    BadDelimiter(String),
    /// A key/value expression without its delimiter.
    #[error("`{expression}` has no `{delimiter}` between key and value")]
    NoDelimiter {
        /// The expression
        expression: String,
        /// What was looked for
        delimiter: char,
    },
    /// Not a regular expression that Python would compile, or that we can.
    #[error("`{pattern}` is not a valid regular expression: {reason} (at character {at})")]
    BadRegex {
        /// The pattern
        pattern: String,
        /// Character position, counted from 1
        at: usize,
        /// What is wrong
        reason: String,
    },
    /// Neither an address nor a network.
    #[error("`{text}` is not an IP address or network: {reason}")]
    BadNetwork {
        /// The text
        text: String,
        /// What is wrong
        reason: &'static str,
    },
    /// A nodegroup nobody defined.
    #[error("there is no nodegroup `{0}`")]
    UnknownNodegroup(String),
    /// A nodegroup that contains itself.
    #[error("nodegroup `{name}` contains itself ({path})")]
    NodegroupLoop {
        /// The group
        name: String,
        /// The way round: `a > b > a`
        path: String,
    },
    /// A definition that is neither text nor a list of texts.
    #[error("nodegroup `{0}` is neither text nor a list of words")]
    BadNodegroup(String),
    /// A compound expression that does not parse.
    #[error("{problem} at {place}")]
    Compound {
        /// What is wrong
        problem: Problem,
        /// Where
        place: Place,
    },
    /// Larger than we are willing to compile.
    #[error("the target has {what}; the limit is {limit}")]
    TooLarge {
        /// What there is too much of
        what: &'static str,
        /// The limit
        limit: usize,
    },
}

/// What is wrong with a word of a compound expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// `and`, `or` or the end where a term has to be
    TermExpected(String),
    /// A term, or `(`, right after another term
    OperatorExpected(String),
    /// `)` without `(`
    Unopened,
    /// `(` without `)`
    Unclosed,
    /// `( )`
    EmptyParentheses,
    /// A parenthesis glued to a word
    GluedParenthesis(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TermExpected(found) => write!(f, "a term is missing before {found}"),
            Self::OperatorExpected(found) => write!(f, "`and` or `or` is missing before `{found}`"),
            Self::Unopened => f.write_str("`)` closes nothing"),
            Self::Unclosed => f.write_str("`(` is never closed"),
            Self::EmptyParentheses => f.write_str("there is nothing between `(` and `)`"),
            Self::GluedParenthesis(word) => write!(f, "a parenthesis is glued to the word `{word}`"),
        }
    }
}

/// Where in a compound expression: the word's number, counted from 1, and the nodegroup it stands in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The word's number
    pub word: usize,
    /// The nodegroup whose definition it belongs to; none for the expression itself
    pub nodegroup: Option<String>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "word {}", self.word)?;
        match &self.nodegroup {
            Some(name) => write!(f, " of nodegroup `{name}`"),
            None => Ok(()),
        }
    }
}

impl TargetError {
    /// What to do about it, as a sentence without a full stop.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::UnknownType(_) => {
                "use one of glob, pcre, list, grain, grain_pcre, pillar, pillar_pcre, pillar_exact, ipcidr, compound, \
                 compound_pillar_exact, nodegroup"
            }
            Self::NotSupported { .. } => "name the minions with a glob, a list or grains instead",
            Self::Empty => "`*` means every minion",
            Self::WrongShape { .. } => "only list and compound targets may be lists",
            Self::BadDelimiter(_) => "the default is `:`",
            Self::NoDelimiter { .. } => {
                "write `key:value`, for example `os:Debian`; pillar_pcre, pillar_exact and words of compound targets are \
                 split at `:` whatever delimiter was given"
            }
            Self::BadRegex { .. } => {
                "the syntax is Python's; in grain and pillar patterns everything is lower-cased first, so `\\D` is read as `\\d`"
            }
            Self::BadNetwork { .. } => {
                "write `10.1.2.3`, `10.0.0.0/8` or `2001:db8::/32`, without host bits in a network"
            }
            Self::UnknownNodegroup(_) => "nodegroups are defined in the server's configuration",
            Self::NodegroupLoop { .. } => "take one of the `N@` references out",
            Self::BadNodegroup(_) => "define it as `name: 'web* or db*'`",
            Self::Compound { problem: Problem::OperatorExpected(_), .. } => {
                "put `and`, `or` or `not` (in lower case) between terms; separate the ids of a list by commas: `L@web1,web2`"
            }
            Self::Compound { problem: Problem::TermExpected(_), .. } => {
                "`and` and `or` stand between two terms, and `not` before one"
            }
            Self::Compound { .. } => {
                "write parentheses in pairs, with blanks around each: `( web1 or web2 ) and not db*`"
            }
            Self::TooLarge { .. } => "split it into several targets, or use a list",
        }
    }
}
