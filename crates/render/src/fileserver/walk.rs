//! What is in an environment: one bounded walk over its roots.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::FileRoots;
use crate::error::Error;

/// How deep directories may nest.
const MAX_DEPTH: usize = 64;

/// The content of one environment, all roots together. Paths are relative, lists are sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// Files, and links to files.
    pub files: Vec<String>,
    /// Directories, and links to directories.
    pub dirs: Vec<String>,
    /// Directories without entries.
    pub empty_dirs: Vec<String>,
    /// Links and what they say.
    pub links: BTreeMap<String, String>,
}

impl Listing {
    /// Adds files that are in no root, and the directories they seem to be in.
    pub(super) fn add_builtin<'a>(&mut self, paths: impl Iterator<Item = &'a String>) {
        for path in paths {
            insert_sorted(&mut self.files, path);
            for (at, _) in path.match_indices('/') {
                insert_sorted(&mut self.dirs, &path[..at]);
            }
        }
    }
}

fn insert_sorted(list: &mut Vec<String>, path: &str) {
    if let Err(at) = list.binary_search_by(|have| have.as_str().cmp(path)) {
        list.insert(at, path.to_owned());
    }
}

pub(super) fn walk(server: &FileRoots, env: &str, roots: &[PathBuf]) -> Result<Listing, Error> {
    let mut walker = Walker::new(server, env);
    for root in roots {
        let Ok(real_root) = fs::canonicalize(root) else { continue };
        walker.directory(&real_root, &real_root, "", &mut Vec::new())?;
    }
    Ok(Listing {
        files: walker.files.into_iter().collect(),
        dirs: walker.dirs.into_iter().collect(),
        empty_dirs: walker.empty_dirs.into_iter().collect(),
        links: walker.links,
    })
}

struct Walker<'a> {
    server: &'a FileRoots,
    env: &'a str,
    left: usize,
    files: BTreeSet<String>,
    dirs: BTreeSet<String>,
    empty_dirs: BTreeSet<String>,
    links: BTreeMap<String, String>,
}

impl<'a> Walker<'a> {
    fn new(server: &'a FileRoots, env: &'a str) -> Self {
        Self {
            server,
            env,
            left: server.settings.max_entries,
            files: BTreeSet::new(),
            dirs: BTreeSet::new(),
            empty_dirs: BTreeSet::new(),
            links: BTreeMap::new(),
        }
    }

    /// Walks one directory; `above` are the directories it is in, by identity, so that a link cannot lead in circles.
    fn directory(&mut self, root: &Path, dir: &Path, rel: &str, above: &mut Vec<(u64, u64)>) -> Result<(), Error> {
        let (Ok(meta), Ok(entries)) = (fs::metadata(dir), fs::read_dir(dir)) else { return Ok(()) };
        let identity = (meta.dev(), meta.ino());
        if above.contains(&identity) {
            return Ok(());
        }
        if above.len() >= MAX_DEPTH {
            return Err(self.too_many());
        }
        above.push(identity);
        let mut is_empty = true;
        for entry in entries.flatten() {
            is_empty = false;
            // A name that is not UTF-8 cannot be asked for over the wire.
            let Ok(name) = entry.file_name().into_string() else { continue };
            self.left = self.left.checked_sub(1).ok_or_else(|| self.too_many())?;
            let rel = if rel.is_empty() { name } else { format!("{rel}/{name}") };
            self.entry(root, &entry.path(), rel, above)?;
        }
        if is_empty && !rel.is_empty() {
            self.empty_dirs.insert(rel.to_owned());
        }
        above.pop();
        Ok(())
    }

    fn entry(&mut self, root: &Path, full: &Path, rel: String, above: &mut Vec<(u64, u64)>) -> Result<(), Error> {
        if self.server.is_ignored(&rel) {
            return Ok(());
        }
        let Ok(meta) = fs::symlink_metadata(full) else { return Ok(()) };
        if meta.is_symlink() {
            return self.link(root, full, rel, above);
        }
        if meta.is_dir() {
            self.dirs.insert(rel.clone());
            return self.directory(root, full, &rel, above);
        }
        if meta.is_file() {
            self.files.insert(rel);
        }
        Ok(())
    }

    fn link(&mut self, root: &Path, full: &Path, rel: String, above: &mut Vec<(u64, u64)>) -> Result<(), Error> {
        let settings = &self.server.settings;
        let (false, Ok(says)) = (settings.ignore_symlinks, fs::read_link(full)) else { return Ok(()) };
        match fs::canonicalize(full) {
            // What a link out of the root points to is nobody's business, nor is the link.
            Ok(target) if !target.starts_with(root) => return Ok(()),
            Ok(target) if target.is_dir() => {
                self.dirs.insert(rel.clone());
                if settings.follow_symlinks {
                    self.directory(root, &target, &rel, above)?;
                }
            }
            Ok(_) => {
                self.files.insert(rel.clone());
            }
            Err(_) if leads_out(&says, &rel) => return Ok(()),
            Err(_) => {
                self.files.insert(rel.clone());
            }
        }
        self.links.entry(rel).or_insert_with(|| says.to_string_lossy().into_owned());
        Ok(())
    }

    fn too_many(&self) -> Error {
        Error::TooManyFiles { env: self.env.to_owned(), limit: self.server.settings.max_entries }
    }
}

/// Whether the text of a dangling link, read from where the link is, climbs out of the root.
fn leads_out(says: &Path, rel: &str) -> bool {
    use std::path::Component;
    if says.is_absolute() {
        return true;
    }
    let mut depth = rel.matches('/').count();
    for part in says.components() {
        match part {
            Component::Normal(_) => depth += 1,
            Component::ParentDir if depth == 0 => return true,
            Component::ParentDir => depth -= 1,
            _ => {}
        }
    }
    false
}
