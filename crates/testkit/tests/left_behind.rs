//! Nothing stays behind: not after a drop, not after a crash of the test process itself.

use std::process::Command;
use std::time::Duration;

use saltern_testkit::daemon::{Daemon, is_group_alive};
use saltern_testkit::scratch::Scratch;
use saltern_testkit::{process, wait};

const PATIENCE: Duration = Duration::from_secs(20);
/// Set for the second process of the crash test, to the file it reports to.
const VICTIM: &str = "SALTERN_TESTKIT_VICTIM";

/// A shell with a child in the background that ignores polite requests.
fn stubborn(scratch: &Scratch) -> Daemon {
    let mut shell = Command::new("sh");
    shell.args(["-c", "sh -c 'trap \"\" TERM HUP; echo started; while :; do sleep 1000; done' & wait"]);
    Daemon::spawn("a stubborn shell", &mut shell, &scratch.path().join("log"), &[])
}

#[test]
fn a_dropped_daemon_takes_its_children_along() {
    let scratch = Scratch::new("drop");
    let daemon = stubborn(&scratch);
    wait::until_blocking("the child", PATIENCE, || daemon.log().contains("started"));
    let group = daemon.pid();
    assert!(is_group_alive(group));
    drop(daemon);
    wait::until_blocking("the group to be gone", PATIENCE, || !is_group_alive(group));
}

#[tokio::test]
async fn a_terminated_daemon_takes_its_children_along() {
    let scratch = Scratch::new("term");
    let mut daemon = stubborn(&scratch);
    wait::until("the child", PATIENCE, || std::future::ready(daemon.log().contains("started"))).await;
    let group = daemon.pid();
    daemon.terminate(PATIENCE).await;
    wait::until("the group to be gone", PATIENCE, || std::future::ready(!is_group_alive(group))).await;
}

#[tokio::test]
#[should_panic(expected = "did not end within")]
async fn a_command_that_does_not_end_fails_the_test() {
    let mut sleep = Command::new("sleep");
    sleep.arg("1000");
    process::run_to_end(sleep, Duration::from_millis(50)).await;
}

#[test]
fn a_crash_of_the_test_process_leaves_neither_processes_nor_folders() {
    if let Some(report) = std::env::var_os(VICTIM) {
        // The second process: it starts things, says which, and dies without any destructor.
        let scratch = Scratch::new("victim");
        let daemon = stubborn(&scratch);
        wait::until_blocking("the child", PATIENCE, || daemon.log().contains("started"));
        std::fs::write(report, format!("{} {}", daemon.pid(), scratch.path().display())).unwrap();
        std::process::abort();
    }
    let scratch = Scratch::new("crash");
    let report = scratch.path().join("report");
    let this_test = "a_crash_of_the_test_process_leaves_neither_processes_nor_folders";
    let mut victim = Command::new(std::env::current_exe().unwrap());
    let victim = victim.args(["--exact", this_test]).env(VICTIM, &report).output().unwrap();
    assert!(!victim.status.success());

    let report = std::fs::read_to_string(&report).unwrap();
    let (group, folder) = report.split_once(' ').unwrap();
    let group: u32 = group.parse().unwrap();
    wait::until_blocking("the watchdog to end the group", PATIENCE, || !is_group_alive(group));
    wait::until_blocking("the watchdog to remove the folder", PATIENCE, || !std::path::Path::new(folder).exists());
}
