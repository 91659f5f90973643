//! Bytes to values, within limits.

use super::Error;
use crate::limits::Decode;
use bytes::Bytes;
use bytestring::ByteString;
use saltern_core::value::{Map, Value};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

/// Decodes exactly one value. Text and bytes in it share `input`'s buffer, so the smallest of them keeps all of it alive.
pub fn decode(input: Bytes, limits: &Decode) -> Result<Value, Error> {
    if input.len() > limits.max_bytes {
        return Err(Error::TooLong { len: input.len(), max: limits.max_bytes });
    }
    let mut reader = Reader { input: &input, at: 0, nodes_left: limits.max_nodes };
    reader.charge(1)?;
    let value = reader.value(limits.max_depth)?;
    if reader.at == input.len() { Ok(value) } else { Err(Error::Trailing) }
}

struct Reader<'a> {
    input: &'a Bytes,
    at: usize,
    nodes_left: usize,
}

impl Reader<'_> {
    fn value(&mut self, depth: usize) -> Result<Value, Error> {
        Ok(match self.byte()? {
            byte @ 0x00..=0x7f => Value::Int(byte.into()),
            byte @ 0x80..=0x8f => self.map((byte & 0x0f).into(), depth)?,
            byte @ 0x90..=0x9f => self.list((byte & 0x0f).into(), depth)?,
            byte @ 0xa0..=0xbf => self.raw((byte & 0x1f).into())?,
            0xc0 => Value::Nil,
            0xc1 => return Err(Error::Reserved),
            0xc2 => Value::Bool(false),
            0xc3 => Value::Bool(true),
            0xc4 | 0xd9 => self.len::<1>().and_then(|len| self.raw(len))?,
            0xc5 | 0xda => self.len::<2>().and_then(|len| self.raw(len))?,
            0xc6 | 0xdb => self.len::<4>().and_then(|len| self.raw(len))?,
            0xc7 => self.len::<1>().and_then(|len| self.ext(len))?,
            0xc8 => self.len::<2>().and_then(|len| self.ext(len))?,
            0xc9 => self.len::<4>().and_then(|len| self.ext(len))?,
            0xca => Value::Float(f32::from_be_bytes(self.array()?).into()),
            0xcb => Value::Float(f64::from_be_bytes(self.array()?)),
            0xcc => Value::Int(self.byte()?.into()),
            0xcd => Value::Int(u16::from_be_bytes(self.array()?).into()),
            0xce => Value::Int(u32::from_be_bytes(self.array()?).into()),
            0xcf => Value::from(u64::from_be_bytes(self.array()?)),
            0xd0 => Value::Int(i8::from_be_bytes(self.array()?).into()),
            0xd1 => Value::Int(i16::from_be_bytes(self.array()?).into()),
            0xd2 => Value::Int(i32::from_be_bytes(self.array()?).into()),
            0xd3 => Value::Int(i64::from_be_bytes(self.array()?)),
            byte @ 0xd4..=0xd8 => self.ext(1 << (byte - 0xd4))?,
            0xdc => self.len::<2>().and_then(|len| self.list(len, depth))?,
            0xdd => self.len::<4>().and_then(|len| self.list(len, depth))?,
            0xde => self.len::<2>().and_then(|len| self.map(len, depth))?,
            0xdf => self.len::<4>().and_then(|len| self.map(len, depth))?,
            byte @ 0xe0..=0xff => Value::Int(i64::from(byte) - 0x100),
        })
    }

    fn list(&mut self, len: usize, depth: usize) -> Result<Value, Error> {
        let depth = self.enter(len, depth)?;
        let mut items = Vec::with_capacity(len);
        for _ in 0..len {
            items.push(self.value(depth)?);
        }
        Ok(Value::List(items))
    }

    fn map(&mut self, len: usize, depth: usize) -> Result<Value, Error> {
        let depth = self.enter(len.saturating_mul(2), depth)?;
        let mut entries = Vec::with_capacity(len);
        for _ in 0..len {
            entries.push((self.value(depth)?, self.value(depth)?));
        }
        Ok(Value::Map(last_wins(entries)))
    }

    /// Pays for `children` before any room is made for them: however containers are nested, what they reserve together
    /// stays within the node budget, and each within what the rest of the input could hold.
    fn enter(&mut self, children: usize, depth: usize) -> Result<usize, Error> {
        if children > self.input.len() - self.at {
            return Err(Error::Truncated);
        }
        self.charge(children)?;
        depth.checked_sub(1).ok_or(Error::TooDeep)
    }

    fn charge(&mut self, nodes: usize) -> Result<(), Error> {
        self.nodes_left = self.nodes_left.checked_sub(nodes).ok_or(Error::TooManyNodes)?;
        Ok(())
    }

    fn raw(&mut self, len: usize) -> Result<Value, Error> {
        let range = self.take(len)?;
        Ok(match ByteString::try_from(self.input.slice(range.clone())) {
            Ok(text) => Value::Text(text),
            Err(_) => Value::Bytes(self.input.slice(range)),
        })
    }

    fn ext(&mut self, len: usize) -> Result<Value, Error> {
        let kind = i8::from_be_bytes(self.array()?);
        let range = self.take(len)?;
        Ok(Value::Ext(kind, self.input.slice(range)))
    }

    /// A length of `N` big-endian bytes, `N` at most 4.
    fn len<const N: usize>(&mut self) -> Result<usize, Error> {
        Ok(self.array::<N>()?.iter().fold(0, |len, byte| len << 8 | usize::from(*byte)))
    }

    fn byte(&mut self) -> Result<u8, Error> {
        let byte = *self.input.get(self.at).ok_or(Error::Truncated)?;
        self.at += 1;
        Ok(byte)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let bytes = *self.input[self.at..].first_chunk().ok_or(Error::Truncated)?;
        self.at += N;
        Ok(bytes)
    }

    fn take(&mut self, len: usize) -> Result<Range<usize>, Error> {
        if len > self.input.len() - self.at {
            return Err(Error::Truncated);
        }
        let start = self.at;
        self.at += len;
        Ok(start..self.at)
    }
}

/// Below this many entries comparing all pairs of keys is cheaper than hashing them.
const FEW: usize = 16;

fn last_wins(entries: Vec<(Value, Value)>) -> Map {
    let repeats = if entries.len() <= FEW {
        let keys: [Option<Key<'_>>; FEW] = std::array::from_fn(|i| entries.get(i).and_then(|(key, _)| Key::of(key)));
        (1..entries.len()).any(|i| keys[i].is_some() && keys[..i].contains(&keys[i]))
    } else {
        let mut seen = std::collections::HashSet::with_capacity(entries.len());
        entries.iter().filter_map(|(key, _)| Key::of(key)).any(|key| !seen.insert(key))
    };
    if repeats { without_repeats(entries) } else { entries.into_iter().collect() }
}

#[cold]
fn without_repeats(entries: Vec<(Value, Value)>) -> Map {
    let mut places = HashMap::with_capacity(entries.len());
    let mut next = 0;
    let place_of_entry: Vec<usize> = entries
        .iter()
        .map(|(key, _)| match Key::of(key).map(|key| places.entry(key)) {
            Some(Entry::Occupied(old)) => *old.get(),
            new => {
                if let Some(Entry::Vacant(free)) = new {
                    free.insert(next);
                }
                next += 1;
                next - 1
            }
        })
        .collect();
    drop(places);
    let mut kept: Vec<(Value, Value)> = Vec::with_capacity(next);
    for (place, (key, value)) in place_of_entry.into_iter().zip(entries) {
        match kept.get_mut(place) {
            Some(old) => old.1 = value,
            None => kept.push((key, value)),
        }
    }
    kept.into_iter().collect()
}

/// A scalar key, comparable in constant time per byte. Lists and maps as keys have none: Python cannot hold them at all,
/// and comparing them would let a peer buy quadratic work.
#[derive(PartialEq, Eq, Hash)]
enum Key<'a> {
    Nil,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Float(u64),
    Raw(&'a [u8]),
    Ext(i8, &'a [u8]),
}

impl<'a> Key<'a> {
    fn of(value: &'a Value) -> Option<Self> {
        Some(match value {
            Value::Nil => Self::Nil,
            Value::Bool(bool) => Self::Bool(*bool),
            Value::Int(int) => Self::Int(*int),
            Value::UInt(int) => Self::UInt(*int),
            Value::Float(float) => Self::Float(float.to_bits()),
            Value::Text(text) => Self::Raw(text.as_bytes()),
            Value::Bytes(bytes) => Self::Raw(bytes),
            Value::Ext(kind, raw) => Self::Ext(*kind, raw),
            Value::List(_) | Value::Map(_) => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Decode = Decode::before_auth();

    fn read(bytes: &[u8]) -> Result<Value, Error> {
        decode(Bytes::copy_from_slice(bytes), &LIMITS)
    }

    #[test]
    fn non_utf8_in_the_str_family_is_bytes() {
        assert!(matches!(read(b"\xa3\xff\x00\x01").unwrap(), Value::Bytes(b) if b[..] == [0xff, 0, 1]));
        assert!(matches!(read(b"\xda\x00\x02\xc3\x28").unwrap(), Value::Bytes(_)));
        assert!(matches!(read(b"\xc4\x02hi").unwrap(), Value::Text(t) if t == "hi"));
    }

    #[test]
    fn map_keys_may_be_of_any_kind() {
        let map = read(b"\x84\x01\xa1a\xc0\xa1b\xcb\x3f\xf8\0\0\0\0\0\0\xa1c\x91\x01\xa1d").unwrap();
        let map = map.as_map().unwrap();
        assert_eq!(map.find(&Value::Int(1)).unwrap().as_str(), Some("a"));
        assert_eq!(map.find(&Value::Nil).unwrap().as_str(), Some("b"));
        assert_eq!(map.find(&Value::Float(1.5)).unwrap().as_str(), Some("c"));
        assert_eq!(map.find(&Value::list([1])).unwrap().as_str(), Some("d"));
    }

    #[test]
    fn of_two_equal_keys_the_last_wins() {
        let few = read(b"\x83\xa2id\xa1a\xa1x\x01\xd9\x02id\xa1b").unwrap();
        assert_eq!(few.as_map().unwrap().len(), 2);
        assert_eq!(few.get("id").unwrap().as_str(), Some("b"));
        let mut many = vec![0xde, 0, 41];
        for key in (0..40).chain([7]) {
            many.extend([key, u8::from(many.len() > 80)]);
        }
        let many = read(&many).unwrap();
        assert_eq!(many.as_map().unwrap().len(), 40);
        assert_eq!(many.as_map().unwrap().find(&Value::Int(7)), Some(&Value::Int(1)));
    }

    #[test]
    fn integers_have_one_form() {
        assert!(matches!(read(b"\xcf\0\0\0\0\0\0\0\x05").unwrap(), Value::Int(5)));
        assert!(matches!(read(b"\xcf\xff\xff\xff\xff\xff\xff\xff\xff").unwrap(), Value::UInt(u64::MAX)));
        assert!(matches!(read(b"\xd3\xff\xff\xff\xff\xff\xff\xff\xff").unwrap(), Value::Int(-1)));
        assert!(matches!(read(b"\xe0").unwrap(), Value::Int(-32)));
    }

    #[test]
    fn what_is_announced_but_not_there_is_refused() {
        for bytes in [
            &b"\xdd\xff\xff\xff\xff"[..],
            b"\xdf\xff\xff\xff\xff\x01",
            b"\xdb\xff\xff\xff\xff",
            b"\xc9\xff\xff\xff\xff\x01",
            b"\x92\x01",
            b"",
        ] {
            assert_eq!(read(bytes).unwrap_err(), Error::Truncated, "{bytes:x?}");
        }
        assert_eq!(read(b"\xc1").unwrap_err(), Error::Reserved);
        assert_eq!(read(b"\x01\x01").unwrap_err(), Error::Trailing);
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth: usize| [vec![0x91; depth], vec![0xc0]].concat();
        assert!(read(&nested(128)).is_ok());
        assert_eq!(read(&nested(129)).unwrap_err(), Error::TooDeep);
        assert_eq!(read(&vec![0x91; 60_000]).unwrap_err(), Error::TooDeep);
    }

    #[test]
    fn values_are_counted_when_they_are_announced() {
        let list = |len: u16| [&[0xdc][..], &len.to_be_bytes(), &vec![0xc0; len.into()]].concat();
        assert!(read(&list(1023)).is_ok());
        assert_eq!(read(&list(1024)).unwrap_err(), Error::TooManyNodes);
        // Each level announces as much as is left: together they must not reserve more than the budget.
        let greedy: Vec<u8> = (0..100).flat_map(|_| [0xdc, 0x01, 0x00]).chain(vec![0xc0; 1000]).collect();
        assert_eq!(read(&greedy).unwrap_err(), Error::TooManyNodes);
    }

    #[test]
    fn long_input_is_refused_unread() {
        assert_eq!(read(&vec![0xc1; 65_537]).unwrap_err(), Error::TooLong { len: 65_537, max: 65_536 });
    }
}
