//! Compound expressions: words joined by `and`, `or`, `not` and parentheses, into a tree.
//!
//! Grammar (Python's precedence, which is what minions evaluate with): `or` binds least, then `and`, then `not`; `not`
//! right after a term means `and not`. A word is `X@pattern` with one of Salt's letters, or a glob on the id.
//!
//! Refused here, where Salt matches nobody or, worse, whatever Python makes of it: two terms without an operator,
//! unbalanced or empty parentheses, a parenthesis glued to a word, `not not`, unknown nodegroups, unsupported letters.

use super::error::{Place, Problem, TargetError};
use super::matcher::{Compiler, Node};

/// Deepest nesting of parentheses.
const MAX_DEPTH: usize = 100;

/// A word of an expression, and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) text: String,
    pub(crate) place: Place,
}

pub(crate) fn is_operator(word: &str) -> bool {
    matches!(word, "and" | "or" | "not" | "(" | ")")
}

/// Parses words whose nodegroups are expanded already.
pub(crate) fn parse(words: &[Word], compiler: &mut Compiler) -> Result<Node, TargetError> {
    if words.is_empty() {
        return Err(TargetError::Empty);
    }
    let mut parser = Parser { words, at: 0, depth: 0, compiler };
    let node = parser.any_of()?;
    match parser.peek() {
        None => Ok(node),
        Some(")") => parser.fail(Problem::Unopened),
        Some(found) => {
            let found = found.to_owned();
            parser.fail(Problem::OperatorExpected(found))
        }
    }
}

struct Parser<'w, 'c> {
    words: &'w [Word],
    at: usize,
    depth: usize,
    compiler: &'c mut Compiler,
}

impl<'w> Parser<'w, '_> {
    fn any_of(&mut self) -> Result<Node, TargetError> {
        let mut terms = vec![self.all_of()?];
        while self.eat("or") {
            terms.push(self.all_of()?);
        }
        Ok(Node::any(terms))
    }

    fn all_of(&mut self) -> Result<Node, TargetError> {
        let mut terms = vec![self.maybe_not()?];
        while self.eat("and") || self.peek() == Some("not") {
            terms.push(self.maybe_not()?);
        }
        Ok(Node::all(terms))
    }

    fn maybe_not(&mut self) -> Result<Node, TargetError> {
        if self.eat("not") {
            self.compiler.negated += 1;
            let term = self.term();
            self.compiler.negated -= 1;
            return Ok(Node::Not(Box::new(term?)));
        }
        self.term()
    }

    fn term(&mut self) -> Result<Node, TargetError> {
        let Some(word) = self.peek() else {
            return self.fail(Problem::TermExpected("the end".into()));
        };
        match word {
            "(" => self.parenthesis(),
            ")" if self.depth == 0 => self.fail(Problem::Unopened),
            "and" | "or" | "not" | ")" => self.fail(Problem::TermExpected(format!("`{word}`"))),
            word => {
                let node = self.word(word)?;
                self.at += 1;
                Ok(node)
            }
        }
    }

    fn parenthesis(&mut self) -> Result<Node, TargetError> {
        let opened = self.at;
        self.at += 1;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(TargetError::TooLarge { what: "more nested parentheses", limit: MAX_DEPTH });
        }
        if self.peek() == Some(")") {
            return self.fail(Problem::EmptyParentheses);
        }
        let node = self.any_of()?;
        match self.peek() {
            Some(")") => {
                self.at += 1;
                self.depth -= 1;
                Ok(node)
            }
            Some(found) => self.fail(Problem::OperatorExpected(found.to_owned())),
            None => {
                self.at = opened;
                self.fail(Problem::Unclosed)
            }
        }
    }

    fn word(&mut self, word: &str) -> Result<Node, TargetError> {
        let engine = Engine::split(word);
        if engine.is_none() && (word.starts_with('(') || word.ends_with(')')) {
            return self.fail(Problem::GluedParenthesis(word.to_owned()));
        }
        self.compiler.word(engine, word)
    }

    fn peek(&self) -> Option<&'w str> {
        self.words.get(self.at).map(|word| word.text.as_str())
    }

    fn eat(&mut self, operator: &str) -> bool {
        let found = self.peek() == Some(operator);
        self.at += usize::from(found);
        found
    }

    /// At the word we stand before, or, at the end, after the last.
    fn fail<T>(&self, problem: Problem) -> Result<T, TargetError> {
        let place = match (self.words.get(self.at), self.words.last()) {
            (Some(word), _) => word.place.clone(),
            (None, Some(last)) => Place { word: last.place.word + 1, nodegroup: last.place.nodegroup.clone() },
            (None, None) => Place { word: 1, nodegroup: None },
        };
        Err(TargetError::Compound { problem, place })
    }
}

/// `X@pattern`, or `Xd@pattern` with a delimiter for the key/value letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Engine<'w> {
    pub(crate) letter: char,
    pub(crate) delimiter: Option<char>,
    pub(crate) pattern: &'w str,
}

impl<'w> Engine<'w> {
    pub(crate) fn split(word: &'w str) -> Option<Self> {
        let letter = word.chars().next().filter(|c| "GPIJLNSERTM".contains(*c))?;
        let rest = &word[1..];
        let mut chars = rest.chars();
        let delimiter = chars.next().filter(|_| "GPIJ".contains(letter));
        // The delimiter is tried first, so that `G@@key@value` reads `@` as one.
        let (delimiter, pattern) = match (delimiter, chars.as_str().strip_prefix('@')) {
            (Some(delimiter), Some(pattern)) if !pattern.is_empty() => (Some(delimiter), pattern),
            _ => (None, rest.strip_prefix('@')?),
        };
        (!pattern.is_empty()).then_some(Self { letter, delimiter, pattern })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_are_split_as_salt_splits_them() {
        let split = |word| Engine::split(word).map(|e| (e.letter, e.delimiter, e.pattern));
        assert_eq!(split("G@os:Debian"), Some(('G', None, "os:Debian")));
        assert_eq!(split("G|@os|Debian"), Some(('G', Some('|'), "os|Debian")));
        assert_eq!(split("G@@os@Debian"), Some(('G', Some('@'), "os@Debian")));
        assert_eq!(split("P@a@b"), Some(('P', None, "a@b")));
        assert_eq!(split("L@a,b"), Some(('L', None, "a,b")));
        assert_eq!(split("L|@a"), None);
        assert_eq!(split("G@"), None);
        assert_eq!(split("G@@"), Some(('G', None, "@")));
        assert_eq!(split("Z@foo"), None);
        assert_eq!(split("web1"), None);
        assert_eq!(split("Gä@x"), Some(('G', Some('ä'), "x")));
    }
}
