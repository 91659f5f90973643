//! The files minions and templates may read: roots per environment, and a few built-in ones.
//!
//! An environment has an ordered list of root directories; the first root that has a path wins. Built-in files are seen
//! in every environment and win over all roots.
//!
//! Invariants: nothing outside a root is ever opened, listed or told to exist, whatever the path or a symbolic link says;
//! a link may point anywhere *inside* its root. Stock Salt lets links leave the root by default; here they never do.
//! Walks stop at [`Settings::max_entries`].
//!
//! Not here: how files travel (`wire`), who may ask (`server`). Listings are not cached: the caller has the clock.

mod open;
mod path;
mod walk;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use fancy_regex::Regex;
use saltern_core::target::Glob;
use sha2::{Digest, Sha256};

use crate::error::Error;

pub use path::{clean_env, clean_path};
pub use walk::Listing;

/// The most one call of [`FileRoots::read_chunk`] gives.
pub const MAX_CHUNK: usize = 16 << 20;

/// How many hashes are remembered before the memory starts anew.
const MAX_HASHES: usize = 100_000;

/// What the file server serves and what it leaves out.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `fileserver_followsymlinks`: whether directories behind links (inside the root) are walked.
    pub follow_symlinks: bool,
    /// `fileserver_ignoresymlinks`: whether links are left out of listings.
    pub ignore_symlinks: bool,
    /// `file_ignore_regex`: paths that match are neither listed nor served.
    pub ignore_regex: Vec<String>,
    /// `file_ignore_glob`: paths that match are neither listed nor served.
    pub ignore_glob: Vec<String>,
    /// How many entries one environment may have before a listing is refused.
    pub max_entries: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            follow_symlinks: true,
            ignore_symlinks: false,
            ignore_regex: Vec::new(),
            ignore_glob: Vec::new(),
            max_entries: 500_000,
        }
    }
}

/// Environments and their root directories.
#[derive(Debug)]
pub struct FileRoots {
    envs: Vec<(String, Vec<PathBuf>)>,
    /// The roots of `__env__`, with that word in them standing for the environment asked for.
    wildcard: Option<Vec<PathBuf>>,
    builtin: BTreeMap<String, Bytes>,
    settings: Settings,
    ignore_regex: Vec<Regex>,
    ignore_glob: Vec<Glob>,
    hashes: Mutex<HashMap<PathBuf, (Stamp, String)>>,
}

/// What tells one state of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Stamp {
    size: u64,
    /// Seconds and nanoseconds
    mtime: (i64, i64),
    /// Changes even where a copy kept the old `mtime`
    ctime: (i64, i64),
    dev: u64,
    ino: u64,
}

/// A file that may be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its path relative to its root, cleaned.
    pub rel: String,
    /// mode, ino, dev, nlink, uid, gid, size, atime, mtime, ctime: what `_file_find` answers.
    pub stat: [i64; 10],
}

impl FileRoots {
    /// Roots for environments, in the order of the configuration. An environment named `__env__` serves every
    /// environment that is not named itself.
    pub fn new(roots: impl IntoIterator<Item = (String, Vec<PathBuf>)>, settings: Settings) -> Result<Self, Error> {
        let mut envs = Vec::new();
        let mut wildcard = None;
        for (name, dirs) in roots {
            if name == "__env__" { wildcard = Some(dirs) } else { envs.push((name, dirs)) }
        }
        let ignore_regex = settings
            .ignore_regex
            .iter()
            .map(|regex| {
                let problem = |err| Error::Setting { setting: "file_ignore_regex", problem: format!("{err}") };
                Regex::new(regex).map_err(problem)
            })
            .collect::<Result<_, _>>()?;
        let ignore_glob = settings.ignore_glob.iter().map(|glob| Glob::new(glob)).collect();
        let (builtin, hashes) = (BTreeMap::new(), Mutex::default());
        Ok(Self { envs, wildcard, builtin, settings, ignore_regex, ignore_glob, hashes })
    }

    /// Adds a file that is seen in every environment.
    pub fn with_builtin(mut self, path: &str, content: impl Into<Bytes>) -> Result<Self, Error> {
        self.builtin.insert(clean_path(path)?, content.into());
        Ok(self)
    }

    /// The names of the environments, sorted, as `_file_envs` answers them.
    pub fn envs(&self) -> Vec<String> {
        let mut names: Vec<String> = self.envs.iter().map(|(name, _)| name.clone()).collect();
        names.extend(self.wildcard.as_ref().map(|_| "__env__".to_owned()));
        names.sort();
        names
    }

    /// The names of the environments, in the order of the configuration.
    pub fn env_order(&self) -> impl Iterator<Item = &str> {
        self.envs.iter().map(|(name, _)| name.as_str())
    }

    /// Whether files of this environment are served.
    pub fn has_env(&self, env: &str) -> bool {
        self.roots(env).is_some()
    }

    /// Everything in an environment; empty for an unknown one.
    pub fn listing(&self, env: &str) -> Result<Listing, Error> {
        let Some(roots) = self.roots(env) else { return Ok(Listing::default()) };
        let mut listing = walk::walk(self, env, &roots)?;
        listing.add_builtin(self.builtin.keys());
        Ok(listing)
    }

    /// Files that start with `prefix`, sorted.
    pub fn file_list(&self, env: &str, prefix: &str) -> Result<Vec<String>, Error> {
        Ok(with_prefix(self.listing(env)?.files, prefix))
    }

    /// Directories that start with `prefix`, sorted.
    pub fn dir_list(&self, env: &str, prefix: &str) -> Result<Vec<String>, Error> {
        Ok(with_prefix(self.listing(env)?.dirs, prefix))
    }

    /// Directories without entries that start with `prefix`, sorted.
    pub fn empty_dirs(&self, env: &str, prefix: &str) -> Result<Vec<String>, Error> {
        Ok(with_prefix(self.listing(env)?.empty_dirs, prefix))
    }

    /// Links that start with `prefix`, and what they say.
    pub fn symlink_list(&self, env: &str, prefix: &str) -> Result<BTreeMap<String, String>, Error> {
        let prefix = prefix.trim_matches('/');
        Ok(self.listing(env)?.links.into_iter().filter(|(path, _)| path.starts_with(prefix)).collect())
    }

    /// The SHA-256 of a file in hexadecimal, or nothing if there is no such file.
    pub fn hash(&self, env: &str, path: &str) -> Result<Option<String>, Error> {
        match self.open(env, path)? {
            None => Ok(None),
            Some(Opened { source: Source::Builtin(content), .. }) => Ok(Some(hex(&Sha256::digest(&content)))),
            Some(Opened { rel, source: Source::Disk { mut file, full, stamp } }) => {
                if let Some((known, hash)) = self.hashes().get(&full)
                    && *known == stamp
                {
                    return Ok(Some(hash.clone()));
                }
                let hash = sha256(&mut file).map_err(|err| io_error(&rel, &err))?;
                let mut hashes = self.hashes();
                if hashes.len() >= MAX_HASHES {
                    hashes.clear();
                }
                hashes.insert(full, (stamp, hash.clone()));
                Ok(Some(hash))
            }
        }
    }

    /// A file and its status, or nothing if there is no such file.
    pub fn find(&self, env: &str, path: &str) -> Result<Option<Found>, Error> {
        Ok(match self.open(env, path)? {
            None => None,
            Some(Opened { rel, source: Source::Builtin(content) }) => {
                let mut stat = [0; 10];
                (stat[0], stat[3], stat[6]) = (0o100_644, 1, i64::try_from(content.len()).unwrap_or(i64::MAX));
                Some(Found { rel, stat })
            }
            Some(Opened { rel, source: Source::Disk { file, .. } }) => {
                let meta = file.metadata().map_err(|err| io_error(&rel, &err))?;
                Some(Found { rel, stat: stat_list(&meta) })
            }
        })
    }

    /// At most `len` bytes (and never more than [`MAX_CHUNK`]) of a file from `offset` on; empty at its end, nothing if
    /// there is no such file.
    pub fn read_chunk(&self, env: &str, path: &str, offset: u64, len: usize) -> Result<Option<Bytes>, Error> {
        let len = len.min(MAX_CHUNK);
        Ok(match self.open(env, path)? {
            None => None,
            Some(Opened { source: Source::Builtin(content), .. }) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(content.len());
                Some(content.slice(start..content.len().min(start.saturating_add(len))))
            }
            Some(Opened { rel, source: Source::Disk { mut file, stamp, .. } }) => {
                if offset >= stamp.size {
                    return Ok(Some(Bytes::new()));
                }
                file.seek(SeekFrom::Start(offset)).map_err(|err| io_error(&rel, &err))?;
                let left = usize::try_from(stamp.size.saturating_sub(offset)).unwrap_or(usize::MAX);
                let mut chunk = Vec::with_capacity(len.min(left));
                file.take(len as u64).read_to_end(&mut chunk).map_err(|err| io_error(&rel, &err))?;
                Some(chunk.into())
            }
        })
    }

    /// The whole of a file that is not larger than `max`, with its stamp, or nothing if there is no such file.
    pub fn read(&self, env: &str, path: &str, max: usize) -> Result<Option<(Bytes, Stamp)>, Error> {
        Ok(match self.open(env, path)? {
            None => None,
            Some(Opened { source: Source::Builtin(content), .. }) => {
                let stamp = Stamp { size: content.len() as u64, ..Stamp::default() };
                Some((content, stamp))
            }
            Some(Opened { rel, source: Source::Disk { file, stamp, .. } }) => {
                let mut content = Vec::with_capacity(usize::try_from(stamp.size).unwrap_or(max).min(max));
                file.take(max as u64 + 1).read_to_end(&mut content).map_err(|err| io_error(&rel, &err))?;
                if content.len() > max {
                    return Err(Error::Io { path: rel, problem: format!("larger than {max} bytes") });
                }
                Some((content.into(), stamp))
            }
        })
    }

    /// The stamp of a file, or nothing if there is no such file.
    pub fn stamp(&self, env: &str, path: &str) -> Result<Option<Stamp>, Error> {
        Ok(self.open(env, path)?.map(|opened| match opened.source {
            Source::Builtin(content) => Stamp { size: content.len() as u64, ..Stamp::default() },
            Source::Disk { stamp, .. } => stamp,
        }))
    }

    fn open(&self, env: &str, path: &str) -> Result<Option<Opened>, Error> {
        let rel = clean_path(path)?;
        let Some(roots) = self.roots(env) else { return Ok(None) };
        if let Some(content) = self.builtin.get(&rel) {
            return Ok(Some(Opened { rel, source: Source::Builtin(content.clone()) }));
        }
        if self.is_ignored(&rel) {
            return Ok(None);
        }
        for root in roots.iter() {
            if let Some(file) = open::open_beneath(root, &rel)? {
                let meta = file.metadata().map_err(|err| io_error(&rel, &err))?;
                let full = root.join(&rel);
                return Ok(Some(Opened { rel, source: Source::Disk { file, full, stamp: Stamp::of(&meta) } }));
            }
        }
        Ok(None)
    }

    /// The directories of an environment, or nothing if it is not served.
    fn roots(&self, env: &str) -> Option<Cow<'_, [PathBuf]>> {
        if let Some((_, roots)) = self.envs.iter().find(|(name, _)| name == env) {
            return Some(Cow::Borrowed(roots));
        }
        let wildcard = self.wildcard.as_ref()?;
        clean_env(env).ok()?;
        let named = |root: &PathBuf| PathBuf::from(root.to_string_lossy().replace("__env__", env));
        Some(wildcard.iter().map(named).collect())
    }

    fn is_ignored(&self, rel: &str) -> bool {
        // Salt tries regular expressions such as `/\.git($|/)` on the full path, so the leading slash is offered too.
        let slashed = format!("/{rel}");
        // A pattern that gives up on a path leaves it out: it was written to hide something.
        let hides = |regex: &Regex| [rel, &slashed].into_iter().any(|path| regex.is_match(path).unwrap_or(true));
        self.ignore_regex.iter().any(hides)
            || self.ignore_glob.iter().any(|glob| glob.matches(rel) || glob.matches(&slashed))
    }

    fn hashes(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, (Stamp, String)>> {
        self.hashes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Opened {
    rel: String,
    source: Source,
}

enum Source {
    Builtin(Bytes),
    Disk { file: File, full: PathBuf, stamp: Stamp },
}

impl Stamp {
    fn of(meta: &std::fs::Metadata) -> Self {
        let (mtime, ctime) = ((meta.mtime(), meta.mtime_nsec()), (meta.ctime(), meta.ctime_nsec()));
        Self { size: meta.size(), mtime, ctime, dev: meta.dev(), ino: meta.ino() }
    }
}

fn stat_list(meta: &std::fs::Metadata) -> [i64; 10] {
    let int = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    [
        meta.mode().into(),
        int(meta.ino()),
        int(meta.dev()),
        int(meta.nlink()),
        meta.uid().into(),
        meta.gid().into(),
        int(meta.size()),
        meta.atime(),
        meta.mtime(),
        meta.ctime(),
    ]
}

fn with_prefix(paths: Vec<String>, prefix: &str) -> Vec<String> {
    let prefix = prefix.trim_matches('/');
    paths.into_iter().filter(|path| path.starts_with(prefix)).collect()
}

fn sha256(file: &mut File) -> std::io::Result<String> {
    let (mut digest, mut buffer) = (Sha256::new(), vec![0; 128 << 10]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&digest.finalize())),
            n => digest.update(&buffer[..n]),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn io_error(rel: &str, err: &std::io::Error) -> Error {
    Error::Io { path: rel.to_owned(), problem: err.to_string() }
}

#[cfg(test)]
mod tests;
