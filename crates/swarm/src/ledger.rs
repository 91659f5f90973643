//! The swarm's own truth, for whoever compares it with a server's: what every kept job has come to on every minion.

use crate::Error;
use crate::records::Record;
use crate::tally::Tally;
use saltern_core::ids::MinionId;
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// One job on one minion that it means, or that has begun it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// The job's id.
    pub jid: String,
    /// The minion.
    pub minion: String,
    /// The action that the job belongs to, if its metadata say.
    pub action: Option<i64>,
    /// And the attempt.
    pub attempt: Option<i64>,
    /// How often the minion has begun it.
    pub executed: u64,
    /// Whether what the minion returns, or would have returned, is a failure.
    pub failed: bool,
    /// Whether it was ended on the way, and so returns nothing.
    pub killed: bool,
    /// Whether its return was not sent, on purpose.
    pub lost: bool,
    /// Whether the master has answered the return.
    pub confirmed: bool,
}

/// The entries of all jobs that are kept, oldest job first.
pub(crate) fn entries(tally: &Tally, ids: &[MinionId]) -> impl Iterator<Item = Entry> {
    tally.newest(usize::MAX).into_iter().flat_map(move |record| {
        let of_one = move |(index, id)| entry(&record, index, id);
        ids.iter().enumerate().filter_map(of_one)
    })
}

/// Writes the entries as lines of JSON, and tells how many. The file is replaced as a whole.
pub(crate) fn write(tally: &Tally, ids: &[MinionId], path: &Path) -> Result<u64, Error> {
    let failed = |source| Error::Ledger { path: path.to_owned(), source };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let fresh = path.with_file_name(name);
    let lines = File::create(&fresh).and_then(|file| write_lines(file, entries(tally, ids))).map_err(failed)?;
    std::fs::rename(&fresh, path).map_err(failed)?;
    Ok(lines)
}

fn write_lines(out: impl Write, entries: impl Iterator<Item = Entry>) -> io::Result<u64> {
    let (mut out, mut lines) = (BufWriter::new(out), 0);
    for entry in entries {
        serde_json::to_writer(&mut out, &entry)?;
        out.write_all(b"\n")?;
        lines += 1;
    }
    out.flush()?;
    Ok(lines)
}

fn entry(record: &Record, index: usize, id: &MinionId) -> Option<Entry> {
    let executed = record.executions(index);
    if executed == 0 && !record.meant.has(index) {
        return None;
    }
    let origin = record.run.as_ref().map(|run| run.origin);
    Some(Entry {
        jid: record.jid.to_string(),
        minion: id.to_string(),
        action: origin.map(|origin| origin.action),
        attempt: origin.map(|origin| origin.attempt),
        executed,
        failed: record.failed.has(index),
        killed: record.killed.has(index),
        lost: record.lost.has(index),
        confirmed: record.confirmed.has(index),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::Origin;
    use std::time::Duration;

    fn ids() -> [MinionId; 3] {
        ["a", "b", "c"].map(|id| MinionId::new(id).unwrap())
    }

    /// The first job means `a` and `b`, and `b` has failed at it; the second means `a` alone.
    fn tally() -> Tally {
        let tally = Tally::new(10);
        let first = tally.published(&"1".into(), Some(Origin { action: 7, attempt: 2 }), 3, 0..2);
        tally.executes(&first, 1);
        first.failed.set(1);
        tally.confirmed(&first, 1, Duration::ZERO);
        tally.published(&"2".into(), None, 3, 0..1);
        tally
    }

    #[test]
    fn there_is_a_line_for_each_job_and_each_minion_that_it_means() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger.jsonl");
        let tally = tally();
        assert_eq!(write(&tally, &ids(), &path).unwrap(), 3);
        // A second time over the first, and nothing else is left behind.
        assert_eq!(write(&tally, &ids(), &path).unwrap(), 3);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let expected = serde_json::json!({
            "jid": "1", "minion": "b", "action": 7, "attempt": 2, "executed": 1,
            "failed": true, "killed": false, "lost": false, "confirmed": true,
        });
        assert_eq!((lines.len(), &lines[1]), (3, &expected));
        assert_eq!((&lines[0]["minion"], &lines[0]["executed"]), (&"a".into(), &0.into()));
        assert_eq!((&lines[2]["jid"], &lines[2]["action"]), (&"2".into(), &serde_json::Value::Null));
    }

    #[test]
    fn a_minion_that_began_what_was_not_meant_for_it_is_told_of_too() {
        let tally = tally();
        let record = tally.known("2").unwrap();
        tally.executes(&record, 2);
        tally.executes(&record, 2);
        let last = entries(&tally, &ids()).last().unwrap();
        assert_eq!((&*last.jid, &*last.minion, last.executed), ("2", "c", 2));
    }

    #[test]
    fn a_ledger_that_cannot_be_written_says_where() {
        let error = write(&Tally::new(1), &[], Path::new("/nonexistent/ledger")).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/ledger"), "{error}");
    }
}
