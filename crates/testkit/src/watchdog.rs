//! A shell that outlives the test process and cleans up after it.
//!
//! `Drop` does not run when a test process is killed, aborts, or leaves with values in statics. The shell holds the
//! reading end of a pipe; when the last writer is gone, however that came about, it ends the processes and removes the
//! folders that are still on its list. It needs no cooperation from the kernel (`PR_SET_PDEATHSIG` follows threads, not
//! processes, and is lost when a child changes its user) and none from the dying process.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, OnceLock};

/// What the watchdog is to do about a process group when we are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Farewell {
    /// SIGKILL to the whole group.
    Kill,
    /// SIGQUIT to the leader and time to obey: PostgreSQL's immediate shutdown, which also removes its shared memory.
    Quit,
}

/// Puts a process group on the list.
pub(crate) fn watch_group(leader: u32, farewell: Farewell) {
    let list = match farewell {
        Farewell::Kill => "kill",
        Farewell::Quit => "quit",
    };
    tell(&format!("+{list} {leader}"));
}

/// Takes a process group off the list: it has ended, and its number may now be somebody else's.
pub(crate) fn forget_group(leader: u32) {
    tell(&format!("-group {leader}"));
}

/// Puts a folder on the list.
pub(crate) fn watch_folder(folder: &Path) {
    tell(&format!("+folder {}", folder.display()));
}

/// Takes a folder off the list.
pub(crate) fn forget_folder(folder: &Path) {
    tell(&format!("-folder {}", folder.display()));
}

const SCRIPT: &str = r#"
trap '' INT HUP TERM
newline='
'
without() { printf '%s\n' "$1" | grep -Fxv -- "$2"; }
kill_list= quit_list= folders=
while IFS=' ' read -r verb what; do
    case $verb in
        +kill) kill_list="$kill_list$newline$what" ;;
        +quit) quit_list="$quit_list$newline$what" ;;
        +folder) folders="$folders$newline$what" ;;
        -group) kill_list=$(without "$kill_list" "$what"); quit_list=$(without "$quit_list" "$what") ;;
        -folder) folders=$(without "$folders" "$what") ;;
    esac
done
IFS=$newline
for group in $kill_list; do kill -s KILL -- "-$group"; done
for leader in $quit_list; do
    kill -s QUIT "$leader"
    tries=0
    while kill -0 "$leader" && [ $tries -lt 100 ]; do sleep 0.05; tries=$((tries + 1)); done
    kill -s KILL -- "-$leader"
done
for folder in $folders; do rm -rf -- "$folder"; done
"#;

fn tell(order: &str) {
    static SHELL: OnceLock<Mutex<ChildStdin>> = OnceLock::new();
    let shell = SHELL.get_or_init(|| {
        // Its own process group, so that Ctrl-C on the test run does not end it first; no inherited output, so that
        // nobody who reads the test's output waits for it.
        let child = Command::new("sh")
            .args(["-c", SCRIPT, "saltern-testkit-watchdog"])
            .process_group(0)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        match child.map(|child| child.stdin) {
            Ok(Some(stdin)) => Mutex::new(stdin),
            Ok(None) => panic!("the watchdog shell has no standard input"),
            Err(error) => panic!("cannot start the watchdog shell: {error}"),
        }
    });
    // A lost order costs a left-over file in the temporary folder, not a test.
    if let Ok(mut stdin) = shell.lock() {
        let _ = writeln!(stdin, "{order}");
    }
}
