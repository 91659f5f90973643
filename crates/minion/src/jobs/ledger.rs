//! The ledger: every job id this minion has been given, and how far it got. On disk before anything happens.
//!
//! One line per step in an append-only file, made to last before the step is taken. A job id that is in it is never run
//! again, whoever sends it, also after a restart. What was started and not finished when the agent died is told once, at the
//! next start, and never repeated.

use crate::Error;
use crate::files::replace_file;
use saltern_core::ids::Jid;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many finished jobs are remembered. A master repeats a job within minutes; this is weeks.
const REMEMBERED: usize = 20_000;

/// How far a job got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    /// Written down; nothing was done yet
    Received,
    /// The function was called
    Started,
    /// The answer is in the spool
    Finished,
    /// The master has the answer
    Returned,
    /// The agent died while it ran
    Interrupted,
}

/// The ledger.
pub(crate) struct Ledger {
    path: PathBuf,
    state: Mutex<State>,
}

struct State {
    file: File,
    jobs: HashMap<Jid, Standing>,
    /// Lines in the file; far more than jobs means it is time to write it anew
    lines: usize,
}

impl Standing {
    const ALL: [Self; 5] = [Self::Received, Self::Started, Self::Finished, Self::Returned, Self::Interrupted];

    const fn word(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Started => "started",
            Self::Finished => "finished",
            Self::Returned => "returned",
            Self::Interrupted => "interrupted",
        }
    }
}

impl Ledger {
    /// Opens the ledger; a last line that a power cut left half written is dropped.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(Error::file("read", path, error)),
        };
        let mut jobs = HashMap::new();
        for line in text.lines() {
            if let Some((jid, standing)) = read_line(line) {
                jobs.insert(jid, standing);
            }
        }
        Self::write_anew(path, &mut jobs)?;
        let file = append_to(path)?;
        let lines = jobs.len();
        Ok(Self { path: path.to_owned(), state: Mutex::new(State { file, jobs, lines }) })
    }

    /// Writes a new job down. `false` if it is known already: then it must not run.
    pub(crate) fn receive(&self, jid: Jid) -> Result<bool, Error> {
        let mut state = self.lock();
        if state.jobs.contains_key(&jid) {
            return Ok(false);
        }
        self.append(&mut state, jid, Standing::Received)?;
        Ok(true)
    }

    /// Notes how far a job got.
    pub(crate) fn note(&self, jid: Jid, standing: Standing) -> Result<(), Error> {
        let mut state = self.lock();
        self.append(&mut state, jid, standing)
    }

    /// Marks what was under way when the agent died, and tells which jobs these were.
    pub(crate) fn interrupted(&self) -> Result<Vec<Jid>, Error> {
        let mut state = self.lock();
        let unfinished = |(_, standing): &(&Jid, &Standing)| matches!(standing, Standing::Received | Standing::Started);
        let mut jids: Vec<Jid> = state.jobs.iter().filter(unfinished).map(|(jid, _)| *jid).collect();
        jids.sort_unstable();
        for jid in &jids {
            self.append(&mut state, *jid, Standing::Interrupted)?;
        }
        Ok(jids)
    }

    fn append(&self, state: &mut State, jid: Jid, standing: Standing) -> Result<(), Error> {
        let line = format!("{jid} {}\n", standing.word());
        let failed = |error| Error::file("write", &self.path, error);
        let before = state.file.metadata().map_err(failed)?.len();
        if let Err(error) = state.file.write_all(line.as_bytes()).and_then(|()| state.file.sync_data()) {
            // A full disk takes half a line; what comes next must not be written behind it.
            let _ = state.file.set_len(before);
            return Err(failed(error));
        }
        state.jobs.insert(jid, standing);
        state.lines += 1;
        if state.lines > 4 * REMEMBERED {
            Self::write_anew(&self.path, &mut state.jobs)?;
            state.file = append_to(&self.path)?;
            state.lines = state.jobs.len();
        }
        Ok(())
    }

    /// Writes the file with one line per job, the newest ones only.
    fn write_anew(path: &Path, jobs: &mut HashMap<Jid, Standing>) -> Result<(), Error> {
        let mut known: Vec<(Jid, Standing)> = jobs.iter().map(|(jid, standing)| (*jid, *standing)).collect();
        known.sort_unstable();
        let surplus = known.len().saturating_sub(REMEMBERED);
        known.drain(..surplus);
        let text: String = known.iter().map(|(jid, standing)| format!("{jid} {}\n", standing.word())).collect();
        *jobs = known.into_iter().collect();
        replace_file(path, text.as_bytes(), 0o600)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read_line(line: &str) -> Option<(Jid, Standing)> {
    let (jid, word) = line.split_once(' ')?;
    let standing = Standing::ALL.into_iter().find(|standing| standing.word() == word)?;
    Some((Jid::parse(jid)?, standing))
}

fn append_to(path: &Path) -> Result<File, Error> {
    OpenOptions::new().append(true).open(path).map_err(|error| Error::file("write", path, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_core::time::Timestamp;

    fn jid(number: i64) -> Jid {
        Jid::at(Timestamp(number))
    }

    #[test]
    fn a_job_is_received_once_also_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger");
        let ledger = Ledger::open(&path).unwrap();
        assert!(ledger.receive(jid(1)).unwrap());
        assert!(!ledger.receive(jid(1)).unwrap());
        ledger.note(jid(1), Standing::Returned).unwrap();
        drop(ledger);
        let ledger = Ledger::open(&path).unwrap();
        assert!(!ledger.receive(jid(1)).unwrap());
        assert!(ledger.receive(jid(2)).unwrap());
    }

    #[test]
    fn what_was_under_way_is_told_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger");
        let ledger = Ledger::open(&path).unwrap();
        for (number, standing) in [(1, Standing::Started), (2, Standing::Finished), (3, Standing::Returned)] {
            ledger.receive(jid(number)).unwrap();
            ledger.note(jid(number), standing).unwrap();
        }
        drop(ledger);
        let ledger = Ledger::open(&path).unwrap();
        assert_eq!(ledger.interrupted().unwrap(), [jid(1)]);
        drop(ledger);
        assert_eq!(Ledger::open(&path).unwrap().interrupted().unwrap(), []);
    }

    #[test]
    fn a_half_written_line_is_dropped_and_the_rest_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger");
        std::fs::write(&path, format!("{} returned\n{} sta", jid(1), jid(2))).unwrap();
        let ledger = Ledger::open(&path).unwrap();
        assert!(!ledger.receive(jid(1)).unwrap());
        assert!(ledger.receive(jid(2)).unwrap());
    }
}
