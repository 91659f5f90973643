//! The real `saltern` binary, as an operator starts it.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::daemon::Daemon;
use crate::ports::{self, MasterPorts};
use crate::scratch::Scratch;
use crate::wait;
use crate::watchdog::{self, Farewell};

/// How long the server may take to serve, on a machine that is busy with other tests.
const START_PATIENCE: Duration = Duration::from_secs(60);
/// How long it may take to drain and leave after SIGTERM.
const STOP_PATIENCE: Duration = Duration::from_secs(60);
/// How long a command of the CLI may take.
const CLI_PATIENCE: Duration = Duration::from_secs(180);

/// A running `saltern serve` with a data folder and ports of its own; killed on drop.
#[derive(Debug)]
pub struct Saltern {
    // Declared before the folder: the server ends before its files are removed.
    daemon: Option<Daemon>,
    ports: MasterPorts,
    http_port: u16,
    flags: Vec<String>,
    scratch: Scratch,
}

impl Saltern {
    /// Starts a server and waits until it serves.
    ///
    /// `config` is the content of its configuration file, `flags` follow on the command line.
    pub async fn start(config: &str, flags: &[&str]) -> Saltern {
        let mut server = Saltern::prepare(config, flags);
        server.launch().await;
        server
    }

    /// Sets up the folder, the configuration and the ports of a server without starting it.
    pub fn prepare(config: &str, flags: &[&str]) -> Saltern {
        let scratch = Scratch::new("srv");
        scratch.write("master", config);
        let flags = flags.iter().map(|&flag| flag.to_owned()).collect();
        Saltern { daemon: None, ports: ports::pair(), http_port: ports::free(), flags, scratch }
    }

    /// Starts the server where it is not running, on the same data folder and ports, and waits until it serves.
    pub async fn launch(&mut self) {
        if self.is_running() {
            return;
        }
        let output = self.scratch.path().join("saltern.log");
        let daemon = Daemon::spawn("saltern", &mut self.serve_command(), &output, &[]);
        let socket = self.data_dir().join("control.sock");
        wait::until_ok("saltern to serve", START_PATIENCE, || {
            assert!(daemon.is_running(), "saltern ended while starting");
            std::future::ready(UnixStream::connect(&socket).map(drop))
        })
        .await;
        self.daemon = Some(daemon);
    }

    /// Starts a server that is expected to refuse, and waits for its end.
    pub async fn launch_and_exit(&mut self) -> Output {
        run_to_end(self.serve_command(), START_PATIENCE).await
    }

    /// Kills the server at once, as the kernel or a power cut does.
    pub fn kill9(&mut self) {
        if let Some(daemon) = &mut self.daemon {
            daemon.kill();
        }
    }

    /// Asks the server to end, as a service manager does, and waits until it has.
    pub async fn terminate(&mut self) -> Option<ExitStatus> {
        match &mut self.daemon {
            Some(daemon) => Some(daemon.terminate(STOP_PATIENCE).await),
            None => None,
        }
    }

    /// Ends the server where it is running and starts it again on the same data folder and ports.
    pub async fn restart(&mut self) {
        self.terminate().await;
        self.launch().await;
    }

    /// Replaces the configuration file; the next start reads it.
    pub fn configure(&self, config: &str) {
        self.scratch.write("master", config);
    }

    /// Whether the server process is alive.
    pub fn is_running(&self) -> bool {
        self.daemon.as_ref().is_some_and(Daemon::is_running)
    }

    /// The ports minions connect to.
    pub fn ports(&self) -> MasterPorts {
        self.ports
    }

    /// Where it offers HTTP: scheme, address and port, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.http_port)
    }

    /// Its data folder.
    pub fn data_dir(&self) -> PathBuf {
        self.scratch.path().join("data")
    }

    /// The folder around the data folder, for file roots and the like; relative paths in the configuration mean here.
    pub fn root(&self) -> &Path {
        self.scratch.path()
    }

    /// Writes a file below [`Saltern::root`] and says where it is.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        self.scratch.write(name, content)
    }

    /// The process id of the server, if it was ever started.
    pub fn pid(&self) -> Option<u32> {
        self.daemon.as_ref().map(Daemon::pid)
    }

    /// Everything it has logged since the first start.
    pub fn log(&self) -> String {
        self.daemon.as_ref().map(Daemon::log).unwrap_or_default()
    }

    /// Runs a command of the CLI against this server and waits for its end.
    pub async fn cli(&self, arguments: &[&str]) -> Output {
        run_to_end(self.cli_command(arguments), CLI_PATIENCE).await
    }

    /// Runs a command with `--out json`, which has to print one JSON document, whatever its exit code.
    pub async fn cli_json(&self, arguments: &[&str]) -> serde_json::Value {
        let mut with_json = arguments.to_vec();
        with_json.extend(["--out", "json"]);
        let output = self.cli(&with_json).await;
        match serde_json::from_slice(&output.stdout) {
            Ok(value) => value,
            Err(error) => panic!(
                "`saltern {}` printed no JSON ({error}), {}:\n{}\n{}",
                with_json.join(" "),
                output.status,
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr),
            ),
        }
    }

    /// A command of the CLI against this server, to be started by the test itself (pipes, signals).
    pub fn cli_command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        // Every setting of the server is a variable too: those of the developer's shell are not part of the test.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"SALTERN_")) {
            command.env_remove(name);
        }
        command.args(arguments).env("SALTERN_DATA_DIR", self.data_dir()).current_dir(self.root());
        command
    }

    fn serve_command(&self) -> Command {
        let mut command = self.cli_command(&["serve", "--listen", "127.0.0.1"]);
        command.arg("-c").arg(self.scratch.path().join("master")).arg("--data-dir").arg(self.data_dir());
        command.args(["--publish-port", &self.ports.publish_port.to_string()]);
        command.args(["--return-port", &self.ports.return_port.to_string()]);
        if !self.flags.iter().any(|flag| flag == "--http") {
            command.args(["--http", &format!("127.0.0.1:{}", self.http_port)]);
        }
        command.args(&self.flags);
        command
    }
}

/// Runs a command that ends by itself; kills it with all it started and fails the test when it does not.
pub async fn run_to_end(mut command: Command, patience: Duration) -> Output {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let shown = format!("{command:?}");
    let mut command = tokio::process::Command::from(command);
    let child = match command.kill_on_drop(true).spawn() {
        Ok(child) => child,
        Err(error) => panic!("cannot run {shown}: {error}"),
    };
    let group = child.id().unwrap_or_default();
    watchdog::watch_group(group, Farewell::Kill);
    let ended = tokio::time::timeout(patience, child.wait_with_output()).await;
    if ended.is_err()
        && let Some(group) = i32::try_from(group).ok().and_then(Pid::from_raw)
    {
        let _ = kill_process_group(group, Signal::KILL);
    }
    watchdog::forget_group(group);
    match ended {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => panic!("cannot read the output of {shown}: {error}"),
        Err(_) => panic!("{shown} did not end within {patience:?}"),
    }
}

/// The `saltern` binary of the profile this test was built with.
pub fn binary() -> PathBuf {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(find_binary).clone()
}

fn find_binary() -> PathBuf {
    let here = std::env::current_exe().unwrap_or_default();
    // target/<profile>/deps/<test> → target/<profile>/saltern
    let Some(folder) = here.parent().and_then(Path::parent) else {
        panic!("the test executable has no folder: {}", here.display())
    };
    let binary = folder.join("saltern");
    assert!(binary.is_file(), "{} is not built: run `cargo build -p saltern`", binary.display());
    if let Some(source) = newer_source(&binary) {
        // A note and no failure: somebody may well go on editing while the tests of the last build run.
        let (name, build) = (binary.display(), "cargo build -p saltern");
        let _ = writeln!(std::io::stderr(), "\nNOTE: {name} is older than {source}; `{build}` brings it up to date\n");
    }
    binary
}

/// A source file changed after the binary was built, if any: cargo lists them beside the binary.
fn newer_source(binary: &Path) -> Option<String> {
    let listed = std::fs::read_to_string(binary.with_extension("d")).ok()?;
    let modified = |path: &Path| path.metadata().and_then(|metadata| metadata.modified()).ok();
    let built = modified(binary)?;
    let (_, sources) = listed.split_once(": ")?;
    let sources = sources.split_whitespace();
    sources
        .filter(|source| modified(Path::new(source)).is_some_and(|changed| changed > built))
        .map(str::to_owned)
        .next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_newer_than_the_binary_is_noticed() {
        let scratch = Scratch::new("stale");
        let source = scratch.write("main.rs", "");
        let binary = scratch.write("saltern", "");
        scratch.write("saltern.d", format!("{}: {}\n", binary.display(), source.display()));
        let touch = |path: &Path, second: u64| {
            let time = std::time::UNIX_EPOCH + Duration::from_secs(second);
            std::fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
        };
        touch(&binary, 1_000);
        touch(&source, 999);
        assert_eq!(newer_source(&binary), None);
        touch(&source, 1_001);
        assert_eq!(newer_source(&binary), Some(source.display().to_string()));
    }
}
