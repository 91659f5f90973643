//! What keeps a request from being replayed over a restart: the nonces of the last minutes, on disk.
//!
//! Sessions outlive the server, so what was sealed before a stop still opens after it, and the windows of nonces
//! (`replay`) are gone with the process. So whatever would do something twice is written down before it is done. Returns of
//! known jobs are not: they are told apart by job and minion, and are most of the traffic.
//!
//! Two files of one thread: `now` is written, `before` is read at the next start. They change places when everything in
//! `before` has outlived its time. Written without a sync: a killed process loses nothing, a machine that loses its power
//! has been away for longer than an attacker may wait, or nearly so.
//!
//! When the disk refuses, the server goes on and says so: losing the memory of nonces is better than losing events.

use super::{Member, replay};
use crate::Error;
use saltern_core::ids::MinionId;
use saltern_wire::load::Nonce;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use tokio::sync::{mpsc, oneshot};

/// Notes that may wait for the thread; whoever comes then waits for a place.
const QUEUE: usize = 1024;
/// Notes written at once.
const BATCH: usize = 256;
/// A file of this size gives way to the next even if it is young: about a million notes.
const MOST_BYTES: u64 = 64 << 20;
/// How long notes are kept where requests of any age are served (`request_server_ttl: 0`).
const KEPT_WITHOUT_TTL: i64 = 300;

/// A request that was admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) minion: MinionId,
    /// When it was made, by the minion's clock in seconds
    pub(crate) ts: i64,
    pub(crate) nonce: [u8; 16],
}

/// The way to the thread that writes. It ends with the last of these.
pub(crate) struct Journal {
    queue: mpsc::Sender<(Note, oneshot::Sender<()>)>,
}

impl Journal {
    /// Opens it, and reads what the server knew when it last ran.
    pub(crate) fn open(dir: &Path, ttl: Option<i64>, now: i64) -> Result<(Self, Vec<Note>), Error> {
        let cannot = |error: io::Error| Error::Start(format!("cannot keep nonces in {}: {error}", dir.display()));
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(cannot)?;
        let (mut files, notes) = Files::open(dir.to_owned(), ttl.unwrap_or(KEPT_WITHOUT_TTL), now).map_err(cannot)?;
        let (queue, mut waiting) = mpsc::channel::<(Note, oneshot::Sender<()>)>(QUEUE);
        let thread = std::thread::Builder::new().name("nonces".into());
        let serve = move || {
            let mut healthy = true;
            while let Some(first) = waiting.blocking_recv() {
                let mut batch = vec![first];
                while batch.len() < BATCH
                    && let Ok(next) = waiting.try_recv()
                {
                    batch.push(next);
                }
                let written = files.write(batch.iter().map(|(note, _)| note), crate::clock::now().secs());
                if let (Err(error), true) = (&written, healthy) {
                    tracing::error!(%error, "cannot write nonces down; a restart now would let requests be replayed");
                }
                healthy = written.is_ok();
                for (_, done) in batch {
                    let _ = done.send(());
                }
            }
        };
        thread.spawn(serve).map_err(cannot)?;
        Ok((Self { queue }, notes))
    }

    /// Writes a request down; returns when a restart would remember it.
    pub(crate) async fn write(&self, note: Note) {
        let (done, written) = oneshot::channel();
        if self.queue.send((note, done)).await.is_ok() {
            let _ = written.await;
        }
    }
}

struct Files {
    dir: PathBuf,
    file: File,
    size: u64,
    /// When the file was begun
    since: i64,
    /// How old a file must be before everything in the one before it is worthless
    span: i64,
}

impl Files {
    /// Reads both files. What still matters of them becomes the one before, and a new one is begun.
    fn open(dir: PathBuf, ttl: i64, now: i64) -> io::Result<(Self, Vec<Note>)> {
        let (before, current) = (dir.join("before"), dir.join("now"));
        let mut notes = read(&before)?;
        notes.extend(read(&current)?);
        notes.retain(|note| note.ts >= now.saturating_sub(ttl));
        let fresh = dir.join("before.new");
        private().write(true).truncate(true).open(&fresh)?.write_all(&encoded(&notes))?;
        fs::rename(&fresh, &before)?;
        let file = private().write(true).truncate(true).open(&current)?;
        // A request may be dated up to one time to live ahead, and is served up to one after its date.
        Ok((Self { dir, file, size: 0, since: now, span: ttl.saturating_mul(2) }, notes))
    }

    fn write<'a>(&mut self, notes: impl Iterator<Item = &'a Note>, now: i64) -> io::Result<()> {
        if now - self.since > self.span || self.size > MOST_BYTES {
            let current = self.dir.join("now");
            fs::rename(&current, self.dir.join("before"))?;
            self.file = private().write(true).truncate(true).open(&current)?;
            (self.since, self.size) = (now, 0);
        }
        let bytes = encoded(notes);
        self.size += bytes.len() as u64;
        self.file.write_all(&bytes)
    }
}

impl Note {
    pub(crate) fn new(member: &Member, nonce: &Nonce, ts: i64) -> Self {
        Self { minion: member.id.clone(), ts, nonce: replay::key(nonce.as_str()) }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let id = self.minion.as_str().as_bytes();
        out.push(u8::try_from(id.len()).unwrap_or(u8::MAX));
        out.extend_from_slice(id);
        out.extend_from_slice(&self.ts.to_le_bytes());
        out.extend_from_slice(&self.nonce);
    }

    /// Takes the first note off `bytes`; nothing at the end, or where a write was cut short.
    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let (len, rest) = bytes.split_first()?;
        let (id, rest) = rest.split_at_checked(usize::from(*len))?;
        let (ts, rest) = rest.split_first_chunk::<8>()?;
        let (nonce, rest) = rest.split_first_chunk::<16>()?;
        *bytes = rest;
        let minion = MinionId::new(std::str::from_utf8(id).ok()?).ok()?;
        Some(Self { minion, ts: i64::from_le_bytes(*ts), nonce: *nonce })
    }
}

fn encoded<'a>(notes: impl IntoIterator<Item = &'a Note>) -> Vec<u8> {
    let mut bytes = Vec::new();
    notes.into_iter().for_each(|note| note.encode(&mut bytes));
    bytes
}

fn read(path: &Path) -> io::Result<Vec<Note>> {
    match fs::read(path) {
        Ok(content) => {
            let mut rest = content.as_slice();
            Ok(std::iter::from_fn(|| Note::decode(&mut rest)).collect())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn private() -> fs::OpenOptions {
    let mut options = fs::OpenOptions::new();
    options.create(true).mode(0o600);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(ts: i64) -> Note {
        Note { minion: MinionId::new("web1").unwrap(), ts, nonce: [7; 16] }
    }

    fn open(dir: &Path, now: i64) -> (Files, Vec<i64>) {
        let (files, notes) = Files::open(dir.to_owned(), 300, now).unwrap();
        (files, notes.into_iter().map(|note| note.ts).collect())
    }

    #[tokio::test]
    async fn what_was_written_is_read_at_every_later_start() {
        let dir = tempfile::tempdir().unwrap();
        // The thread reads the clock itself to see how old its file is.
        let now = crate::clock::now().secs();
        for number in 0..4 {
            let (journal, notes) = Journal::open(dir.path(), Some(300), now).unwrap();
            assert_eq!(notes, (0..number).map(|earlier| note(now + earlier)).collect::<Vec<_>>());
            journal.write(note(now + number)).await;
        }
    }

    #[test]
    fn what_has_outlived_its_time_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let (mut files, _) = open(dir.path(), 1_000);
        files.write([note(900), note(1_000)].iter(), 1_000).unwrap();
        assert_eq!(open(dir.path(), 1_250).1, [1_000]);
        assert_eq!(open(dir.path(), 1_301).1, [] as [i64; 0]);
    }

    #[test]
    fn the_files_change_places_when_the_older_is_worthless() {
        let dir = tempfile::tempdir().unwrap();
        let (mut files, _) = open(dir.path(), 1_000);
        // All dated far ahead, so that only the change of files can forget them.
        for (number, now) in [(9_001, 1_000), (9_002, 1_600), (9_003, 1_601), (9_004, 2_300)] {
            files.write([note(number)].iter(), now).unwrap();
        }
        assert_eq!(open(dir.path(), 2_300).1, [9_003, 9_004]);
    }

    #[test]
    fn a_write_that_was_cut_short_costs_one_note() {
        let dir = tempfile::tempdir().unwrap();
        let (mut files, _) = open(dir.path(), 0);
        files.write([note(1), note(2)].iter(), 0).unwrap();
        let path = dir.path().join("now");
        let content = fs::read(&path).unwrap();
        fs::write(&path, &content[..content.len() - 1]).unwrap();
        let (mut files, notes) = open(dir.path(), 0);
        assert_eq!(notes, [1]);
        files.write([note(3)].iter(), 0).unwrap();
        assert_eq!(open(dir.path(), 0).1, [1, 3]);
    }
}
