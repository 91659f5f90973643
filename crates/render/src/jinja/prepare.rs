//! Rewrites a template's source into what the engine understands.
//!
//! | Salt's source | becomes |
//! |---|---|
//! | `[1, 2]`, `{'a': 1}` | `_list([1, 2])`, `_dict({'a': 1})`: values that can be changed |
//! | `text % values` | `_percent(text, values)` |
//! | `{% load_yaml as x %}…{% endload %}` | `{% set x %}…{% endset %}{% set x = x\|load_yaml %}` |
//! | `{% import_yaml 'f' as x %}` | `{% set x %}{% include 'f' %}{% endset %}{% set x = x\|load_yaml %}` |
//! | `{% profile as 'x' %}…{% endprofile %}` | `{% if true %}…{% endif %}` |
//!
//! Invariant: lines stay where they are, so errors name the right one. What is not understood is left as it is; the
//! engine says what is wrong with it.

use std::borrow::Cow;

mod expression;

use expression::rewrite;

/// The source as the engine wants it.
pub(super) fn prepare(source: &str) -> Cow<'_, str> {
    if !source.contains("{{") && !source.contains("{%") {
        return Cow::Borrowed(source);
    }
    let mut out = String::with_capacity(source.len() + source.len() / 4);
    let mut loads = Vec::new();
    let mut rest = source;
    while let Some(at) = next_tag(rest) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let taken = match &rest[..2] {
            "{#" => comment(rest, &mut out),
            "{{" => print(rest, &mut out),
            _ => block(rest, &mut out, &mut loads),
        };
        match taken {
            Some(len) => rest = &rest[len..],
            None => break,
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

fn next_tag(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    (0..bytes.len().saturating_sub(1)).find(|&at| bytes[at] == b'{' && matches!(bytes[at + 1], b'{' | b'%' | b'#'))
}

fn comment(text: &str, out: &mut String) -> Option<usize> {
    let end = text.find("#}")? + 2;
    out.push_str(&text[..end]);
    Some(end)
}

fn print(text: &str, out: &mut String) -> Option<usize> {
    let tag = Tag::parse(text, "}}")?;
    out.push_str(tag.open);
    out.push_str(&rewrite(tag.inner));
    out.push_str(tag.close);
    Some(tag.len)
}

fn block<'a>(text: &'a str, out: &mut String, loads: &mut Vec<(&'a str, &'a str)>) -> Option<usize> {
    let tag = Tag::parse(text, "%}")?;
    let inner = tag.inner.trim_start();
    let word_end = inner.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(inner.len());
    let (word, arguments) = inner.split_at(word_end);
    let (Tag { open, close, .. }, lines) = (&tag, "\n".repeat(tag.inner.matches('\n').count()));
    match word {
        "raw" => return raw(text, &tag, out),
        "load_yaml" | "load_json" | "load_text" => {
            let name = arguments.trim().strip_prefix("as").filter(|name| name.starts_with(char::is_whitespace))?.trim();
            loads.push((word, name));
            *out += &format!("{open} set {name} {lines}{close}");
        }
        "endload" => {
            let (filter, name) = loads.pop()?;
            *out += &format!("{open} endset %}}{{% set {name} = {name}|{filter} {lines}{close}");
        }
        "import_yaml" | "import_json" | "import_text" => {
            let filter = word.replace("import", "load");
            let (from, name) = import_parts(arguments)?;
            let from = rewrite(from);
            *out += &format!(
                "{open} set {name} %}}{{% include {from} %}}{{% endset %}}{{% set {name} = {name}|{filter} {lines}{close}"
            );
        }
        "profile" => *out += &format!("{open} if true {lines}{close}"),
        "endprofile" => *out += &format!("{open} endif {lines}{close}"),
        _ => *out += &format!("{open}{}{close}", rewrite(tag.inner)),
    }
    Some(tag.len)
}

/// The file and the name in `'file' as name [with context]`.
fn import_parts(arguments: &str) -> Option<(&str, &str)> {
    let arguments = arguments.trim();
    let arguments = ["with", "without"]
        .into_iter()
        .find_map(|word| {
            let rest = arguments.strip_suffix("context")?.trim_end().strip_suffix(word)?;
            rest.ends_with(char::is_whitespace).then_some(rest)
        })
        .unwrap_or(arguments)
        .trim();
    let (from, name) = arguments.rsplit_once(char::is_whitespace)?;
    let from = from.trim_end().strip_suffix("as")?;
    from.ends_with(|c: char| c.is_whitespace() || c == '\'' || c == '"' || c == ')').then_some((from.trim(), name))
}

/// Copies a raw section untouched.
fn raw(text: &str, tag: &Tag<'_>, out: &mut String) -> Option<usize> {
    let mut from = tag.len;
    loop {
        let at = from + text[from..].find("{%")?;
        let end = Tag::parse(&text[at..], "%}");
        if let Some(end) = end.filter(|end| end.inner.trim() == "endraw") {
            out.push_str(&text[..at + end.len]);
            return Some(at + end.len);
        }
        from = at + 2;
    }
}

/// One tag: its opening and closing with their white space marks, and what is between.
struct Tag<'a> {
    open: &'a str,
    inner: &'a str,
    close: &'a str,
    len: usize,
}

impl<'a> Tag<'a> {
    /// The tag that `text` starts with, up to the end mark outside of text and brackets.
    fn parse(text: &'a str, end: &str) -> Option<Self> {
        let open_len = 2 + usize::from(text[2..].starts_with(['-', '+']));
        let bytes = text.as_bytes();
        let (mut at, mut depth) = (open_len, 0_usize);
        while at < bytes.len() {
            let rest = &bytes[at..];
            if depth == 0 {
                let marked = usize::from(matches!(rest[0], b'-' | b'+'));
                if rest[marked..].starts_with(end.as_bytes()) {
                    let len = at + marked + end.len();
                    return Some(Self {
                        open: &text[..open_len],
                        inner: &text[open_len..at],
                        close: &text[at..len],
                        len,
                    });
                }
            }
            match rest[0] {
                quote @ (b'\'' | b'"') => at = text_end(bytes, at, quote)?,
                b'(' | b'[' | b'{' => (at, depth) = (at + 1, depth + 1),
                b')' | b']' | b'}' => (at, depth) = (at + 1, depth.saturating_sub(1)),
                _ => at += 1,
            }
        }
        None
    }
}

/// Where a text that starts at `at` ends.
fn text_end(bytes: &[u8], at: usize, quote: u8) -> Option<usize> {
    let mut at = at + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b if b == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, expected: &str) {
        assert_eq!(prepare(source), expected, "{source}");
    }

    #[test]
    fn literals_become_changeable() {
        check("{{ [1, {'a': []}] }}", "{{ _list([1, _dict({'a': _list([])})]) }}");
        check("{% set x = {} %}", "{% set x = _dict({}) %}");
        check("{{ {'a': {'b': 1}}}}", "{{ _dict({'a': _dict({'b': 1})})}}");
    }

    #[test]
    fn subscripts_are_left() {
        check("{{ a[0].b['c'](d)[1:2] }}", "{{ a[0].b['c'](d)[1:2] }}");
        check("{% for x in [1] %}", "{% for x in _list([1]) %}");
        check("{% if x not in ['a'] %}", "{% if x not in _list(['a']) %}");
    }

    #[test]
    fn percent_formats_text() {
        check("{{ '%s' % x }}", "{{ _percent('%s', x) }}");
        check("{{ 'a' ~ '%s-%s' % (a.b, c[1]) }}", "{{ 'a' ~ _percent('%s-%s', (a.b, c[1])) }}");
        check("{{ f|upper % x|lower }}", "{{ _percent(f|upper, x|lower) }}");
        check("{{ a * b % c }}", "{{ a * b % c }}");
        check("{{ -5 % 3 }}", "{{ -5 % 3 }}");
        check("{{ a - b % c % d }}", "{{ a - _percent(_percent(b, c), d) }}");
    }

    #[test]
    fn load_tags_become_captures() {
        check(
            "{%- load_yaml as x -%}\na: [1]\n{%- endload %}",
            "{%- set x -%}\na: [1]\n{%- endset %}{% set x = x|load_yaml %}",
        );
        check(
            "{% import_json 'a/b.json' as x with context %}",
            "{% set x %}{% include 'a/b.json' %}{% endset %}{% set x = x|load_json %}",
        );
    }

    #[test]
    fn raw_sections_comments_and_text_are_left() {
        for source in
            ["{% raw %}{{ [1] }}{% endraw %}", "{# [1] #}", "a: [1]", "{{ '[1] }}' }}", "{% raw %}{{ [", "{{ [1"]
        {
            check(source, source);
        }
    }

    #[test]
    fn lines_stay_where_they_are() {
        let source = "{% load_yaml\n as x\n%}\n{% endload %}\n{{ [1,\n2] }}";
        assert_eq!(prepare(source).matches('\n').count(), source.matches('\n').count());
    }
}
