//! Whole pillar trees against the pillar Salt compiled for them (`golden/regenerate.py`).
#![expect(clippy::unwrap_used, reason = "a test that cannot read its cases has failed")]

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use saltern_core::target::Nodegroups;
use saltern_core::value::{Map, Value};
use saltern_render::fileserver::{FileRoots, Settings as FileSettings};
use saltern_render::merge::Strategy;
use saltern_render::pillar::{Compiler, Request, Settings};
use saltern_render::targets::Targets;

#[test]
fn pillar_is_what_salt_compiles() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/pillar");
    let mut wrong = Vec::new();
    let mut count = 0;
    for file in std::fs::read_dir(cases).unwrap() {
        let path = file.unwrap().path();
        count += 1;
        let case = Case::parse(&std::fs::read_to_string(&path).unwrap());
        let (got, expected) = (case.compile(), case.expected());
        if got != expected {
            wrong.push(format!("{}\n  salt: {expected:?}\n  here: {got:?}", path.display()));
        }
    }
    assert!(count > 60, "only {count} cases found");
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

struct Case {
    request: Value,
    files: Vec<(String, String)>,
    expected: serde_json::Value,
}

impl Case {
    fn parse(text: &str) -> Self {
        let mut sections: Vec<(String, String)> = Vec::new();
        for line in text.split_inclusive('\n') {
            match line.strip_prefix("-- ").and_then(|line| line.trim_end().strip_suffix(" --")) {
                Some(name) => sections.push((name.to_owned(), String::new())),
                None => sections.last_mut().unwrap().1.push_str(line),
            }
        }
        let take = |sections: &mut Vec<(String, String)>, name: &str| {
            let at = sections.iter().position(|(known, _)| known == name).unwrap();
            sections.remove(at).1
        };
        let request = serde_json::from_str(&take(&mut sections, "request")).unwrap();
        let expected = serde_json::from_str(&take(&mut sections, "expected")).unwrap();
        Self { request, files: sections, expected }
    }

    fn compile(&self) -> Value {
        let dir = tempfile::tempdir().unwrap();
        let base = Value::list(["base"]);
        let envs = self.request.get("envs").unwrap_or(&base).as_list().unwrap();
        let roots = envs.iter().map(|env| {
            let root = dir.path().join(env.as_str().unwrap());
            std::fs::create_dir_all(&root).unwrap();
            (env.as_str().unwrap().to_owned(), vec![root])
        });
        let roots = Arc::new(FileRoots::new(roots.collect::<Vec<_>>(), FileSettings::default()).unwrap());
        for (name, text) in &self.files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let compiler = Compiler::new(roots, self.settings()).unwrap();
        let nodegroups = self.option("nodegroups").map(|groups| Nodegroups::from_value(groups).unwrap());
        let grains = self.request.get("grains").unwrap();
        let text = |name| self.request.get(name).and_then(Value::as_str);
        let id = text("id").unwrap_or("web1");
        let request = Request {
            id,
            grains: grains.as_map().unwrap(),
            saltenv: text("saltenv"),
            pillarenv: text("pillarenv"),
            pillar_override: self.request.get("override").and_then(Value::as_map),
            opts: &Map::new(),
            matches: Targets::new(nodegroups.unwrap_or_default()).of_minion(id, grains.clone(), None),
        };
        let pillar = compiler.compile(&request);
        assert_eq!(pillar.errors.is_empty(), pillar.value.get("_errors").is_none());
        normal(Value::Map(pillar.value))
    }

    fn settings(&self) -> Settings {
        let flag = |name, default| self.option(name).map_or(default, Value::is_truthy);
        let strategy = self.option("pillar_source_merging_strategy").and_then(Value::as_str).unwrap_or("smart");
        let env_order = self.option("env_order").and_then(Value::as_list).unwrap_or_default();
        Settings {
            // Salt falls back to recursion for a strategy it does not know.
            merging: Strategy::from_name(strategy).unwrap_or(Strategy::None),
            merge_lists: flag("pillar_merge_lists", false),
            includes_override_sls: flag("pillar_includes_override_sls", false),
            pillarenv_from_saltenv: flag("pillarenv_from_saltenv", false),
            safe_render_error: flag("pillar_safe_render_error", true),
            env_order: env_order.iter().map(|env| env.as_str().unwrap().to_owned()).collect(),
            ..Settings::default()
        }
    }

    fn option(&self, name: &str) -> Option<&Value> {
        self.request.get("opts")?.get(name)
    }

    fn expected(&self) -> Value {
        normal(from_plain(&self.expected))
    }
}

/// Errors once each (Salt repeats some) and only their first line where Salt's traceback follows.
fn normal(mut pillar: Value) -> Value {
    if let Value::Map(map) = &mut pillar
        && let Some(Value::List(errors)) = map.get_mut("_errors")
    {
        let mut seen = HashSet::new();
        let first_line = |error: &Value| error.as_str().unwrap().lines().next().unwrap().to_owned();
        *errors = errors.iter().map(first_line).filter(|line| seen.insert(line.clone())).map(Value::from).collect();
    }
    pillar
}

/// Undoes `plain` of `regenerate.py`, as far as pillar needs it.
fn from_plain(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Array(items) => Value::List(items.iter().map(from_plain).collect()),
        serde_json::Value::Object(entries) => match entries.get("!map") {
            Some(pairs) => {
                let pairs = pairs.as_array().unwrap().iter();
                Value::Map(pairs.map(|pair| (from_plain(&pair[0]), from_plain(&pair[1]))).collect())
            }
            None => Value::Map(entries.iter().map(|(key, value)| (Value::from(key), from_plain(value))).collect()),
        },
        scalar => serde_json::from_value(scalar.clone()).unwrap(),
    }
}
