//! How the parts of a step are written: barriers, budgets and limits as a person types them, in JSON and YAML alike.

use crate::action::Size;
use crate::action::schedule;
use crate::value::Value;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::time::Duration;

/// How much of the step before must have ended before a step begins. Written `each`, `all` or `80%`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Barrier {
    /// On each minion for itself: it does not wait for the others
    #[default]
    Each,
    /// On all minions
    All,
    /// On so many in a hundred of them
    Percent(u8),
}

impl Barrier {
    /// Reads `each`, `all` or `80%`.
    pub fn parse(text: &str) -> Option<Self> {
        match text.trim() {
            "each" => Some(Self::Each),
            "all" => Some(Self::All),
            text => match Size::parse(text)? {
                Size::Percent(percent) => Some(Self::Percent(percent)),
                Size::Count(_) => None,
            },
        }
    }

    /// Whether it is the one that is meant where nothing is said.
    pub(super) fn is_each(&self) -> bool {
        *self == Self::Each
    }
}

impl fmt::Display for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Each => f.write_str("each"),
            Self::All => f.write_str("all"),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

impl Serialize for Barrier {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Barrier {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let read = Value::deserialize(from)?.as_str().and_then(Self::parse);
        read.ok_or_else(|| D::Error::custom("a barrier is `each`, `all` or a percentage such as `80%`"))
    }
}

/// A size as a number, or as text with a percentage.
pub(super) mod size {
    use super::*;

    pub(in crate::chain) fn serialize<S: Serializer>(size: &Option<Size>, to: S) -> Result<S::Ok, S::Error> {
        match size {
            None => to.serialize_none(),
            Some(Size::Count(count)) => to.serialize_u64(*count as u64),
            Some(percent) => to.collect_str(percent),
        }
    }

    pub(in crate::chain) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Size>, D::Error> {
        let read = match Value::deserialize(from)? {
            Value::Nil => return Ok(None),
            Value::Text(text) => Size::parse(&text),
            number => number.as_i64().and_then(|count| usize::try_from(count).ok()).map(Size::Count),
        };
        read.map(Some).ok_or_else(|| D::Error::custom("a budget is a number, or a percentage such as `10%`"))
    }
}

/// A duration as seconds, or as text with units.
pub(super) mod duration {
    use super::*;

    pub(in crate::chain) fn serialize<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        match time {
            None => to.serialize_none(),
            Some(time) if time.subsec_nanos() == 0 => to.serialize_u64(time.as_secs()),
            Some(time) => to.serialize_f64(time.as_secs_f64()),
        }
    }

    pub(in crate::chain) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        let wrong = || D::Error::custom("a limit is a number of seconds, or a text such as `30m`");
        match Value::deserialize(from)? {
            Value::Nil => Ok(None),
            Value::Text(text) => schedule::duration(&text).map(Some).map_err(D::Error::custom),
            Value::Float(seconds) => Duration::try_from_secs_f64(seconds).map(Some).map_err(|_| wrong()),
            number => {
                let seconds = number.as_i64().and_then(|seconds| u64::try_from(seconds).ok()).ok_or_else(wrong)?;
                Ok(Some(Duration::from_secs(seconds)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn barriers_read_as_they_are_written() {
        for barrier in [Barrier::Each, Barrier::All, Barrier::Percent(80)] {
            assert_eq!(Barrier::parse(&barrier.to_string()), Some(barrier));
            let json = serde_json::to_string(&barrier).unwrap();
            assert_eq!(serde_json::from_str::<Barrier>(&json).unwrap(), barrier);
        }
        for bad in ["", "some", "80", "101%", "-1%"] {
            assert_eq!(Barrier::parse(bad), None, "{bad}");
        }
        assert!(serde_json::from_str::<Barrier>("80").is_err());
    }
}
