//! Templates against what Salt's own Jinja renderer made of the same (`golden/regenerate.py`).
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot read its cases has failed")]

use std::sync::Arc;

use saltern_core::value::{Map, Value};
use saltern_render::fileserver::{FileRoots, Settings};
use saltern_render::jinja::{Engine, Limits, Scope, Template, Whitespace};
use saltern_render::targets::Matches;

/// Templates whose text differs from Salt's while meaning the same to the YAML that is read from it, or not at all in the
/// subset; each with the reason.
const KNOWN: &[(&str, &str)] = &[
    (
        "{% macro m(a, b=[]) %}{{ a }}{{ b }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1) }}",
        "macros have no varargs and kwargs",
    ),
    ("{{ 1.0 }} {{ 1e20 }} {{ 0.1 + 0.2 }} {{ 100000.0 }}", "large floats are written without an exponent"),
];

#[test]
fn templates_render_as_salt_renders_them() {
    let golden: serde_json::Value = serde_json::from_str(include_str!("golden/jinja.json")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in golden["files"].as_object().unwrap() {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text.as_str().unwrap()).unwrap();
    }
    let roots = FileRoots::new([("base".to_owned(), vec![dir.path().to_owned()])], Settings::default()).unwrap();
    let engine = Engine::new(Arc::new(roots), Limits::default(), Whitespace::default());

    let mut wrong = Vec::new();
    for case in golden["cases"].as_array().unwrap() {
        let source = case["in"].as_str().unwrap();
        // Salt gave every template the same grains; a template that changes them must not reach the next one.
        let matches: Matches = Arc::new(|_, _| Ok(false));
        let scope =
            Scope::new(&map(GRAINS), &map(PILLAR), &map(r#"{"id": "web1", "renderer": "jinja|yaml"}"#), matches);
        std::fs::write(dir.path().join("dir/case.sls"), source).unwrap();
        let template = Template { env: "base", path: "dir/case.sls", sls: "dir.case" };
        let got = engine.render(template, &scope, &Map::new());
        let fits = match (&got, case["out"].as_str()) {
            (Ok(text), Some(expected)) => text == expected,
            (Err(_), None) => true,
            _ => false,
        };
        if fits == KNOWN.iter().any(|(known, _)| *known == source) {
            wrong.push(format!("{source:?}\n  salt: {}\n  here: {got:?}", case.get("out").unwrap_or(&case["error"])));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

const GRAINS: &str = r#"{
    "id": "web1", "os": "Debian", "os_family": "Debian", "osmajorrelease": 12, "num_cpus": 4,
    "roles": ["web", "db"], "nested": {"a": {"b": "deep"}, "list": [{"x": 1}, {"x": 2}]}
}"#;

const PILLAR: &str = r#"{"key": "value", "map": {"a": 1, "b": [1, 2]}, "text": "two\nlines\n"}"#;

fn map(json: &str) -> Map {
    match serde_json::from_str(json).unwrap() {
        Value::Map(map) => map,
        other => panic!("not a map: {other:?}"),
    }
}
