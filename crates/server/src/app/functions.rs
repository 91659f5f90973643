//! What minions say about their functions: asked from one minion of each kind, kept, and searched.
//!
//! Minions of one version on one operating system say the same, so one of them is asked for all. It is asked as everything
//! else is, through admission, with the rights of whoever wants to know.

use super::{ActionRequest, App, Caller, Progress, Unanswered, What};
use crate::engine::Door;
use crate::master::{Member, Presence};
use crate::{Error, clock};
use saltern_core::action::Policy;
use saltern_core::ids::MinionId;
use saltern_core::target::{Target, TargetType};
use saltern_core::value::{Map, Value};
use saltern_store::FunctionDoc;
use std::collections::BTreeMap;

/// What came of asking minions about their functions.
#[derive(Clone, Debug)]
pub struct Refreshed {
    /// What each kind of minion said
    pub kinds: Vec<RefreshedKind>,
    /// Those that were asked and did not answer in time
    pub unanswered: Vec<Unanswered>,
}

/// What one kind of minion said about its functions.
#[derive(Clone, Debug)]
pub struct RefreshedKind {
    /// Version and operating system: `3008.3 Debian`
    pub kind: String,
    /// The minion that was asked
    pub minion: MinionId,
    /// How many functions it knows; nothing: what it answered was no documentation
    pub functions: Option<usize>,
}

/// Most rows in one answer.
const PAGE: usize = 1_000;
/// Most kinds that are asked at once.
const MOST_KINDS: usize = 50;
/// Most functions that are kept of one kind; Salt has a few thousand.
const MOST_FUNCTIONS: usize = 20_000;
/// The longest documentation of one function that is kept, in bytes.
const LONGEST_DOC: usize = 64 << 10;

impl App {
    /// Functions after `after` in the order of names, each once: those whose name or documentation has all words of `search`.
    pub async fn functions(
        &self,
        _caller: &Caller,
        search: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<FunctionDoc>, Error> {
        Ok(self.master.store.functions(search, after, limit.clamp(1, PAGE)).await?)
    }

    /// What is said about one function, by newer kinds of minions first.
    pub async fn function(&self, _caller: &Caller, name: &str) -> Result<Vec<FunctionDoc>, Error> {
        let said = self.master.store.function(name).await?;
        if said.is_empty() {
            return Err(Error::NotFound(format!("no minion has told of a function {name:?}")));
        }
        Ok(said)
    }

    /// Asks one minion of each kind among those of a target, and keeps what they say.
    pub async fn refresh_functions(&self, caller: &Caller, target: &Target) -> Result<Refreshed, Error> {
        let chosen = self.one_of_each_kind(caller, target).await?;
        let ids = chosen.keys().map(MinionId::as_str).collect::<Vec<_>>().join(",");
        let funs = ["sys.doc", "sys.argspec"];
        let request = ActionRequest {
            what: What::Function {
                funs: funs.map(str::to_owned).into(),
                args: funs.map(|_| Value::List(Vec::new())).into(),
                kwargs: Map::new(),
            },
            target: Target::new(TargetType::List, ids.as_str()),
            name: Some("documentation of functions".into()),
            policy: Policy { interactive: true, ..Policy::default() },
            due: None,
            deadline: None,
            metadata: None,
            ret: String::new(),
            paused: false,
            in_window: false,
        };
        let accepted = self.submit(caller, request, Door::Action).await?;
        let Some(jid) = accepted.jid else {
            return Err(Error::Internal("a job that is due now has no id".into()));
        };
        let mut watch = self.watch(caller, jid, self.patience(self.timeout())).await?;
        let mut refreshed = Refreshed { kinds: Vec::new(), unanswered: Vec::new() };
        while let Some(progress) = watch.next().await {
            match progress? {
                Progress::Acked(_) => {}
                Progress::Done(unanswered) => refreshed.unanswered = unanswered,
                Progress::Returned(returned) => {
                    let Some(kind) = chosen.get(&returned.minion) else { continue };
                    let functions = self.keep_functions(kind, &returned.value).await?;
                    let minion = returned.minion.clone();
                    refreshed.kinds.push(RefreshedKind { kind: kind.clone(), minion, functions });
                }
            }
        }
        refreshed.kinds.sort_by(|a, b| a.kind.cmp(&b.kind));
        Ok(refreshed)
    }

    /// The first present minion of each kind, with its kind.
    async fn one_of_each_kind(&self, caller: &Caller, target: &Target) -> Result<BTreeMap<MinionId, String>, Error> {
        let mut members = self.members_of(caller, target).await?;
        members.retain(|member| matches!(member.facts().presence, Presence::Present(_)));
        members.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        let mut kinds: BTreeMap<String, MinionId> = BTreeMap::new();
        for member in &members {
            kinds.entry(kind_of(member)).or_insert_with(|| member.id.clone());
        }
        if kinds.is_empty() {
            return Err(Error::NotFound("no minion of that target is there now".into()));
        }
        if kinds.len() > MOST_KINDS {
            return Err(Error::Invalid(format!("more than {MOST_KINDS} kinds of minions at once: name fewer")));
        }
        Ok(kinds.into_iter().map(|(kind, id)| (id, kind)).collect())
    }

    async fn keep_functions(&self, kind: &str, said: &Value) -> Result<Option<usize>, Error> {
        let docs = read_docs(kind, said);
        if docs.is_empty() {
            return Ok(None);
        }
        let count = docs.len();
        self.master.store.put_functions(kind.to_owned(), docs).await?;
        Ok(Some(count))
    }
}

/// What minions that say the same have in common.
fn kind_of(member: &Member) -> String {
    let grains = member.grains();
    let grain = |name: &str| grains.as_ref().and_then(|grains| grains.get(name)?.as_str().map(str::to_owned));
    let version = grain("saltversion").or_else(|| member.facts().version.clone());
    let words = [version, grain("os")].map(|word| word.unwrap_or_else(|| "unknown".into()));
    words.join(" ").chars().take(200).collect()
}

/// The documentation of each function in a return of `sys.doc` and `sys.argspec`.
fn read_docs(kind: &str, said: &Value) -> Vec<FunctionDoc> {
    let Some(docs) = said.get("sys.doc").and_then(Value::as_map) else { return Vec::new() };
    let argspecs = said.get("sys.argspec");
    let at = clock::now();
    let named = docs.iter().filter_map(|(name, doc)| Some((name.as_str()?, doc)));
    named
        .filter(|(name, _)| is_function(name))
        .take(MOST_FUNCTIONS)
        .map(|(name, doc)| FunctionDoc {
            name: name.to_owned(),
            kind: kind.to_owned(),
            doc: short(doc.as_str().unwrap_or_default()),
            argspec: argspecs
                .and_then(|specs| serde_json::to_string(specs.get(name)?).ok())
                .filter(|spec| spec.len() <= LONGEST_DOC)
                .unwrap_or_else(|| "null".into()),
            at,
        })
        .collect()
}

/// Whether a text can be a function's name.
fn is_function(name: &str) -> bool {
    let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    name.contains('.') && name.len() <= 200 && name.chars().all(is_good)
}

fn short(doc: &str) -> String {
    let doc = doc.trim();
    let end = (0..=LONGEST_DOC.min(doc.len())).rev().find(|at| doc.is_char_boundary(*at)).unwrap_or(0);
    doc[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(json: &str) -> Value {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn documentation_and_parameters_of_a_function_come_together() {
        let docs = read_docs(
            "3008.3 Debian",
            &said(
                r#"{"sys.doc": {"test.ping": "\n    Used to ping\n", "test.x": null, "<b>": "no"},
                    "sys.argspec": {"test.ping": {"args": ["a"]}}}"#,
            ),
        );
        assert_eq!(docs.len(), 2);
        assert_eq!((docs[0].doc.as_str(), docs[0].argspec.as_str()), ("Used to ping", r#"{"args":["a"]}"#));
        assert_eq!((docs[1].doc.as_str(), docs[1].argspec.as_str()), ("", "null"));
    }

    #[test]
    fn what_is_no_documentation_is_none() {
        for other in ["null", "\"Passed invalid arguments\"", "{}", r#"{"sys.doc": "x"}"#] {
            assert!(read_docs("k", &said(other)).is_empty(), "{other}");
        }
    }

    #[test]
    fn a_long_text_is_cut_between_letters() {
        let long = "ä".repeat(LONGEST_DOC);
        let cut = short(&long);
        assert!(cut.len() <= LONGEST_DOC && long.starts_with(&cut));
    }
}
