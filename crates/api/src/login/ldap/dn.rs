//! Names of entries, as text (RFC 4514).

use super::template::Template;
use std::fmt::Write as _;

/// The name to bind as. In the name of an entry the user's name is one value, whatever is in it; where the template is no
/// such name (`{{ username }}@example.org`, as Active Directory takes it) there is nothing to break out of.
pub(super) fn render(template: &Template, user: &str) -> String {
    let name = if template.contains(b'=') { escape(user) } else { user.to_owned() };
    String::from_utf8_lossy(&template.render(&name)).into_owned()
}

/// The value as it stands in a name: everything but letters, digits and a few harmless signs as `\XX`.
pub(super) fn escape(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for sign in value.chars() {
        if !sign.is_ascii() || sign.is_ascii_alphanumeric() || "-_.@".contains(sign) {
            escaped.push(sign);
        } else {
            let _ = write!(escaped, "\\{:02x}", sign as u32);
        }
    }
    escaped
}

/// The first value of a name: `admins` of `cn=admins,ou=groups,dc=example,dc=org`.
pub(super) fn first_value(dn: &str) -> Option<String> {
    let (_, rest) = dn.split_once('=')?;
    let mut bytes = rest.bytes();
    let mut value = Vec::new();
    while let Some(byte) = bytes.next() {
        match byte {
            b',' | b'+' | b';' => break,
            b'\\' => {
                let first = bytes.next()?;
                match hex_digit(first) {
                    Some(high) => value.push(high << 4 | hex_digit(bytes.next()?)?),
                    None => value.push(first),
                }
            }
            byte => value.push(byte),
        }
    }
    String::from_utf8(value).ok().filter(|value| !value.is_empty())
}

pub(super) fn hex_digit(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_cannot_leave_its_place() {
        let template = Template::parse("uid={{ username }},dc=example,dc=org").unwrap();
        let dn = render(&template, "ann,dc=evil+cn=x");
        assert_eq!(dn, "uid=ann\\2cdc\\3devil\\2bcn\\3dx,dc=example,dc=org");
        let template = Template::parse("{{ username }}@example.org").unwrap();
        assert_eq!(render(&template, "ann+x"), "ann+x@example.org");
    }

    #[test]
    fn first_values_are_read_with_their_escapes() {
        let cases = [
            ("cn=admins,ou=groups,dc=example", Some("admins")),
            ("CN=Web\\, Admins,DC=example", Some("Web, Admins")),
            ("cn=a\\2cb+sn=c", Some("a,b")),
            ("cn=\\c3\\a4", Some("ä")),
            ("cn=,o=x", None),
            ("cn=\\", None),
            ("", None),
        ];
        for (dn, expected) in cases {
            assert_eq!(first_value(dn).as_deref(), expected, "{dn}");
        }
    }

    proptest! {
        #[test]
        fn an_escaped_value_is_read_back(value in "\\PC{1,20}") {
            prop_assert_eq!(first_value(&format!("cn={},o=x", escape(&value))), Some(value));
        }

        #[test]
        fn reading_never_panics(dn in "[a=,\\\\+0-9f;ä]{0,20}") {
            let _ = first_value(&dn);
        }
    }
}
