//! Rewrites literals and `%` inside of one expression or statement.

/// How deep brackets may nest before an expression is left as it is.
const MAX_DEPTH: usize = 64;

/// The expression with its literals and remainders wrapped.
pub(super) fn rewrite(source: &str) -> String {
    let tokens = tokenize(source);
    let mut rewriter = Rewriter { tokens: &tokens, at: 0, depth: 0 };
    match rewriter.sequence() {
        Some(text) if rewriter.at == tokens.len() => text,
        _ => source.to_owned(),
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Token<'a> {
    Space(&'a str),
    /// A name, a number or a text
    Atom(&'a str),
    Operator(&'a str),
}

/// Words after which a bracket opens a literal, not a subscript.
const KEYWORDS: &[&str] = &[
    "and",
    "or",
    "not",
    "in",
    "is",
    "if",
    "elif",
    "else",
    "for",
    "set",
    "do",
    "include",
    "import",
    "from",
    "as",
    "extends",
    "macro",
    "call",
    "filter",
    "with",
    "recursive",
    "block",
];

fn tokenize(source: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let len = match first {
            c if c.is_whitespace() => rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len()),
            c if c.is_alphanumeric() || c == '_' => {
                rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
            }
            '\'' | '"' => super::text_end(rest.as_bytes(), 0, rest.as_bytes()[0]).unwrap_or(rest.len()),
            _ => ["**", "//", "==", "!=", "<=", ">="]
                .iter()
                .find(|operator| rest.starts_with(**operator))
                .map_or(first.len_utf8(), |operator| operator.len()),
        };
        // An escape at the very end of an unfinished text may point past it, or into a character.
        let len = (len..=rest.len()).find(|&at| rest.is_char_boundary(at)).unwrap_or(rest.len());
        let (text, after) = rest.split_at(len);
        tokens.push(match first {
            c if c.is_whitespace() => Token::Space(text),
            c if c.is_alphanumeric() || matches!(c, '_' | '\'' | '"') => Token::Atom(text),
            _ => Token::Operator(text),
        });
        rest = after;
    }
    tokens
}

struct Rewriter<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
    depth: usize,
}

impl<'a> Rewriter<'a> {
    /// Everything up to the end or the next closing bracket.
    fn sequence(&mut self) -> Option<String> {
        let mut out = String::new();
        // Whether an operand ended last, and whether the operator before the next operand binds it as `%` would.
        let (mut after_operand, mut is_bound) = (false, false);
        while let Some(token) = self.tokens.get(self.at) {
            match *token {
                Token::Space(text) => {
                    out += text;
                    self.at += 1;
                }
                Token::Operator(")" | "]" | "}") => break,
                Token::Atom(word) if KEYWORDS.contains(&word) => {
                    out += word;
                    self.at += 1;
                    (after_operand, is_bound) = (false, false);
                }
                Token::Atom(_) | Token::Operator("(" | "[" | "{") => {
                    out += &self.operand_with_remainders(is_bound)?;
                    (after_operand, is_bound) = (true, false);
                }
                Token::Operator(operator) => {
                    out += operator;
                    self.at += 1;
                    let is_sign = matches!(operator, "-" | "+") && !after_operand;
                    is_bound = is_sign || matches!(operator, "*" | "/" | "//" | "**" | "%");
                    after_operand = false;
                }
            }
        }
        Some(out)
    }

    /// An operand and, if nothing before binds as strongly, the remainders taken of it.
    fn operand_with_remainders(&mut self, is_bound: bool) -> Option<String> {
        let mut left = self.operand()?;
        while !is_bound && self.peek() == Some(Token::Operator("%")) {
            self.skip_space();
            self.at += 1;
            self.skip_space();
            let mut right = String::new();
            while let Some(Token::Operator(sign @ ("-" | "+"))) = self.peek() {
                right += sign;
                self.at += 1;
            }
            right += &self.operand()?;
            left = format!("_percent({left}, {right})");
        }
        Some(left)
    }

    /// A name, literal or bracket with all attributes, subscripts, calls and filters that follow it.
    fn operand(&mut self) -> Option<String> {
        let mut out = match *self.tokens.get(self.at)? {
            Token::Atom(text) => {
                self.at += 1;
                text.to_owned()
            }
            Token::Operator("[") => format!("_list({})", self.bracket()?),
            Token::Operator("{") => format!("_dict({})", self.bracket()?),
            Token::Operator("(") => self.bracket()?,
            _ => return None,
        };
        while let Some(token) = self.peek() {
            match token {
                Token::Operator("." | "|") => {
                    out += &self.take_space();
                    let Token::Operator(mark) = self.tokens[self.at] else { return None };
                    out += mark;
                    self.at += 1;
                    out += &self.take_space();
                    let Some(Token::Atom(name)) = self.tokens.get(self.at) else { return None };
                    out += name;
                    self.at += 1;
                }
                Token::Operator("[" | "(") => {
                    out += &self.take_space();
                    out += &self.bracket()?;
                }
                _ => break,
            }
        }
        Some(out)
    }

    /// From an opening bracket to its closing one.
    fn bracket(&mut self) -> Option<String> {
        let Token::Operator(open) = *self.tokens.get(self.at)? else { return None };
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        self.at += 1;
        let inner = self.sequence()?;
        let Token::Operator(close) = *self.tokens.get(self.at)? else { return None };
        if !matches!((open, close), ("(", ")") | ("[", "]") | ("{", "}")) {
            return None;
        }
        self.at += 1;
        self.depth -= 1;
        Some(format!("{open}{inner}{close}"))
    }

    fn peek(&self) -> Option<Token<'a>> {
        self.tokens[self.at..].iter().copied().find(|token| !matches!(token, Token::Space(_)))
    }

    fn take_space(&mut self) -> String {
        let mut out = String::new();
        while let Some(Token::Space(text)) = self.tokens.get(self.at) {
            out += text;
            self.at += 1;
        }
        out
    }

    fn skip_space(&mut self) {
        self.take_space();
    }
}
