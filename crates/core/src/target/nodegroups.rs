//! Nodegroups: named target expressions from the configuration, and their expansion.
//!
//! A group stands for its members: wherever it is used it counts as one term. Salt puts parentheses around a group only
//! where groups are nested, so that there `N@g and x` with `g: a or b` means `a or ( b and x )`; here it means
//! `( a or b ) and x`, and the expanded text that stock minions receive says so too. An empty group has no members; in
//! Salt it breaks the expression it is used in.

use super::compound::{Word, is_operator};
use super::error::{Place, TargetError};
use crate::value::Value;
use std::collections::BTreeMap;

/// Largest compound expression, in words after expansion. Nested groups can grow without bound otherwise.
pub(crate) const MAX_WORDS: usize = 20_000;
/// Matches nobody, in words every Salt release understands.
const NOBODY: [&str; 2] = ["not", "*"];

/// The named groups of the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Nodegroups(BTreeMap<String, Vec<String>>);

impl Nodegroups {
    /// No groups.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Reads the configuration's `nodegroups`: a map of names to an expression, or to a list of its words.
    pub fn from_value(value: &Value) -> Result<Self, TargetError> {
        let mut groups = Self::new();
        for (name, definition) in value.as_map().into_iter().flatten() {
            let name = name.key_text();
            let words: Option<Vec<String>> = match definition {
                Value::Text(text) => Some(vec![text.to_string()]),
                Value::Nil => Some(Vec::new()),
                Value::List(items) => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
                _ => None,
            };
            let words = words.ok_or_else(|| TargetError::BadNodegroup(name.to_string()))?;
            groups.define(&name, words.iter().map(String::as_str));
        }
        Ok(groups)
    }

    /// Defines a group, or replaces it. Words may come one by one or together, separated by blanks.
    pub fn define<'w>(&mut self, name: &str, words: impl IntoIterator<Item = &'w str>) {
        let words = words.into_iter().flat_map(str::split_whitespace).map(str::to_owned).collect();
        self.0.insert(name.to_owned(), words);
    }

    /// A group's words.
    pub fn get(&self, name: &str) -> Option<&[String]> {
        self.0.get(name).map(Vec::as_slice)
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Whether there is no group.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Replaces every `N@name` by what it stands for.
    pub(crate) fn expand<'w>(&self, words: impl IntoIterator<Item = &'w str>) -> Result<Vec<Word>, TargetError> {
        let mut expansion = Expansion { groups: self, path: Vec::new(), out: Vec::new() };
        expansion.words(words)?;
        Ok(expansion.out)
    }
}

struct Expansion<'g> {
    groups: &'g Nodegroups,
    /// The groups we are inside of
    path: Vec<String>,
    out: Vec<Word>,
}

impl Expansion<'_> {
    fn words<'w>(&mut self, words: impl IntoIterator<Item = &'w str>) -> Result<(), TargetError> {
        for (n, word) in words.into_iter().enumerate() {
            match word.strip_prefix("N@").filter(|name| !name.is_empty()) {
                Some(name) => self.group(name, n + 1)?,
                None => self.push(word, n + 1)?,
            }
        }
        Ok(())
    }

    fn group(&mut self, name: &str, outer: usize) -> Result<(), TargetError> {
        let groups = self.groups;
        let words = groups.get(name).ok_or_else(|| TargetError::UnknownNodegroup(name.to_owned()))?;
        let looped = self.path.iter().any(|open| open == name);
        self.path.push(name.to_owned());
        if looped {
            return Err(TargetError::NodegroupLoop { name: name.to_owned(), path: self.path.join(" > ") });
        }
        if let Some(word) = plain_names(words) {
            self.push(&word, 1)?;
        } else {
            self.push("(", outer)?;
            if words.is_empty() {
                self.words(NOBODY)?;
            } else {
                self.words(words.iter().map(String::as_str))?;
            }
            self.push(")", words.len())?;
        }
        self.path.pop();
        Ok(())
    }

    fn push(&mut self, text: &str, word: usize) -> Result<(), TargetError> {
        if self.out.len() == MAX_WORDS {
            return Err(TargetError::TooLarge { what: "more words", limit: MAX_WORDS });
        }
        self.out.push(Word { text: text.to_owned(), place: Place { word, nodegroup: self.path.last().cloned() } });
        Ok(())
    }
}

/// A definition without operators, engines and stars is a list of minion ids, or, if any word looks like one, a regular
/// expression: that is how Salt guesses.
fn plain_names(words: &[String]) -> Option<String> {
    let is_engine = |word: &String| matches!(word.as_bytes(), [b'A'..=b'Z', b'@', ..]);
    if words.is_empty() || words.iter().any(|word| is_operator(word) || word.contains('*') || is_engine(word)) {
        return None;
    }
    let engine =
        if words.iter().any(|word| word.contains(['(', '[', '{', '\\', '?', '}', ']', ')'])) { 'E' } else { 'L' };
    Some(format!("{engine}@{}", words.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(groups: &[(&str, &str)], expression: &str) -> Result<String, TargetError> {
        let mut all = Nodegroups::new();
        for (name, words) in groups {
            all.define(name, [*words]);
        }
        let words = all.expand(expression.split_whitespace())?;
        Ok(words.into_iter().map(|word| word.text).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn a_group_counts_as_one_term() {
        let groups = [("g", "a* or b*"), ("h", "N@g and not c*"), ("l", "a b"), ("e", "a[12] b"), ("none", "")];
        for (expression, expected) in [
            ("N@g and x", "( a* or b* ) and x"),
            ("N@h", "( ( a* or b* ) and not c* )"),
            ("N@l", "L@a,b"),
            ("N@e", "E@a[12],b"),
            ("* and not N@none", "* and not ( not * )"),
            ("N@", "N@"),
        ] {
            assert_eq!(expand(&groups, expression).unwrap(), expected);
        }
    }

    #[test]
    fn loops_and_unknown_groups_are_named() {
        assert_eq!(
            expand(&[("a", "N@b or x"), ("b", "N@a")], "N@a").unwrap_err().to_string(),
            "nodegroup `a` contains itself (a > b > a)"
        );
        assert_eq!(expand(&[], "x and N@gone").unwrap_err(), TargetError::UnknownNodegroup("gone".into()));
    }

    #[test]
    fn groups_that_multiply_are_cut_off() {
        let mut all = Nodegroups::new();
        all.define("g0", ["a* or b*"]);
        for n in 1..40 {
            let inner = format!("N@g{}", n - 1);
            all.define(&format!("g{n}"), [inner.as_str(), "or", &inner]);
        }
        assert!(matches!(all.expand(["N@g39"]), Err(TargetError::TooLarge { .. })));
    }

    #[test]
    fn definitions_are_text_or_lists() {
        let value: Value = serde_json::from_str(r#"{"a": "x or y", "b": ["x", "y or z"], "c": null}"#).unwrap();
        let groups = Nodegroups::from_value(&value).unwrap();
        assert_eq!(groups.get("b").unwrap(), ["x", "y", "or", "z"]);
        assert_eq!(groups.names().collect::<Vec<_>>(), ["a", "b", "c"]);
        let bad: Value = serde_json::from_str(r#"{"a": 5}"#).unwrap();
        assert_eq!(Nodegroups::from_value(&bad), Err(TargetError::BadNodegroup("a".into())));
    }
}
