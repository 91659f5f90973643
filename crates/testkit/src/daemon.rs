//! One long-running process with everything it starts: its process group, its output, its end.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};

use crate::wait;
use crate::watchdog::{self, Farewell};

/// How many lines of a log a failing test shows.
const TAIL_LINES: usize = 40;
/// How long the kernel may take to end a killed group.
const DYING: Duration = Duration::from_secs(20);

/// A child process in a process group of its own; the group is killed on drop.
#[derive(Debug)]
pub struct Daemon {
    name: String,
    child: Child,
    group: Pid,
    farewell: Farewell,
    logs: Vec<PathBuf>,
    reaped: Option<ExitStatus>,
}

impl Daemon {
    /// Starts `command` with its output appended to `output`.
    ///
    /// `more_logs` are files the process writes by itself; a failing test shows the end of all of them.
    pub fn spawn(name: &str, command: &mut Command, output: &Path, more_logs: &[&Path]) -> Daemon {
        let open = || File::options().create(true).append(true).open(output);
        let (stdout, stderr) = match (open(), open()) {
            (Ok(stdout), Ok(stderr)) => (stdout, stderr),
            (Err(error), _) | (_, Err(error)) => panic!("cannot write {}: {error}", output.display()),
        };
        let child = command.stdin(Stdio::null()).stdout(stdout).stderr(stderr).process_group(0).spawn();
        let child = match child {
            Ok(child) => child,
            Err(error) => panic!("cannot start {name} ({}): {error}", command.get_program().display()),
        };
        watchdog::watch_group(child.id(), Farewell::Kill);
        let mut logs = vec![output.to_owned()];
        logs.extend(more_logs.iter().map(|log| log.to_path_buf()));
        let group = Pid::from_child(&child);
        Daemon { name: name.to_owned(), child, group, farewell: Farewell::Kill, logs, reaped: None }
    }

    /// Ends with SIGQUIT and patience instead of SIGKILL, as PostgreSQL wants it.
    pub(crate) fn quits_on_sigquit(mut self) -> Daemon {
        self.farewell = Farewell::Quit;
        watchdog::forget_group(self.child.id());
        watchdog::watch_group(self.child.id(), Farewell::Quit);
        self
    }

    /// The process id of the process itself, which is also the id of its group.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether the process itself is alive.
    pub fn is_running(&self) -> bool {
        // Asked without reaping: as long as the leader is a zombie, the group's number belongs to nobody else.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.reaped.is_none() && matches!(waitid(WaitId::Pid(self.group), options), Ok(None))
    }

    /// Kills the process and everything in its group at once, and waits until all of it is gone.
    pub fn kill(&mut self) -> ExitStatus {
        if let Some(status) = self.reaped {
            return status;
        }
        let _ = kill_process_group(self.group, Signal::KILL);
        // Members we did not start are reaped by others: without waiting for them they could still hold a socket.
        wait::until_blocking("a killed process group to be gone", DYING, || !is_group_alive(self.pid()));
        let status = match self.child.wait() {
            Ok(status) => status,
            Err(error) => panic!("cannot wait for {}: {error}", self.name),
        };
        self.reaped = Some(status);
        watchdog::forget_group(self.child.id());
        status
    }

    /// Asks the process to end (SIGTERM), waits, and then sees to it that its whole group is gone.
    ///
    /// Fails the test when the process does not end within `patience`.
    pub async fn terminate(&mut self, patience: Duration) -> ExitStatus {
        if self.reaped.is_none() {
            let _ = kill_process(self.group, Signal::TERM);
            let what = format!("{} to end after SIGTERM", self.name);
            wait::until(&what, patience, || std::future::ready(!self.is_running())).await;
        }
        self.kill()
    }

    /// Sends a signal to the process itself.
    pub fn signal(&self, signal: Signal) {
        if self.reaped.is_none() {
            let _ = kill_process(self.group, signal);
        }
    }

    /// Lets the process and its group stand still where they are: their connections stay open and nobody reads them.
    pub fn suspend(&self) {
        self.signal_group(Signal::STOP);
    }

    /// Lets them go on after [`Daemon::suspend`].
    pub fn resume(&self) {
        self.signal_group(Signal::CONT);
    }

    fn signal_group(&self, signal: Signal) {
        if self.reaped.is_none() {
            let _ = kill_process_group(self.group, signal);
        }
    }

    /// Everything it has written so far.
    pub fn log(&self) -> String {
        let read = |path: &PathBuf| std::fs::read(path).unwrap_or_default();
        self.logs.iter().map(|path| String::from_utf8_lossy(&read(path)).into_owned()).collect()
    }

    /// The last lines of its log, for the message of a failing test.
    pub fn log_tail(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        let tail = &lines[lines.len().saturating_sub(TAIL_LINES)..];
        format!("--- the last lines of {} ---\n{}\n---", self.name, tail.join("\n"))
    }
}

/// Whether any process of a group is alive; zombies, which hold nothing but their number, do not count.
pub fn is_group_alive(group: u32) -> bool {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(|process| std::fs::read_to_string(process.path().join("stat")).ok()).any(|stat| {
        // `pid (name) state parent group …`: the name may contain anything, so reading starts after the last bracket.
        let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        let (state, _parent, its_group) = (fields.next(), fields.next(), fields.next());
        state != Some("Z") && its_group.and_then(|field| field.parse().ok()) == Some(group)
    })
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.log_tail());
        }
        if self.farewell == Farewell::Quit && self.is_running() {
            self.signal(Signal::QUIT);
            let deadline = std::time::Instant::now() + Duration::from_secs(5);
            while self.is_running() && std::time::Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        if self.reaped.is_none() {
            let _ = kill_process_group(self.group, Signal::KILL);
            let _ = self.child.wait();
            watchdog::forget_group(self.child.id());
        }
    }
}
