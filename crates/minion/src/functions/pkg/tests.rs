//! Whole calls against recorded output of the programs.

use super::super::command::Finished;
use super::super::testing::Bench;
use super::super::{Call, Failure, Outcome, find};
use super::apt::Apt;
use super::dnf::Dnf;
use super::manager::{Answer, Manager, Programs};
use super::work::Work;
use super::zypper::Zypper;
use futures_util::FutureExt;
use saltern_core::value::Value;
use std::sync::Mutex;

/// Answers by the longest beginning of the command line that is known, each once and in order; the last of its kind stays.
struct Recorded {
    answers: Mutex<Vec<(&'static str, i32, &'static str)>>,
    ran: Mutex<Vec<String>>,
}

impl Recorded {
    fn new(answers: &[(&'static str, i32, &'static str)]) -> Self {
        Self { answers: Mutex::new(answers.to_vec()), ran: Mutex::default() }
    }

    fn answer(&self, program: &str, args: &[String]) -> Finished {
        let line = format!("{program} {}", args.join(" "));
        self.ran.lock().unwrap().push(line.clone());
        let mut answers = self.answers.lock().unwrap();
        let fitting = answers.iter().map(|(start, _, _)| *start).filter(|start| line.starts_with(start));
        let start = fitting.max_by_key(|start| start.len()).unwrap_or_else(|| panic!("not recorded: {line}"));
        let same: Vec<usize> = (0..answers.len()).filter(|at| answers[*at].0 == start).collect();
        let (_, code, text) = if same.len() > 1 { answers.remove(same[0]) } else { answers[same[0]] };
        let (stdout, stderr) = if code == 0 || code >= 100 { (text, "") } else { ("", text) };
        Finished { code, stdout: stdout.into(), stderr: stderr.into(), ..Finished::default() }
    }
}

impl Programs for &Recorded {
    fn look<'a>(&'a self, program: &'a str, args: &'a [String]) -> Answer<'a, Finished> {
        async move { Ok(self.answer(program, args)) }.boxed()
    }

    fn change<'a>(&'a self, program: &'a str, args: &'a [String]) -> Answer<'a, Finished> {
        self.look(program, args)
    }

    fn read(&self, _path: &str) -> Option<String> {
        Some("type: package\nsolvable_name: held\n".into())
    }
}

fn bind(bench: &Bench, name: &str, args: &[&str], kwargs: &[(&str, Value)]) -> Call {
    let kwargs = kwargs.iter().map(|(key, value)| (Value::from(*key), value.clone())).collect();
    Call::bind(find(name).unwrap(), bench.context.clone(), args.iter().map(|arg| Value::from(*arg)).collect(), kwargs)
        .unwrap()
}

fn value(outcome: Result<Outcome, Failure>) -> Value {
    outcome.unwrap().value
}

fn change(old: &str, new: &str) -> Value {
    Value::map([("old", old), ("new", new)])
}

fn apt() -> Box<dyn Manager> {
    Box::new(Apt { arch: "amd64".into() })
}

fn dnf() -> Box<dyn Manager> {
    Box::new(Dnf { program: "dnf".into(), arch: "x86_64".into() })
}

fn zypper() -> Box<dyn Manager> {
    Box::new(Zypper { arch: "x86_64".into() })
}

#[tokio::test]
async fn apt_installs_versions_and_downgrades_apart() {
    let recorded = Recorded::new(&[
        ("dpkg-query", 0, "install ok installed b 2.0-1 amd64\n"),
        ("dpkg-query", 0, "install ok installed a 1.0-1 amd64\ninstall ok installed b 1.5-1 amd64\n"),
        ("apt-get", 0, ""),
    ]);
    let bench = Bench::new();
    let pkgs = Value::list([Value::from("a"), Value::map([("b", "1.5-1")])]);
    let call = bind(&bench, "pkg.install", &[], &[("pkgs", pkgs), ("install_recommends", false.into())]);
    let changes = value(Work { manager: apt(), programs: &recorded }.install(&call).await);
    assert_eq!(changes, Value::map([("a", change("", "1.0-1")), ("b", change("2.0-1", "1.5-1"))]));
    let ran = recorded.ran.lock().unwrap().clone();
    assert!(ran[1].contains("--no-install-recommends install a"), "{ran:?}");
    assert!(ran[2].ends_with("--allow-downgrades install b=1.5-1"), "{ran:?}");
}

#[tokio::test]
async fn a_failed_installation_tells_what_changed_and_why() {
    let recorded = Recorded::new(&[("dpkg-query", 0, ""), ("apt-get", 100, "E: Unable to locate package nope\n")]);
    let bench = Bench::new();
    let call = bind(&bench, "pkg.install", &["nope"], &[]);
    let failure = Work { manager: apt(), programs: &recorded }.install(&call).await.unwrap_err();
    let text = "Problem encountered installing package(s). Additional info follows:\n\nchanges:\n    ----------\nerrors:\n    - E: Unable to locate package nope";
    assert_eq!(failure, Failure::Command(text.into()));
}

#[tokio::test]
async fn apt_purge_tells_packages_and_configuration_apart() {
    let recorded = Recorded::new(&[
        ("dpkg-query", 0, "install ok installed a 1 amd64\ndeinstall ok config-files ab 2 amd64\n"),
        ("dpkg-query", 0, "install ok installed a 1 amd64\ndeinstall ok config-files ab 2 amd64\n"),
        ("dpkg-query", 0, ""),
        ("apt-get", 0, ""),
    ]);
    let bench = Bench::new();
    let call = bind(&bench, "pkg.purge", &["a*"], &[]);
    let told = value(Work { manager: apt(), programs: &recorded }.remove(&call, true).await);
    assert_eq!(told.get("installed"), Some(&Value::map([("a", change("1", ""))])));
    assert_eq!(told.get("removed"), Some(&Value::map([("ab", change("2", ""))])));
}

#[tokio::test]
async fn removing_what_is_not_there_runs_nothing() {
    let recorded = Recorded::new(&[("dpkg-query", 0, "")]);
    let bench = Bench::new();
    let call = bind(&bench, "pkg.remove", &["nope"], &[]);
    assert_eq!(
        value(Work { manager: apt(), programs: &recorded }.remove(&call, false).await),
        Value::Map(Default::default())
    );
}

#[tokio::test]
async fn the_latest_version_is_empty_when_it_is_installed() {
    let recorded = Recorded::new(&[
        ("dpkg-query", 0, "install ok installed new 2.0-1 amd64\ninstall ok installed old 1.0-1 amd64\n"),
        ("apt-cache", 0, "new:\n  Candidate: 2.0-1\nold:\n  Candidate: 1.1-1\nother:\n  Candidate: 3\n"),
    ]);
    let bench = Bench::new();
    let call = bind(&bench, "pkg.latest_version", &["new", "old", "other", "none"], &[("refresh", false.into())]);
    let told = value(Work { manager: apt(), programs: &recorded }.latest_version(&call).await);
    assert_eq!(told, Value::map([("new", ""), ("old", "1.1-1"), ("other", "3"), ("none", "")]));
}

#[tokio::test]
async fn dnf_installs_a_version() {
    let recorded = Recorded::new(&[
        ("rpm -qa", 0, "bash_|-(none)_|-5.1_|-1_|-x86_64\n"),
        ("rpm -qa", 0, "bash_|-(none)_|-5.1_|-1_|-x86_64\nzsh_|-(none)_|-5.8_|-9.el9_|-x86_64\n"),
        ("dnf", 0, ""),
    ]);
    let bench = Bench::new();
    let call = bind(&bench, "pkg.install", &["zsh"], &[("version", "5.8-9.el9".into()), ("fromrepo", "baseos".into())]);
    let changes = value(Work { manager: dnf(), programs: &recorded }.install(&call).await);
    assert_eq!(changes, Value::map([("zsh", change("", "5.8-9.el9"))]));
    let ran = recorded.ran.lock().unwrap().clone();
    assert_eq!(ran[1], "dnf -y --best --allowerasing --disablerepo=* --enablerepo=baseos install zsh-5.8-9.el9");
}

#[tokio::test]
async fn dnf_refresh_tells_whether_updates_wait() {
    for (code, expected) in [(100, Value::Bool(true)), (0, Value::Nil), (1, Value::Bool(false))] {
        let recorded = Recorded::new(&[
            ("dnf --quiet --assumeyes clean", 0, ""),
            ("dnf --quiet --assumeyes check-update", code, ""),
        ]);
        let bench = Bench::new();
        let call = bind(&bench, "pkg.refresh_db", &[], &[]);
        assert_eq!(value(Work { manager: dnf(), programs: &recorded }.refresh_db(&call).await), expected);
    }
}

#[tokio::test]
async fn dnf_holds_and_lets_go() {
    let recorded = Recorded::new(&[("dnf versionlock list", 0, "held-0:1.0-1.*\n"), ("dnf versionlock", 0, "")]);
    let bench = Bench::new();
    let work = Work { manager: dnf(), programs: &recorded };
    let told = value(work.hold(&bind(&bench, "pkg.hold", &["vim,held"], &[]), true).await);
    assert_eq!(told.get("vim").and_then(|entry| entry.get("changes")), Some(&change("", "hold")));
    assert_eq!(
        told.get("held").and_then(|entry| entry.get("comment")),
        Some(&"Package held is already set to be held.".into())
    );
    let told = value(work.hold(&bind(&bench, "pkg.unhold", &["held"], &[]), false).await);
    assert_eq!(
        told.get("held").and_then(|entry| entry.get("comment")),
        Some(&"Package held is no longer held.".into())
    );
}

#[tokio::test]
async fn zypper_takes_a_wish_for_a_reboot_for_success() {
    let recorded = Recorded::new(&[
        ("rpm -qa", 0, ""),
        ("rpm -qa", 0, "kernel_|-(none)_|-6.4_|-1_|-x86_64\n"),
        ("zypper", 102, "Reboot is suggested\n"),
    ]);
    let bench = Bench::new();
    let call = bind(&bench, "pkg.install", &["kernel"], &[]);
    let changes = value(Work { manager: zypper(), programs: &recorded }.install(&call).await);
    assert_eq!(changes, Value::map([("kernel", change("", "6.4-1"))]));
    assert_eq!(
        recorded.ran.lock().unwrap()[1],
        "zypper --non-interactive --no-refresh install --auto-agree-with-licenses --name kernel"
    );
}

#[tokio::test]
async fn zypper_tells_upgrades_and_holds() {
    let xml = "<update kind=\"package\" name=\"bash\" edition=\"5-1\" edition-old=\"4-1\"/>";
    let recorded = Recorded::new(&[("zypper --non-interactive --no-refresh --xmlout", 0, xml), ("zypper", 0, "")]);
    let bench = Bench::new();
    let work = Work { manager: zypper(), programs: &recorded };
    let told = value(work.list_upgrades(&bind(&bench, "pkg.list_upgrades", &[], &[("refresh", false.into())])).await);
    assert_eq!(told, Value::map([("bash", "5-1")]));
    let told = value(work.hold(&bind(&bench, "pkg.unhold", &["free"], &[]), false).await);
    assert_eq!(
        told.get("free").and_then(|entry| entry.get("comment")),
        Some(&"Package free was already unheld.".into())
    );
}

#[tokio::test]
async fn a_comparison_is_refused_where_the_manager_knows_none() {
    let recorded = Recorded::new(&[]);
    let bench = Bench::new();
    let call = bind(&bench, "pkg.install", &["zsh"], &[("version", ">=5".into())]);
    let failure = Work { manager: apt(), programs: &recorded }.install(&call).await.unwrap_err();
    assert_eq!(failure, Failure::Arguments("the version of zsh must be one version, not a comparison".into()));
}

#[test]
fn names_that_look_like_options_are_refused() {
    assert!(super::work::check_name("-oDir::Etc=x").is_err());
    assert!(super::work::check_name("zsh").is_ok());
}

#[tokio::test]
async fn this_machines_own_packages_are_told() {
    if super::super::find_program("dpkg-query").is_none() {
        eprintln!("SKIPPED: this machine has no dpkg");
        return;
    }
    let bench = Bench::new();
    let dpkg = bench.call("pkg.version", &["dpkg".into()], &[]).await;
    assert!(dpkg.as_str().is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit())), "{dpkg:?}");
    assert_eq!(bench.call("pkg.version", &["no-such-package".into()], &[]).await, "".into());
    let listed = bench.call("pkg.list_pkgs", &[], &[]).await;
    assert_eq!(listed.get("dpkg"), Some(&dpkg));
    let path = super::super::find_program("dpkg-query").unwrap();
    assert_eq!(bench.call("pkg.owner", &[path.to_str().unwrap().into()], &[]).await, "dpkg".into());
    let info = bench.call("pkg.info_installed", &["dpkg".into()], &[]).await;
    assert_eq!(info.get("dpkg").and_then(|info| info.get("version")), Some(&dpkg));
    let files = bench.call("pkg.file_list", &["dpkg".into()], &[]).await;
    assert!(files.get("files").and_then(Value::as_list).unwrap().contains(&"/usr/bin/dpkg-query".into()));
    let latest = bench.call("pkg.latest_version", &["dpkg".into()], &[("refresh", false.into())]).await;
    assert!(latest.as_str().is_some(), "{latest:?}");
    assert_eq!(bench.call("pkg.version_cmp", &["1.0-1".into(), "1.0-2".into()], &[]).await, (-1).into());
}
