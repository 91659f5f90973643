//! The parameters of an action type: what there is, whether what was given fits, and reading it.
//!
//! What is `None`, or text of white space only, was not given: forms send empty fields.

use crate::value::{Map, Value};

/// One parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name
    pub name: &'static str,
    /// What it means
    pub help: &'static str,
    /// Whether it must be given
    pub required: bool,
    /// What it can be
    pub kind: Kind,
}

/// What a parameter can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// One line of text
    Text,
    /// Text of many lines
    Body,
    /// Names: a list of texts, or one text with commas between them
    Names,
    /// A whole number
    Number,
    /// Yes or no
    Flag,
    /// A list of anything
    List,
    /// A map
    Map,
}

/// Why parameters cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadParams {
    /// There is no such parameter
    #[error("there is no parameter '{name}', only {known}")]
    Unknown {
        /// What was given
        name: String,
        /// What there is
        known: String,
    },
    /// A parameter that is required was not given
    #[error("the parameter '{0}' is required")]
    Missing(&'static str),
    /// A parameter is of another kind
    #[error("the parameter '{name}' must be {}", kind.expected())]
    Kind {
        /// The parameter
        name: &'static str,
        /// What it must be
        kind: Kind,
    },
    /// A parameter cannot be what it is
    #[error("the parameter '{name}' {why}")]
    Bad {
        /// The parameter
        name: &'static str,
        /// What it must be, or what is wrong with it
        why: String,
    },
}

/// More names than any list of packages, states or functions has.
const MOST_NAMES: usize = 1000;
/// Longer than a package, a unit or a user can be called.
const LONGEST_OPERAND: usize = 255;

impl Param {
    /// A parameter that must be given.
    pub(super) const fn required(name: &'static str, kind: Kind, help: &'static str) -> Self {
        Self { name, help, required: true, kind }
    }

    /// A parameter that may be left out.
    pub(super) const fn optional(name: &'static str, kind: Kind, help: &'static str) -> Self {
        Self { name, help, required: false, kind }
    }
}

impl Kind {
    /// The word for it, for forms and documentation.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Body => "body",
            Self::Names => "names",
            Self::Number => "number",
            Self::Flag => "flag",
            Self::List => "list",
            Self::Map => "map",
        }
    }

    const fn expected(self) -> &'static str {
        match self {
            Self::Text => "one line of text",
            Self::Body => "text",
            Self::Names => "a list of at most 1000 names, or one text with commas between them",
            Self::Number => "a whole number",
            Self::Flag => "true or false",
            Self::List => "a list",
            Self::Map => "a map",
        }
    }

    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Text => value.as_str().is_some_and(|text| !text.contains(char::is_control)),
            Self::Body => value.as_str().is_some_and(|text| !text.contains('\0')),
            Self::Names => parts(value).is_some_and(|names| names.len() <= MOST_NAMES),
            Self::Number => value.as_i64().is_some(),
            Self::Flag => value.as_bool().is_some(),
            Self::List => value.as_list().is_some(),
            Self::Map => value.as_map().is_some(),
        }
    }
}

/// Checks names and kinds.
pub(super) fn check(known: &'static [Param], params: &Map) -> Result<(), BadParams> {
    for (name, value) in params {
        let name = name.key_text();
        let Some(param) = known.iter().find(|param| param.name == name) else {
            let names: Vec<&str> = known.iter().map(|param| param.name).collect();
            return Err(BadParams::Unknown { name: cut(&name, 60), known: names.join(", ") });
        };
        if !value.is_nil() && !param.kind.fits(value) {
            return Err(BadParams::Kind { name: param.name, kind: param.kind });
        }
    }
    let is_missing = |param: &&Param| param.required && given(params, param.name).is_none();
    known.iter().find(is_missing).map_or(Ok(()), |param| Err(BadParams::Missing(param.name)))
}

/// A text that was given.
pub(super) fn text<'p>(params: &'p Map, name: &str) -> Option<&'p str> {
    given(params, name)?.as_str()
}

/// The names that were given.
pub(super) fn names(params: &Map, name: &str) -> Vec<String> {
    let names = given(params, name).and_then(parts).unwrap_or_default();
    names.into_iter().map(str::to_owned).collect()
}

/// A flag, or what it is where it was not given.
pub(super) fn flag(params: &Map, name: &str, otherwise: bool) -> bool {
    given(params, name).and_then(Value::as_bool).unwrap_or(otherwise)
}

/// A number that was given.
pub(super) fn number(params: &Map, name: &str) -> Option<i64> {
    given(params, name)?.as_i64()
}

/// A number that was given, if it is in its bounds.
pub(super) fn number_between(
    params: &Map,
    name: &'static str,
    least: i64,
    most: i64,
) -> Result<Option<i64>, BadParams> {
    match number(params, name) {
        Some(number) if !(least..=most).contains(&number) => {
            Err(BadParams::Bad { name, why: format!("must be between {least} and {most}") })
        }
        number => Ok(number),
    }
}

/// Checks what programs get as an argument: it must not read as an option, or as two.
pub(super) fn operand(name: &'static str, text: &str) -> Result<(), BadParams> {
    let is_odd = |c: char| c.is_whitespace() || c.is_control();
    if text.is_empty() || text.len() > LONGEST_OPERAND || text.starts_with('-') || text.contains(is_odd) {
        let why =
            format!("must be a name without spaces that does not begin with '-', which {:?} is not", cut(text, 60));
        return Err(BadParams::Bad { name, why });
    }
    Ok(())
}

/// One line of at most so many characters.
pub(super) fn cut(text: &str, most: usize) -> String {
    // No word beyond that many can show, so that a large body costs nothing.
    let words: Vec<&str> = text.split_whitespace().take(most).collect();
    let mut line: Vec<char> = words.join(" ").chars().filter(|c| !c.is_control()).take(most + 1).collect();
    if line.len() > most {
        line.truncate(most.saturating_sub(1));
        line.push('…');
    }
    line.into_iter().collect()
}

fn given<'p>(params: &'p Map, name: &str) -> Option<&'p Value> {
    params.get(name).filter(|value| match value {
        Value::Nil => false,
        Value::Text(text) => !text.trim().is_empty(),
        _ => true,
    })
}

fn parts(value: &Value) -> Option<Vec<&str>> {
    match value {
        Value::Text(text) => Some(text.split(',').map(str::trim).filter(|name| !name.is_empty()).collect()),
        Value::List(items) => items.iter().map(Value::as_str).collect(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_a_list_or_a_text_with_commas() {
        let asked = Value::map([("a", Value::list(["x", "y"])), ("b", "x, y,,".into()), ("c", 5.into())]);
        let asked = asked.as_map().unwrap();
        assert_eq!([names(asked, "a"), names(asked, "b")], [["x", "y"], ["x", "y"]]);
        assert!(names(asked, "c").is_empty() && names(asked, "d").is_empty());
    }

    #[test]
    fn a_line_is_cut_where_it_gets_too_long() {
        assert_eq!(cut(" a\n\tb ", 3), "a b");
        assert_eq!(cut("äöü\u{7}x", 3), "äö…");
        assert_eq!(cut(&"x".repeat(1000), 10).chars().count(), 10);
    }

    #[test]
    fn numbers_have_bounds() {
        let asked = Value::map([("n", 5)]);
        let asked = asked.as_map().unwrap();
        assert_eq!(number_between(asked, "n", 1, 5), Ok(Some(5)));
        assert_eq!(number_between(asked, "m", 1, 5), Ok(None));
        assert_eq!(
            number_between(asked, "n", 6, 9).unwrap_err().to_string(),
            "the parameter 'n' must be between 6 and 9"
        );
    }
}
