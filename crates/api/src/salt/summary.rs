//! Jobs and minions summed up from events, for clients of `/ws?format_events`: the whole picture again at each change.
//!
//! What is remembered is bounded: a connection that stays open for weeks shows the newest jobs, not all of them.

use saltern_core::event::{JobTag, JobTagKind, tag};
use saltern_core::value::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Most jobs that are remembered.
const MOST_JOBS: usize = 200;

/// Most minions that are remembered.
const MOST_MINIONS: usize = 10_000;

/// What is known so far.
#[derive(Default)]
pub(super) struct Summary {
    /// By job id, so in the order of time
    jobs: BTreeMap<String, Map>,
    minions: BTreeMap<String, Value>,
}

impl Summary {
    /// Takes an event (`{"data": …, "tag": …}`) in; what has changed by it.
    pub(super) fn heed(&mut self, event: &Value) -> Vec<Value> {
        let (Some(name), Some(data)) = (event.get("tag").and_then(Value::as_str), event.get("data")) else {
            return Vec::new();
        };
        if let Some(job) = JobTag::parse(name) {
            return match job.kind {
                JobTagKind::New => self.begun(job.jid.as_str(), data),
                JobTagKind::Ret(_) => self.returned(job.jid.as_str(), data),
                _ => Vec::new(),
            };
        }
        match name {
            tag::KEY => self.key_decided(data),
            tag::PRESENCE_PRESENT => self.present(data.get("present")),
            tag::PRESENCE_CHANGE => self.changed(data.get("new"), data.get("lost")),
            _ => Vec::new(),
        }
    }

    fn begun(&mut self, jid: &str, data: &Value) -> Vec<Value> {
        let part = |key: &str| data.get(key).cloned().unwrap_or_default();
        let minions = data.get("minions").and_then(Value::as_list).unwrap_or_default();
        let waiting = minions.iter().map(|minion| (minion.clone(), Value::map([("success", false)])));
        let job = Map::from_iter([
            ("jid".into(), Value::from(jid)),
            ("start_time".into(), part("_stamp")),
            ("minions".into(), Value::Map(waiting.collect())),
            ("fun".into(), part("fun")),
            ("tgt".into(), part("tgt")),
            ("tgt_type".into(), part("tgt_type")),
            ("state".into(), "running".into()),
        ]);
        self.jobs.insert(jid.to_owned(), job);
        while self.jobs.len() > MOST_JOBS {
            self.jobs.pop_first();
        }
        vec![self.all_jobs()]
    }

    fn returned(&mut self, jid: &str, data: &Value) -> Vec<Value> {
        let mut changes = Vec::new();
        let Some(minion) = data.get("id").and_then(Value::as_str) else { return changes };
        // A job that began before we listened is not ours to tell of.
        if let Some(job) = self.jobs.get_mut(jid)
            && let Some(Value::Map(minions)) = job.get_mut("minions")
        {
            let part = |key: &str| data.get(key).cloned().unwrap_or_default();
            let result = [("success", part("success")), ("return", part("return")), ("retcode", part("retcode"))];
            minions.insert(minion, Value::map(result));
            let is_complete = minions.values().all(|result| result.get("return").is_some());
            job.insert("state", if is_complete { "complete" } else { "running" });
            changes.push(self.all_jobs());
        }
        if data.get("fun").and_then(Value::as_str) == Some("grains.items")
            && let Some(grains) = data.get("return").filter(|grains| grains.as_map().is_some())
        {
            self.note(minion, Some(grains));
            changes.push(self.all_minions());
        }
        changes
    }

    fn key_decided(&mut self, data: &Value) -> Vec<Value> {
        let Some(minion) = data.get("id").and_then(Value::as_str) else { return Vec::new() };
        match data.get("act").and_then(Value::as_str) {
            Some("accept") => self.note(minion, None),
            Some("delete" | "reject") => drop(self.minions.remove(minion)),
            _ => return Vec::new(),
        }
        vec![self.all_minions()]
    }

    fn present(&mut self, present: Option<&Value>) -> Vec<Value> {
        let there: BTreeSet<&str> = names(present).collect();
        let is_new = there.iter().any(|minion| !self.minions.contains_key(*minion));
        if !is_new {
            return Vec::new();
        }
        for minion in there {
            self.note(minion, None);
        }
        vec![self.all_minions()]
    }

    fn changed(&mut self, new: Option<&Value>, lost: Option<&Value>) -> Vec<Value> {
        for minion in names(new) {
            self.note(minion, None);
        }
        for minion in names(lost) {
            self.minions.remove(minion);
        }
        vec![self.all_minions()]
    }

    fn note(&mut self, minion: &str, grains: Option<&Value>) {
        if self.minions.len() >= MOST_MINIONS && !self.minions.contains_key(minion) {
            return;
        }
        let known = self.minions.entry(minion.to_owned()).or_insert_with(|| Value::map([("id", minion)]));
        if let (Value::Map(known), Some(grains)) = (known, grains) {
            known.insert("grains", grains.clone());
        }
    }

    fn all_jobs(&self) -> Value {
        let jobs = self.jobs.iter().map(|(jid, job)| (Value::from(jid.as_str()), Value::Map(job.clone())));
        Value::map([("jobs", Value::Map(jobs.collect()))])
    }

    fn all_minions(&self) -> Value {
        Value::map([("minions", Value::List(self.minions.values().cloned().collect()))])
    }
}

fn names(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_list).unwrap_or_default().iter().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(tag: &str, data: &str) -> Value {
        Value::map([("data", serde_json::from_str(data).unwrap()), ("tag", Value::from(tag))])
    }

    fn texts(changes: Vec<Value>) -> Vec<String> {
        changes.iter().map(|change| serde_json::to_string(change).unwrap()).collect()
    }

    const NEW: &str = r#"{"jid": "20261115190725577263", "fun": "test.ping", "tgt": "web1", "tgt_type": "glob",
        "minions": ["web1"], "_stamp": "2026-11-15T19:07:25.577846"}"#;
    const TAG: &str = "salt/job/20261115190725577263";

    #[test]
    fn a_job_is_shown_from_its_beginning_to_its_end() {
        let mut summary = Summary::default();
        let begun = summary.heed(&event(&format!("{TAG}/new"), NEW));
        assert_eq!(
            texts(begun),
            [
                r#"{"jobs":{"20261115190725577263":{"jid":"20261115190725577263","start_time":"2026-11-15T19:07:25.577846","minions":{"web1":{"success":false}},"fun":"test.ping","tgt":"web1","tgt_type":"glob","state":"running"}}}"#
            ]
        );
        let data = r#"{"id": "web1", "success": true, "return": true, "retcode": 0, "fun": "test.ping"}"#;
        let returned = summary.heed(&event(&format!("{TAG}/ret/web1"), data));
        let told = texts(returned).join("");
        assert!(told.contains(r#""web1":{"success":true,"return":true,"retcode":0}"#), "{told}");
        assert!(told.contains(r#""state":"complete""#), "{told}");
    }

    #[test]
    fn minions_come_with_their_grains_and_go_with_their_keys() {
        let mut summary = Summary::default();
        assert_eq!(
            texts(summary.heed(&event("salt/key", r#"{"act": "accept", "id": "web1"}"#))),
            [r#"{"minions":[{"id":"web1"}]}"#]
        );
        summary.heed(&event(&format!("{TAG}/new"), NEW));
        let data =
            r#"{"id": "web1", "success": true, "return": {"os": "Debian"}, "retcode": 0, "fun": "grains.items"}"#;
        let changes = texts(summary.heed(&event(&format!("{TAG}/ret/web1"), data)));
        assert_eq!(changes.last().unwrap(), r#"{"minions":[{"id":"web1","grains":{"os":"Debian"}}]}"#);
        assert_eq!(
            texts(summary.heed(&event("salt/key", r#"{"act": "delete", "id": "web1"}"#))),
            [r#"{"minions":[]}"#]
        );
    }

    #[test]
    fn presence_is_told_when_it_changes() {
        let mut summary = Summary::default();
        let present = event("salt/presence/present", r#"{"present": ["a", "b"]}"#);
        assert_eq!(summary.heed(&present).len(), 1);
        assert_eq!(summary.heed(&present).len(), 0);
        let lost = summary.heed(&event("salt/presence/change", r#"{"new": [], "lost": ["a"]}"#));
        assert_eq!(texts(lost), [r#"{"minions":[{"id":"b"}]}"#]);
    }

    #[test]
    fn only_the_newest_jobs_are_remembered() {
        let mut summary = Summary::default();
        for n in 0..MOST_JOBS + 5 {
            summary.heed(&event(&format!("salt/job/{n:020}/new"), NEW));
        }
        assert_eq!(summary.jobs.len(), MOST_JOBS);
        assert!(!summary.jobs.contains_key("00000000000000000004"));
    }
}
