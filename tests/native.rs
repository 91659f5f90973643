//! The native minion as a process of its own.

use saltern_testkit::daemon::Daemon;
use saltern_testkit::ports::MasterPorts;
use saltern_testkit::process::binary;
use saltern_testkit::scratch::Scratch;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A running `saltern minion`; killed on drop.
#[derive(Debug)]
pub struct NativeMinion {
    // Declared before the folder: the process ends before its files are removed.
    daemon: Option<Daemon>,
    id: String,
    ports: MasterPorts,
    data_dir: PathBuf,
    scratch: Scratch,
}

impl NativeMinion {
    /// Starts a minion of this id for the master on these ports; `config` is more of its configuration file.
    pub fn start(id: &str, ports: MasterPorts, config: &str) -> Self {
        let scratch = Scratch::new("nat");
        scratch.write("minion", config);
        let data_dir = scratch.path().join("data");
        let mut minion = Self { daemon: None, id: id.to_owned(), ports, data_dir, scratch };
        minion.launch();
        minion
    }

    /// Starts a minion that keeps its data there.
    pub fn start_in(id: &str, ports: MasterPorts, data_dir: &Path) -> Self {
        let scratch = Scratch::new("nat");
        scratch.write("minion", "");
        let mut minion = Self { daemon: None, id: id.to_owned(), ports, data_dir: data_dir.to_owned(), scratch };
        minion.launch();
        minion
    }

    /// Starts it again on the same data.
    pub fn launch(&mut self) {
        let mut command = Command::new(binary());
        command
            .arg("minion")
            .args(["--master", &format!("127.0.0.1:{}", self.ports.return_port)])
            .args(["--id", &self.id, "--config"])
            .arg(self.scratch.path().join("minion"))
            .arg("--data-dir")
            .arg(self.data_dir())
            .env_remove("SALTERN_DATA_DIR");
        self.daemon = Some(Daemon::spawn(&self.id, &mut command, &self.scratch.path().join("log"), &[]));
    }

    /// Kills it at once.
    pub fn kill(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            daemon.kill();
        }
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Where it keeps its ledger and its answers.
    pub fn data_dir(&self) -> PathBuf {
        self.data_dir.clone()
    }

    /// A place for files of the test.
    pub fn file(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// What it logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.scratch.path().join("log")).unwrap_or_default()
    }

    /// Resident memory in KiB.
    pub fn resident_kib(&self) -> u64 {
        let pid = self.daemon.as_ref().map_or(0, Daemon::pid);
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
    }
}
