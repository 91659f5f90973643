//! A point in time as JSON has it: RFC 3339 text.

use saltern_core::time::Timestamp;
use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// A point in time: `2026-11-15T19:36:31.867751+00:00`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub Timestamp);

impl From<Timestamp> for Time {
    fn from(at: Timestamp) -> Self {
        Self(at)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(&self.0.stamp())
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Timestamp::parse(&text).map(Self).ok_or_else(|| D::Error::custom(format!("{text:?} is not a time")))
    }
}

impl PartialSchema for Time {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new().schema_type(Type::String);
        let text = text.format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)));
        text.description(Some("A point in time: `2026-11-15T19:36:31.867751+00:00`")).into()
    }
}

impl ToSchema for Time {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_their_microseconds() {
        let time = Time(Timestamp(1_794_772_591_867_751));
        let json = serde_json::to_string(&time).unwrap();
        assert_eq!(json, "\"2026-11-15T19:56:31.867751+00:00\"");
        assert_eq!(serde_json::from_str::<Time>(&json).unwrap(), time);
    }

    #[test]
    fn text_that_is_no_time_is_refused() {
        assert!(serde_json::from_str::<Time>("\"yesterday\"").is_err());
    }
}
