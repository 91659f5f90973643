//! People and their rights, as the command line shows them: on the server's own machine through the control socket, and from
//! "another machine", which knows a URL and nothing else.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use saltern_e2e::SIGN_IN;
use saltern_e2e::native::NativeMinion;
use saltern_testkit::process::{Saltern, binary, run_to_end};
use saltern_testkit::scratch::Scratch;
use saltern_testkit::wait;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(120);

/// A server with three minions: `web1` and `web2` of group web, and `db1`.
struct Town {
    server: Saltern,
    _minions: [NativeMinion; 3],
}

impl Town {
    async fn open() -> Self {
        let server = Saltern::start("", &["--auto-accept"]).await;
        let minions = ["web1", "web2", "db1"].map(|id| NativeMinion::start(id, server.ports(), ""));
        wait::until_ok("every minion to answer a ping", SIGN_IN, async || {
            let answers = server.cli_json(&["run", "-t", "5", "*", "test.ping"]).await;
            if answers.as_object().is_some_and(|all| all.len() == 3) { Ok(()) } else { Err(answers.to_string()) }
        })
        .await;
        let town = Self { server, _minions: minions };
        town.done(&["group", "create", "web", "--target", "web*"]).await;
        town
    }

    /// Runs a command as the administrator; it has to succeed. Gives what it printed.
    async fn done(&self, words: &[&str]) -> String {
        succeeded(&self.server.cli(words).await, words)
    }

    /// Makes a user and logs him in from a machine of his own.
    async fn person(&self, name: &str, more: &[&str]) -> Machine {
        let mut words = vec!["user", "create", name, "--password", PASSWORD];
        words.extend(more);
        self.done(&words).await;
        let machine = Machine::new();
        let logged_in = machine.log_in(&self.server.url(), name).await;
        succeeded(&logged_in, &["login"]);
        machine
    }
}

const PASSWORD: &str = "correct horse battery";

/// A home directory far away from the server.
struct Machine(Scratch);

impl Machine {
    fn new() -> Self {
        Self(Scratch::new("home"))
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(binary());
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"SALTERN_")) {
            command.env_remove(name);
        }
        command.args(words).env("XDG_CONFIG_HOME", self.0.path()).current_dir(self.0.path());
        command
    }

    async fn log_in(&self, url: &str, user: &str) -> Output {
        let mut command = self.command(&["login", url, "--user", user]);
        command.env("SALTERN_PASSWORD", PASSWORD);
        run_to_end(command, PATIENCE).await
    }

    async fn cli(&self, url: &str, words: &[&str]) -> Output {
        let mut all = vec!["--url", url];
        all.extend(words);
        run_to_end(self.command(&all), PATIENCE).await
    }

    async fn json(&self, url: &str, words: &[&str]) -> Value {
        let mut all = words.to_vec();
        all.extend(["--out", "json"]);
        let output = self.cli(url, &all).await;
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{words:?}: {error}: {}", told(&output)))
    }

    /// What a command that is refused says.
    async fn refused(&self, url: &str, words: &[&str]) -> String {
        let output = self.cli(url, words).await;
        assert!(!output.status.success(), "{words:?} was not refused: {}", told(&output));
        String::from_utf8_lossy(&output.stderr).into_owned()
    }
}

fn told(output: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("{}\n{out}\n{err}", output.status)
}

fn succeeded(output: &Output, words: &[&str]) -> String {
    assert!(output.status.success(), "{words:?}: {}", told(output));
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

fn ids(list: &Value, key: &str) -> Vec<String> {
    let items = list.as_array().unwrap_or_else(|| panic!("no list: {list}"));
    items.iter().map(|item| item[key].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn each_sees_and_does_what_his_role_allows() {
    let town = Town::open().await;
    let url = town.server.url();
    let ann = town.person("ann", &["--role", "server-admin"]).await;
    let bob = town.person("bob", &["--role", "operator:web"]).await;
    let rita = town.person("rita", &["--role", "reader:web"]).await;
    let nobody = town.person("nobody", &[]).await;

    for (machine, seen) in
        [(&ann, &["db1", "web1", "web2"][..]), (&bob, &["web1", "web2"]), (&rita, &["web1", "web2"]), (&nobody, &[])]
    {
        assert_eq!(ids(&machine.json(&url, &["minion", "list"]).await, "id"), seen);
    }
    assert_eq!(bob.json(&url, &["run", "*", "test.ping"]).await, serde_json::json!({"web1": true, "web2": true}));
    assert_eq!(ann.json(&url, &["run", "db1", "test.ping"]).await, serde_json::json!({"db1": true}));
    // What one does not see is not there, and is told as that.
    assert!(bob.refused(&url, &["run", "db1", "test.ping"]).await.contains("no accepted minion matches"));
    assert!(bob.refused(&url, &["minion", "show", "db1"]).await.contains("there is no accepted minion"));
    rita.refused(&url, &["run", "web1", "test.ping"]).await;
    nobody.refused(&url, &["run", "*", "test.ping"]).await;
    for words in
        [&["audit", "list"][..], &["user", "create", "eve", "--password", PASSWORD], &["key", "delete", "web1", "-y"]]
    {
        bob.refused(&url, words).await;
    }
    // Jobs of others are seen where one sees one of their minions, and then only those.
    let jobs = bob.json(&url, &["job", "list"]).await;
    assert!(jobs.as_array().unwrap().iter().all(|job| job["fun"] == "test.ping"), "{jobs}");
    let all = ann.json(&url, &["run", "*", "test.ping", "--async"]).await;
    let jid = all["jid"].as_str().unwrap();
    let shown = bob.json(&url, &["job", "show", jid]).await;
    assert!(!shown.to_string().contains("db1"), "{shown}");
}

#[tokio::test]
async fn a_log_in_is_kept_privately_and_ended() {
    let town = Town::open().await;
    let url = town.server.url();
    let bob = town.person("bob", &["--role", "operator:web"]).await;
    let kept = bob.0.path().join("saltern/logins.json");
    assert_eq!(std::fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);
    // The last log-in is meant where nothing else is said.
    let me = run_to_end(bob.command(&["whoami", "--out", "json"]), PATIENCE).await;
    let me: Value = serde_json::from_slice(&me.stdout).unwrap();
    assert_eq!((&me["name"], &me["user"]["roles"][0]), (&"bob".into(), &"operator:web".into()));

    let token = serde_json::from_slice::<Value>(&std::fs::read(&kept).unwrap()).unwrap()["logins"][0]["token"].clone();
    succeeded(&bob.cli(&url, &["logout"]).await, &["logout"]);
    assert!(bob.refused(&url, &["minion", "list"]).await.contains(&format!("`saltern login {url}`")));
    // It has ended at the server, too: whoever has copied the token has nothing.
    let mut thief = bob.command(&["--url", &url, "minion", "list"]);
    thief.env("SALTERN_TOKEN", token.as_str().unwrap());
    assert!(!run_to_end(thief, PATIENCE).await.status.success());

    let wrong = bob.log_in(&url, "bobby").await;
    assert_eq!(wrong.status.code(), Some(1));
    assert!(told(&wrong).contains("does not take this name and password"), "{}", told(&wrong));
}

#[tokio::test]
async fn a_token_for_reading_cannot_run_anything() {
    let town = Town::open().await;
    let url = town.server.url();
    town.done(&["user", "create", "ci", "--password", PASSWORD, "--role", "operator"]).await;
    let stranger = Machine::new();
    let with = async |token: &str, words: &[&str]| {
        let mut all = vec!["--url", url.as_str()];
        all.extend(words);
        let mut command = stranger.command(&all);
        command.env("SALTERN_TOKEN", token);
        run_to_end(command, PATIENCE).await
    };
    // The secret alone is on standard output: `$(saltern token create …)` works.
    let reads = town.done(&["token", "create", "--user", "ci", "--scope", "read", "--expires", "1h"]).await;
    assert!(reads.len() == 64 && reads.bytes().all(|byte| byte.is_ascii_hexdigit()), "{reads}");
    let operates = town.done(&["token", "create", "--user", "ci", "--scope", "operate", "--name", "deploy"]).await;

    succeeded(&with(&reads, &["minion", "list"]).await, &["minion", "list"]);
    let refused = with(&reads, &["run", "web1", "test.ping"]).await;
    assert!(told(&refused).contains("read") && !refused.status.success(), "{}", told(&refused));
    succeeded(&with(&operates, &["run", "web1", "test.ping"]).await, &["run"]);

    let tokens: Value =
        serde_json::from_str(&town.done(&["token", "list", "--user", "ci", "--out", "json"]).await).unwrap();
    assert!(!tokens.to_string().contains(&operates), "a secret is shown once");
    let deploy = tokens.as_array().unwrap().iter().find(|token| token["name"] == "deploy").unwrap();
    town.done(&["token", "delete", deploy["id"].as_str().unwrap()]).await;
    assert!(!with(&operates, &["minion", "list"]).await.status.success(), "it was taken back");
}

#[tokio::test]
async fn organisations_do_not_see_each_other() {
    let town = Town::open().await;
    let url = town.server.url();
    town.done(&["org", "create", "north", "--description", "The northern site"]).await;
    town.done(&["minion", "set", "db1", "--org", "north"]).await;
    let nora = town.person("nora", &["--org", "north", "--role", "org-admin"]).await;
    let olaf = town.person("olaf", &["--role", "org-admin"]).await;
    assert_eq!(ids(&nora.json(&url, &["minion", "list"]).await, "id"), ["db1"]);
    assert_eq!(ids(&olaf.json(&url, &["minion", "list"]).await, "id"), ["web1", "web2"]);
    assert_eq!(ids(&nora.json(&url, &["user", "list"]).await, "name"), ["nora"]);
    assert_eq!(nora.json(&url, &["group", "list"]).await, serde_json::json!([]));
    // Who looks after one organisation makes users there, and only there, and none above himself.
    let create = |name, more: &[&'static str]| [&["user", "create", name, "--password", PASSWORD][..], more].concat();
    succeeded(&nora.cli(&url, &create("nils", &["--role", "reader"])).await, &["user create"]);
    nora.refused(&url, &create("x", &["--org", "default"])).await;
    nora.refused(&url, &create("x", &["--role", "server-admin"])).await;
    nora.refused(&url, &["user", "delete", "olaf"]).await;
    let refused = told(&town.server.cli(&["org", "delete", "north"]).await);
    assert!(refused.contains("move or delete them first"), "{refused}");
}

#[tokio::test]
async fn a_disabled_user_is_out_at_once() {
    let town = Town::open().await;
    let url = town.server.url();
    let bob = town.person("bob", &["--role", "operator:web"]).await;
    bob.json(&url, &["minion", "list"]).await;
    town.done(&["user", "change", "bob", "--disable"]).await;
    bob.refused(&url, &["minion", "list"]).await;
    assert!(!bob.log_in(&url, "bob").await.status.success());
    town.done(&["user", "change", "bob", "--enable"]).await;
    succeeded(&bob.log_in(&url, "bob").await, &["login"]);
}

#[tokio::test]
async fn the_audit_log_tells_who_did_what_and_proves_itself() {
    let town = Town::open().await;
    let url = town.server.url();
    let ann = town.person("ann", &["--role", "server-admin"]).await;
    let head = town.done(&["audit", "verify"]).await;
    let head = head.rsplit(' ').next().unwrap().to_owned();
    ann.json(&url, &["user", "create", "eve", "--password", PASSWORD, "--role", "reader"]).await;
    let entries = ann.json(&url, &["audit", "list", "--what", "user", "--subject", "eve"]).await;
    assert_eq!((&entries[0]["who"], &entries[0]["what"]), (&"ann".into(), &"user.create".into()));
    assert!(!entries.to_string().contains(PASSWORD));
    // The log has grown, and what was noted earlier is still in it.
    let verified = succeeded(&ann.cli(&url, &["audit", "verify", "--expect", &head]).await, &["audit verify"]);
    assert!(verified.contains("the head that was noted is in it"), "{verified}");
    let (number, _) = head.split_once(':').unwrap();
    let other = format!("{number}:{}", "0".repeat(64));
    let broken = ann.cli(&url, &["audit", "verify", "--expect", &other]).await;
    assert_eq!(broken.status.code(), Some(1), "{}", told(&broken));
    assert!(told(&broken).contains(&format!("broken at entry {number}")), "{}", told(&broken));
}
