//! Properties of the codec, with an independent implementation as the judge.
#![expect(clippy::unwrap_used, reason = "a test that fails, fails loudly")]

use bytes::Bytes;
use proptest::prelude::*;
use rmpv::Value as Oracle;
use saltern_core::value::Value;
use saltern_wire::limits::Decode;
use saltern_wire::msgpack::{decode, encode, encode_modern};

const LIMITS: Decode = Decode::after_auth();

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Nil),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-200i64..70_000).prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("NaN equals nothing", |float| !float.is_nan()).prop_map(Value::from),
        ".{0,40}".prop_map(Value::from),
        proptest::collection::vec(any::<u8>(), 0..300).prop_map(Value::from),
        (any::<i8>(), proptest::collection::vec(any::<u8>(), 0..20))
            .prop_map(|(kind, raw)| Value::Ext(kind, raw.into())),
    ]
}

fn tree() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(4, 64, 20, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..20).prop_map(Value::List),
            proptest::collection::vec((leaf(), inner), 0..20).prop_map(|entries| {
                let mut map = saltern_core::value::Map::new();
                for (key, value) in entries {
                    map.insert(key, value);
                }
                Value::Map(map)
            }),
        ]
    })
}

/// What the oracle read, as ours: its strings may hold anything, as Salt's do.
fn ours(oracle: &Oracle) -> Value {
    match oracle {
        Oracle::Nil => Value::Nil,
        Oracle::Boolean(bool) => (*bool).into(),
        Oracle::Integer(int) => int.as_i64().map(Value::from).or(int.as_u64().map(Value::from)).unwrap(),
        Oracle::F32(float) => f64::from(*float).into(),
        Oracle::F64(float) => (*float).into(),
        Oracle::String(text) => text.as_bytes().into(),
        Oracle::Binary(bytes) => bytes.as_slice().into(),
        Oracle::Array(items) => Value::list(items.iter().map(ours)),
        Oracle::Map(entries) => Value::Map(entries.iter().map(|(k, v)| (ours(k), ours(v))).collect()),
        Oracle::Ext(kind, raw) => Value::Ext(*kind, raw.clone().into()),
    }
}

/// Whether a map anywhere in it has two equal keys: we keep the last, the oracle both.
fn has_repeats(value: &Value) -> bool {
    match value {
        Value::List(items) => items.iter().any(has_repeats),
        Value::Map(map) => {
            let entries: Vec<_> = map.iter().collect();
            let repeats = |i: usize| entries[..i].iter().any(|(key, _)| *key == entries[i].0);
            (0..entries.len()).any(repeats) || entries.iter().any(|(k, v)| has_repeats(k) || has_repeats(v))
        }
        _ => false,
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(value in tree()) {
        for bytes in [encode(&value), encode_modern(&value)] {
            prop_assert_eq!(&decode(bytes.into(), &LIMITS).unwrap(), &value);
        }
    }

    #[test]
    fn the_oracle_reads_what_we_write(value in tree()) {
        for bytes in [encode(&value), encode_modern(&value)] {
            let oracle = rmpv::decode::read_value(&mut &bytes[..]).unwrap();
            prop_assert_eq!(&ours(&oracle), &value);
        }
    }

    #[test]
    fn the_modern_dialect_is_the_oracles(value in tree()) {
        fn theirs(value: &Value) -> Oracle {
            match value {
                Value::Nil => Oracle::Nil,
                Value::Bool(bool) => (*bool).into(),
                Value::Int(int) => (*int).into(),
                Value::UInt(int) => (*int).into(),
                Value::Float(float) => (*float).into(),
                Value::Text(text) => (&**text).into(),
                Value::Bytes(bytes) => Oracle::Binary(bytes.to_vec()),
                Value::List(items) => Oracle::Array(items.iter().map(theirs).collect()),
                Value::Map(map) => Oracle::Map(map.iter().map(|(k, v)| (theirs(k), theirs(v))).collect()),
                Value::Ext(kind, raw) => Oracle::Ext(*kind, raw.to_vec()),
            }
        }
        let mut bytes = Vec::new();
        rmpv::encode::write_value(&mut bytes, &theirs(&value)).unwrap();
        prop_assert_eq!(encode_modern(&value), bytes);
    }

    #[test]
    fn any_bytes_are_read_as_the_oracle_reads_them(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut rest = &bytes[..];
        let oracle = rmpv::decode::read_value(&mut rest).ok().filter(|_| rest.is_empty());
        let read = decode(Bytes::from(bytes.clone()), &LIMITS).ok();
        prop_assert_eq!(read.is_some(), oracle.is_some());
        if let (Some(read), Some(oracle)) = (read, oracle) {
            let oracle = ours(&oracle);
            let has_nan = format!("{oracle:?}").contains("NaN");
            prop_assert!(has_nan || has_repeats(&oracle) || read == oracle, "{read:?} {oracle:?}");
        }
    }

    #[test]
    fn every_prefix_of_a_value_is_refused(value in tree()) {
        let bytes = Bytes::from(encode(&value));
        for len in 0..bytes.len() {
            prop_assert!(decode(bytes.slice(..len), &LIMITS).is_err());
        }
    }
}
