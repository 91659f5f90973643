//! How bodies (loads, grains, event data) are kept: as JSON where JSON is exact, as msgpack where it is not, compressed
//! when large, cut when too large.

use crate::Error;
use bytes::Bytes;
use saltern_core::value::{Map, Value};
use saltern_store::Body;
use saltern_wire::limits::Decode;
use saltern_wire::msgpack;

const JSON: i64 = 0;
const MSGPACK: i64 = 1;
/// Added to an encoding whose bytes are LZ4 blocks with their length in front.
const COMPRESSED: i64 = 16;

/// Below this, compression costs more than it saves.
const COMPRESS_FROM: usize = 2048;

/// Encodes a value for the store.
pub(crate) fn pack(value: &Value) -> Body {
    let json = if value.is_json_exact() { serde_json::to_vec(value).ok() } else { None };
    match json {
        Some(json) => compressed(JSON, json),
        None => pack_binary(value),
    }
}

/// Encodes a value that is read back often and never looked at with SQL: grains.
pub(crate) fn pack_binary(value: &Value) -> Body {
    compressed(MSGPACK, msgpack::encode(value))
}

fn compressed(encoding: i64, bytes: Vec<u8>) -> Body {
    if bytes.len() < COMPRESS_FROM {
        return Body { encoding, bytes };
    }
    Body { encoding: encoding | COMPRESSED, bytes: lz4_flex::compress_prepend_size(&bytes) }
}

/// Reads a value back.
pub fn unpack(body: &Body) -> Result<Value, Error> {
    let broken = || Error::Internal(format!("a stored body with encoding {} cannot be read", body.encoding));
    if body.bytes.is_empty() {
        return Ok(Value::Nil);
    }
    let bytes = if body.encoding & COMPRESSED != 0 {
        lz4_flex::decompress_size_prepended(&body.bytes).map_err(|_| broken())?
    } else {
        body.bytes.clone()
    };
    match body.encoding & !COMPRESSED {
        JSON => serde_json::from_slice(&bytes).map_err(|_| broken()),
        MSGPACK => msgpack::decode(Bytes::from(bytes), &Decode::after_auth()).map_err(|_| broken()),
        _ => Err(broken()),
    }
}

/// Cuts `value` until it is about `limit` bytes: long texts first, then whole branches. Tells whether anything was cut.
///
/// The marker says how much there was, so that nobody takes the rest for the whole.
pub(crate) fn cut(value: &mut Value, limit: usize) -> bool {
    let size = size(value);
    if size <= limit {
        return false;
    }
    let longest = match value {
        Value::Text(text) => {
            let keep = (0..=limit.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            *value = format!("{}\n[cut by saltern: {keep} of {} bytes kept]", &text[..keep], text.len()).into();
            return true;
        }
        Value::Map(map) => largest(map.iter_mut().map(|(_, v)| v)),
        Value::List(items) => largest(items.iter_mut()),
        _ => None,
    };
    match longest {
        // One branch holds most of it: cut that and keep the rest whole.
        Some((branch, branch_size)) if size - branch_size < limit => {
            cut(branch, (limit - (size - branch_size)).max(64));
        }
        _ => *value = format!("[cut by saltern: {size} bytes, more than the {limit} that are kept]").into(),
    }
    true
}

fn largest<'a>(branches: impl Iterator<Item = &'a mut Value>) -> Option<(&'a mut Value, usize)> {
    branches
        .map(|value| {
            let size = size(value);
            (value, size)
        })
        .max_by_key(|(_, size)| *size)
}

/// Roughly the bytes it takes on the wire.
fn size(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len() + 5,
        Value::Bytes(bytes) | Value::Ext(_, bytes) => bytes.len() + 6,
        Value::List(items) => items.iter().map(size).sum::<usize>() + 5,
        Value::Map(map) => map_size(map),
        Value::Nil | Value::Bool(_) | Value::Int(_) | Value::UInt(_) | Value::Float(_) => 9,
    }
}

fn map_size(map: &Map) -> usize {
    map.iter().map(|(k, v)| size(k) + size(v)).sum::<usize>() + 5
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_comes_back_as_it_was() {
        let mut odd = Map::new();
        odd.push(1, &b"\xff\x00"[..]);
        for value in [Value::Nil, "x".repeat(10_000).into(), Value::map([("a", 1)]), Value::from(odd)] {
            assert_eq!(unpack(&pack(&value)).unwrap(), value);
        }
    }

    #[test]
    fn large_bodies_are_compressed() {
        assert!(pack(&"x".repeat(100_000).into()).bytes.len() < 2_000);
    }

    #[test]
    fn what_is_too_large_is_cut_with_a_marker_and_the_rest_stays() {
        let mut value = Value::map([("stdout", Value::from("é".repeat(5_000))), ("pid", Value::from(7))]);
        assert!(cut(&mut value, 1_000));
        assert_eq!(value.get("pid"), Some(&Value::Int(7)));
        let text = value.get("stdout").unwrap().as_str().unwrap();
        assert!(text.len() < 1_100 && text.contains("of 10000 bytes kept"), "{text}");
    }

    #[test]
    fn many_middling_branches_are_replaced_by_the_marker() {
        let mut value = Value::list((0..100).map(|_| "y".repeat(100)));
        assert!(cut(&mut value, 1_000));
        assert!(value.as_str().unwrap().starts_with("[cut by saltern"));
    }

    #[test]
    fn small_values_are_left_alone() {
        let mut value = Value::from("abc");
        assert!(!cut(&mut value, 1_000));
        assert_eq!(value, Value::from("abc"));
    }
}
