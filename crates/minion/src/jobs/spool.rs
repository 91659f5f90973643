//! The spool: answers on disk until the master has confirmed them.
//!
//! One file per job, written whole and made to last before the job counts as finished; removed after the master's answer.
//! A master that is down for hours finds every answer when it is back.

use crate::Error;
use crate::files::{replace_file, sync_dir};
use bytes::Bytes;
use saltern_core::ids::Jid;
use saltern_core::value::{Map, Value};
use saltern_wire::limits::Decode;
use saltern_wire::msgpack;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Room for the shortest answer that says something.
const RESERVED: usize = 4096;

/// The spool.
#[derive(Clone, Debug)]
pub(crate) struct Spool {
    dir: PathBuf,
}

impl Spool {
    /// Opens the spool, making its folder.
    pub(crate) fn open(dir: &Path) -> Result<Self, Error> {
        std::fs::create_dir_all(dir).map_err(|error| Error::file("make", dir, error))?;
        Ok(Self { dir: dir.to_owned() })
    }

    /// Sets room aside for an answer, before anything is promised to the master.
    pub(crate) fn reserve(&self, jid: Jid) -> Result<(), Error> {
        replace_file(&self.reserved(jid), &[0; RESERVED], 0o600)
    }

    /// Keeps an answer. If there is no room for it, `substitute` is kept in the room that was set aside, and the error told.
    pub(crate) fn put(&self, jid: Jid, load: &Map, substitute: impl FnOnce(&Error) -> Map) -> Result<(), Error> {
        let kept = replace_file(&self.path(jid), &encode(load), 0o600);
        let reserved = self.reserved(jid);
        match kept {
            Ok(()) => {
                // Nobody reads it, so nothing is lost if it stays.
                let _ = std::fs::remove_file(&reserved);
                Ok(())
            }
            Err(error) => {
                let small = encode(&substitute(&error));
                overwrite(&reserved, &small)
                    .and_then(|()| std::fs::rename(&reserved, self.path(jid)))
                    .map_err(|_| error)
            }
        }
    }

    /// The answer of a job.
    pub(crate) fn get(&self, jid: Jid) -> Result<Option<Map>, Error> {
        let path = self.path(jid);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => Bytes::from(bytes),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::file("read", &path, error)),
        };
        match msgpack::decode(bytes, &Decode::after_auth()) {
            Ok(Value::Map(load)) => Ok(Some(load)),
            // Files are written whole, so this one was damaged by something else; keep it for whoever looks.
            _ => Ok(None),
        }
    }

    /// Removes an answer that the master has.
    pub(crate) fn remove(&self, jid: Jid) -> Result<(), Error> {
        let path = self.path(jid);
        std::fs::remove_file(&path)
            .and_then(|()| sync_dir(&self.dir))
            .map_err(|error| Error::file("remove", &path, error))
    }

    /// The jobs whose answers are kept, oldest first.
    pub(crate) fn list(&self) -> Result<Vec<Jid>, Error> {
        let entries = std::fs::read_dir(&self.dir).map_err(|error| Error::file("read", &self.dir, error))?;
        let jid = |name: std::ffi::OsString| Jid::parse(name.to_str()?.strip_suffix(".return")?);
        let mut jids: Vec<Jid> = entries.flatten().filter_map(|entry| jid(entry.file_name())).collect();
        jids.sort_unstable();
        Ok(jids)
    }

    fn reserved(&self, jid: Jid) -> PathBuf {
        self.dir.join(format!("{jid}.reserved"))
    }

    fn path(&self, jid: Jid) -> PathBuf {
        self.dir.join(format!("{jid}.return"))
    }
}

fn encode(load: &Map) -> Vec<u8> {
    let mut bytes = Vec::new();
    msgpack::encode_map(load, &mut bytes);
    bytes
}

/// Writes into a file that has the room already, and cuts off the rest.
fn overwrite(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new().write(true).open(path)?;
    file.write_all(content)?;
    file.set_len(content.len() as u64)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_core::time::Timestamp;

    #[test]
    fn answers_are_kept_until_removed() {
        let dir = tempfile::tempdir().unwrap();
        let spool = Spool::open(dir.path()).unwrap();
        let (first, second) = (Jid::at(Timestamp(1)), Jid::at(Timestamp(2)));
        for jid in [second, first] {
            spool.reserve(jid).unwrap();
            spool.put(jid, Value::map([("jid", jid)]).as_map().unwrap(), |_| Map::new()).unwrap();
        }
        let spool = Spool::open(dir.path()).unwrap();
        assert_eq!(spool.list().unwrap(), [first, second]);
        assert_eq!(spool.get(first).unwrap().unwrap().get("jid"), Some(&Value::from(first)));
        spool.remove(first).unwrap();
        assert_eq!(spool.list().unwrap(), [second]);
        assert!(spool.get(first).unwrap().is_none());
    }
}
