//! Python's regular expressions, anchored as `re.match` anchors them.
//!
//! The pattern is rewritten into the syntax of the Rust engines first (`python`). `regex` runs it in linear time where it
//! can; look-around, back-references, atomic and possessive parts go to `fancy-regex` under a backtracking limit.

use super::python::rewrite;
use std::fmt;

/// More steps than an honest pattern needs on an id or a grain; a pattern that needs more matches nothing.
const BACKTRACK_LIMIT: usize = 100_000;
/// Bounds the memory of one compiled pattern.
const COMPILED_SIZE: usize = 2 << 20;
/// Longest pattern we compile.
pub(crate) const MAX_PATTERN: usize = 4096;

/// A compiled pattern.
#[derive(Clone)]
pub(crate) enum Regex {
    Linear(regex::Regex),
    Backtracking(fancy_regex::Regex),
}

/// Why a pattern does not compile, and at which character (counted from 1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RegexFault {
    pub(crate) at: usize,
    pub(crate) reason: String,
}

impl Regex {
    /// A pattern that has to match at the start of the text, as `re.match` does.
    pub(crate) fn at_start(pattern: &str) -> Result<Self, RegexFault> {
        Self::build(pattern, "")
    }

    /// A pattern that has to match the whole text.
    pub(crate) fn whole(pattern: &str) -> Result<Self, RegexFault> {
        Self::build(pattern, r"\z")
    }

    fn build(pattern: &str, end: &str) -> Result<Self, RegexFault> {
        if pattern.len() > MAX_PATTERN {
            return Err(RegexFault { at: 1, reason: format!("it is longer than {MAX_PATTERN} bytes") });
        }
        let rewritten = rewrite(pattern)?;
        let anchored = format!(r"\A(?:{}){end}", rewritten.pattern);
        // Positions in the rewritten pattern mean nothing to the reader, so only the engine's reason is passed on.
        let too_much = || RegexFault { at: 1, reason: "it is too large, or nested too deeply".into() };
        if rewritten.backtracks {
            let built = fancy_regex::RegexBuilder::new(&anchored)
                .backtrack_limit(BACKTRACK_LIMIT)
                .delegate_size_limit(COMPILED_SIZE)
                .build();
            return built.map(Self::Backtracking).map_err(|error| match error {
                fancy_regex::Error::ParseError(_, reason) => RegexFault { at: 1, reason: reason.to_string() },
                _ => too_much(),
            });
        }
        let built = regex::RegexBuilder::new(&anchored).size_limit(COMPILED_SIZE).build();
        built.map(Self::Linear).map_err(|_| too_much())
    }

    pub(crate) fn matches(&self, text: &str) -> bool {
        match self {
            Self::Linear(regex) => regex.is_match(text),
            Self::Backtracking(regex) => regex.is_match(text).unwrap_or(false),
        }
    }
}

impl fmt::Debug for Regex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Linear(regex) => f.write_str(regex.as_str()),
            Self::Backtracking(regex) => f.write_str(regex.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(pattern: &str, hits: &[&str], misses: &[&str]) {
        let regex = Regex::at_start(pattern).unwrap_or_else(|fault| panic!("{pattern}: {fault:?}"));
        for text in hits {
            assert!(regex.matches(text), "{pattern:?} should match {text:?}, compiled {regex:?}");
        }
        for text in misses {
            assert!(!regex.matches(text), "{pattern:?} should not match {text:?}, compiled {regex:?}");
        }
    }

    #[test]
    fn anchored_at_the_start_only() {
        check("web", &["web", "web1"], &["xweb"]);
        check("a|b", &["a", "bx"], &["xa", "xb"]);
        check("web$", &["web", "web\n"], &["web1"]);
        check(r"web\Z", &["web"], &["web\n"]);
        check("(?i)WEB|db", &["web", "DB"], &["xdb"]);
    }

    #[test]
    fn sets_and_braces_mean_what_python_means() {
        check("[[a]x", &["[x", "ax"], &["x"]);
        check("[]a]", &["]", "a"], &["b"]);
        check("[a&&b]", &["&", "a"], &["c"]);
        check("[a-]", &["-"], &["b"]);
        check(r"[\w.-]+$", &["web-1.x"], &["a b"]);
        check("x{,2}$", &["", "xx"], &["xxx"]);
        check("{a,b}", &["{a,b}"], &["a"]);
        check("x{", &["x{"], &["x"]);
        check(r"\<a\-\/", &["<a-/"], &[]);
        check(r"\x41\101\u0041", &["AAA"], &[]);
        check("(?x) a b # comment\n c", &["abc"], &["a b"]);
        check("a(?#note)b", &["ab"], &[]);
    }

    #[test]
    fn look_around_back_references_and_possessive_parts_work() {
        check("(?!web1$)web", &["web2", "web11"], &["web1"]);
        check("(?<!x)web", &["web"], &[]);
        check(r"(a|b)\1", &["aa", "bb"], &["ab"]);
        check(r"(?P<x>a|b)-(?P=x)", &["a-a"], &["a-b"]);
        check("a++a", &[], &["aaa"]);
        check("(?>a+)b", &["aab"], &["aac"]);
        check("(a)?(?(1)b|c)", &["ab", "c"], &["d"]);
    }

    #[test]
    fn what_python_refuses_is_refused() {
        for (pattern, at) in [
            ("a**", 3),
            ("*a", 1),
            ("^*", 2),
            ("a|*", 3),
            ("a{2}{3}", 5),
            (r"\z", 1),
            (r"a\", 2),
            ("(?p<x>a)", 1),
            ("(?<n>a)", 1),
            ("a(?i)b", 2),
            (r"\1", 1),
            (r"(\1a)", 2),
            ("[a", 1),
            ("[z-a]", 2),
            (r"[\d-z]", 2),
            ("a)", 2),
            ("(a", 1),
            ("a{3,2}", 2),
            (r"\x4", 1),
            ("(?P=x)", 1),
            ("(?)a", 1),
        ] {
            let fault = Regex::at_start(pattern).expect_err(pattern);
            assert_eq!(fault.at, at, "{pattern}: {}", fault.reason);
        }
    }

    #[test]
    fn hostile_patterns_end_quickly() {
        assert!(!Regex::at_start("(a*)*b").unwrap().matches(&"a".repeat(2000)));
        assert!(!Regex::at_start(r"(a*)*(?=b)c").unwrap().matches(&"a".repeat(40)));
        assert!(Regex::at_start(&"(".repeat(3000)).is_err());
        assert!(Regex::at_start(&format!("{}{}", "(".repeat(2000), ")".repeat(2000))).is_err());
        assert!(Regex::at_start(r"(\w{1000}){1000}").is_err());
        assert!(Regex::at_start(&"a".repeat(MAX_PATTERN + 1)).is_err());
    }

    proptest! {
        #[test]
        fn any_text_compiles_or_is_refused(pattern in r"[\\\[\]\(\){}?*+|^$.\-:=!<>P,a-c0-9ä]{0,24}", text in "[a-c0-9]{0,8}") {
            if let Ok(regex) = Regex::at_start(&pattern) {
                regex.matches(&text);
            }
        }

        #[test]
        fn escaped_text_matches_itself(text in "\\PC{0,40}") {
            let pattern: String = text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_string() } else { format!("\\{c}") }).collect();
            prop_assert!(Regex::whole(&pattern).unwrap().matches(&text));
        }
    }
}
