//! The folder of the chain: the store, the list of cancelled launches, and the lock of whoever is at work.
//!
//! Files are replaced whole and made to last, so that a power cut at any instant leaves what was known before or what is
//! known after. A file that cannot be read is told about, and never taken for an empty one.

use super::record::Chunk;
use crate::files::sync_dir;
use rustix::process::{Signal, getpid, kill_process};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// How many cancelled launches are remembered.
const REMEMBERED: usize = 50;

/// How long a lock is waited for that may be held by somebody who only looks.
pub(super) const BRIEFLY: Duration = Duration::from_secs(1);

/// What is wrong with the folder.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    /// A file cannot be understood.
    #[error("{} is damaged: {reason}", path.display())]
    Damaged {
        /// The file
        path: PathBuf,
        /// What is wrong with it
        reason: String,
    },
    /// The disk says no.
    #[error(transparent)]
    Disk(#[from] std::io::Error),
}

/// The folder.
#[derive(Clone, Debug)]
pub(super) struct Folder(PathBuf);

/// Held as long as somebody works on the chunk; the system frees it when he dies.
pub(super) struct Lock(#[expect(dead_code, reason = "the lock lives as long as the open file")] File);

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// To work
    Alone,
    /// To look
    Shared,
}

impl Folder {
    pub(super) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Takes the lock of the chunk; nothing if somebody works on it.
    pub(super) async fn lock(&self, hold: Hold, patience: Duration) -> Result<Option<Lock>, Trouble> {
        self.take("lock", hold, patience).await
    }

    async fn take(&self, name: &str, hold: Hold, patience: Duration) -> Result<Option<Lock>, Trouble> {
        self.make()?;
        let path = self.0.join(name);
        let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
        let until = Instant::now() + patience;
        loop {
            let tried = match hold {
                Hold::Alone => file.try_lock(),
                Hold::Shared => file.try_lock_shared(),
            };
            match tried {
                Ok(()) => return Ok(Some(Lock(file))),
                Err(TryLockError::WouldBlock) if Instant::now() >= until => return Ok(None),
                Err(TryLockError::WouldBlock) => tokio::time::sleep(Duration::from_millis(20)).await,
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
        }
    }

    /// The chunk that is kept, if any.
    pub(super) fn read(&self) -> Result<Option<Chunk>, Trouble> {
        read(&self.store(), Chunk::from_json)
    }

    pub(super) fn write(&self, chunk: &Chunk) -> Result<(), Trouble> {
        let json = chunk.to_json().map_err(std::io::Error::other)?;
        self.replace(&self.store(), &json)
    }

    /// Forgets the chunk.
    pub(super) fn remove(&self) -> Result<(), Trouble> {
        std::fs::remove_file(self.store())?;
        // Left by a power cut, and of no use to anybody.
        let _ = std::fs::remove_file(unfinished(&self.store()));
        Ok(sync_dir(&self.0)?)
    }

    /// Whether nothing more of a launch is to begin.
    pub(super) fn is_cancelled(&self, launch: &str) -> Result<bool, Trouble> {
        Ok(self.cancelled()?.iter().any(|known| known == launch))
    }

    /// Notes that nothing more of a launch is to begin.
    pub(super) async fn add_cancelled(&self, launch: &str) -> Result<(), Trouble> {
        let Some(_alone) = self.take("list", Hold::Alone, BRIEFLY).await? else {
            return Err(std::io::Error::from(ErrorKind::ResourceBusy).into());
        };
        let mut launches = self.cancelled()?;
        launches.retain(|known| known != launch);
        launches.push(launch.to_owned());
        let oldest = launches.len().saturating_sub(REMEMBERED);
        let json = serde_json::to_vec(launches.get(oldest..).unwrap_or_default()).map_err(std::io::Error::other)?;
        self.replace(&self.0.join("cancelled.json"), &json)
    }

    /// Renames a damaged file, so that there is none of its name; where it is now.
    pub(super) fn set_aside(&self, damaged: &Path) -> Result<PathBuf, Trouble> {
        let mut kept = damaged.to_owned().into_os_string();
        kept.push(".damaged");
        std::fs::rename(damaged, &kept)?;
        sync_dir(&self.0)?;
        Ok(kept.into())
    }

    fn cancelled(&self) -> Result<Vec<String>, Trouble> {
        let launches = |json: &[u8]| serde_json::from_slice(json).map_err(|error| error.to_string());
        Ok(read(&self.0.join("cancelled.json"), launches)?.unwrap_or_default())
    }

    fn store(&self) -> PathBuf {
        self.0.join("store.json")
    }

    fn make(&self) -> std::io::Result<()> {
        if !self.0.is_dir() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
            self.0.parent().map_or(Ok(()), sync_dir)?;
        }
        Ok(())
    }

    fn replace(&self, path: &Path, content: &[u8]) -> Result<(), Trouble> {
        self.make()?;
        let fresh = unfinished(path);
        let written = (|| {
            let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
            file.write_all(content)?;
            fault_point();
            file.sync_all()?;
            fault_point();
            std::fs::rename(&fresh, path)
        })();
        if let Err(error) = written {
            // A file that could not be finished is of no use, and may be what fills the disk.
            let _ = std::fs::remove_file(&fresh);
            return Err(error.into());
        }
        fault_point();
        sync_dir(&self.0)?;
        fault_point();
        Ok(())
    }
}

/// Where a file is written before it takes its place.
fn unfinished(path: &Path) -> PathBuf {
    path.with_extension("json.new")
}

fn read<T>(path: &Path, parse: impl FnOnce(&[u8]) -> Result<T, String>) -> Result<Option<T>, Trouble> {
    match std::fs::read(path) {
        Ok(bytes) => parse(&bytes).map(Some).map_err(|reason| Trouble::Damaged { path: path.to_owned(), reason }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Where the tests cut the power: at the point whose number is in the environment.
pub(super) fn fault_point() {
    static PASSED: AtomicU64 = AtomicU64::new(0);
    let Ok(wanted) = std::env::var("SALTERN_CHAIN_CRASH_AT") else { return };
    let passed = PASSED.fetch_add(1, Ordering::Relaxed) + 1;
    if wanted == passed.to_string() {
        let _ = kill_process(getpid(), Signal::KILL);
    }
}
