//! Running programs: the one way in which functions start other processes.
//!
//! Each program gets a process group of its own that is known to the job, so stopping the job stops whatever it started. Output
//! is bounded, time is bounded, and nothing is left behind when the call is dropped.

use super::{Call, Context, Failure};
use crate::jobs::JobHandle;
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

/// How much of each stream is kept; the rest is read and thrown away, so that the program does not wait for us.
const KEPT: u64 = 16 << 20;

/// Where programs are looked for beside `PATH`: agents are often started with a short one.
const ALSO_SEARCHED: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// A program about to be run.
pub(crate) struct Command {
    name: String,
    inner: tokio::process::Command,
    stdin: Option<Vec<u8>>,
    timeout: Option<Duration>,
    is_merged: bool,
}

/// A program that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Finished {
    /// Its number while it ran
    pub(crate) pid: u32,
    /// Its exit code; the negative number of the signal that ended it
    pub(crate) code: i32,
    /// What it wrote to its output
    pub(crate) stdout: Vec<u8>,
    /// What it wrote to its error output
    pub(crate) stderr: Vec<u8>,
    /// How many bytes of output were too many to be kept
    pub(crate) dropped: u64,
    /// Whether it was ended because its time was up
    pub(crate) timed_out: bool,
}

impl Command {
    /// A program, by name or path, that inherits our environment.
    pub(crate) fn new(program: impl AsRef<OsStr>) -> Self {
        let name = program.as_ref().to_string_lossy().into_owned();
        let path = find_program(&name).unwrap_or_else(|| name.clone().into());
        let mut inner = tokio::process::Command::new(path);
        inner.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).kill_on_drop(true);
        Self { name, inner, stdin: None, timeout: None, is_merged: false }
    }

    /// A tool whose output we read: it speaks plain English.
    pub(crate) fn tool(program: &str) -> Self {
        Self::new(program).env("LC_ALL", "C").env("LANGUAGE", "C")
    }

    /// Adds arguments.
    pub(crate) fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.inner.args(args);
        self
    }

    /// Sets a variable of its environment.
    pub(crate) fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.inner.env(name, value);
        self
    }

    /// What it reads from its input; nothing otherwise.
    pub(crate) fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self.inner.stdin(Stdio::piped());
        self
    }

    /// How long it may take; as long as it wants otherwise.
    pub(crate) fn timeout(mut self, timeout: Option<Duration>) -> Self {
        self.timeout = timeout;
        self
    }

    /// Lets what it writes to both streams come as one output, in the order in which it was written.
    pub(crate) fn merge_streams(mut self) -> Self {
        self.is_merged = true;
        self
    }

    /// Sets anything else: working directory, user, a cleared environment.
    pub(crate) fn with(mut self, set: impl FnOnce(&mut tokio::process::Command)) -> Self {
        set(&mut self.inner);
        self
    }

    /// Runs it to its end.
    pub(crate) async fn run(self, context: &Context) -> Result<Finished, Failure> {
        let name = self.name.clone();
        self.run_for(&context.job).await.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Failure::Command(format!("{name} was not found on this minion")),
            _ => Failure::Command(format!("{name} could not be run: {error}")),
        })
    }

    /// Runs it and takes anything but exit code 0 for a failure, told in the program's own words.
    pub(crate) async fn succeed(self, context: &Context) -> Result<Finished, Failure> {
        let name = self.name.clone();
        let finished = self.run(context).await?;
        if finished.code == 0 {
            return Ok(finished);
        }
        Err(Failure::Command(format!("{name} failed: {}", finished.complaint())))
    }

    /// Starts it and leaves it alone, whatever becomes of the job; its number.
    pub(crate) fn detach(mut self) -> std::io::Result<u32> {
        self.inner.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(false);
        let mut child = self.inner.spawn()?;
        let pid = child.id().unwrap_or_default();
        tokio::spawn(async move { child.wait().await });
        Ok(pid)
    }

    async fn run_for(mut self, job: &JobHandle) -> std::io::Result<Finished> {
        let merged = if self.is_merged { Some(merge(&mut self.inner)?) } else { None };
        let mut child = spawn(&mut self.inner).await?;
        // Our ends of the pipes must go, or reading them would never end.
        drop(self.inner);
        let pid = child.id().unwrap_or_default();
        let mut group = Group::new(pid, job);
        let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
        let stdout: Option<Box<dyn AsyncRead + Send + Unpin>> = match (merged, child.stdout.take()) {
            (Some(both), _) => Some(Box::new(both)),
            (None, Some(stdout)) => Some(Box::new(stdout)),
            (None, None) => None,
        };
        let feed = async {
            if let (Some(mut pipe), Some(bytes)) = (stdin, self.stdin) {
                // A program may end without reading all of it.
                let _ = pipe.write_all(&bytes).await;
            }
        };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut dropped = (0, 0);
        let work = async {
            let streams = async {
                dropped = tokio::join!(read_bounded(stdout, &mut out), read_bounded(stderr, &mut err));
            };
            tokio::join!(feed, streams, child.wait()).2
        };
        let (code, timed_out) = match within(self.timeout, work).await {
            Some(status) => {
                let status = status?;
                group.has_ended = true;
                (status.code().unwrap_or_else(|| -status.signal().unwrap_or_default()), false)
            }
            None => (-(Signal::KILL.as_raw()), true),
        };
        Ok(Finished { pid, code, stdout: out, stderr: err, dropped: dropped.0 + dropped.1, timed_out })
    }
}

impl Finished {
    /// Its output as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Whether it ended well.
    pub(crate) fn is_ok(&self) -> bool {
        self.code == 0
    }

    /// What it said when it failed.
    pub(crate) fn complaint(&self) -> String {
        let said = [&self.stderr, &self.stdout].map(|stream| String::from_utf8_lossy(stream).trim().to_owned());
        match said.into_iter().find(|text| !text.is_empty()) {
            _ if self.timed_out => "its time was up".into(),
            Some(text) => text,
            None => format!("exit code {}", self.code),
        }
    }
}

/// Where a program is, if it is installed.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return is_program(Path::new(name)).then(|| name.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let also = ALSO_SEARCHED.iter().map(PathBuf::from);
    std::env::split_paths(&path).chain(also).map(|dir| dir.join(name)).find(|path| is_program(path))
}

/// A parameter that a program takes as a name: one that begins like an option would be taken for one.
pub(crate) fn operand(call: &Call, name: &str) -> Result<String, Failure> {
    let text = call.text(name)?;
    if text.is_empty() || text.starts_with('-') {
        return Err(Failure::Arguments(format!("'{name}' must be a name, not '{text}'")));
    }
    Ok(text)
}

/// Does what waits for files and programs where it holds up nobody.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Failure::Exception(error.to_string()))
}

/// Whether there is a program at this path.
pub(super) fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The process group of a program. Ends with the call if the call ends first; a daemon that an ended program has left behind
/// was meant to stay.
struct Group<'a> {
    pid: Option<Pid>,
    job: &'a JobHandle,
    has_ended: bool,
}

impl<'a> Group<'a> {
    fn new(pid: u32, job: &'a JobHandle) -> Self {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            job.add_group(pid);
        }
        Self { pid, job, has_ended: false }
    }
}

impl Drop for Group<'_> {
    fn drop(&mut self) {
        if let Some(pid) = self.pid {
            if !self.has_ended {
                let _ = kill_process_group(pid, Signal::KILL);
            }
            self.job.remove_group(pid);
        }
    }
}

/// Starts a program. One that was written just now may seem busy: whatever else is being started at the same moment holds
/// our open files until it runs.
async fn spawn(command: &mut tokio::process::Command) -> std::io::Result<tokio::process::Child> {
    for _ in 0..20 {
        match command.spawn() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            spawned => return spawned,
        }
    }
    command.spawn()
}

/// Gives the program one pipe for both streams; our end of it.
fn merge(command: &mut tokio::process::Command) -> std::io::Result<tokio::net::unix::pipe::Receiver> {
    let (reader, writer) = std::io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    tokio::net::unix::pipe::Receiver::from_owned_fd(reader.into())
}

/// Reads a stream to its end; how many bytes were not kept.
async fn read_bounded(stream: Option<impl AsyncRead + Unpin>, into: &mut Vec<u8>) -> u64 {
    let Some(mut stream) = stream else { return 0 };
    // A stream that breaks ends as one that is closed.
    let _ = (&mut stream).take(KEPT).read_to_end(into).await;
    tokio::io::copy(&mut stream, &mut tokio::io::sink()).await.unwrap_or_default()
}

async fn within<T>(timeout: Option<Duration>, work: impl Future<Output = T>) -> Option<T> {
    match timeout {
        Some(timeout) => tokio::time::timeout(timeout, work).await.ok(),
        None => Some(work.await),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn run(command: Command) -> Finished {
        command.run_for(&JobHandle::default()).await.unwrap()
    }

    #[tokio::test]
    async fn streams_and_code_are_told_apart() {
        let done = run(Command::new("sh").args(["-c", "cat; echo no >&2; exit 3"]).stdin("in")).await;
        assert_eq!((done.code, done.text().as_str(), done.complaint().as_str()), (3, "in", "no"));
    }

    #[tokio::test]
    async fn merged_streams_keep_their_order() {
        let done = run(Command::new("sh").args(["-c", "echo 1; echo 2 >&2; echo 3"]).merge_streams()).await;
        assert_eq!((done.text().as_str(), done.stderr.as_slice()), ("1\n2\n3\n", &b""[..]));
    }

    #[tokio::test]
    async fn output_beyond_the_limit_is_counted_and_not_kept() {
        let script = format!("head -c {} /dev/zero", KEPT + 5);
        let done = run(Command::new("sh").args(["-c", &script])).await;
        assert_eq!((done.stdout.len() as u64, done.dropped, done.code), (KEPT, 5, 0));
    }

    #[tokio::test]
    async fn a_program_whose_time_is_up_is_ended_and_keeps_what_it_said() {
        let command =
            Command::new("sh").args(["-c", "echo begun; exec sleep 1000"]).timeout(Some(Duration::from_millis(300)));
        let done = run(command).await;
        assert!(done.timed_out);
        assert_eq!(done.text(), "begun\n");
    }

    #[tokio::test]
    async fn what_runs_longer_than_its_call_is_ended_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("alive");
        std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
        // The background process holds the pipe open; reading it ends only when that process does.
        let script = format!("(sleep 1000 >{0}) & cat /dev/null; exec sleep 1000", fifo.display());
        let call = tokio::spawn(async move { run(Command::new("sh").args(["-c", &script])).await });
        let mut alive = tokio::fs::File::open(&fifo).await.unwrap();
        call.abort();
        assert_eq!(alive.read(&mut [0; 8]).await.unwrap(), 0);
    }

    #[test]
    fn programs_are_found_by_name() {
        assert!(find_program("sh").is_some());
        assert_eq!(find_program("no-such-program-here"), None);
        assert_eq!(find_program("/bin/sh"), Some("/bin/sh".into()));
    }
}
