//! The messages of LDAP (RFC 4511) that logging in needs.

use super::ber::{BOOLEAN, ENUMERATED, INTEGER, Malformed, OCTETS, Reader, SEQUENCE, SET, number, octets, tagged};
use zeroize::Zeroizing;

/// The attribute list of somebody who wants no attributes.
pub(super) const NONE: &str = "1.1";
const START_TLS: &str = "1.3.6.1.4.1.1466.20037";
/// Seconds that the server may take for a search.
const TIME_LIMIT: u32 = 8;

/// Results that are told apart.
pub(super) const SUCCESS: u32 = 0;
pub(super) const SIZE_LIMIT_EXCEEDED: u32 = 4;
pub(super) const NO_SUCH_OBJECT: u32 = 32;
pub(super) const INVALID_CREDENTIALS: u32 = 49;
/// What a server says of an entry that cannot log in at all: no password, or a name that is none.
pub(super) const INAPPROPRIATE_AUTHENTICATION: u32 = 48;
pub(super) const INVALID_DN: u32 = 34;

/// How far below the base a search goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Base,
    OneLevel,
    Subtree,
}

impl Scope {
    pub(super) fn from_number(number: u8) -> Option<Self> {
        [Self::Base, Self::OneLevel, Self::Subtree].into_iter().nth(usize::from(number))
    }
}

/// What is looked for.
pub(super) struct Search<'a> {
    pub(super) base: &'a str,
    pub(super) scope: Scope,
    /// The most entries that are wanted.
    pub(super) most: u16,
    pub(super) filter: Vec<u8>,
    pub(super) attributes: &'a [&'a str],
}

/// The request to be taken for `dn` from now on.
pub(super) fn bind(id: u32, dn: &str, password: &str) -> Zeroizing<Vec<u8>> {
    let password = Zeroizing::new(tagged(0x80, &[password.as_bytes()]));
    let bind = Zeroizing::new(tagged(0x60, &[&number(INTEGER, 3), &octets(dn.as_bytes()), &password]));
    Zeroizing::new(message(id, &bind))
}

/// The request to look for entries.
pub(super) fn search(id: u32, search: &Search<'_>) -> Vec<u8> {
    let attributes: Vec<u8> = search.attributes.iter().flat_map(|name| octets(name.as_bytes())).collect();
    let request = tagged(
        0x63,
        &[
            &octets(search.base.as_bytes()),
            &number(ENUMERATED, search.scope as u32),
            // Aliases are not followed.
            &number(ENUMERATED, 0),
            &number(INTEGER, search.most.into()),
            &number(INTEGER, TIME_LIMIT),
            // Values are wanted with the attributes.
            &tagged(BOOLEAN, &[&[0]]),
            &search.filter,
            &tagged(SEQUENCE, &[&attributes]),
        ],
    );
    message(id, &request)
}

/// The request to speak TLS from now on.
pub(super) fn start_tls(id: u32) -> Vec<u8> {
    message(id, &tagged(0x77, &[&tagged(0x80, &[START_TLS.as_bytes()])]))
}

/// The word that we are going.
pub(super) fn unbind(id: u32) -> Vec<u8> {
    message(id, &tagged(0x42, &[]))
}

fn message(id: u32, operation: &[u8]) -> Vec<u8> {
    tagged(SEQUENCE, &[&number(INTEGER, id), operation])
}

/// What a server sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Bound(Outcome),
    Entry(Entry),
    /// Another server that might know more; nobody goes there.
    Reference,
    Searched(Outcome),
    Extended(Outcome),
}

/// How an operation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) code: u32,
    pub(super) text: String,
}

/// One entry of the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) dn: String,
    attributes: Vec<(String, Vec<String>)>,
}

impl Entry {
    /// The values of an attribute, whose name has no case.
    pub(super) fn values<'a>(&'a self, attribute: &'a str) -> impl Iterator<Item = &'a str> {
        let of_name = move |(name, _): &&(String, Vec<String>)| name.eq_ignore_ascii_case(attribute);
        self.attributes.iter().filter(of_name).flat_map(|(_, values)| values.iter().map(String::as_str))
    }
}

/// Reads one whole message: its number, and what it says.
pub(super) fn read(bytes: &[u8]) -> Result<(u32, Answer), Malformed> {
    let mut message = Reader::new(Reader::new(bytes).expect(SEQUENCE)?);
    let id = message.number(INTEGER)?;
    let (tag, content) = message.value()?;
    let mut content = Reader::new(content);
    let answer = match tag {
        0x61 => Answer::Bound(outcome(&mut content)?),
        0x64 => Answer::Entry(entry(&mut content)?),
        0x65 => Answer::Searched(outcome(&mut content)?),
        0x73 => Answer::Reference,
        0x78 => Answer::Extended(outcome(&mut content)?),
        _ => return Err(Malformed),
    };
    Ok((id, answer))
}

fn outcome(content: &mut Reader<'_>) -> Result<Outcome, Malformed> {
    let code = content.number(ENUMERATED)?;
    content.expect(OCTETS)?;
    Ok(Outcome { code, text: content.text()? })
}

fn entry(content: &mut Reader<'_>) -> Result<Entry, Malformed> {
    let dn = content.text()?;
    let mut list = Reader::new(content.expect(SEQUENCE)?);
    let mut attributes = Vec::new();
    while !list.is_empty() {
        let mut attribute = Reader::new(list.expect(SEQUENCE)?);
        let name = attribute.text()?;
        let mut set = Reader::new(attribute.expect(SET)?);
        let mut values = Vec::new();
        while !set.is_empty() {
            values.push(set.text()?);
        }
        attributes.push((name, values));
    }
    Ok(Entry { dn, attributes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A bind by hand, as RFC 4511 has it.
    #[test]
    fn a_bind_has_the_bytes_of_the_protocol() {
        assert_eq!(*bind(1, "cn=a", "pw"), b"\x30\x12\x02\x01\x01\x60\x0d\x02\x01\x03\x04\x04cn=a\x80\x02pw");
    }

    #[test]
    fn an_entry_is_read_with_its_attributes() {
        let values = tagged(SET, &[&octets(b"x"), &octets(b"y")]);
        let attribute = tagged(SEQUENCE, &[&octets(b"memberOf"), &values]);
        let entry = tagged(0x64, &[&octets(b"cn=a"), &tagged(SEQUENCE, &[&attribute])]);
        let (id, answer) = read(&message(7, &entry)).unwrap();
        let Answer::Entry(entry) = answer else { panic!("{answer:?}") };
        assert_eq!((id, entry.dn.as_str()), (7, "cn=a"));
        assert_eq!(entry.values("memberof").collect::<Vec<_>>(), ["x", "y"]);
    }

    proptest! {
        #[test]
        fn no_bytes_make_reading_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = read(&bytes);
            let operations = [0x61u8, 0x64, 0x65, 0x73, 0x78];
            for tag in operations {
                let _ = read(&message(1, &tagged(tag, &[&bytes])));
            }
        }
    }
}
