//! Search filters as text (RFC 4515), parsed once at start; the user's name is put into the parsed form.

use super::ber::{BOOLEAN, OCTETS, tagged};
use super::dn::hex_digit;
use super::template::Template;

/// How deep filters may be nested.
const DEEPEST: usize = 32;

const AND: u8 = 0xa0;
const OR: u8 = 0xa1;
const NOT: u8 = 0xa2;
const EQUAL: u8 = 0xa3;
const SUBSTRINGS: u8 = 0xa4;
const AT_LEAST: u8 = 0xa5;
const AT_MOST: u8 = 0xa6;
const PRESENT: u8 = 0x87;
const LIKE: u8 = 0xa8;
const EXTENSIBLE: u8 = 0xa9;

/// A filter with places for the user's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Filter {
    /// `&`, `|` or `!`, by its tag.
    Several(u8, Vec<Filter>),
    /// A comparison, by its tag.
    Compare(u8, String, Template),
    Present(String),
    /// Parts with their tags: first, any, last.
    Substrings(String, Vec<(u8, Template)>),
    /// An attribute compared by a named rule: `(memberOf:1.2.840.113556.1.4.1941:=cn=admins,dc=example)`.
    Extensible {
        attribute: String,
        rule: String,
        with_dn: bool,
        value: Template,
    },
}

impl Filter {
    /// `(attribute=value)`.
    pub(super) fn equal(attribute: &str, value: Template) -> Self {
        Self::Compare(EQUAL, attribute.to_owned(), value)
    }

    /// `(&(…)(…))`.
    pub(super) fn and(filters: Vec<Filter>) -> Self {
        Self::Several(AND, filters)
    }

    /// Reads a filter; one comparison may stand without brackets.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("must be set: it finds a person, as (uid={{ username }}) does".to_owned());
        }
        if !text.starts_with('(') {
            return comparison(text);
        }
        match parse(text, 0)? {
            (filter, "") => Ok(filter),
            (_, rest) => Err(format!("is not understood from `{rest}` on")),
        }
    }

    /// Whether the user's name makes a difference.
    pub(super) fn has_user(&self) -> bool {
        match self {
            Self::Several(_, filters) => filters.iter().any(Self::has_user),
            Self::Compare(_, _, value) | Self::Extensible { value, .. } => value.has_user(),
            Self::Present(_) => false,
            Self::Substrings(_, parts) => parts.iter().any(|(_, part)| part.has_user()),
        }
    }

    /// The filter for one user, as the protocol has it.
    pub(super) fn encode(&self, user: &str) -> Vec<u8> {
        match self {
            Self::Several(tag, filters) => {
                let filters: Vec<Vec<u8>> = filters.iter().map(|filter| filter.encode(user)).collect();
                tagged(*tag, &filters.iter().map(Vec::as_slice).collect::<Vec<_>>())
            }
            Self::Compare(tag, attribute, value) => {
                let attribute = tagged(OCTETS, &[attribute.as_bytes()]);
                tagged(*tag, &[&attribute, &tagged(OCTETS, &[&value.render(user)])])
            }
            Self::Present(attribute) => tagged(PRESENT, &[attribute.as_bytes()]),
            Self::Substrings(attribute, parts) => {
                let parts: Vec<u8> = parts.iter().flat_map(|(tag, part)| tagged(*tag, &[&part.render(user)])).collect();
                let attribute = tagged(OCTETS, &[attribute.as_bytes()]);
                tagged(SUBSTRINGS, &[&attribute, &tagged(super::ber::SEQUENCE, &[&parts])])
            }
            Self::Extensible { attribute, rule, with_dn, value } => {
                let optional =
                    |tag, text: &str| if text.is_empty() { Vec::new() } else { tagged(tag, &[text.as_bytes()]) };
                let with_dn = if *with_dn { tagged(0x80 | (BOOLEAN + 3), &[&[0xff]]) } else { Vec::new() };
                let value = tagged(0x83, &[&value.render(user)]);
                tagged(EXTENSIBLE, &[&optional(0x81, rule), &optional(0x82, attribute), &value, &with_dn])
            }
        }
    }
}

/// Reads one filter in brackets, and gives what follows it.
fn parse(text: &str, depth: usize) -> Result<(Filter, &str), String> {
    let inner = text.strip_prefix('(').ok_or_else(|| format!("needs a `(` before `{text}`"))?;
    if depth >= DEEPEST {
        return Err("is nested too deeply".to_owned());
    }
    let tag = match inner.bytes().next() {
        Some(b'&') => AND,
        Some(b'|') => OR,
        Some(b'!') => NOT,
        _ => {
            let (leaf, rest) = inner.split_once(')').ok_or("needs another `)`")?;
            return Ok((comparison(leaf)?, rest));
        }
    };
    let (mut filters, mut rest) = (Vec::new(), inner[1..].trim_start());
    while rest.starts_with('(') {
        let (filter, behind) = parse(rest, depth + 1)?;
        filters.push(filter);
        rest = behind.trim_start();
    }
    let rest = rest.strip_prefix(')').ok_or("needs another `)`")?;
    match (tag, filters.len()) {
        (NOT, 1) | (AND | OR, 1..) => Ok((Filter::Several(tag, filters), rest)),
        _ => Err("has a `&`, `|` or `!` with the wrong number of filters behind it".to_owned()),
    }
}

/// Reads what stands between brackets: an attribute, a sign, a value.
fn comparison(text: &str) -> Result<Filter, String> {
    if text.contains(['(', ')']) {
        return Err(format!("has a bracket where none can be: `{text}`"));
    }
    let (attribute, value) = text.split_once('=').ok_or_else(|| format!("has no `=` in `{text}`"))?;
    if let Some(attribute) = attribute.strip_suffix(':') {
        return extensible(attribute, value);
    }
    let (tag, attribute) = match attribute.as_bytes().last() {
        Some(b'>') => (AT_LEAST, &attribute[..attribute.len() - 1]),
        Some(b'<') => (AT_MOST, &attribute[..attribute.len() - 1]),
        Some(b'~') => (LIKE, &attribute[..attribute.len() - 1]),
        _ => (EQUAL, attribute),
    };
    let attribute = name(attribute)?;
    if tag != EQUAL || !value.contains('*') {
        return Ok(Filter::Compare(tag, attribute, template(value)?));
    }
    if value == "*" {
        return Ok(Filter::Present(attribute));
    }
    let parts: Vec<&str> = value.split('*').collect();
    let last = parts.len() - 1;
    let mut substrings = Vec::new();
    for (index, part) in parts.into_iter().enumerate().filter(|(_, part)| !part.is_empty()) {
        let tag = if index == 0 {
            0x80
        } else if index == last {
            0x82
        } else {
            0x81
        };
        substrings.push((tag, template(part)?));
    }
    if substrings.is_empty() {
        return Err(format!("has nothing to look for in `{text}`"));
    }
    Ok(Filter::Substrings(attribute, substrings))
}

/// Reads `attribute[:dn][:rule]` before `:=`.
fn extensible(before: &str, value: &str) -> Result<Filter, String> {
    let mut parts = before.split(':');
    let attribute = parts.next().unwrap_or_default();
    let (mut with_dn, mut rule) = (false, "");
    for part in parts {
        match part {
            "dn" if !with_dn && rule.is_empty() => with_dn = true,
            part if rule.is_empty() && !part.is_empty() => rule = part,
            _ => return Err(format!("has a rule that is not understood: `{before}`")),
        }
    }
    let optional = |text: &str| if text.is_empty() { Ok(String::new()) } else { name(text) };
    if attribute.is_empty() && rule.is_empty() {
        return Err("has neither an attribute nor a rule before `:=`".to_owned());
    }
    Ok(Filter::Extensible { attribute: optional(attribute)?, rule: optional(rule)?, with_dn, value: template(value)? })
}

/// The name of an attribute or a rule: letters, digits, and what options and numbers have between them.
fn name(text: &str) -> Result<String, String> {
    let text = text.trim();
    let is_name = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.;".contains(&byte));
    if is_name { Ok(text.to_owned()) } else { Err(format!("has `{text}` where an attribute's name should be")) }
}

/// A value with its `\XX` resolved.
fn template(text: &str) -> Result<Template, String> {
    Template::parse(text)?.map(|bytes| {
        let mut plain = Vec::with_capacity(bytes.len());
        let mut rest = bytes.iter();
        while let Some(&byte) = rest.next() {
            let mut digit = || rest.next().and_then(|digit| hex_digit(*digit));
            plain.push(match byte {
                b'\\' => match (digit(), digit()) {
                    (Some(high), Some(low)) => high << 4 | low,
                    _ => return Err(format!("has a `\\` without two hexadecimal digits in `{text}`")),
                },
                byte => byte,
            });
        }
        Ok(plain)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encode(text: &str, user: &str) -> Vec<u8> {
        Filter::parse(text).unwrap().encode(user)
    }

    /// Bytes as RFC 4511 has them, by hand.
    #[test]
    fn filters_are_encoded_as_the_protocol_has_them() {
        assert_eq!(encode("(uid=a)", ""), b"\xa3\x08\x04\x03uid\x04\x01a");
        assert_eq!(encode("uid=a", ""), encode("(uid=a)", ""));
        assert_eq!(encode("(cn=*)", ""), b"\x87\x02cn");
        assert_eq!(encode("(!(cn=*))", ""), b"\xa2\x04\x87\x02cn");
        assert_eq!(encode("(&(cn=*) (sn=*))", ""), b"\xa0\x08\x87\x02cn\x87\x02sn");
        assert_eq!(encode("(cn=a*b*c)", ""), b"\xa4\x0f\x04\x02cn\x30\x09\x80\x01a\x81\x01b\x82\x01c");
        assert_eq!(encode("(cn>=5)", ""), b"\xa5\x07\x04\x02cn\x04\x015");
        assert_eq!(encode("(cn=\\2a\\28)", ""), b"\xa3\x08\x04\x02cn\x04\x02*(");
        assert_eq!(encode("(m:1.2:=v)", ""), b"\xa9\x0b\x81\x031.2\x82\x01m\x83\x01v");
        assert_eq!(encode("(m:dn:=v)", ""), b"\xa9\x09\x82\x01m\x83\x01v\x84\x01\xff");
    }

    #[test]
    fn filters_that_are_not_understood_are_refused() {
        let wrong = ["", "(", "()", "(uid)", "(uid=a", "(uid=a))", "(uid=a)(b=c)", "(&)", "(!(a=b)(c=d))", "((a=b))"];
        for text in wrong.into_iter().chain(["(u{d=a)", "(uid=\\2)", "(cn=**)", "(uid={{ x }})", "(:=a)", "(a=b(c)"]) {
            assert!(Filter::parse(text).is_err(), "{text}");
        }
        assert!(Filter::parse(&"(!".repeat(10_000)).is_err());
    }

    proptest! {
        #[test]
        fn a_name_is_one_value_whatever_is_in_it(user in "\\PC{0,40}") {
            let expected = Filter::and(vec![
                Filter::equal("uid", Template::literal(&user)),
                Filter::equal("objectClass", Template::literal("person")),
            ]);
            let filter = Filter::parse("(&(uid={{ username }})(objectClass=person))").unwrap();
            prop_assert_eq!(filter.encode(&user), expected.encode(""));
        }

        #[test]
        fn no_filter_makes_parsing_panic(text in "[(){}&|!=*\\\\a:<>~0-9 username.ä]{0,40}") {
            let _ = Filter::parse(&text).map(|filter| filter.encode("ann"));
        }
    }
}
