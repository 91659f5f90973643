//! The native minion as a process of its own.

use saltern_testkit::daemon::Daemon;
use saltern_testkit::ports::MasterPorts;
use saltern_testkit::process::binary;
use saltern_testkit::scratch::Scratch;
use std::collections::BTreeMap;
use std::ffi::OsString;
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
    /// Whether it believes to be on a machine of its own, which it may reboot
    own_machine: bool,
    env: BTreeMap<String, OsString>,
    scratch: Scratch,
}

/// Where Linux tells which boot this is.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

impl NativeMinion {
    /// Starts a minion of this id for the master on these ports; `config` is more of its configuration file.
    pub fn start(id: &str, ports: MasterPorts, config: &str) -> Self {
        let mut minion = Self::prepare(id, ports, config);
        minion.launch();
        minion
    }

    /// Sets up the folder and the configuration of a minion without starting it.
    pub fn prepare(id: &str, ports: MasterPorts, config: &str) -> Self {
        let scratch = Scratch::new("nat");
        scratch.write("minion", config);
        let data_dir = scratch.path().join("data");
        Self::on(id, ports, data_dir, scratch)
    }

    fn on(id: &str, ports: MasterPorts, data_dir: PathBuf, scratch: Scratch) -> Self {
        let env = BTreeMap::new();
        Self { daemon: None, id: id.to_owned(), ports, data_dir, own_machine: false, env, scratch }
    }

    /// Replaces its configuration file; the next start reads it.
    pub fn configure(&self, config: &str) {
        self.scratch.write("minion", config);
    }

    /// Sets a variable of its environment, which the next start has and every job inherits.
    pub fn set_env(&mut self, name: &str, value: impl Into<OsString>) {
        self.env.insert(name.to_owned(), value.into());
    }

    /// Takes a variable out of its environment again.
    pub fn remove_env(&mut self, name: &str) {
        self.env.remove(name);
    }

    /// Whether its process is alive.
    pub fn is_running(&self) -> bool {
        self.daemon.as_ref().is_some_and(Daemon::is_running)
    }

    /// Starts a minion that keeps its data there.
    pub fn start_in(id: &str, ports: MasterPorts, data_dir: &Path) -> Self {
        let scratch = Scratch::new("nat");
        scratch.write("minion", "");
        let mut minion = Self::on(id, ports, data_dir.to_owned(), scratch);
        minion.launch();
        minion
    }

    /// Starts a minion that can be told to reboot: its `shutdown` only notes that it was called, and its boot id is a file,
    /// mounted where nobody else sees it. Says aloud where that cannot be done.
    pub fn start_on_own_machine(id: &str, ports: MasterPorts) -> Option<Self> {
        use std::os::unix::fs::PermissionsExt as _;
        let scratch = Scratch::new("nat");
        scratch.write("minion", "");
        let called = scratch.path().join("shutdown.log");
        let shutdown = scratch.write("bin/shutdown", format!("#!/bin/sh\necho \"$@\" >> {}\n", called.display()));
        std::fs::set_permissions(&shutdown, std::fs::Permissions::from_mode(0o755)).expect("the file is ours");
        let data_dir = scratch.path().join("data");
        let mut minion = Self { own_machine: true, ..Self::on(id, ports, data_dir, scratch) };
        minion.next_boot();
        let output = minion.apart(Path::new("cat")).arg(BOOT_ID).output();
        let seen = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        if std::fs::read_to_string(minion.file("boot_id")).is_ok_and(|wanted| wanted == seen) {
            minion.launch();
            return Some(minion);
        }
        saltern_testkit::tier::skip("a private mount namespace", "a boot id cannot be mounted here");
        None
    }

    /// Makes the boot id of the next start another one.
    pub fn next_boot(&self) {
        let id = std::fs::read("/proc/sys/kernel/random/uuid").expect("Linux makes one at each read");
        let (new, boot_id) = (self.file("boot_id.new"), self.file("boot_id"));
        // Another file: the one that is mounted stays what it is until the next start.
        std::fs::write(&new, id).and_then(|()| std::fs::rename(&new, &boot_id)).expect("the folder is ours");
    }

    /// What its `shutdown` was called with, one line per call.
    pub fn shutdowns(&self) -> Vec<String> {
        let called = std::fs::read_to_string(self.file("shutdown.log")).unwrap_or_default();
        called.lines().map(str::to_owned).collect()
    }

    /// A program that sees the boot id and the `shutdown` of this minion.
    fn apart(&self, program: &Path) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c"]);
        command.arg(format!("mount --bind \"$0\" {BOOT_ID} && exec \"$@\""));
        command.arg(self.file("boot_id")).arg(program);
        let inherited = std::env::var_os("PATH").unwrap_or_default();
        let path = std::iter::once(self.file("bin")).chain(std::env::split_paths(&inherited));
        command.env("PATH", std::env::join_paths(path).expect("scratch paths have no colon"));
        command
    }

    /// Starts it again on the same data.
    pub fn launch(&mut self) {
        let mut command = if self.own_machine { self.apart(&binary()) } else { Command::new(binary()) };
        command
            .arg("minion")
            .args(["--master", &format!("127.0.0.1:{}", self.ports.return_port)])
            .args(["--id", &self.id, "--config"])
            .arg(self.scratch.path().join("minion"))
            .arg("--data-dir")
            .arg(self.data_dir())
            .env_remove("SALTERN_DATA_DIR")
            .envs(&self.env);
        self.daemon = Some(Daemon::spawn(&self.id, &mut command, &self.scratch.path().join("log"), &[]));
    }

    /// Kills it at once.
    pub fn kill(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            daemon.kill();
        }
    }

    /// Lets it stand still with its connections open.
    pub fn suspend(&self) {
        if let Some(daemon) = &self.daemon {
            daemon.suspend();
        }
    }

    /// Lets it go on after [`NativeMinion::suspend`].
    pub fn resume(&self) {
        if let Some(daemon) = &self.daemon {
            daemon.resume();
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
