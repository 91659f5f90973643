//! What recurs in YAML files: what `apply -f` reads and `export` writes.
//!
//! A file holds one definition, several documents of one each, or a list of them under `recurring`. Times may be written as
//! people do, `30m`; a chain may be named.

use crate::documents::{self, only, shown};
use crate::failure::Failure;
use saltern_api::shape::{CatchUp, EntityKind, Overlap, RecurringDraft, RecurringEntity, RecurringWhat};
use saltern_calendar::cron::Cron;
use saltern_calendar::zone::Zone;
use saltern_core::action::{Policy, schedule};
use saltern_core::value::{Map, Value};
use saltern_render::yaml;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// What a document is.
const FORM: &str = "what recurs is a map with `name`, `cron`, what it is done on and what is done, or there is a list under `recurring`";

/// What recurs, as a file has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    minion: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    org: Option<String>,
    /// A compound target
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    cron: String,
    #[serde(default = "utc")]
    zone: String,
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    /// A chain by its number or name
    #[serde(default, skip_serializing_if = "Value::is_nil")]
    pub(super) chain: Value,
    #[serde(default, skip_serializing_if = "Value::is_nil")]
    params: Value,
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    active: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spread: Option<Span>,
    #[serde(default)]
    overlap: Overlap,
    #[serde(default)]
    catch_up: CatchUp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    catch_up_limit: Option<Span>,
    #[serde(default)]
    in_window: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deadline: Option<Span>,
    #[serde(default, skip_serializing_if = "is_usual")]
    policy: Policy,
}

/// A length of time: seconds, or text such as `30m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Span(u64);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = match Value::deserialize(from)? {
            Value::Text(text) => text.to_string(),
            number => number.as_i64().map(|number| number.to_string()).unwrap_or_default(),
        };
        schedule::duration(&text).map(|time| Self(time.as_secs())).map_err(D::Error::custom)
    }
}

fn utc() -> String {
    Zone::UTC.name().to_owned()
}

const fn yes() -> bool {
    true
}

const fn is_yes(flag: &bool) -> bool {
    *flag
}

fn is_usual(policy: &Policy) -> bool {
    *policy == Policy::default()
}

/// How long a missed time is worth catching up with unless told.
const A_DAY: u64 = 86_400;

/// Reads all there is in these files; `-` is standard input.
pub(super) fn read_all(files: &[String]) -> Result<Vec<Entry>, Failure> {
    let mut entries: Vec<Entry> = Vec::new();
    for file in files {
        for entry in read(file, &documents::content(file)?)? {
            if entries.iter().any(|other| other.name == entry.name && other.entity() == entry.entity()) {
                return Err(Failure::usage(format!("{}: {:?} is there twice", shown(file), entry.name)));
            }
            entries.push(entry);
        }
    }
    Ok(entries)
}

fn read(file: &str, text: &str) -> Result<Vec<Entry>, Failure> {
    let mut entries = Vec::new();
    for document in documents::read(file, text, FORM)? {
        let at_line = |error: String| document.wrong(error);
        match document.map.get("recurring") {
            Some(_) => entries.extend(list(&document.map).map_err(at_line)?),
            None => entries.push(entry(&document.map).map_err(at_line)?),
        }
    }
    if entries.is_empty() {
        let failure = Failure::usage(format!("{} has nothing that recurs", shown(file)));
        return Err(failure.hint("`saltern recurring export` shows the form"));
    }
    Ok(entries)
}

fn list(map: &Map) -> Result<Vec<Entry>, String> {
    only(map, &["recurring"])?;
    let list = map.get("recurring").and_then(Value::as_list).ok_or("`recurring` is a list")?;
    let read = |(at, value): (usize, &Value)| match value {
        Value::Map(map) => entry(map),
        _ => Err(format!("entry {}: {FORM}", at + 1)),
    };
    list.iter().enumerate().map(read).collect()
}

/// Reads and checks one: what can be known to be wrong is told with its place, before anything is sent.
fn entry(map: &Map) -> Result<Entry, String> {
    let name = map.get("name").and_then(Value::as_str).unwrap_or("?").to_owned();
    let of = |error: String| format!("{name:?}: {error}");
    let mut entry: Entry = documents::typed(&Value::Map(map.clone())).map_err(of)?;
    entry.entity().map_err(of)?;
    match (&entry.kind, &entry.chain) {
        (Some(_), Value::Nil) | (None, Value::Text(_) | Value::Int(_)) => {}
        (None, Value::Nil) => return Err(of("say what is done: `type` or `chain`".into())),
        (None, _) => return Err(of("`chain` is the number or the name of a chain".into())),
        (Some(_), _) => return Err(of("do a `type` or a `chain`, not both".into())),
    }
    entry.cron = Cron::parse(&entry.cron, "").map_err(|error| of(format!("cron: {error}")))?.text().to_owned();
    entry.zone = Zone::parse(&entry.zone).map_err(|error| of(error.to_string()))?.name().to_owned();
    Ok(entry)
}

impl Entry {
    /// What it is done on.
    pub(super) fn entity(&self) -> Result<RecurringEntity, String> {
        let given = [
            (EntityKind::Minion, &self.minion),
            (EntityKind::Group, &self.group),
            (EntityKind::Org, &self.org),
            (EntityKind::Target, &self.target),
        ];
        let mut given = given.into_iter().filter_map(|(kind, subject)| Some((kind, subject.clone()?)));
        match (given.next(), given.next()) {
            (Some((kind, subject)), None) => Ok(RecurringEntity { kind, subject }),
            _ => Err("say what it is done on with one of `minion`, `group`, `org` and `target`".into()),
        }
    }

    /// The draft; `chain` is the number of its chain, where it has one.
    pub(super) fn draft(&self, chain: Option<i64>) -> Result<RecurringDraft, String> {
        let seconds = |span: Option<Span>| span.map(|Span(seconds)| seconds);
        Ok(RecurringDraft {
            name: self.name.clone(),
            entity: self.entity()?,
            what: RecurringWhat { kind: self.kind.clone(), chain, params: self.params.clone() },
            cron: self.cron.clone(),
            zone: self.zone.clone(),
            active: self.active,
            spread: seconds(self.spread).unwrap_or(0),
            overlap: self.overlap,
            catch_up: self.catch_up,
            catch_up_limit: seconds(self.catch_up_limit).unwrap_or(A_DAY),
            in_window: self.in_window,
            deadline: seconds(self.deadline),
            policy: self.policy.clone(),
        })
    }

    /// A draft as a file has it; `chain` is the name of its chain, where that is known.
    pub(super) fn of(draft: RecurringDraft, chain: Option<String>) -> Self {
        let on = |kind: EntityKind| (draft.entity.kind == kind).then(|| draft.entity.subject.clone());
        let chain = match (draft.what.chain, chain) {
            (None, _) => Value::Nil,
            (Some(_), Some(name)) => name.into(),
            (Some(number), None) => number.into(),
        };
        Self {
            minion: on(EntityKind::Minion),
            group: on(EntityKind::Group),
            org: on(EntityKind::Org),
            target: on(EntityKind::Target),
            name: draft.name,
            cron: draft.cron,
            zone: draft.zone,
            kind: draft.what.kind,
            chain,
            params: draft.what.params,
            active: draft.active,
            spread: (draft.spread > 0).then_some(Span(draft.spread)),
            overlap: draft.overlap,
            catch_up: draft.catch_up,
            catch_up_limit: (draft.catch_up_limit != A_DAY).then_some(Span(draft.catch_up_limit)),
            in_window: draft.in_window,
            deadline: draft.deadline.map(Span),
            policy: draft.policy,
        }
    }
}

/// Entries as a file has them: one document each.
pub(super) fn write(entries: &[Entry]) -> Result<String, Failure> {
    let document = |entry: &Entry| {
        let json = serde_json::to_string(entry);
        let value = json.and_then(|json| serde_json::from_str::<Value>(&json));
        value.map(|value| yaml::to_yaml(&value)).map_err(|error| Failure::new(format!("cannot write YAML: {error}")))
    };
    Ok(entries.iter().map(document).collect::<Result<Vec<_>, _>>()?.join("---\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NIGHTLY: &str = "\
name: nightly
group: web
cron: 30 2 * * SUN
zone: europe/prague
type: states
params: {mods: [nginx]}
spread: 30m
in_window: true
";

    fn error(text: &str) -> String {
        read("x.yml", text).unwrap_err().to_string()
    }

    #[test]
    fn a_file_says_what_recurs() {
        let entries = read("x.yml", NIGHTLY).unwrap();
        let draft = entries[0].draft(None).unwrap();
        assert_eq!(draft.entity, RecurringEntity { kind: EntityKind::Group, subject: "web".into() });
        assert_eq!((draft.zone.as_str(), draft.spread, draft.catch_up_limit), ("Europe/Prague", 1_800, A_DAY));
        assert_eq!(draft.what.params, Value::map([("mods", Value::list(["nginx"]))]));
    }

    #[test]
    fn what_is_written_is_read_as_it_was() {
        let more = "---\nname: patch\ntarget: G@os:Debian\ncron: '@daily'\nchain: patch-web\nparams: {'2': {delay: 5}}\n\
                    active: false\ncatch_up: all\ncatch_up_limit: 6h\ndeadline: 4h\npolicy: {batch: {size: {count: 3}}}\n";
        let entries = read("x.yml", &format!("{NIGHTLY}{more}")).unwrap();
        let again = read("-", &write(&entries).unwrap()).unwrap();
        assert_eq!(again, entries);
        let exported = Entry::of(entries[1].draft(Some(12)).unwrap(), Some("patch-web".into()));
        assert_eq!(exported.chain, Value::from("patch-web"));
        assert_eq!(exported.draft(Some(12)).unwrap(), entries[1].draft(Some(12)).unwrap());
    }

    #[test]
    fn several_are_documents_or_a_list() {
        let text = "recurring:\n- {name: a, minion: m, cron: '@daily', type: reboot}\n- {name: b, org: o, cron: '@hourly', chain: 3}\n";
        assert_eq!(read("x.yml", text).unwrap().len(), 2);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let bad = |from: &str, to: &str| error(&format!("# first\n---\n{}", NIGHTLY.replace(from, to)));
        assert!(bad("30 2", "61 2").starts_with("x.yml, line 2: \"nightly\": cron: "), "{}", bad("30 2", "61 2"));
        assert!(bad("europe/prague", "Europe/Pragu").contains("Europe/Prague"));
        assert!(bad("group: web", "group: web\nminion: a").contains("with one of `minion`"));
        assert!(bad("type: states\n", "").contains("`type` or `chain`"));
        assert!(bad("type: states", "type: states\nchain: x").contains("not both"));
        assert!(bad("spread: 30m", "spread: soon").contains("soon"));
        assert!(bad("spread", "spraed").contains("unknown field `spraed`"));
        assert!(error("[]").contains("list under `recurring`"));
        assert!(error("").contains("has nothing that recurs"));
    }
}
