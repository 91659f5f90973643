//! Reading single fields; nil counts as absent, as it does for Salt.

use super::Error;
use bytes::Bytes;
use bytestring::ByteString;
use saltern_core::value::{Map, Value};

/// A field that must be there.
pub(super) fn required<'a>(map: &'a Map, field: &'static str) -> Result<&'a Value, Error> {
    present(map, field).ok_or(Error::Missing(field))
}

/// A field, unless it is absent or nil.
pub(super) fn present<'a>(map: &'a Map, field: &str) -> Option<&'a Value> {
    map.get(field).filter(|value| !value.is_nil())
}

/// Text that must be there.
pub(super) fn text(map: &Map, field: &'static str) -> Result<ByteString, Error> {
    as_text(required(map, field)?, field)
}

/// Text that may be there.
pub(super) fn text_if_present(map: &Map, field: &'static str) -> Result<Option<ByteString>, Error> {
    present(map, field).map(|value| as_text(value, field)).transpose()
}

/// Bytes (or text, which is the same to Salt) that may be there.
pub(super) fn raw_if_present(map: &Map, field: &'static str) -> Result<Option<Bytes>, Error> {
    present(map, field).map(|value| value.to_raw().ok_or(Error::Wrong { field, wanted: "bytes" })).transpose()
}

/// A map that may be there.
pub(super) fn map_if_present(map: &Map, field: &'static str) -> Result<Option<Map>, Error> {
    match present(map, field) {
        None => Ok(None),
        Some(Value::Map(map)) => Ok(Some(map.clone())),
        Some(_) => Err(Error::Wrong { field, wanted: "a map" }),
    }
}

fn as_text(value: &Value, field: &'static str) -> Result<ByteString, Error> {
    match value {
        Value::Text(text) => Ok(text.clone()),
        _ => Err(Error::Wrong { field, wanted: "text" }),
    }
}
