//! Inputs made to hurt: nothing panics, nothing runs or grows for ever.
#![expect(clippy::unwrap_used, reason = "a test that cannot write its files has failed")]

use std::sync::Arc;

use proptest::prelude::*;
use saltern_core::value::{Map, Value};
use saltern_render::fileserver::{FileRoots, Settings, clean_env, clean_path};
use saltern_render::jinja::{Engine, Limits, Scope, Template, Whitespace};
use saltern_render::{Error, yaml};

fn render_with(source: &str, limits: Limits) -> Result<String, Error> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("t.sls"), source).unwrap();
    let roots = FileRoots::new([("base".to_owned(), vec![dir.path().to_owned()])], Settings::default()).unwrap();
    let engine = Engine::new(Arc::new(roots), limits, Whitespace::default());
    let scope = Scope::new(&Map::new(), &Map::new(), &Map::new(), Arc::new(|_, _| Ok(false)));
    engine.render(Template { env: "base", path: "t.sls", sls: "t" }, &scope, &Map::new())
}

fn render(source: &str) -> Result<String, Error> {
    render_with(source, Limits { fuel: 100_000, output: 100_000, source: 100_000 })
}

#[test]
fn a_billion_laughs_are_stopped() {
    let mut text = "a: &a [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for (before, after) in ('a'..='i').zip('b'..='j') {
        text += &format!("{after}: &{after} [{}]\n", vec![format!("*{before}"); 9].join(", "));
    }
    let err = yaml::load(&text).unwrap_err();
    assert!(err.to_string().contains("expands to more than"), "{err}");
}

#[test]
fn merge_keys_cannot_multiply_either() {
    let mut text = "a: &a {k0: 1}\n".to_owned();
    for (n, (before, after)) in ('a'..='y').zip('b'..='z').enumerate() {
        text += &format!("{after}: &{after} {{<<: [*{before}, *{before}], k{}: 1}}\n", n + 1);
    }
    assert!(yaml::load(&text).is_err());
}

#[test]
fn an_alias_inside_of_itself_is_an_error() {
    for text in ["&a [*a]", "&a {k: *a}", "&a {<<: *a}", "a: &a\n  b: &b {c: *a, <<: *b}"] {
        assert!(yaml::load(text).is_err(), "{text}");
    }
}

#[test]
fn deep_nesting_is_an_error() {
    for text in ["[".repeat(100_000), "{a: ".repeat(100_000), "- ".repeat(100_000), "? ".repeat(100_000)] {
        assert!(yaml::load(&text).is_err());
    }
    assert!(yaml::load(&format!("{}{}", "[".repeat(90), "]".repeat(90))).is_ok());
}

#[test]
fn an_endless_loop_runs_out_of_fuel() {
    let err = render("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}").unwrap_err();
    assert!(matches!(&err, Error::TemplateLimit { limit, .. } if limit.contains("instructions")), "{err}");
}

#[test]
fn endless_recursion_is_stopped() {
    for source in
        ["{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "{% include 't.sls' %}", "{% import 't.sls' as t %}"]
    {
        assert!(render(source).is_err(), "{source}");
    }
}

#[test]
fn output_is_bounded() {
    let err = render("{% for a in range(2000) %}{{ 'x' * 1000 }}{% endfor %}").unwrap_err();
    assert!(matches!(&err, Error::TemplateLimit { limit, .. } if limit.contains("output")), "{err}");
}

#[test]
fn a_template_that_is_too_large_is_refused() {
    assert!(render(&format!("{{{{ 1 }}}}{}", "x".repeat(200_000))).is_err());
}

#[test]
fn a_list_inside_of_itself_can_be_printed() {
    assert!(render("{% set l = [] %}{% do l.append(l) %}{{ l }}").unwrap().starts_with("[[["));
    assert!(render("{% set d = {} %}{% do d.update({'d': d}) %}{{ d }}").unwrap().starts_with("{'d': {"));
    assert!(render("{% set l = [] %}{% do l.append(l) %}{{ l|json }}").is_err());
}

#[test]
fn templates_reach_no_file_outside_of_the_root() {
    for name in
        ["/etc/passwd", "../../../../etc/passwd", "salt:///etc/passwd", "salt://../../etc/passwd", "./../../etc/passwd"]
    {
        for tag in ["include '{}'", "import '{}' as x", "import_text '{}' as x", "from '{}' import x", "extends '{}'"] {
            let source = format!("{{% {} %}}", tag.replace("{}", name));
            assert!(render(&source).is_err(), "{source}");
        }
    }
}

#[test]
fn templates_cannot_run_commands_or_reach_internals() {
    for source in [
        "{{ salt['cmd.run']('id') }}",
        "{{ salt.cmd.run('id') }}",
        "{{ salt.file.read('/etc/passwd') }}",
        "{{ salt['cp.get_file_str']('/etc/passwd') }}",
        "{{ ''.__class__.__mro__ }}",
        "{{ grains.__init__.__globals__ }}",
    ] {
        assert!(render(source).is_err(), "{source}");
    }
    let err = render("{{ salt.cmd.run('id') }}").unwrap_err();
    assert!(err.to_string().contains("'cmd.run' is not available"), "{err}");
}

#[test]
fn errors_name_the_template_and_the_line() {
    let err = render("a: 1\n\nb: {{ nope.x }}\n").unwrap_err();
    assert_eq!(err.to_string(), "Jinja variable 'nope' is undefined in t.sls, line 3");
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Nil),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        prop::num::f64::NORMAL.prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[-+0-9a-fx:.e_ #'\"\\n]{0,12}".prop_map(Value::from),
        prop::sample::select(vec![
            "yes",
            "No",
            "null",
            "~",
            "<<",
            "=",
            "0644",
            "1:30",
            "2024-01-02",
            "",
            " ",
            "- a",
            "a: b",
            "*x",
            "&x",
            "a\n",
            "\na",
            " a\nb",
            "a\n\n"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::List),
            prop::collection::vec(("[ -~]{0,8}", inner), 0..6).prop_map(|entries| {
                let mut map = Map::new();
                for (key, value) in entries {
                    map.insert(key, value);
                }
                Value::Map(map)
            }),
        ]
    })
}

proptest! {
    #[test]
    fn any_text_is_yaml_or_an_error(text in any::<String>()) {
        let _ = yaml::load(&text);
    }

    #[test]
    fn any_yaml_like_text_is_yaml_or_an_error(text in "([-?:,\\[\\]{}#&*!|>'\"%@` \\n\\t]|[ab01.~]|<<|!!int |&a |\\*a|: |- ){0,60}") {
        let _ = yaml::load(&text);
    }

    #[test]
    fn what_is_written_is_read_back(value in any_value()) {
        for text in [yaml::to_yaml(&value), yaml::to_flow(&value)] {
            let back = yaml::load(&text);
            prop_assert_eq!(back.as_ref(), Ok(&value), "{}", text);
        }
    }

    #[test]
    fn any_template_is_rendered_or_an_error(source in "(\\{\\{|\\}\\}|\\{%|%\\}|[-\\[\\](){}'\"|%.,:=~+* \\n]|set |for |in |if |endif|raw|endraw|load_yaml as |endload|import_yaml |x|1|é){0,40}") {
        let _ = render(&source);
    }

    #[test]
    fn clean_paths_stay_below(path in "([a./\\\\]|\\.\\.|\\x00|é){0,12}") {
        if let Ok(clean) = clean_path(&path) {
            prop_assert!(!clean.starts_with('/') && clean.split('/').all(|part| !matches!(part, "" | "." | "..")));
        }
    }

    #[test]
    fn clean_environments_are_one_part(env in any::<String>()) {
        if let Ok(env) = clean_env(&env) {
            prop_assert!(!env.contains('/') && env != "." && env != "..");
        }
    }
}
