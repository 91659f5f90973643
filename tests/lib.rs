//! What the end-to-end tests share: our server with one stock minion of each line signed in.
//!
//! A test here knows what an operator knows: commands, files, exit codes, processes. It starts the real binary and real
//! minions (`saltern-testkit`), and never calls into our crates; a crowd of minions is played by `saltern-swarm`, which knows
//! no more of the server than its wire.
//!
//! A new file of tests gets a `[[test]]` entry in `Cargo.toml`. A test that needs minions begins with
//! `let Some(fleet) = Fleet::start("", &[]).await else { return };`: where Salt is not installed it is skipped aloud.

pub mod field;
pub mod native;
pub mod tree;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use saltern_testkit::process::Saltern;
use saltern_testkit::salt::{self, Salt, StockMinion};
use saltern_testkit::wait;
use serde_json::Value;

/// How long minions may take to start, sign in and answer: Python needs seconds to start, more when three do at once.
pub const SIGN_IN: Duration = Duration::from_secs(120);

/// A server that accepts every key, and stock minions that have answered it.
#[derive(Debug)]
pub struct Fleet {
    /// The server.
    pub server: Saltern,
    /// The minions, oldest line first; their ids are `m3006`, `m3007`, `m3008`.
    pub minions: Vec<StockMinion>,
}

impl Fleet {
    /// Starts a server and one stock minion of each installed line, and waits until each has answered a ping.
    ///
    /// `config` and `flags` are the server's. Nothing where no Salt is installed.
    pub async fn start(config: &str, flags: &[&str]) -> Option<Fleet> {
        Fleet::start_with(config, flags, &salt::versions(), "").await
    }

    /// Like [`Fleet::start`], with chosen versions and more lines for each minion's configuration.
    pub async fn start_with(config: &str, flags: &[&str], versions: &[Salt], minion_config: &str) -> Option<Fleet> {
        if versions.is_empty() {
            return None;
        }
        let mut all_flags = vec!["--auto-accept"];
        all_flags.extend(flags);
        let server = Saltern::start(config, &all_flags).await;
        let start = |salt: &Salt| StockMinion::start(salt, &format!("m{}", salt.line), server.ports(), minion_config);
        let minions = versions.iter().map(start).collect();
        let fleet = Fleet { server, minions };
        fleet.wait_for_all().await;
        Some(fleet)
    }

    /// Waits until every minion answers a ping: after the start, and after somebody was killed.
    pub async fn wait_for_all(&self) {
        wait::until_ok("every minion to answer a ping", SIGN_IN, async || {
            let answers = self.server.cli_json(&["run", "-t", "5", "*", "test.ping"]).await;
            let all = self.minions.iter().all(|minion| answers[minion.id()] == true);
            if all { Ok(()) } else { Err(answers.to_string()) }
        })
        .await;
    }

    /// Runs a function and gives `{minion: return}`.
    pub async fn run(&self, target: &str, function: &str, arguments: &[&str]) -> Value {
        let mut command = vec!["run", target, function];
        command.extend(arguments);
        self.server.cli_json(&command).await
    }

    /// Runs a command; it has to succeed.
    pub async fn done(&self, words: &[&str]) -> String {
        let output = self.server.cli(words).await;
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{words:?}: {out}{err}");
        out.into_owned()
    }

    /// Puts a state into the catalogue that writes a text into a file of its name.
    pub async fn put_state(&self, state: &str, text: &str) {
        let path = self.written("{{ grains['id'] }}", state);
        let sls = format!(
            "{state} is there:\n  file.managed:\n    - name: {}\n    - contents: {text}\n    - makedirs: True\n",
            path.display()
        );
        let file = self.server.write(&format!("{state}.sls"), sls);
        self.done(&["state", "put", state, "-f", &file.display().to_string()]).await;
    }

    /// Where a minion writes what such a state is for.
    pub fn written(&self, minion: &str, state: &str) -> PathBuf {
        self.server.root().join("out").join(minion).join(state)
    }

    /// The ids of the minions.
    pub fn ids(&self) -> Vec<&str> {
        self.minions.iter().map(StockMinion::id).collect()
    }

    /// The stored events whose tag matches a pattern, oldest first.
    pub async fn events_with_tag(&self, tag: &str) -> Vec<Value> {
        events_with_tag(&self.server, tag).await
    }
}

/// The stored events of a server whose tag matches a pattern, oldest first.
pub async fn events_with_tag(server: &Saltern, tag: &str) -> Vec<Value> {
    let listed = server.cli(&["event", "--since", "0", "--tag", tag, "--no-follow", "--out", "json"]).await;
    let lines = String::from_utf8_lossy(&listed.stdout).into_owned();
    lines.lines().map(|line| serde_json::from_str(line).expect("one event per line")).collect()
}

/// A small file system to fill up; gone with this.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts one of so many MiB there, or says aloud that it cannot be done here.
    pub fn mount(at: &Path, mib: u32) -> Option<Self> {
        std::fs::create_dir_all(at).ok()?;
        let size = format!("size={mib}m");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at).output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Self(at.to_owned()));
        }
        saltern_testkit::tier::skip("a small file system", "it cannot be mounted here");
        None
    }

    /// Fills it to the last byte.
    pub fn fill(&self) {
        std::fs::write(self.0.join("ballast"), vec![0; 64 << 20]).expect_err("the file system is smaller than this");
    }

    /// Makes room again.
    pub fn free(&self) {
        std::fs::remove_file(self.0.join("ballast")).expect("the ballast is there");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
