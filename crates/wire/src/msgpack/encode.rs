//! Values to bytes, in Salt's dialect or the modern one.

use saltern_core::value::{Map, Value};

/// Encodes as Salt does on the network: text and bytes as fixstr, str16 or str32, never str8 or bin.
pub fn encode(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(bound(value));
    encode_into(value, &mut out);
    out
}

/// As [`encode`], appended to `out`.
pub fn encode_into(value: &Value, out: &mut Vec<u8>) {
    Encoder::salt(out).value(value);
}

/// As [`encode_into`], for a map that is not inside a [`Value`].
pub fn encode_map(map: &Map, out: &mut Vec<u8>) {
    Encoder::salt(out).entries(map);
}

/// Encodes with str8 for text of 32 to 255 bytes and bin for bytes: what `minion_sign_messages` signs.
pub fn encode_modern(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(bound(value));
    Encoder::modern(&mut out).value(value);
    out
}

/// At least as many bytes as the value takes in either dialect, so that a buffer is made once.
pub(crate) fn bound(value: &Value) -> usize {
    match value {
        Value::Nil | Value::Bool(_) => 1,
        Value::Int(_) | Value::UInt(_) | Value::Float(_) => 9,
        Value::Text(text) => 5 + text.len(),
        Value::Bytes(bytes) => 5 + bytes.len(),
        Value::List(items) => 5 + items.iter().map(bound).sum::<usize>(),
        Value::Map(map) => map_bound(map),
        Value::Ext(_, raw) => 6 + raw.len(),
    }
}

/// As [`bound`], for a map that is not inside a [`Value`].
pub(crate) fn map_bound(map: &Map) -> usize {
    5 + map.iter().map(|(key, value)| bound(key) + bound(value)).sum::<usize>()
}

/// Writes msgpack piece by piece, for envelopes that are never a [`Value`].
pub(crate) struct Encoder<'a> {
    out: &'a mut Vec<u8>,
    modern: bool,
}

impl<'a> Encoder<'a> {
    pub(crate) fn salt(out: &'a mut Vec<u8>) -> Self {
        Self { out, modern: false }
    }

    pub(crate) fn modern(out: &'a mut Vec<u8>) -> Self {
        Self { out, modern: true }
    }

    pub(crate) fn value(&mut self, value: &Value) {
        match value {
            Value::Nil => self.out.push(0xc0),
            Value::Bool(bool) => self.out.push(if *bool { 0xc3 } else { 0xc2 }),
            Value::Int(int) => self.int(*int),
            Value::UInt(int) => self.uint(*int),
            Value::Float(float) => self.tagged(0xcb, &float.to_be_bytes()),
            Value::Text(text) => self.text(text),
            Value::Bytes(bytes) => self.raw(bytes),
            Value::List(items) => {
                self.header(items.len(), &[Form::Fixed(0x90, 0x0f), Form::Two(0xdc), Form::Four(0xdd)]);
                items.iter().for_each(|item| self.value(item));
            }
            Value::Map(map) => self.entries(map),
            Value::Ext(kind, raw) => self.ext(*kind, raw),
        }
    }

    pub(crate) fn entries(&mut self, map: &Map) {
        self.map(map.len());
        for (key, value) in map {
            self.value(key);
            self.value(value);
        }
    }

    /// The start of a map; that many keys and values are to follow.
    pub(crate) fn map(&mut self, len: usize) {
        self.header(len, &[Form::Fixed(0x80, 0x0f), Form::Two(0xde), Form::Four(0xdf)]);
    }

    pub(crate) fn text(&mut self, text: &str) {
        let one = self.modern.then_some(0xd9);
        self.string(
            text.as_bytes(),
            [Form::Fixed(0xa0, 0x1f), Form::maybe_one(one), Form::Two(0xda), Form::Four(0xdb)],
        );
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        let forms = if self.modern {
            [Form::Never, Form::One(0xc4), Form::Two(0xc5), Form::Four(0xc6)]
        } else {
            [Form::Fixed(0xa0, 0x1f), Form::Never, Form::Two(0xda), Form::Four(0xdb)]
        };
        self.string(bytes, forms);
    }

    pub(crate) fn int(&mut self, int: i64) {
        if let Ok(int) = u64::try_from(int) {
            self.uint(int);
        } else if int >= -32 {
            self.out.push(int as u8);
        } else if let Ok(int) = i8::try_from(int) {
            self.tagged(0xd0, &int.to_be_bytes());
        } else if let Ok(int) = i16::try_from(int) {
            self.tagged(0xd1, &int.to_be_bytes());
        } else if let Ok(int) = i32::try_from(int) {
            self.tagged(0xd2, &int.to_be_bytes());
        } else {
            self.tagged(0xd3, &int.to_be_bytes());
        }
    }

    fn uint(&mut self, int: u64) {
        if let Ok(int) = u8::try_from(int) {
            match int {
                0..=0x7f => self.out.push(int),
                _ => self.tagged(0xcc, &[int]),
            }
        } else if let Ok(int) = u16::try_from(int) {
            self.tagged(0xcd, &int.to_be_bytes());
        } else if let Ok(int) = u32::try_from(int) {
            self.tagged(0xce, &int.to_be_bytes());
        } else {
            self.tagged(0xcf, &int.to_be_bytes());
        }
    }

    fn string(&mut self, bytes: &[u8], forms: [Form; 4]) {
        self.header(bytes.len(), &forms);
        self.out.extend_from_slice(bytes);
    }

    fn ext(&mut self, kind: i8, raw: &[u8]) {
        match raw.len() {
            len @ (1 | 2 | 4 | 8 | 16) => self.out.push(0xd4 + len.ilog2() as u8),
            len => self.header(len, &[Form::One(0xc7), Form::Two(0xc8), Form::Four(0xc9)]),
        }
        self.out.push(kind as u8);
        self.out.extend_from_slice(raw);
    }

    /// Writes `len` in the first form that holds it.
    fn header(&mut self, len: usize, forms: &[Form]) {
        let len = u32::try_from(len).expect("every border refuses values far below 4 GiB");
        for form in forms {
            match *form {
                Form::Fixed(tag, max) if len <= max.into() => return self.out.push(tag | len as u8),
                Form::One(tag) if len <= 0xff => return self.tagged(tag, &[len as u8]),
                Form::Two(tag) if len <= 0xffff => return self.tagged(tag, &(len as u16).to_be_bytes()),
                Form::Four(tag) => return self.tagged(tag, &len.to_be_bytes()),
                _ => {}
            }
        }
    }

    fn tagged(&mut self, tag: u8, bytes: &[u8]) {
        self.out.push(tag);
        self.out.extend_from_slice(bytes);
    }
}

/// A way of writing a length: in the tag itself, or in one, two or four bytes after it.
#[derive(Clone, Copy)]
enum Form {
    Never,
    Fixed(u8, u8),
    One(u8),
    Two(u8),
    Four(u8),
}

impl Form {
    fn maybe_one(tag: Option<u8>) -> Self {
        tag.map_or(Self::Never, Self::One)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn salts_dialect_has_neither_str8_nor_bin() {
        assert_eq!(encode(&Value::from("x".repeat(31)))[0], 0xbf);
        assert_eq!(encode(&Value::from("x".repeat(32)))[..3], [0xda, 0, 32]);
        assert_eq!(encode(&Value::from("x".repeat(65_536)))[..5], [0xdb, 0, 1, 0, 0]);
        assert_eq!(encode(&Value::from(vec![0xff; 2])), [0xa2, 0xff, 0xff]);
    }

    #[test]
    fn the_modern_dialect_has_both() {
        assert_eq!(encode_modern(&Value::from("x".repeat(32)))[..2], [0xd9, 32]);
        assert_eq!(encode_modern(&Value::from(vec![0xff; 2])), [0xc4, 2, 0xff, 0xff]);
        assert_eq!(encode_modern(&Value::from(vec![0xff; 256]))[..3], [0xc5, 1, 0]);
    }

    #[test]
    fn the_bound_is_never_too_small() {
        let raw = |len| Value::from(vec![0xff; len]);
        let ext = |len| Value::Ext(1, vec![0; len].into());
        for value in
            [raw(0), raw(255), raw(70_000), "x".repeat(300).into(), i64::MIN.into(), ext(0), ext(16), ext(70_000)]
        {
            let value = Value::map([(value.clone(), Value::List(vec![value; 20]))]);
            assert!(encode(&value).len() <= bound(&value) && encode_modern(&value).len() <= bound(&value));
        }
    }

    #[test]
    fn integers_take_the_shortest_form() {
        for (int, len) in
            [(0, 1), (127, 1), (128, 2), (-32, 1), (-33, 2), (65_535, 3), (65_536, 5), (1 << 32, 9), (i64::MIN, 9)]
        {
            assert_eq!(encode(&Value::Int(int)).len(), len, "{int}");
        }
        assert_eq!(encode(&Value::UInt(5)), [5]);
    }
}
