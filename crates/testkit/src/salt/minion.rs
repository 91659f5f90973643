//! A stock `salt-minion` process in a folder of its own.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output};
use std::time::Duration;

use crate::daemon::Daemon;
use crate::installed::{Line, Salt};
use crate::ports::MasterPorts;
use crate::process::run_to_end;
use crate::scratch::Scratch;

/// A minion waits for its job processes before it leaves, and those of 3007 linger 30 s after their return.
const PATIENCE: Duration = Duration::from_secs(90);

/// An unmodified `salt-minion`; it and all its children are killed on drop.
#[derive(Debug)]
pub struct StockMinion {
    // Declared before the folder: the processes end before their files are removed.
    daemon: Option<Daemon>,
    salt: Salt,
    id: String,
    env: BTreeMap<String, OsString>,
    scratch: Scratch,
}

impl StockMinion {
    /// Starts a minion that looks for its master on loopback.
    ///
    /// `more` is added to its configuration file as it is. Returns at once: whether the minion has signed in is the
    /// master's to say.
    pub fn start(salt: &Salt, id: &str, master: MasterPorts, more: &str) -> StockMinion {
        let mut minion = StockMinion::prepare(salt, id, master, more);
        minion.launch();
        minion
    }

    /// Sets up the folder and the configuration of a minion without starting it.
    pub fn prepare(salt: &Salt, id: &str, master: MasterPorts, more: &str) -> StockMinion {
        let scratch = Scratch::new("min");
        let root = scratch.path().display();
        let MasterPorts { publish_port, return_port } = master;
        let config = format!(
            "master: 127.0.0.1\n\
             id: {id}\n\
             master_port: {return_port}\n\
             publish_port: {publish_port}\n\
             root_dir: {root}\n\
             conf_file: {root}/etc/minion\n\
             pki_dir: {root}/pki\n\
             cachedir: {root}/cache\n\
             extension_modules: {root}/cache/extmods\n\
             sock_dir: {root}/sock\n\
             pidfile: {root}/run/minion.pid\n\
             log_file: {root}/minion.log\n\
             log_level_logfile: info\n\
             {more}\n"
        );
        scratch.write("etc/minion", config);
        StockMinion { daemon: None, salt: salt.clone(), id: id.to_owned(), env: BTreeMap::new(), scratch }
    }

    /// Sets a variable of its environment, which the next start has and every job inherits.
    pub fn set_env(&mut self, name: &str, value: impl Into<OsString>) {
        self.env.insert(name.to_owned(), value.into());
    }

    /// Starts the process where it is not running; same folder, same key, same id.
    pub fn launch(&mut self) {
        if self.is_running() {
            return;
        }
        // What a job of an earlier life left running goes first.
        self.daemon = None;
        // A killed minion leaves its claims here, and the next one refuses to start as long as the process they name is
        // not reaped. After a power cut nothing is left in /run either.
        let _ = std::fs::remove_dir_all(self.root().join("run"));
        self.scratch.write("run/.empty", "");
        let mut command = self.command("salt-minion");
        let (output, log) = (self.root().join("console.log"), self.root().join("minion.log"));
        let name = format!("minion {} ({})", self.id, self.salt.version);
        self.daemon = Some(Daemon::spawn(&name, &mut command, &output, &[&log]));
    }

    /// Asks it to end, as a service manager does, and waits until it has.
    pub async fn stop(&mut self) -> Option<ExitStatus> {
        match &mut self.daemon {
            Some(daemon) => Some(daemon.terminate(PATIENCE).await),
            None => None,
        }
    }

    /// Kills it and its job processes at once, as a power cut does.
    pub fn kill(&mut self) {
        if let Some(daemon) = &mut self.daemon {
            daemon.kill();
        }
    }

    /// Lets it stand still with its connections open, as a machine that swaps itself to death does.
    pub fn suspend(&self) {
        if let Some(daemon) = &self.daemon {
            daemon.suspend();
        }
    }

    /// Lets it go on after [`StockMinion::suspend`].
    pub fn resume(&self) {
        if let Some(daemon) = &self.daemon {
            daemon.resume();
        }
    }

    /// Stops it and starts it again.
    pub async fn restart(&mut self) {
        self.stop().await;
        self.launch();
    }

    /// Whether its main process is alive.
    pub fn is_running(&self) -> bool {
        self.daemon.as_ref().is_some_and(Daemon::is_running)
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The line of Salt it runs.
    pub fn line(&self) -> Line {
        self.salt.line
    }

    /// The folder that holds everything it writes: `pki/`, `cache/`, `etc/minion`, `minion.log`.
    pub fn root(&self) -> &Path {
        self.scratch.path()
    }

    /// The file of its public key.
    pub fn public_key(&self) -> PathBuf {
        self.root().join("pki/minion.pub")
    }

    /// Everything it has logged so far.
    pub fn log(&self) -> String {
        self.daemon.as_ref().map(Daemon::log).unwrap_or_default()
    }

    /// Runs `salt-call` with this minion's configuration and waits for its end.
    pub async fn call(&self, arguments: &[&str]) -> Output {
        let mut command = self.command("salt-call");
        command.args(arguments);
        run_to_end(command, Duration::from_secs(120)).await
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.salt.program(program));
        command.arg("--config-dir").arg(self.root().join("etc")).current_dir(self.root()).envs(&self.env);
        command
    }
}
