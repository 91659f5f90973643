//! Whom a step is for, as it is kept: an expression, or a group, that is resolved when the chain is launched.

use super::step::BadStep;
use crate::target::{Expression, Nodegroups, Target, TargetError};
use crate::value::{Map, Value};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Whom a step is for.
///
/// Written as a text (a glob), as `{minions: [a, b]}`, as `{group: web}`, or as `{type: grain, expression: "os:Debian"}` for
/// every type there is.
#[derive(Clone, Debug, PartialEq)]
pub struct StepTarget {
    /// Salt's name of the target type; or [`StepTarget::GROUP`], a group of minions that the server keeps
    pub kind: String,
    /// The expression: a text, or a list of texts where the type takes one
    pub expression: Value,
}

/// More minions than anybody names one by one; larger sets are groups.
const MOST_MINIONS: usize = 10_000;
/// Longest expression, in bytes.
const LONGEST: usize = 64 * 1024;

impl StepTarget {
    /// The kind of a target that is a group of minions, which minions themselves know nothing of.
    pub const GROUP: &'static str = "group";

    /// Minions by a glob on their ids.
    pub fn glob(pattern: &str) -> Self {
        Self { kind: "glob".into(), expression: pattern.into() }
    }

    /// Minions one by one.
    pub fn minions<M: Into<Value>>(ids: impl IntoIterator<Item = M>) -> Self {
        Self { kind: "list".into(), expression: Value::list(ids) }
    }

    /// The minions of a group.
    pub fn of_group(name: &str) -> Self {
        Self { kind: Self::GROUP.into(), expression: name.into() }
    }

    /// The group's name, if it is one.
    pub fn group(&self) -> Option<&str> {
        if self.kind == Self::GROUP { self.expression.as_str() } else { None }
    }

    /// The target, for every kind but a group: that one only the server can resolve.
    pub fn target(&self) -> Result<Target, TargetError> {
        Target::read(&self.kind, &self.expression, None)
    }

    /// Whether it can be resolved. Whether there is such a nodegroup or group is known only when it is.
    pub(super) fn check(&self) -> Result<(), BadStep> {
        let too_large = match &self.expression {
            Value::List(items) => items.len() > MOST_MINIONS,
            other => other.as_str().is_some_and(|text| text.len() > LONGEST),
        };
        if too_large {
            return Err(BadStep::LargeTarget);
        }
        if self.kind == Self::GROUP {
            return match self.group().map(str::trim) {
                Some(name) if !name.is_empty() => Ok(()),
                _ => Err(BadStep::NoGroup),
            };
        }
        match self.target()?.compile(&Nodegroups::new()) {
            Ok(_) | Err(TargetError::UnknownNodegroup(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl From<&Target> for StepTarget {
    fn from(target: &Target) -> Self {
        Self { kind: target.kind.as_str().into(), expression: target.expression.to_value() }
    }
}

/// `glob web*`, for people.
impl std::fmt::Display for StepTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let expression = match &self.expression {
            Value::List(ids) => Expression::List(ids.iter().map(|id| id.key_text().into_owned()).collect()),
            other => Expression::Text(other.key_text().into_owned()),
        };
        write!(f, "{} {expression}", self.kind)
    }
}

impl Serialize for StepTarget {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match (self.kind.as_str(), &self.expression) {
            ("glob", text @ Value::Text(_)) => text.serialize(to),
            ("list", ids @ Value::List(_)) => Value::map([("minions", ids.clone())]).serialize(to),
            (Self::GROUP, name) => Value::map([("group", name.clone())]).serialize(to),
            (kind, expression) => Value::map([("type", kind.into()), ("expression", expression.clone())]).serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for StepTarget {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let read = match Value::deserialize(from)? {
            Value::Text(text) => Some(Self::glob(&text)),
            Value::Map(map) => of_map(&map),
            _ => None,
        };
        read.ok_or_else(|| {
            D::Error::custom(
                "a target is a text (a glob), {minions: [ids]}, {group: name} or {type: grain, expression: os:Debian}",
            )
        })
    }
}

fn of_map(map: &Map) -> Option<StepTarget> {
    let only = |names: &[&str]| map.iter().all(|(key, _)| key.as_str().is_some_and(|key| names.contains(&key)));
    if let Some(ids) = map.get("minions") {
        return (only(&["minions"]) && ids.as_list().is_some())
            .then(|| StepTarget { kind: "list".into(), expression: ids.clone() });
    }
    if let Some(name) = map.get("group") {
        return only(&["group"]).then(|| name.as_str().map(StepTarget::of_group))?;
    }
    let expression = map.get("expression").filter(|_| only(&["type", "expression"]))?;
    let kind = match map.get("type") {
        None => "glob",
        Some(kind) => kind.as_str()?,
    };
    Some(StepTarget { kind: kind.into(), expression: expression.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<StepTarget, serde_json::Error> {
        serde_json::from_str(json)
    }

    #[test]
    fn every_form_is_written_as_it_was_read() {
        for (json, kind) in [
            (r#""web*""#, "glob"),
            (r#"{"minions":["a","b"]}"#, "list"),
            (r#"{"group":"web"}"#, "group"),
            (r#"{"type":"grain","expression":"os:Debian"}"#, "grain"),
            (r#"{"type":"list","expression":"a,b"}"#, "list"),
        ] {
            let target = read(json).unwrap();
            assert_eq!(target.kind, kind);
            assert_eq!(serde_json::to_string(&target).unwrap(), json);
            target.check().unwrap();
        }
    }

    #[test]
    fn what_is_no_target_is_refused_when_it_is_read() {
        for bad in [
            "5",
            "[]",
            "{}",
            r#"{"minions":"a"}"#,
            r#"{"group":["web"]}"#,
            r#"{"group":"web","type":"glob"}"#,
            r#"{"type":5,"expression":"a"}"#,
            r#"{"type":"glob"}"#,
            r#"{"expression":"a","delimiter":"|"}"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_cannot_be_resolved_is_refused_when_it_is_checked() {
        for bad in [
            r#"{"group":" "}"#,
            r#"{"type":"planets","expression":"a"}"#,
            r#"{"type":"pcre","expression":"("}"#,
            r#"{"type":"glob","expression":5}"#,
        ] {
            assert!(read(bad).unwrap().check().is_err(), "{bad}");
        }
        read(r#"{"type":"nodegroup","expression":"later"}"#).unwrap().check().unwrap();
        assert!(StepTarget::minions(vec!["a"; MOST_MINIONS + 1]).check().is_err());
    }

    #[test]
    fn people_read_it_as_a_type_and_an_expression() {
        assert_eq!(StepTarget::minions(["a", "b"]).to_string(), "list a,b");
        assert_eq!(StepTarget::of_group("web").to_string(), "group web");
    }
}
