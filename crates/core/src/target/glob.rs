//! Shell-style patterns as Python's `fnmatch` reads them: for minion ids, grain values and event tags.
//!
//! `*` crosses `/`, `{a,b}` is literal, an unclosed `[` is literal, and the whole text has to match. Matched directly on
//! the text instead of through a regular expression: nothing to compile, nothing to allocate, and the shapes people
//! write (`*`, `web*`, `*.example.org`, a plain name) are one comparison.

use std::fmt;

/// A compiled shell-style pattern. Every text is one, so making it cannot fail.
#[derive(Clone)]
pub struct Glob {
    source: Box<str>,
    shape: Shape,
}

#[derive(Clone)]
enum Shape {
    Everything,
    Exact,
    /// `literal*`, with the literal's length
    Prefix(usize),
    /// `*literal`
    Suffix,
    Tokens(Box<[Token]>),
}

#[derive(Clone)]
enum Token {
    Literal(Box<str>),
    AnyChar,
    Star,
    Set(Set),
}

/// `[a-z_]` or `[!a-z_]`.
#[derive(Clone)]
struct Set {
    negated: bool,
    ranges: Box<[(char, char)]>,
}

impl Glob {
    /// Compiles `pattern`.
    pub fn new(pattern: &str) -> Self {
        let mut tokens = tokenize(pattern);
        let shape = match tokens.as_mut_slice() {
            [] | [Token::Literal(_)] => Shape::Exact,
            [Token::Star] => Shape::Everything,
            // An unclosed `[` makes a literal that is spelt as in the source, so its length is the prefix of the source.
            [Token::Literal(text), Token::Star] => Shape::Prefix(text.len()),
            [Token::Star, Token::Literal(text)] if pattern.len() == text.len() + 1 => Shape::Suffix,
            _ => Shape::Tokens(tokens.into()),
        };
        Self { source: pattern.into(), shape }
    }

    /// Whether the whole of `text` matches.
    pub fn matches(&self, text: &str) -> bool {
        match &self.shape {
            Shape::Everything => true,
            Shape::Exact => *self.source == *text,
            Shape::Prefix(len) => text.as_bytes().starts_with(&self.source.as_bytes()[..*len]),
            Shape::Suffix => text.as_bytes().ends_with(&self.source.as_bytes()[1..]),
            Shape::Tokens(tokens) => walk(tokens, text),
        }
    }

    /// The text it was made from.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// Whether it matches exactly one text: its own.
    pub fn is_literal(&self) -> bool {
        matches!(self.shape, Shape::Exact)
    }
}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Glob({:?})", self.source)
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

impl PartialEq for Glob {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for Glob {}

/// Going back to the last star is enough: what an earlier star could give up, the last one can take.
fn walk(tokens: &[Token], text: &str) -> bool {
    let (mut at, mut rest) = (0, text);
    let mut star: Option<usize> = None;
    let mut from = text;
    loop {
        match tokens.get(at) {
            None if rest.is_empty() => return true,
            None => {}
            Some(Token::Star) => {
                let Some(next) = tokens.get(at + 1) else { return true };
                let Some(start) = next.first_chance(rest) else { return false };
                at += 1;
                (star, from, rest) = (Some(at), start, start);
                continue;
            }
            Some(token) => {
                if let Some(after) = token.eat(rest) {
                    (at, rest) = (at + 1, after);
                    continue;
                }
            }
        }
        let Some(after_star) = star else { return false };
        let Some(start) = one_char(from, |_| true).and_then(|shorter| tokens[after_star].first_chance(shorter)) else {
            return false;
        };
        at = after_star;
        (from, rest) = (start, start);
    }
}

impl Token {
    /// The earliest place in `text` where this token could match, if there is one.
    fn first_chance<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self {
            Self::Literal(literal) => {
                let first = literal.as_bytes().first()?;
                text.bytes().position(|b| b == *first).map(|at| &text[at..])
            }
            Self::AnyChar | Self::Star | Self::Set(_) => Some(text),
        }
    }

    fn eat<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self {
            Self::Literal(literal) => text.strip_prefix(&**literal),
            Self::AnyChar => one_char(text, |_| true),
            Self::Set(set) => one_char(text, |c| set.contains(c)),
            Self::Star => Some(text),
        }
    }
}

fn one_char(text: &str, wanted: impl Fn(char) -> bool) -> Option<&str> {
    let mut chars = text.chars();
    chars.next().filter(|&c| wanted(c)).map(|_| chars.as_str())
}

impl Set {
    fn contains(&self, c: char) -> bool {
        self.ranges.iter().any(|&(low, high)| low <= c && c <= high) != self.negated
    }
}

fn tokenize(pattern: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut literal = String::new();
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        let token = match c {
            '*' => Token::Star,
            '?' => Token::AnyChar,
            '[' => match set_end(rest) {
                Some(end) => {
                    let set = read_set(&rest[..end]);
                    rest = &rest[end + 1..];
                    Token::Set(set)
                }
                None => {
                    literal.push(c);
                    continue;
                }
            },
            _ => {
                literal.push(c);
                continue;
            }
        };
        if !literal.is_empty() {
            tokens.push(Token::Literal(std::mem::take(&mut literal).into()));
        }
        if !(matches!(token, Token::Star) && matches!(tokens.last(), Some(Token::Star))) {
            tokens.push(token);
        }
    }
    if !literal.is_empty() {
        tokens.push(Token::Literal(literal.into()));
    }
    tokens
}

/// Where the `]` is that closes a set whose inside begins here; a `]` in first place is a member.
fn set_end(inside: &str) -> Option<usize> {
    let skip = usize::from(inside.starts_with('!'));
    let skip = skip + usize::from(inside[skip..].starts_with(']'));
    inside[skip..].find(']').map(|at| skip + at)
}

/// Reads what stands between `[` and `]`.
///
/// `fnmatch` first cuts the inside at the hyphens that can form a range, then drops ranges that run backwards together
/// with both their ends, and only then looks for the `!`. The order shows in corner cases (`[z-a!b]` is a negated set),
/// so it is kept.
fn read_set(inside: &str) -> Set {
    let chars: Vec<char> = inside.chars().collect();
    let mut chunks: Vec<Vec<char>> = Vec::new();
    let mut from = 0;
    let mut look = if chars.first() == Some(&'!') { 2 } else { 1 };
    while let Some(found) = chars.get(look..).and_then(|rest| rest.iter().position(|&c| c == '-')) {
        let hyphen = look + found;
        chunks.push(chars[from..hyphen].to_vec());
        from = hyphen + 1;
        look = hyphen + 3;
    }
    match chunks.last_mut() {
        Some(last) if from == chars.len() => last.push('-'),
        _ => chunks.push(chars[from..].to_vec()),
    }
    for at in (1..chunks.len()).rev() {
        let backwards = match (chunks[at - 1].last(), chunks[at].first()) {
            (Some(low), Some(high)) => low > high,
            _ => false,
        };
        if backwards {
            let tail = chunks.remove(at);
            chunks[at - 1].pop();
            chunks[at - 1].extend(&tail[1..]);
        }
    }
    let negated = chunks[0].first() == Some(&'!');
    if negated {
        chunks[0].remove(0);
    }
    let ends = chunks.windows(2).filter_map(|pair| Some((*pair[0].last()?, *pair[1].first()?)));
    let ranges = ends.chain(chunks.iter().flatten().map(|&c| (c, c))).collect();
    Set { negated, ranges }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(pattern: &str, hits: &[&str], misses: &[&str]) {
        let glob = Glob::new(pattern);
        for text in hits {
            assert!(glob.matches(text), "{pattern:?} should match {text:?}");
        }
        for text in misses {
            assert!(!glob.matches(text), "{pattern:?} should not match {text:?}");
        }
    }

    #[test]
    fn whole_text_is_matched_and_case_counts() {
        check("web1", &["web1"], &["web", "web11", "Web1", ""]);
        check("", &[""], &["a"]);
        check("web*", &["web", "web1"], &["we", "xweb"]);
        check("*.org", &["a.org", ".org"], &["a.orgs", "org"]);
        check("a*b*c", &["abc", "a.b.b.c", "abbc"], &["ab", "acb", "abcd"]);
        check("w?b", &["web", "wäb"], &["wb", "weeb"]);
    }

    #[test]
    fn star_crosses_slashes_and_braces_are_literal() {
        check("salt/job/*/ret/*", &["salt/job/1/ret/a", "salt/job/1/x/ret/a/b"], &["salt/job/1/new"]);
        check("{a,b}", &["{a,b}"], &["a", "b"]);
    }

    #[test]
    fn sets_follow_fnmatch() {
        check("[ab]x", &["ax", "bx"], &["cx", "x"]);
        check("[!ab]x", &["cx"], &["ax", "x"]);
        check("[a-c]", &["a", "b", "c"], &["d", "-"]);
        check("[]a]", &["]", "a"], &["b"]);
        check("[!]a]", &["b"], &["]", "a"]);
        check("[^a]", &["^", "a"], &["b"]);
        check("[a-]", &["a", "-"], &["b"]);
        check("[a-c-e]", &["b", "-", "e"], &["d"]);
        check("[\\d]", &["\\", "d"], &["1"]);
    }

    #[test]
    fn unclosed_and_empty_sets() {
        check("web[1", &["web[1"], &["web1"]);
        check("web[*", &["web[", "web[1"], &["web1"]);
        check("*[1", &["a[1", "[1"], &["a1"]);
        check("[]", &["[]"], &["a"]);
        check("[z-a]", &[], &["z", "a", "m", ""]);
        check("[!z-a]", &["z", "m"], &["", "mm"]);
        check("[z-a!b]", &["a", "z"], &["b", ""]);
    }

    /// Independent of the code above: plain recursion over characters, sets read naively (no ranges that run backwards).
    fn simple(pattern: &[char], text: &[char]) -> bool {
        match pattern {
            [] => text.is_empty(),
            ['*', rest @ ..] => (0..=text.len()).any(|skip| simple(rest, &text[skip..])),
            ['?', rest @ ..] => !text.is_empty() && simple(rest, &text[1..]),
            ['[', tail @ ..] => {
                let negated = tail.first() == Some(&'!');
                let body = &tail[usize::from(negated)..];
                let close = body.iter().skip(1).position(|&c| c == ']').map(|at| at + 1);
                match (close, text.split_first()) {
                    (None, Some((&'[', after))) => simple(tail, after),
                    (Some(close), Some((&c, after))) => {
                        let (mut inside, mut at) = (false, 0);
                        while at < close {
                            if at + 2 < close && body[at + 1] == '-' {
                                inside |= body[at] <= c && c <= body[at + 2];
                                at += 3;
                            } else {
                                inside |= body[at] == c;
                                at += 1;
                            }
                        }
                        inside != negated && simple(&body[close + 1..], after)
                    }
                    (_, None) | (None, Some(_)) => false,
                }
            }
            [c, rest @ ..] => text.first() == Some(c) && simple(rest, &text[1..]),
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_simple_reading(pattern in "(\\*|\\?|[abc]|\\[!?[abc]{1,3}\\]|\\[a-c\\]|\\[|/|ä){0,8}", text in "[abc\\[/ä]{0,8}") {
            let expected = simple(&pattern.chars().collect::<Vec<_>>(), &text.chars().collect::<Vec<_>>());
            prop_assert_eq!(Glob::new(&pattern).matches(&text), expected, "{} on {}", pattern, text);
        }

        #[test]
        fn any_text_is_a_pattern(pattern in "\\PC*", text in "\\PC*") {
            Glob::new(&pattern).matches(&text);
        }

        #[test]
        fn sets_of_any_characters_are_read(pattern in "[\\[\\]!^a-d\\-]{0,12}", text in "[\\[\\]!^a-d\\-]{0,4}") {
            Glob::new(&pattern).matches(&text);
        }
    }
}
