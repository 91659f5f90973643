//! Top files: which SLS files are for which minions.
//!
//! Pillar and states read the same files in the same form and differ in how several of them become one:
//! [`Top::merge_pillar`] and [`Top::merge_states`].

use saltern_core::target::TargetType;
use saltern_core::value::Value;

use crate::error::Error;

/// One top file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TopFile {
    /// What it says about each environment, in order.
    pub sections: Vec<(String, Vec<Entry>)>,
    /// Further top files of its environment.
    pub include: Vec<String>,
}

/// One target and what is for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The target expression.
    pub target: String,
    /// Its type; Salt takes it for compound if it says nothing.
    pub match_type: Option<String>,
    /// The SLS names or patterns.
    pub sls: Vec<String>,
    /// Pillar sorts by it, the smallest first.
    pub order: i64,
    /// Whether pillar says nothing when one of `sls` is missing.
    pub ignore_missing: bool,
}

/// All top files together.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Top {
    /// The entries of each environment, in order.
    pub envs: Vec<(String, Vec<Entry>)>,
}

/// `top_file_merging_strategy`, for states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Merging {
    /// What base says about an environment holds; others may only speak about themselves, and only if base did not.
    #[default]
    Merge,
    /// Each environment's own file speaks about it; `default_top`'s where it has none.
    Same,
    /// Everything together; for the same target the SLS names add up.
    MergeAll,
}

impl Merging {
    /// The strategy of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "merge" => Some(Self::Merge),
            "same" => Some(Self::Same),
            "merge_all" => Some(Self::MergeAll),
            _ => None,
        }
    }
}

impl TopFile {
    /// Reads rendered top data; says what is malformed in Salt's words.
    pub fn parse(data: &Value) -> Result<Self, Error> {
        let Value::Map(data) = data else { return malformed("Top data was not formed as a dict") };
        let mut top = Self::default();
        for (env, targets) in data {
            let Some(env) = env.as_str() else {
                return malformed(&format!("Environment {} in top file is not formed as a string", env.key_text()));
            };
            if env == "include" {
                let Value::List(names) = targets else {
                    return malformed("include in top file is not formed as a list");
                };
                top.include.extend(names.iter().filter_map(Value::as_str).map(str::to_owned));
                continue;
            }
            let Value::Map(targets) = targets else {
                return malformed(&format!("The top file matches for saltenv {env} are not formatted as a dict"));
            };
            let entries = targets.iter().map(|(target, what)| entry(env, &target.key_text(), what));
            top.sections.push((env.to_owned(), entries.collect::<Result<_, _>>()?));
        }
        Ok(top)
    }

    fn is_empty(&self) -> bool {
        self.sections.is_empty()
    }
}

fn malformed<T>(problem: &str) -> Result<T, Error> {
    Err(Error::Top(problem.to_owned()))
}

fn entry(env: &str, target: &str, what: &Value) -> Result<Entry, Error> {
    let Value::List(items) = what else {
        return malformed(&format!(
            "Malformed topfile: state declarations for matcher '{target}' in saltenv '{env}' are not formed as a list"
        ));
    };
    let mut entry =
        Entry { target: target.to_owned(), match_type: None, sls: Vec::new(), order: 0, ignore_missing: false };
    for item in items {
        match item {
            Value::Text(sls) if !entry.sls.iter().any(|known| *known == **sls) => entry.sls.push(sls.to_string()),
            Value::Map(options) => {
                if let Some(kind) = options.get("match") {
                    entry.match_type = Some(kind.key_text().into_owned());
                }
                if let Some(order) = options.get("order") {
                    entry.order = order.as_i64().or_else(|| order.as_str()?.trim().parse().ok()).unwrap_or(0);
                }
                entry.ignore_missing |= options.get("ignore_missing").is_some_and(Value::is_truthy);
            }
            _ => {}
        }
    }
    Ok(entry)
}

impl Top {
    /// Pillar's way: of two entries with the same target the later replaces the earlier in its place; then by `order`.
    pub fn merge_pillar<'a>(files: impl IntoIterator<Item = &'a TopFile>) -> Self {
        let mut top = Self::default();
        for (env, entries) in files.into_iter().flat_map(|file| &file.sections) {
            for entry in entries {
                top.set(env, entry.clone());
            }
        }
        for (_, entries) in &mut top.envs {
            entries.sort_by_key(|entry| entry.order);
        }
        top
    }

    /// The states' way. `files` are the top files of each environment in the order of [`env_order`]; an environment
    /// without one has an empty list.
    pub fn merge_states(files: &[(String, Vec<TopFile>)], merging: Merging, default_top: &str) -> Self {
        match merging {
            Merging::Merge => Self::merged(files),
            Merging::Same => Self::same(files, default_top),
            Merging::MergeAll => Self::merged_all(files),
        }
    }

    fn merged(files: &[(String, Vec<TopFile>)]) -> Self {
        let mut top = Self::default();
        for file in files.iter().filter(|(env, _)| env == "base").flat_map(|(_, files)| files) {
            top.add_sections(&file.sections);
        }
        for (env, files) in files.iter().filter(|(env, _)| env != "base") {
            for (about, entries) in files.iter().flat_map(|file| &file.sections) {
                if about == env && !top.envs.iter().any(|(known, _)| known == about) {
                    top.add_sections(&[(about.clone(), entries.clone())]);
                }
            }
        }
        top
    }

    fn same(files: &[(String, Vec<TopFile>)], default_top: &str) -> Self {
        let mut top = Self::default();
        let default = files.iter().find(|(env, _)| env == default_top).map(|(_, files)| files.as_slice());
        for (env, own) in files {
            let has_own = own.iter().any(|file| !file.is_empty());
            let speaks = if has_own { own.as_slice() } else { default.unwrap_or_default() };
            for (about, entries) in speaks.iter().flat_map(|file| &file.sections) {
                if about == env {
                    top.add_sections(&[(about.clone(), entries.clone())]);
                }
            }
        }
        top
    }

    fn merged_all(files: &[(String, Vec<TopFile>)]) -> Self {
        let mut top = Self::default();
        for (env, entries) in files.iter().flat_map(|(_, files)| files).flat_map(|file| &file.sections) {
            for entry in entries {
                let known = top.env(env).iter_mut().find(|known| known.target == entry.target);
                let Some(known) = known else {
                    top.env(env).push(entry.clone());
                    continue;
                };
                known.match_type = entry.match_type.clone().or(known.match_type.take());
                for sls in &entry.sls {
                    if !known.sls.contains(sls) {
                        known.sls.push(sls.clone());
                    }
                }
            }
        }
        top
    }

    fn add_sections(&mut self, sections: &[(String, Vec<Entry>)]) {
        for (env, entries) in sections {
            self.env(env);
            for entry in entries {
                self.set(env, entry.clone());
            }
        }
    }

    fn set(&mut self, env: &str, entry: Entry) {
        let entries = self.env(env);
        match entries.iter_mut().find(|known| known.target == entry.target) {
            Some(known) => *known = entry,
            None => entries.push(entry),
        }
    }

    fn env(&mut self, env: &str) -> &mut Vec<Entry> {
        let at = self.envs.iter().position(|(known, _)| known == env).unwrap_or_else(|| {
            self.envs.push((env.to_owned(), Vec::new()));
            self.envs.len() - 1
        });
        &mut self.envs[at].1
    }

    /// The SLS names for the minion `matches` speaks of, per environment; for one environment only, if that is given.
    pub fn matching(
        &self,
        only: Option<&str>,
        mut matches: impl FnMut(&str, &str) -> bool,
    ) -> Result<Vec<(String, Vec<String>)>, Error> {
        let mut found: Vec<(String, Vec<String>)> = Vec::new();
        for (env, entries) in self.envs.iter().filter(|(env, _)| only.is_none_or(|only| only == env)) {
            let mut names: Option<Vec<String>> = None;
            for entry in entries {
                let kind = entry.match_type.as_deref().unwrap_or("compound");
                if TargetType::parse(kind).is_err() {
                    return malformed(&format!("unknown match type '{kind}' of target '{}' in top file", entry.target));
                }
                if matches(&entry.target, kind) {
                    let names = names.get_or_insert_default();
                    for sls in &entry.sls {
                        if !names.contains(sls) {
                            names.push(sls.clone());
                        }
                    }
                }
            }
            found.extend(names.map(|names| (env.clone(), names)));
        }
        Ok(found)
    }
}

/// The environments whose top files count for states, in order: `env_order` if it says something, else base, the
/// configured ones, and what else is served.
pub fn env_order(env_order: &[String], configured: &[String], served: &[String]) -> Vec<String> {
    let mut order: Vec<String> = Vec::new();
    let chosen: Vec<&String> = if env_order.is_empty() {
        configured.iter().chain(served).collect()
    } else {
        env_order.iter().filter(|env| served.is_empty() || served.contains(env)).collect()
    };
    if env_order.is_empty() {
        order.push("base".to_owned());
    }
    for env in chosen {
        if !order.contains(env) {
            order.push(env.clone());
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml;

    fn file(text: &str) -> TopFile {
        TopFile::parse(&yaml::load(text).unwrap()).unwrap()
    }

    fn files(of: &[(&str, &str)]) -> Vec<(String, Vec<TopFile>)> {
        of.iter().map(|(env, text)| ((*env).to_owned(), vec![file(text)])).collect()
    }

    fn names(top: &Top) -> Vec<(String, Vec<String>)> {
        top.matching(None, |_, _| true).unwrap()
    }

    fn expect(pairs: &[(&str, &[&str])]) -> Vec<(String, Vec<String>)> {
        pairs.iter().map(|(env, sls)| ((*env).to_owned(), sls.iter().map(|s| (*s).to_owned()).collect())).collect()
    }

    const BASE: &str = "base:\n  '*': [a]\ndev:\n  '*': [b]\n";
    const DEV: &str = "base:\n  '*': [c]\ndev:\n  '*': [d]\nqa:\n  '*': [e]\n";

    #[test]
    fn merge_lets_base_decide() {
        let top = Top::merge_states(&files(&[("base", BASE), ("dev", DEV)]), Merging::Merge, "base");
        assert_eq!(names(&top), expect(&[("base", &["a"]), ("dev", &["b"])]));
        let top = Top::merge_states(&files(&[("base", "base: {'*': [a]}"), ("dev", DEV)]), Merging::Merge, "base");
        assert_eq!(names(&top), expect(&[("base", &["a"]), ("dev", &["d"])]));
    }

    #[test]
    fn same_takes_each_environment_at_its_own_word() {
        let top = Top::merge_states(&files(&[("base", BASE), ("dev", DEV)]), Merging::Same, "base");
        assert_eq!(names(&top), expect(&[("base", &["a"]), ("dev", &["d"])]));
        let mut tops = files(&[("base", BASE)]);
        tops.push(("dev".to_owned(), Vec::new()));
        assert_eq!(
            names(&Top::merge_states(&tops, Merging::Same, "base")),
            expect(&[("base", &["a"]), ("dev", &["b"])])
        );
    }

    #[test]
    fn merge_all_adds_up() {
        let top = Top::merge_states(&files(&[("base", BASE), ("dev", DEV)]), Merging::MergeAll, "base");
        assert_eq!(names(&top), expect(&[("base", &["a", "c"]), ("dev", &["b", "d"]), ("qa", &["e"])]));
    }

    #[test]
    fn match_types_reach_the_matcher() {
        let top =
            Top::merge_pillar([&file("base:\n  'os:Debian':\n    - match: grain\n    - a\n  web*: [b]\n  x: [c]\n")]);
        let is_match =
            |target: &str, kind: &str| matches!((target, kind), ("os:Debian", "grain") | ("web*", "compound"));
        assert_eq!(top.matching(None, is_match).unwrap(), expect(&[("base", &["a", "b"])]));
        assert!(top.matching(Some("dev"), is_match).unwrap().is_empty());
    }

    #[test]
    fn pillar_sorts_by_order() {
        let top = Top::merge_pillar([&file("base:\n  a: [x, {order: 2}]\n  b: [y, {order: 1}]\n  c: [z]\n")]);
        assert_eq!(names(&top), expect(&[("base", &["z", "y", "x"])]));
    }

    #[test]
    fn malformed_tops_are_told() {
        for (text, word) in [("[a]", "dict"), ("base:", "dict"), ("base: {'*': a}", "list"), ("base: {'*': }", "list")]
        {
            let err = TopFile::parse(&yaml::load(text).unwrap()).unwrap_err();
            assert!(err.to_string().contains(word), "{text}: {err}");
        }
        let top = Top::merge_pillar([&file("base: {x: [a, {match: bogus}]}")]);
        assert!(top.matching(None, |_, _| true).is_err());
    }

    #[test]
    fn the_order_of_environments_is_configured_or_base_first() {
        let list = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        assert_eq!(env_order(&[], &list(&["dev", "base"]), &list(&["qa"])), list(&["base", "dev", "qa"]));
        assert_eq!(env_order(&list(&["dev", "x", "base"]), &[], &list(&["base", "dev"])), list(&["dev", "base"]));
    }
}
