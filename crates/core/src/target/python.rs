//! Python's regular expression syntax, rewritten into that of the Rust engines.
//!
//! Construct by construct, so that what the two sides read differently (`[[a]`, `{,3}`, `\Z`, `$` before a final newline,
//! `a++`) means what it means on the minion, and what Python refuses is refused here, at the same character.
//!
//! Known differences: the `a` flag is ignored, `x` works for a whole pattern only, `\N{name}` and a quantifier after a
//! look-around are refused.

use super::regex::RegexFault;

/// A pattern for the Rust engines.
pub(crate) struct Rewritten {
    pub(crate) pattern: String,
    /// Whether it needs what only a backtracking engine has
    pub(crate) backtracks: bool,
}

/// Rewrites a pattern of Python's.
pub(crate) fn rewrite(pattern: &str) -> Result<Rewritten, RegexFault> {
    Rewriter::new(pattern).run()
}

/// What a quantifier would apply to.
#[derive(Clone, Copy, PartialEq)]
enum Last {
    /// The start of a branch, or an assertion
    Nothing,
    Atom,
    Repeat,
}

struct Rewriter<'p> {
    pattern: &'p str,
    /// Byte position of the next character
    at: usize,
    out: String,
    backtracks: bool,
    last: Last,
    /// Open parentheses: where they stand, and the number of a capturing one
    open: Vec<(usize, Option<usize>)>,
    groups: usize,
    names: Vec<&'p str>,
    multi_line: bool,
    verbose: bool,
    /// How much of `out` is flags for the whole pattern
    flags_len: usize,
}

/// One member of a set, or one escape.
enum Item {
    Char(char),
    /// `\d`, `\W` …, spelt alike on both sides
    Class(&'static str),
}

type Step<T = ()> = Result<T, RegexFault>;

impl<'p> Rewriter<'p> {
    fn new(pattern: &'p str) -> Self {
        Self {
            pattern,
            at: 0,
            out: String::with_capacity(pattern.len() + 16),
            backtracks: false,
            last: Last::Nothing,
            open: Vec::new(),
            groups: 0,
            names: Vec::new(),
            multi_line: false,
            verbose: false,
            flags_len: 0,
        }
    }

    fn run(mut self) -> Step<Rewritten> {
        while let Some(c) = self.next() {
            match c {
                '\\' => self.escape()?,
                '[' => self.set()?,
                '(' => self.open_group()?,
                ')' => {
                    if self.open.pop().is_none() {
                        return self.fault(self.at - 1, "unbalanced parenthesis");
                    }
                    self.atom(")");
                }
                '|' => self.assertion("|"),
                '^' => self.assertion("^"),
                // Outside multi-line mode Python's `$` also matches before a final newline.
                '$' => self.assertion(if self.multi_line { "$" } else { r"(?:\n?\z)" }),
                '.' => self.atom("."),
                '*' | '+' | '?' => self.repeat(self.at - 1, &c.to_string())?,
                '{' => self.braces()?,
                '#' if self.verbose => while self.next().is_some_and(|c| c != '\n') {},
                c if self.verbose && c.is_ascii_whitespace() => {}
                c => self.literal(c),
            }
        }
        match self.open.pop() {
            Some((at, _)) => self.fault(at, "missing `)`"),
            None => Ok(Rewritten { pattern: self.out, backtracks: self.backtracks }),
        }
    }

    fn escape(&mut self) -> Step {
        let start = self.at - 1;
        match self.peek() {
            Some('A') => self.escaped_assertion(r"\A"),
            Some('Z') => self.escaped_assertion(r"\z"),
            Some('b') => self.escaped_assertion(r"\b"),
            Some('B') => self.escaped_assertion(r"\B"),
            Some('1'..='9') => return self.back_reference(start),
            _ => match self.escaped_item(start)? {
                Item::Char(c) => self.literal(c),
                Item::Class(class) => self.atom(class),
            },
        }
        Ok(())
    }

    fn escaped_assertion(&mut self, out: &str) {
        self.next();
        self.assertion(out);
    }

    /// `\1`, or three octal digits.
    fn back_reference(&mut self, start: usize) -> Step {
        let digits = self.rest();
        let digit = |n: usize| digits.as_bytes().get(n).copied().filter(u8::is_ascii_digit);
        if (0..3).all(|n| digit(n).is_some_and(|d| d < b'8')) {
            let c = self.octal(start, 3)?;
            self.literal(c);
            return Ok(());
        }
        let len = if digit(1).is_some() { 2 } else { 1 };
        let group = digits[..len].parse().unwrap_or(usize::MAX);
        self.at += len;
        self.refer_to(start, group)?;
        self.atom(&format!("(?:\\{group})"));
        Ok(())
    }

    fn refer_to(&mut self, start: usize, group: usize) -> Step {
        if group > self.groups {
            return self.fault(start, "there is no such group to refer to");
        }
        if self.open.iter().any(|&(_, number)| number == Some(group)) {
            return self.fault(start, "cannot refer to an open group");
        }
        self.backtracks = true;
        Ok(())
    }

    /// What `\` means in a set and outside one; the backslash is read already.
    fn escaped_item(&mut self, start: usize) -> Step<Item> {
        let c = match self.peek() {
            None => return self.fault(start, "nothing follows the backslash"),
            Some('0'..='7') => return self.octal(start, 3).map(Item::Char),
            Some(c) => c,
        };
        self.next();
        Ok(match c {
            'd' => Item::Class(r"\d"),
            'D' => Item::Class(r"\D"),
            's' => Item::Class(r"\s"),
            'S' => Item::Class(r"\S"),
            'w' => Item::Class(r"\w"),
            'W' => Item::Class(r"\W"),
            'a' => Item::Char('\x07'),
            'f' => Item::Char('\x0c'),
            'n' => Item::Char('\n'),
            'r' => Item::Char('\r'),
            't' => Item::Char('\t'),
            'v' => Item::Char('\x0b'),
            'x' => Item::Char(self.hex(start, 2)?),
            'u' => Item::Char(self.hex(start, 4)?),
            'U' => Item::Char(self.hex(start, 8)?),
            c if c.is_ascii_alphanumeric() => return self.fault(start, &format!("bad escape `\\{c}`")),
            c => Item::Char(c),
        })
    }

    fn octal(&mut self, start: usize, most: usize) -> Step<char> {
        let len = self.rest().bytes().take(most).take_while(|b| (b'0'..b'8').contains(b)).count();
        let code = u32::from_str_radix(&self.rest()[..len], 8).unwrap_or(u32::MAX);
        self.at += len;
        match char::from_u32(code).filter(|_| code <= 0o377) {
            Some(c) => Ok(c),
            None => self.fault(start, "octal escape out of range"),
        }
    }

    fn hex(&mut self, start: usize, len: usize) -> Step<char> {
        let digits = self.rest().get(..len).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        let c = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).and_then(char::from_u32);
        match c {
            Some(c) => {
                self.at += len;
                Ok(c)
            }
            None => self.fault(start, "incomplete escape"),
        }
    }

    fn set(&mut self) -> Step {
        let start = self.at - 1;
        self.out.push('[');
        if self.eat("^") {
            self.out.push('^');
        }
        let first = self.at;
        loop {
            let item_at = self.at;
            let low = match self.next() {
                None => return self.fault(start, "unterminated set"),
                Some(']') if item_at > first => break,
                Some('\\') => self.set_escape(item_at)?,
                Some(c) => Item::Char(c),
            };
            // A hyphen before `]` is a member; the loop takes it up as one.
            if !self.rest().starts_with('-') || self.rest().starts_with("-]") {
                self.push_item(&low);
                continue;
            }
            self.next();
            let high_at = self.at;
            let high = match self.next() {
                None => return self.fault(start, "unterminated set"),
                Some('\\') => self.set_escape(high_at)?,
                Some(c) => Item::Char(c),
            };
            let (Item::Char(from), Item::Char(to)) = (&low, &high) else {
                return self.fault(item_at, "bad range in a set");
            };
            if from > to {
                return self.fault(item_at, "a range in a set runs backwards");
            }
            self.push_item(&low);
            self.out.push('-');
            self.push_item(&high);
        }
        self.atom("]");
        Ok(())
    }

    fn set_escape(&mut self, start: usize) -> Step<Item> {
        if self.eat("b") { Ok(Item::Char('\x08')) } else { self.escaped_item(start) }
    }

    /// Inside a set everything but letters and digits is written as a number, so that no operator of the Rust syntax
    /// (`&&`, `--`, `~~`, a nested `[`) can arise.
    fn push_item(&mut self, item: &Item) {
        match item {
            Item::Char(c) if c.is_ascii_alphanumeric() => self.out.push(*c),
            Item::Char(c) => self.out.push_str(&format!("\\x{{{:x}}}", u32::from(*c))),
            Item::Class(class) => self.out.push_str(class),
        }
    }

    fn open_group(&mut self) -> Step {
        let start = self.at - 1;
        if !self.eat("?") {
            self.groups += 1;
            self.push_group(start, Some(self.groups), "(");
            return Ok(());
        }
        for (mark, fancy) in [(":", false), ("=", true), ("!", true), ("<=", true), ("<!", true), (">", true)] {
            if self.eat(mark) {
                self.backtracks |= fancy;
                self.push_group(start, None, &format!("(?{mark}"));
                return Ok(());
            }
        }
        if self.eat("P<") {
            let name = self.name(start, '>')?;
            self.groups += 1;
            if self.names.contains(&name) {
                return self.fault(start, "a group of that name exists already");
            }
            self.names.push(name);
            self.push_group(start, Some(self.groups), &format!("(?P<{name}>"));
        } else if self.eat("P=") {
            let name = self.name(start, ')')?;
            if !self.names.contains(&name) {
                return self.fault(start, "there is no such group to refer to");
            }
            self.backtracks = true;
            self.atom(&format!("(?P={name})"));
        } else if self.eat("(") {
            self.conditional(start)?;
        } else if self.eat("#") {
            match self.rest().find(')') {
                Some(end) => self.at += end + 1,
                None => return self.fault(start, "missing `)` after a comment"),
            }
        } else {
            self.flags(start)?;
        }
        Ok(())
    }

    /// `(?(1)yes|no)`; the inner `(` is read already.
    fn conditional(&mut self, start: usize) -> Step {
        let end = self.rest().find(')').unwrap_or(0);
        let group = &self.rest()[..end];
        if let Ok(number) = group.parse() {
            self.at += end + 1;
            self.refer_to(start, number)?;
            self.push_group(start, None, &format!("(?({number})"));
        } else {
            let name = self.name(start, ')')?;
            if !self.names.contains(&name) {
                return self.fault(start, "there is no such group to refer to");
            }
            self.backtracks = true;
            self.push_group(start, None, &format!("(?(<{name}>)"));
        }
        Ok(())
    }

    /// `(?i)` for the whole pattern, `(?i-s:` for a group.
    fn flags(&mut self, start: usize) -> Step {
        let mut kept = String::new();
        let mut off = false;
        loop {
            match self.next() {
                Some(c @ ('i' | 'm' | 's')) => {
                    self.multi_line |= c == 'm' && !off;
                    kept.push(c);
                }
                Some('a' | 'u') => {}
                Some('x') if self.is_at_start() && !off => self.verbose = true,
                Some('-') if !off => {
                    off = true;
                    kept.push('-');
                }
                Some(':') => {
                    if self.verbose && self.pattern[start..self.at].contains('x') {
                        return self.fault(start, "the flag `x` is supported for the whole pattern only");
                    }
                    let kept = kept.strip_suffix('-').unwrap_or(&kept);
                    self.push_group(start, None, &format!("(?{kept}:"));
                    return Ok(());
                }
                Some(')') if !off && self.at > start + 3 => {
                    if !self.is_at_start() {
                        return self.fault(start, "flags for the whole pattern have to stand at its start");
                    }
                    if !kept.is_empty() {
                        self.out.push_str(&format!("(?{kept})"));
                        self.flags_len = self.out.len();
                    }
                    return Ok(());
                }
                Some(c) => return self.fault(start, &format!("unknown extension `?{c}`")),
                None => return self.fault(start, "unexpected end after `(?`"),
            }
        }
    }

    /// Whether nothing but flags was read yet.
    fn is_at_start(&self) -> bool {
        self.out.len() == self.flags_len
    }

    fn name(&mut self, start: usize, end: char) -> Step<&'p str> {
        let rest = self.rest();
        let name = rest.split_once(end).map(|(name, _)| name).unwrap_or_default();
        let identifier = !name.starts_with(|c: char| c.is_ascii_digit())
            && !name.is_empty()
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !identifier {
            return self.fault(start, "bad group name");
        }
        self.at += name.len() + 1;
        Ok(name)
    }

    /// `{2}`, `{2,}`, `{,3}`, `{2,3}`; anything else is a literal brace.
    fn braces(&mut self) -> Step {
        let start = self.at - 1;
        let Some((inside, _)) = self.rest().split_once('}').filter(|(inside, _)| !inside.is_empty()) else {
            self.literal('{');
            return Ok(());
        };
        let (low, high) = inside.split_once(',').unwrap_or((inside, inside));
        if ![low, high].iter().all(|n| n.bytes().all(|b| b.is_ascii_digit())) {
            self.literal('{');
            return Ok(());
        }
        self.at += inside.len() + 1;
        let number = |text: &str, default: u32| if text.is_empty() { Ok(default) } else { text.parse() };
        let (Ok(low), Ok(most)) = (number(low, 0), number(high, u32::MAX)) else {
            return self.fault(start, "the repetition number is too large");
        };
        if low > most {
            return self.fault(start, "the smaller repetition number has to come first");
        }
        let high = if high.is_empty() { String::new() } else { most.to_string() };
        self.repeat(start, &format!("{{{low},{high}}}"))
    }

    fn repeat(&mut self, start: usize, quantifier: &str) -> Step {
        match self.last {
            Last::Nothing => return self.fault(start, "nothing to repeat"),
            Last::Repeat => return self.fault(start, "multiple repeat"),
            Last::Atom => {}
        }
        self.out.push_str(quantifier);
        if self.eat("?") {
            self.out.push('?');
        } else if self.eat("+") {
            self.out.push('+');
            self.backtracks = true;
        }
        self.last = Last::Repeat;
        Ok(())
    }

    fn push_group(&mut self, start: usize, number: Option<usize>, out: &str) {
        self.open.push((start, number));
        self.assertion(out);
    }

    fn literal(&mut self, c: char) {
        self.atom(&regex::escape(c.encode_utf8(&mut [0; 4])));
    }

    fn atom(&mut self, out: &str) {
        self.out.push_str(out);
        self.last = Last::Atom;
    }

    fn assertion(&mut self, out: &str) {
        self.out.push_str(out);
        self.last = Last::Nothing;
    }

    fn rest(&self) -> &'p str {
        &self.pattern[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        self.at += if found { text.len() } else { 0 };
        found
    }

    fn fault<T>(&self, at: usize, reason: &str) -> Step<T> {
        let characters = self.pattern.get(..at).map_or(0, |before| before.chars().count());
        Err(RegexFault { at: characters + 1, reason: reason.into() })
    }
}
