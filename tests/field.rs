//! A mixed fleet for the scenarios of the action engine: one stock minion of each line and a native one, and the few words
//! in which those scenarios are told.

#![expect(clippy::panic, reason = "a helper that meets the unexpected fails its test")]

use crate::native::NativeMinion;
use crate::tree::Tree;
use crate::{Fleet, SIGN_IN};
use saltern_testkit::process::Saltern;
use saltern_testkit::salt::StockMinion;
use saltern_testkit::scratch::Scratch;
use saltern_testkit::wait;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// The id of the native minion.
pub const NATIVE: &str = "n1";
/// How long anything may take that is bound to happen: longer than the engine takes to become sure that a job is gone.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A server with stock minions and a native one, all of which acknowledge.
#[derive(Debug)]
pub struct Field {
    /// The server and the stock minions
    pub fleet: Fleet,
    /// The native minion
    pub native: NativeMinion,
    /// What the server serves
    pub tree: Tree,
    witnesses: Scratch,
}

impl Field {
    /// Starts everybody; nothing where no Salt is installed. `config` is more of the server's configuration.
    pub async fn start(config: &str) -> Option<Self> {
        let tree = Tree::default();
        let fleet = Fleet::start(&format!("{}{config}", tree.config()), &[]).await?;
        let native = NativeMinion::start(NATIVE, fleet.server.ports(), "");
        let field = Self { fleet, native, tree, witnesses: Scratch::new("act") };
        field.all_acknowledge().await;
        Some(field)
    }

    /// A server with nobody but a native minion that may be told to reboot; nothing where that cannot be done.
    pub async fn with_own_machine() -> Option<Self> {
        let server = Saltern::start("", &["--auto-accept"]).await;
        let native = NativeMinion::start_on_own_machine(NATIVE, server.ports())?;
        let fleet = Fleet { server, minions: Vec::new() };
        let field = Self { fleet, native, tree: Tree::default(), witnesses: Scratch::new("act") };
        field.all_acknowledge().await;
        Some(field)
    }

    async fn all_acknowledge(&self) {
        wait::until_ok("every minion to be able to acknowledge", SIGN_IN, async || {
            let minions = self.fleet.server.cli_json(&["minion", "list"]).await;
            let list = minions.as_array().map(Vec::as_slice).unwrap_or_default();
            let ready = list.iter().filter(|minion| minion["ack_method"] != "none").count();
            if ready == self.everybody().len() { Ok(()) } else { Err(minions.to_string()) }
        })
        .await;
    }

    /// The ids of all minions.
    pub fn everybody(&self) -> Vec<&str> {
        let mut ids = self.fleet.ids();
        ids.push(NATIVE);
        ids
    }

    /// One of the stock minions.
    pub fn stock(&mut self, id: &str) -> &mut StockMinion {
        let minion = self.fleet.minions.iter_mut().find(|minion| minion.id() == id);
        minion.unwrap_or_else(|| panic!("there is no stock minion {id}"))
    }

    /// A file that jobs write to.
    pub fn witness(&self, name: &str) -> PathBuf {
        self.witnesses.path().join(name)
    }

    /// The lines in a witness.
    pub fn lines(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.witness(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Creates an action; gives its id.
    pub async fn create(&self, words: &[&str]) -> String {
        let mut command = vec!["action", "create"];
        command.extend(words);
        let created = self.fleet.server.cli_json(&command).await;
        created["id"].as_i64().unwrap_or_else(|| panic!("{words:?}: {created}")).to_string()
    }

    /// Creates an action that runs a command line on a list of minions; gives its id.
    pub async fn command(&self, minions: &[&str], line: &str, rules: &[&str]) -> String {
        let (list, arg) = (minions.join(","), format!("arg={}", json!([line])));
        let mut words = vec!["function", "-L", &list, "fun=cmd.run", &arg];
        words.extend(rules);
        self.create(&words).await
    }

    /// The same with a line that leaves one line in a witness each time it is run.
    pub async fn witnessed(&self, minions: &[&str], name: &str, then: &str, rules: &[&str]) -> String {
        let line = format!("echo ran >> {}{then}", self.witness(name).display());
        self.command(minions, &line, rules).await
    }

    /// `action show`.
    pub async fn action(&self, id: &str) -> Value {
        self.fleet.server.cli_json(&["action", "show", id]).await
    }

    /// Where one minion stands.
    pub async fn run(&self, id: &str, minion: &str) -> Value {
        let runs = self.fleet.server.cli_json(&["action", "runs", id]).await;
        let list = runs.as_array().map(Vec::as_slice).unwrap_or_default();
        let run = list.iter().find(|run| run["minion"] == minion);
        run.unwrap_or_else(|| panic!("action {id} has no run on {minion}: {runs}")).clone()
    }

    /// Waits until a run is as wanted.
    pub async fn until(&self, id: &str, minion: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let what = format!("action {id} on {minion} to be {what}");
        wait::until_ok(&what, PATIENCE, async || {
            let run = self.run(id, minion).await;
            if wanted(&run) {
                return Ok(run);
            }
            let explained = self.fleet.server.cli_json(&["action", "explain", id, minion]).await;
            Err(explained.to_string())
        })
        .await
    }

    /// Waits until a run is in a state.
    pub async fn becomes(&self, id: &str, minion: &str, state: &str) -> Value {
        self.until(id, minion, state, |run| run["state"] == state).await
    }

    /// Waits until a run has ended, and asserts how.
    pub async fn ends(&self, id: &str, minion: &str, state: &str, reason: Option<&str>) -> Value {
        let run = self.until(id, minion, "over", |run| !run["ended"].is_null()).await;
        assert_eq!((run["state"].as_str(), run["reason"].as_str()), (Some(state), reason), "{minion}: {run}");
        run
    }

    /// Does something with an action; gives what became of each minion, and the exit code.
    pub async fn act(&self, words: &[&str]) -> (Value, Option<i32>) {
        let mut command = vec!["action"];
        command.extend(words);
        command.extend(["--out", "json"]);
        let output = self.fleet.server.cli(&command).await;
        let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        (said["actions"][0]["minions"].clone(), output.status.code())
    }

    /// What the minion returned for the newest attempt of a run.
    pub async fn returned(&self, run: &Value) -> Value {
        let jid = run["jid"].as_str().unwrap_or_else(|| panic!("nothing was sent: {run}"));
        let job = self.fleet.server.cli_json(&["job", "show", jid]).await;
        job["returns"][run["minion"].as_str().unwrap_or_default()].clone()
    }

    /// Waits until a minion answers.
    pub async fn answers(&self, minion: &str) {
        wait::until_ok("the minion to answer a ping", SIGN_IN, async || {
            let answers = self.fleet.server.cli_json(&["run", "-t", "5", minion, "test.ping"]).await;
            if answers[minion] == true { Ok(()) } else { Err(answers.to_string()) }
        })
        .await;
    }
}

/// Whether any process has this word in its command line.
pub fn is_running(word: &str) -> bool {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines.into_iter().any(|line| line.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes()))
}
