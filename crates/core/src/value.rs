//! Anything Salt can say: the lossless tree behind grains, pillar, arguments, returns and events.
//!
//! Text and bytes share one family on Salt's wire, so a [`Value`] is [`Value::Text`] where the bytes are UTF-8 and
//! [`Value::Bytes`] where they are not; map keys may be anything, and maps keep their order. Cloning is cheap for leaves
//! (they share their buffer).
//!
//! Not here: msgpack (`wire`), YAML (`render`). JSON is a view of it, through serde: see `value::serial`.

mod serial;

use bytes::Bytes;
use bytestring::ByteString;

/// One value of Salt's data model.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// `None`
    #[default]
    Nil,
    /// `True` or `False`
    Bool(bool),
    /// An integer that fits `i64`
    Int(i64),
    /// An integer above `i64::MAX`
    UInt(u64),
    /// A float
    Float(f64),
    /// Text
    Text(ByteString),
    /// Bytes that are not UTF-8
    Bytes(Bytes),
    /// A list, tuple or set
    List(Vec<Value>),
    /// A map, in order
    Map(Map),
    /// A msgpack extension we keep without understanding it (78 is a date, see [`Value::date_text`])
    Ext(i8, Bytes),
}

/// An ordered map with keys of any kind.
#[derive(Clone, Debug, Default)]
pub struct Map(Vec<(Value, Value)>);

impl Value {
    /// Text or bytes, whichever `raw` is.
    pub fn from_raw(raw: Bytes) -> Self {
        match ByteString::try_from(raw.clone()) {
            Ok(text) => Self::Text(text),
            Err(_) => Self::Bytes(raw),
        }
    }

    /// A map of text keys.
    pub fn map<K: Into<Value>, V: Into<Value>>(entries: impl IntoIterator<Item = (K, V)>) -> Self {
        Self::Map(entries.into_iter().map(|(k, v)| (k.into(), v.into())).collect())
    }

    /// A list.
    pub fn list<V: Into<Value>>(items: impl IntoIterator<Item = V>) -> Self {
        Self::List(items.into_iter().map(Into::into).collect())
    }

    /// The text, if it is text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The bytes of text or of bytes.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Text(text) => Some(text.as_bytes()),
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The bytes of text or of bytes, sharing the buffer.
    pub fn to_raw(&self) -> Option<Bytes> {
        match self {
            Self::Text(text) => Some(text.clone().into_bytes()),
            Self::Bytes(bytes) => Some(bytes.clone()),
            _ => None,
        }
    }

    /// The integer, if it is one that fits.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Int(int) => Some(*int),
            Self::UInt(int) => i64::try_from(*int).ok(),
            _ => None,
        }
    }

    /// The truth value, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(bool) => Some(*bool),
            _ => None,
        }
    }

    /// The items, if it is a list.
    pub fn as_list(&self) -> Option<&[Value]> {
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }

    /// The map, if it is one.
    pub fn as_map(&self) -> Option<&Map> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The entry under a text key, if this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_map()?.get(key)
    }

    /// Whether it is `Nil`.
    pub fn is_nil(&self) -> bool {
        matches!(self, Self::Nil)
    }

    /// Python's idea of truth: empty, zero and `None` are false.
    pub fn is_truthy(&self) -> bool {
        match self {
            Self::Nil => false,
            Self::Bool(bool) => *bool,
            Self::Int(int) => *int != 0,
            Self::UInt(int) => *int != 0,
            Self::Float(float) => *float != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::Bytes(bytes) => !bytes.is_empty(),
            Self::List(items) => !items.is_empty(),
            Self::Map(map) => !map.is_empty(),
            Self::Ext(..) => true,
        }
    }

    /// A date as `2020-01-02T03:04:05.678900`, from msgpack extension 78 (`%Y%m%dT%H:%M:%S.%f`).
    pub fn date_text(&self) -> Option<String> {
        match self {
            Self::Ext(78, raw) => {
                let text = std::str::from_utf8(raw).ok().filter(|text| text.is_ascii() && text.len() > 8)?;
                Some(format!("{}-{}-{}{}", &text[..4], &text[4..6], &text[6..8], &text[8..]))
            }
            _ => None,
        }
    }
}

/// Equality as Python sees it: numbers by value whatever their kind, maps without regard to order.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Nil, Self::Nil) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            (Self::List(a), Self::List(b)) => a == b,
            (Self::Map(a), Self::Map(b)) => a == b,
            (Self::Ext(a, x), Self::Ext(b, y)) => a == b && x == y,
            (Self::Float(a), Self::Float(b)) => a == b,
            _ => match (self.as_i64(), other.as_i64()) {
                (Some(a), Some(b)) => a == b,
                _ => matches!((self, other), (Self::UInt(a), Self::UInt(b)) if a == b),
            },
        }
    }
}

impl PartialEq for Map {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().all(|(key, value)| other.find(key) == Some(value))
    }
}

impl Map {
    /// An empty map.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// An empty map with room for `n` entries.
    pub fn with_capacity(n: usize) -> Self {
        Self(Vec::with_capacity(n))
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The entry under a text key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(k, _)| k.as_str() == Some(key)).map(|(_, v)| v)
    }

    /// The entry under a text key, to change.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.0.iter_mut().find(|(k, _)| k.as_str() == Some(key)).map(|(_, v)| v)
    }

    /// The entry under a key of any kind.
    pub fn find(&self, key: &Value) -> Option<&Value> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| v)
    }

    /// The entry under a key of any kind, to change.
    pub fn find_mut(&mut self, key: &Value) -> Option<&mut Value> {
        self.0.iter_mut().find(|(k, _)| k == key).map(|(_, v)| v)
    }

    /// Sets an entry; a new one goes to the end, an old one keeps its place. Returns what was there.
    pub fn insert(&mut self, key: impl Into<Value>, value: impl Into<Value>) -> Option<Value> {
        let (key, value) = (key.into(), value.into());
        match self.find_mut(&key) {
            Some(old) => Some(std::mem::replace(old, value)),
            None => {
                self.0.push((key, value));
                None
            }
        }
    }

    /// Appends an entry without looking whether the key is there: for builders that know it is not.
    pub fn push(&mut self, key: impl Into<Value>, value: impl Into<Value>) {
        self.0.push((key.into(), value.into()));
    }

    /// Takes an entry out; the others keep their order.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        let at = self.0.iter().position(|(k, _)| k.as_str() == Some(key))?;
        Some(self.0.remove(at).1)
    }

    /// The entries in order.
    pub fn iter(&self) -> std::slice::Iter<'_, (Value, Value)> {
        self.0.iter()
    }

    /// The entries in order, to change.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, (Value, Value)> {
        self.0.iter_mut()
    }

    /// The values in order.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.0.iter().map(|(_, v)| v)
    }
}

impl FromIterator<(Value, Value)> for Map {
    fn from_iter<I: IntoIterator<Item = (Value, Value)>>(entries: I) -> Self {
        Self(entries.into_iter().collect())
    }
}

impl IntoIterator for Map {
    type Item = (Value, Value);
    type IntoIter = std::vec::IntoIter<(Value, Value)>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Map {
    type Item = &'a (Value, Value);
    type IntoIter = std::slice::Iter<'a, (Value, Value)>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

macro_rules! from {
    ($($ty:ty => |$v:ident| $make:expr;)*) => {
        $(impl From<$ty> for Value { fn from($v: $ty) -> Self { $make } })*
    };
}

from! {
    bool => |v| Self::Bool(v);
    i64 => |v| Self::Int(v);
    i32 => |v| Self::Int(v.into());
    u16 => |v| Self::Int(v.into());
    u32 => |v| Self::Int(v.into());
    u64 => |v| i64::try_from(v).map_or(Self::UInt(v), Self::Int);
    usize => |v| Self::from(v as u64);
    f64 => |v| Self::Float(v);
    &str => |v| Self::Text(v.into());
    &String => |v| Self::Text(v.as_str().into());
    String => |v| Self::Text(v.into());
    ByteString => |v| Self::Text(v);
    Bytes => |v| Self::from_raw(v);
    Vec<u8> => |v| Self::from_raw(v.into());
    &[u8] => |v| Self::from_raw(Bytes::copy_from_slice(v));
    Vec<Value> => |v| Self::List(v);
    Map => |v| Self::Map(v);
    crate::ids::Jid => |v| Self::from(v.as_str());
    &crate::ids::MinionId => |v| Self::from(v.as_str());
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(v: Option<T>) -> Self {
        v.map_or(Self::Nil, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_is_text_where_it_can_be() {
        assert_eq!(Value::from(&b"abc"[..]).as_str(), Some("abc"));
        assert!(matches!(Value::from(&b"\xff\x00"[..]), Value::Bytes(_)));
    }

    #[test]
    fn equality_is_pythons() {
        assert_eq!(Value::UInt(5), Value::Int(5));
        assert_eq!(Value::map([("a", 1), ("b", 2)]), Value::map([("b", 2), ("a", 1)]));
        assert_ne!(Value::from("1"), Value::from(1));
    }

    #[test]
    fn insert_keeps_the_place_of_an_old_key() {
        let mut map = Map::new();
        map.insert("a", 1);
        map.insert("b", 2);
        assert_eq!(map.insert("a", 3), Some(Value::Int(1)));
        assert_eq!(map.iter().map(|(k, _)| k.as_str().unwrap()).collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn dates_are_readable() {
        let date = Value::Ext(78, Bytes::from_static(b"20200102T03:04:05.678900"));
        assert_eq!(date.date_text().unwrap(), "2020-01-02T03:04:05.678900");
    }
}
