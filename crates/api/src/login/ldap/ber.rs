//! The few of ASN.1's basic encoding rules that LDAP uses: definite lengths, one-byte tags.
//!
//! Reading never trusts a length beyond the bytes that are there.

/// A value with its tag: the parts follow each other inside.
pub(super) fn tagged(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length = parts.iter().map(|part| part.len()).sum::<usize>();
    let mut out = vec![tag];
    match u8::try_from(length) {
        Ok(short @ 0..=127) => out.push(short),
        _ => {
            let bytes = length.to_be_bytes();
            let bytes = &bytes[bytes.iter().take_while(|byte| **byte == 0).count()..];
            out.push(0x80 | u8::try_from(bytes.len()).unwrap_or(8));
            out.extend_from_slice(bytes);
        }
    }
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out
}

/// A string of bytes.
pub(super) fn octets(bytes: &[u8]) -> Vec<u8> {
    tagged(OCTETS, &[bytes])
}

/// A number that is not negative.
pub(super) fn number(tag: u8, value: u32) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    // A first bit that is set would make it negative, so a zero goes before it.
    let used = bytes.iter().position(|byte| *byte != 0).unwrap_or(3);
    let sign: &[u8] = if bytes[used] >= 0x80 { &[0] } else { &[] };
    tagged(tag, &[sign, &bytes[used..]])
}

pub(super) const BOOLEAN: u8 = 0x01;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const OCTETS: u8 = 0x04;
pub(super) const ENUMERATED: u8 = 0x0a;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;

/// What is not BER as LDAP uses it, or not what was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

/// Values that follow each other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next value, whatever its tag.
    pub(super) fn value(&mut self) -> Result<(u8, &'a [u8]), Malformed> {
        let (&tag, rest) = self.0.split_first().ok_or(Malformed)?;
        let (length, rest) = length(rest)?.ok_or(Malformed)?;
        let (content, rest) = rest.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok((tag, content))
    }

    /// The next value, which must have this tag.
    pub(super) fn expect(&mut self, tag: u8) -> Result<&'a [u8], Malformed> {
        match self.value()? {
            (found, content) if found == tag => Ok(content),
            _ => Err(Malformed),
        }
    }

    /// The next number that is not negative and not larger than 32 bits.
    pub(super) fn number(&mut self, tag: u8) -> Result<u32, Malformed> {
        let content = self.expect(tag)?;
        match content {
            [] => Err(Malformed),
            [first, ..] if *first >= 0x80 => Err(Malformed),
            [0, rest @ ..] if rest.len() <= 4 => Ok(rest.iter().fold(0, |value, byte| value << 8 | u32::from(*byte))),
            _ if content.len() <= 4 => Ok(content.iter().fold(0, |value, byte| value << 8 | u32::from(*byte))),
            _ => Err(Malformed),
        }
    }

    /// The next string, with what is no UTF-8 replaced.
    pub(super) fn text(&mut self) -> Result<String, Malformed> {
        self.expect(OCTETS).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }
}

/// Reads a length; nothing where more bytes are needed to know it.
pub(super) fn length(bytes: &[u8]) -> Result<Option<(usize, &[u8])>, Malformed> {
    let Some((&first, rest)) = bytes.split_first() else { return Ok(None) };
    match first {
        0..=0x7f => Ok(Some((usize::from(first), rest))),
        // No length of LDAP's needs more than four bytes; 0x80 alone would mean an indefinite one, which LDAP forbids.
        0x81..=0x84 => {
            let count = usize::from(first & 0x7f);
            let Some((digits, rest)) = rest.split_at_checked(count) else { return Ok(None) };
            Ok(Some((digits.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)))
        }
        _ => Err(Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_have_their_shortest_form() {
        assert_eq!(number(INTEGER, 0), [2, 1, 0]);
        assert_eq!(number(INTEGER, 127), [2, 1, 127]);
        assert_eq!(number(INTEGER, 128), [2, 2, 0, 128]);
        assert_eq!(number(INTEGER, 0x1234), [2, 2, 0x12, 0x34]);
    }

    #[test]
    fn odd_lengths_are_refused() {
        for bytes in [&[4, 0x80, 0][..], &[4, 0x85, 0, 0, 0, 0, 1, 7], &[4, 3, 1, 2], &[4], &[], &[4, 0x82, 1]] {
            assert_eq!(Reader::new(bytes).value(), Err(Malformed), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_back(length in 0usize..70_000, byte: u8, value: u32) {
            let content = vec![byte; length];
            let bytes = [octets(&content), number(ENUMERATED, value)].concat();
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(reader.expect(OCTETS), Ok(content.as_slice()));
            prop_assert_eq!(reader.number(ENUMERATED), Ok(value));
            prop_assert!(reader.is_empty());
        }

        #[test]
        fn no_bytes_make_reading_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut reader = Reader::new(&bytes);
            while reader.value().is_ok() {}
            let _ = Reader::new(&bytes).number(INTEGER);
        }
    }
}
