//! The corpus in `tests/data/salt-api`: requests that a real salt-api was sent, and what it answered.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// One request and its answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Capture {
    pub(crate) case: String,
    /// The version that answered
    pub(crate) salt: String,
    #[serde(default)]
    #[expect(dead_code, reason = "for whoever reads the corpus")]
    pub(crate) note: String,
    /// Whose session the request belongs to
    #[serde(rename = "as")]
    pub(crate) user: Option<String>,
    pub(crate) request: Asked,
    pub(crate) response: Answered,
}

/// What was sent. `{token}`, `{eauth}`, `{fresh}`, `{spent}` and `{jid:…}` stand for what is different each time.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    /// JSON, or a text that was sent as it is
    pub(crate) body: Option<Value>,
}

/// What came back. Of the body one form is there, at most.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    /// The body was shortened: only its form is known
    #[serde(default)]
    pub(crate) trimmed: bool,
    pub(crate) json: Option<Value>,
    /// The message of an error page
    pub(crate) error: Option<String>,
    /// Text that is no JSON
    pub(crate) text: Option<String>,
    /// A page for browsers
    #[serde(default)]
    pub(crate) page: bool,
    /// Names in an archive
    pub(crate) tar: Option<Vec<String>>,
    /// Lines of an event stream
    pub(crate) stream: Option<Vec<String>>,
    /// Frames of a websocket
    pub(crate) frames: Option<Vec<Value>>,
}

/// The groups, one file each.
pub(crate) const GROUPS: [&str; 14] = [
    "access", "batch", "bodies", "cors", "dispatch", "jobs", "local", "minion", "runner", "sessions", "streams",
    "urls", "v3006", "wheel",
];

/// The captures of a group, in the order in which they were made.
pub(crate) fn group(name: &str) -> Vec<Capture> {
    lines(&format!("{name}.jsonl"))
}

/// Where the corpus is.
pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data/salt-api")
}

/// The values in a file of the corpus, one per line.
pub(crate) fn lines<T: for<'a> Deserialize<'a>>(name: &str) -> Vec<T> {
    let path = folder().join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let read =
        |(number, line)| serde_json::from_str(line).unwrap_or_else(|error| panic!("{name}:{}: {error}", number + 1));
    text.lines().enumerate().map(read).collect()
}
