//! The lists that accept or reject keys without asking: `autosign_file`, `autoreject_file`, `autosign_grains_dir`.

use crate::ids::MinionId;
use crate::target::Glob;
use crate::target::regex::Regex;
use crate::target::text::python_text;
use crate::value::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Patterns over minion ids, one per line: each is tried as a glob and as a regular expression for the whole id.
///
/// Salt glues the anchors to the expression, so that its `a|b` also accepts every id that begins with `a`. Here `a|b` is
/// `a` or `b`.
#[derive(Debug, Clone, Default)]
pub struct IdPatterns(Vec<(Glob, Option<Regex>)>);

impl IdPatterns {
    /// Reads a file's text; blank lines and lines that begin with `#` say nothing.
    pub fn parse(text: &str) -> Self {
        // A line that is no regular expression, such as `*.example.org`, is a glob only.
        Self(lines(text).map(|line| (Glob::new(line), Regex::whole(line).ok())).collect())
    }

    /// Whether a line matches this id.
    pub fn matches(&self, id: &MinionId) -> bool {
        let id = id.as_str();
        self.0.iter().any(|(glob, regex)| glob.matches(id) || regex.as_ref().is_some_and(|regex| regex.matches(id)))
    }

    /// Whether there is no pattern.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Grain values that get a key accepted: a file per grain, a value per line, compared as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GrainRules(BTreeMap<String, BTreeSet<String>>);

impl GrainRules {
    /// Adds the file that is named like the grain. An empty line allows nothing, not the empty value.
    pub fn add(&mut self, grain: &str, text: &str) {
        self.0.entry(grain.to_owned()).or_default().extend(lines(text).map(str::to_owned));
    }

    /// Whether one of the grains a minion sent has an allowed value.
    pub fn matches(&self, grains: &Value) -> bool {
        let allowed = |(grain, values): (&String, &BTreeSet<String>)| {
            grains.get(grain).is_some_and(|value| values.contains(&*python_text(value)))
        };
        self.0.iter().any(allowed)
    }

    /// Whether no grain is listed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(file: &str, hits: &[&str], misses: &[&str]) {
        let patterns = IdPatterns::parse(file);
        for id in hits {
            assert!(patterns.matches(&MinionId::new(id).unwrap()), "{file:?} should match {id}");
        }
        for id in misses {
            assert!(!patterns.matches(&MinionId::new(id).unwrap()), "{file:?} should not match {id}");
        }
    }

    #[test]
    fn lines_are_globs_or_whole_regexes() {
        check("web1\n  *.example.org  \r\n", &["web1", "a.example.org"], &["web11", "xweb1", "example.org"]);
        check(r"db\d+", &["db1", "db42"], &["db", "db1x", "xdb1"]);
        check("web1|db1", &["web1", "db1"], &["web12", "xdb1"]);
        check("[", &[], &["a"]);
    }

    #[test]
    fn comments_and_blank_lines_match_nobody() {
        check("# web1\n\n   # db1\n", &[], &["web1", "db1"]);
        assert!(IdPatterns::parse("#\n\n").is_empty());
    }

    #[test]
    fn grain_values_compare_as_text() {
        let mut rules = GrainRules::default();
        rules.add("uuid", "# ours\n 12-34 \n\n");
        rules.add("trusted", "True\n7");
        let sent = |name: &str, value: Value| rules.matches(&Value::map([(name, value)]));
        assert!(sent("uuid", "12-34".into()));
        assert!(sent("trusted", true.into()));
        assert!(sent("trusted", 7.into()));
        assert!(!sent("uuid", "12-345".into()));
        assert!(!sent("uuid", "# ours".into()));
        assert!(!sent("uuid", "".into()));
        assert!(!sent("other", "12-34".into()));
        assert!(!rules.matches(&Value::Nil));
    }

    proptest! {
        #[test]
        fn any_file_is_read(text in "\\PC{0,60}") {
            IdPatterns::parse(&text).matches(&MinionId::new("web1").unwrap());
        }
    }
}
