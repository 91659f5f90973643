//! A disk that is full: the write says so and leaves nothing, and all is well once there is room again.
//!
//! The disk is a file system of a few megabytes in memory, mounted where only the test sees it: the test starts its own
//! executable again in a mount namespace of its own, so nothing is left behind however it ends. Where the system does not
//! let us do that, what is left is the test beside `store::Store` that limits the size of the file itself.

use crate::fixtures::{ALL, all_tags, at, event, every_job, jid, minion, work};
use saltern_store::{Body, Error, GrainsRow, Location, NewAction, NewWork, Options, Store};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Tells the inner process where its small disk is.
const DISK: &str = "SALTERN_TEST_DISK";
const TEST: &str = "full_disk::a_full_disk_is_reported_and_survived";
/// The inner shell's word for "this system does not let me mount anything".
const CANNOT_MOUNT: i32 = 77;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_reported_and_survived() {
    if let Some(disk) = std::env::var_os(DISK) {
        return fill_and_free(Path::new(&disk)).await;
    }
    let folder = saltern_testkit::scratch::Scratch::new("disk");
    let script = "mount -t tmpfs -o size=6m tmpfs \"$SALTERN_TEST_DISK\" || exit 77; exec \"$@\"";
    let inner = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", script, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", TEST, "--nocapture"])
        .env(DISK, folder.path())
        .output();
    match inner {
        Ok(output) if output.status.success() => {}
        Ok(output) if output.status.code() != Some(CANNOT_MOUNT) && !output.stdout.is_empty() => {
            panic!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
        }
        refused => {
            let _ = writeln!(std::io::stderr(), "\nSKIPPED without a small disk of its own: {refused:?}\n");
        }
    }
}

async fn fill_and_free(disk: &Path) {
    let location = Location::Sqlite(disk.join("saltern.db"));
    let store = Store::open(&location, &Options::default()).await.unwrap();
    store.create(work(1, &["web1"])).await.unwrap();
    let filler = Filler::fill(disk);

    // Larger than what is left in the blocks that the log has already.
    let large = |n| {
        let small = work(n, &["web1", "web2"]);
        NewWork { action: NewAction { arg: "7".repeat(300_000), ..small.action }, ..small }
    };
    let alone = store.create(large(2)).await;
    assert!(matches!(alone, Err(Error::Full)), "{alone:?}");
    assert_eq!(alone.unwrap_err().to_string(), "the disk that holds the database is full");
    let together = futures_util::future::join_all((3..9).map(|n| store.create(large(n)))).await;
    assert!(together.iter().all(|outcome| matches!(outcome, Err(Error::Full))), "{together:?}");
    assert_untouched(&store).await;

    drop(filler);
    store.create(large(2)).await.unwrap();
    store.close().await;
    let store = Store::open(&location, &Options::default()).await.unwrap();
    assert_eq!(all_tags(&store).await, ["job/1/new", "job/2/new"]);
    assert_eq!(store.job(jid(2)).await.unwrap().unwrap().arg.len(), 300_000);
    fill_by_writing(&store).await;
}

/// Only what was there before: no job, no run, no event, no number.
async fn assert_untouched(store: &Store) {
    let jobs = store.jobs(&every_job()).await.unwrap();
    assert_eq!(jobs.len(), 1);
    assert_eq!(store.runs(jobs[0].action, "", ALL).await.unwrap().len(), 1);
    assert_eq!(all_tags(store).await, ["job/1/new"]);
}

/// The store fills the disk by itself; what it acknowledged is there, and what is removed makes room.
async fn fill_by_writing(store: &Store) {
    let mut kept = Vec::new();
    let refused = loop {
        let id = format!("m{:03}", kept.len());
        let row = GrainsRow { minion: minion(&id), at: at(1), body: Body { encoding: 1, bytes: vec![1; 60_000] } };
        match store.record_grains(row, vec![event(&id)]).await {
            Ok(()) => kept.push(id),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, Error::Full), "{refused:?}");
    let there = store.grains_after("", ALL).await.unwrap();
    assert_eq!(there.iter().map(|row| row.minion.as_str()).collect::<Vec<_>>(), kept);
    assert_eq!(all_tags(store).await[2..], kept);
}

/// A file that takes all the room there is; gone on drop.
struct Filler(PathBuf);

impl Filler {
    fn fill(disk: &Path) -> Self {
        let path = disk.join("filler");
        let mut file = std::fs::File::create(&path).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
        Self(path)
    }
}

impl Drop for Filler {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).unwrap();
    }
}
