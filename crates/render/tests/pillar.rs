//! Pillar: what the golden trees cannot show.
#![expect(clippy::unwrap_used, reason = "a test that cannot write its files has failed")]

use std::fs;
use std::sync::Arc;

use saltern_core::target::Nodegroups;
use saltern_core::value::{Map, Value};
use saltern_render::fileserver::{FileRoots, Settings as FileSettings};
use saltern_render::pillar::{Compiler, Pillar, Request, Settings};
use saltern_render::targets::Targets;
use tempfile::TempDir;

struct Site {
    dir: TempDir,
    compiler: Compiler,
    targets: Arc<Targets>,
}

impl Site {
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let roots =
            FileRoots::new([("base".to_owned(), vec![dir.path().to_owned()])], FileSettings::default()).unwrap();
        let compiler = Compiler::new(Arc::new(roots), Settings::default()).unwrap();
        let site = Self { dir, compiler, targets: Targets::new(Nodegroups::default()) };
        files.iter().for_each(|(name, text)| site.write(name, text));
        site
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn compile(&self, id: &str) -> Pillar {
        let grains = Value::map([("id", id), ("os", "Debian")]);
        self.compiler.compile(&Request {
            id,
            grains: grains.as_map().unwrap(),
            saltenv: None,
            pillarenv: None,
            pillar_override: None,
            opts: &Map::new(),
            matches: self.targets.of_minion(id, grains.clone(), None),
        })
    }
}

const TOP: &str = "base:\n  '*': [a]\n";

#[test]
fn a_changed_file_is_seen_at_once() {
    let site = Site::new(&[
        ("top.sls", TOP),
        ("a.sls", "v: one\nos: {{ grains.os }}\n{% import_yaml 'd.yaml' as d %}\nd: {{ d.x }}\n"),
        ("d.yaml", "x: 1\n"),
    ]);
    assert_eq!(
        Value::Map(site.compile("web1").value),
        Value::map([("v", Value::from("one")), ("os", "Debian".into()), ("d", 1.into())])
    );
    site.write("a.sls", "v: three\n");
    assert_eq!(Value::Map(site.compile("web1").value), Value::map([("v", "three")]));
    site.write("a.sls", "{% import_yaml 'd.yaml' as d %}d: {{ d.x }}\n");
    site.write("d.yaml", "x: 22\n");
    assert_eq!(Value::Map(site.compile("web1").value), Value::map([("d", 22)]));
    fs::remove_file(site.dir.path().join("a.sls")).unwrap();
    assert_eq!(site.compile("web1").errors.len(), 1);
}

#[test]
fn one_minions_values_do_not_reach_another() {
    let site = Site::new(&[
        ("top.sls", TOP),
        ("a.sls", "id: {{ grains.id }}\n{% do grains.update({'os': 'x'}) %}os: {{ opts.grains.os }}\n"),
    ]);
    assert_eq!(site.compile("web1").value.get("id").unwrap().as_str(), Some("web1"));
    let second = site.compile("web2").value;
    assert_eq!(second.get("id").unwrap().as_str(), Some("web2"));
    assert_eq!(second.get("os").unwrap().as_str(), Some("Debian"));
}

#[test]
fn the_minion_learns_that_and_the_log_learns_why() {
    let site = Site::new(&[("top.sls", TOP), ("a.sls", "x: 1\ny: {{ secret_function() }}\n")]);
    let pillar = site.compile("web1");
    assert_eq!(pillar.errors, ["Rendering SLS 'a' failed. Please see master log for details."]);
    assert!(pillar.details[0].starts_with("Rendering SLS 'a' failed, render error:\n"), "{:?}", pillar.details);
    assert!(pillar.details[0].contains("secret_function") && pillar.details[0].contains("a.sls, line 2"));
}

#[test]
fn other_renderers_are_refused_by_name() {
    for shebang in ["#!py", "#!mako|yaml", "#!jinja|yaml|gpg", "#!pydsl", "#!stateconf"] {
        let site = Site::new(&[("top.sls", TOP), ("a.sls", &format!("{shebang}\nk: v\n"))]);
        let pillar = site.compile("web1");
        assert_eq!(pillar.errors.len(), 1, "{shebang}");
        let name = shebang.trim_start_matches("#!").split('|').find(|name| !matches!(*name, "jinja" | "yaml")).unwrap();
        assert!(pillar.details[0].contains(&format!("'{name}'")), "{:?}", pillar.details);
    }
}

/// 3006 and 3007 answer so; 3008.3 answers false to all of them, because its match module asks about the master.
#[test]
fn templates_can_ask_whether_the_minion_matches() {
    let sls = "c: {{ salt['match.compound']('G@os:Debian and web*') }}\ng: {{ salt['match.glob']('db*') }}\n\
               l: {{ salt['match.list']('web1,x') }}\nf: {{ salt['match.filter_by']({'web*': 1, 'db*': 2}) }}\n";
    let site = Site::new(&[("top.sls", TOP), ("a.sls", sls)]);
    let expected = Value::map([
        ("c", Value::Bool(true)),
        ("g", Value::Bool(false)),
        ("l", Value::Bool(true)),
        ("f", Value::Int(1)),
    ]);
    assert_eq!(Value::Map(site.compile("web1").value), expected);
}

#[test]
fn a_target_that_cannot_be_read_is_told_to_the_log() {
    let top = "base:\n  '*': [a]\n  'G@os:Debian and (': [a]\n";
    let site = Site::new(&[("top.sls", top), ("a.sls", "k: v\n")]);
    let pillar = site.compile("web1");
    assert!(pillar.errors.is_empty());
    assert!(pillar.details[0].contains("G@os:Debian and ("), "{:?}", pillar.details);
    assert_eq!(pillar.value.get("k").unwrap().as_str(), Some("v"));
}

#[test]
fn names_of_sls_cannot_leave_the_root() {
    let site = Site::new(&[
        ("top.sls", "base:\n  '*': ['../x', '/etc/passwd', '..', 'a\\b', a]\n"),
        ("a.sls", "include: ['../y', '...z']\nk: v\n"),
    ]);
    let pillar = site.compile("web1");
    assert_eq!(pillar.errors.len(), 6, "{:?}", pillar.errors);
    assert!(pillar.errors.iter().all(|error| error.ends_with("is not available on the salt master")));
}

#[test]
fn secrets_are_not_in_debug_output() {
    let site = Site::new(&[("top.sls", TOP), ("a.sls", "password: hunter2\n")]);
    assert!(!format!("{:?}", site.compile("web1")).contains("hunter2"));
}

#[test]
fn a_wildcard_root_serves_the_environment_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    for env in ["base", "qa"] {
        fs::create_dir_all(dir.path().join(env)).unwrap();
        fs::write(dir.path().join(env).join("top.sls"), format!("{env}:\n  '*': [a]\n")).unwrap();
        fs::write(dir.path().join(env).join("a.sls"), format!("env: {env}\n")).unwrap();
    }
    let roots =
        [("base".to_owned(), vec![dir.path().join("base")]), ("__env__".to_owned(), vec![dir.path().join("__env__")])];
    let roots = FileRoots::new(roots, FileSettings::default()).unwrap();
    let compiler = Compiler::new(Arc::new(roots), Settings::default()).unwrap();
    let ask = |pillarenv| {
        let matches = Targets::new(Nodegroups::default()).of_minion("web1", Value::Nil, None);
        let (grains, opts) = (Map::new(), Map::new());
        let request = Request {
            id: "web1",
            grains: &grains,
            saltenv: None,
            pillarenv,
            pillar_override: None,
            opts: &opts,
            matches,
        };
        compiler.compile(&request).value.get("env").cloned()
    };
    assert_eq!(ask(Some("qa")), Some(Value::from("qa")));
    assert_eq!(ask(Some("../qa")), None);
    assert_eq!(ask(None), Some(Value::from("base")));
}
