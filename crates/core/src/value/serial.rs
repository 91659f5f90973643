//! [`Value`] through serde, so that JSON and templates can read and write it.
//!
//! What JSON lacks is written as Python's `json` would: keys become text (`1`, `true`, `null`), dates become ISO text, and
//! bytes that are not UTF-8 become text with U+FFFD in their place. [`Value::is_json_exact`] tells beforehand whether
//! anything would be changed that way.

use super::{Map, Value};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::borrow::Cow;
use std::fmt;

impl Value {
    /// Whether JSON can carry it and give it back unchanged.
    pub fn is_json_exact(&self) -> bool {
        match self {
            Self::Nil | Self::Bool(_) | Self::Int(_) | Self::UInt(_) | Self::Text(_) => true,
            Self::Float(float) => float.is_finite(),
            Self::Bytes(_) | Self::Ext(..) => false,
            Self::List(items) => items.iter().all(Self::is_json_exact),
            Self::Map(map) => map.iter().all(|(k, v)| k.as_str().is_some() && v.is_json_exact()),
        }
    }

    /// The text under which it stands as a key in JSON.
    pub fn key_text(&self) -> Cow<'_, str> {
        match self {
            Self::Nil => "null".into(),
            Self::Bool(bool) => (if *bool { "true" } else { "false" }).into(),
            Self::Int(int) => int.to_string().into(),
            Self::UInt(int) => int.to_string().into(),
            Self::Float(float) => format!("{float:?}").into(),
            Self::Text(text) => Cow::Borrowed(&**text),
            Self::Bytes(bytes) => String::from_utf8_lossy(bytes),
            Self::Ext(_, raw) => self.date_text().map_or_else(|| String::from_utf8_lossy(raw), Cow::Owned),
            Self::List(_) | Self::Map(_) => format!("{self:?}").into(),
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Nil => out.serialize_unit(),
            Self::Bool(bool) => out.serialize_bool(*bool),
            Self::Int(int) => out.serialize_i64(*int),
            Self::UInt(int) => out.serialize_u64(*int),
            Self::Float(float) => out.serialize_f64(*float),
            Self::Text(_) | Self::Bytes(_) | Self::Ext(..) => out.serialize_str(&self.key_text()),
            Self::List(items) => out.collect_seq(items),
            Self::Map(map) => map.serialize(out),
        }
    }
}

impl Serialize for Map {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let mut entries = out.serialize_map(Some(self.len()))?;
        for (key, value) in self {
            entries.serialize_entry(&key.key_text(), value)?;
        }
        entries.end()
    }
}

impl<'de> Deserialize<'de> for Map {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Value::deserialize(from)? {
            Value::Map(map) => Ok(map),
            _ => Err(serde::de::Error::custom("a map is expected")),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Nil)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Nil)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        Value::deserialize(from)
    }

    fn visit_bool<E>(self, bool: bool) -> Result<Value, E> {
        Ok(bool.into())
    }

    fn visit_i64<E>(self, int: i64) -> Result<Value, E> {
        Ok(int.into())
    }

    fn visit_u64<E>(self, int: u64) -> Result<Value, E> {
        Ok(int.into())
    }

    fn visit_f64<E>(self, float: f64) -> Result<Value, E> {
        Ok(float.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Value, E> {
        Ok(bytes.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Value::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some((key, value)) = entries.next_entry::<Value, Value>()? {
            map.push(key, value);
        }
        Ok(Value::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_goes_there_and_back() {
        let text = r#"{"b":1,"a":[null,true,-2,1.5,"x",18446744073709551615]}"#;
        let value: Value = serde_json::from_str(text).unwrap();
        assert!(value.is_json_exact());
        assert_eq!(serde_json::to_string(&value).unwrap(), text);
    }

    #[test]
    fn only_a_map_is_read_as_a_map() {
        let map: Map = serde_json::from_str(r#"{"b":1,"a":2}"#).unwrap();
        assert_eq!(serde_json::to_string(&map).unwrap(), r#"{"b":1,"a":2}"#);
        assert!(serde_json::from_str::<Map>("[1]").is_err() && serde_json::from_str::<Map>("null").is_err());
    }

    #[test]
    fn what_json_lacks_is_written_as_python_would() {
        let mut map = Map::new();
        map.push(1, &b"\xffx"[..]);
        map.push(Value::Nil, true);
        let value = Value::from(map);
        assert!(!value.is_json_exact());
        assert_eq!(serde_json::to_string(&value).unwrap(), "{\"1\":\"\u{fffd}x\",\"null\":true}");
    }
}
