//! Files for minions: lists, hashes, contents, out of the file roots and nothing else.

use super::Master;
use crate::Error;
use saltern_core::value::{Map, Value};
use saltern_render::fileserver::{FileRoots, Listing};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Bytes per answer. Stock masters send as much.
const CHUNK: usize = 1 << 20;

/// How long a listing is good for. A state run asks for some twenty of them within a second, and a fleet for all of them at
/// once; an operator who has just saved a file is not that quick.
const LISTING_LIFE: Duration = Duration::from_secs(1);

/// The file roots, with listings that are shared by everyone who asks within a moment.
pub(crate) struct Files {
    roots: FileRoots,
    listings: Mutex<HashMap<String, (Instant, Arc<Listing>)>>,
}

impl Files {
    pub(crate) fn new(roots: FileRoots) -> Self {
        Self { roots, listings: Mutex::default() }
    }

    /// The environments.
    pub(crate) fn envs(&self) -> Vec<String> {
        self.roots.envs()
    }

    /// Everything in an environment. Whoever finds it missing walks the tree while the others wait for it.
    fn listing(&self, env: &str) -> Result<Arc<Listing>, saltern_render::Error> {
        if !self.roots.has_env(env) {
            return Ok(Arc::default());
        }
        let mut listings = self.listings.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((made, listing)) = listings.get(env)
            && made.elapsed() < LISTING_LIFE
        {
            return Ok(listing.clone());
        }
        let listing = Arc::new(self.roots.listing(env)?);
        // Environments can be made up where a wildcard serves them.
        listings.retain(|_, (made, _)| made.elapsed() < LISTING_LIFE);
        listings.insert(env.to_owned(), (Instant::now(), listing.clone()));
        Ok(listing)
    }
}

impl Master {
    /// Answers a file request on a thread that may wait for the disk.
    pub(super) async fn serve_files(&self, cmd: &str, load: Map) -> Result<Value, Error> {
        let (files, cmd) = (self.files.clone(), cmd.to_owned());
        let served = tokio::task::spawn_blocking(move || serve(&files, &cmd, &load));
        served.await.map_err(|error| Error::Internal(format!("a file request died: {error}")))
    }
}

/// What cannot be read, or may not be, is answered like what is not there: minions need no more, and strangers get none.
fn serve(files: &Files, cmd: &str, load: &Map) -> Value {
    let text = |name: &str| load.get(name).and_then(Value::as_str).unwrap_or_default();
    let (path, prefix) = (text("path"), text("prefix"));
    let env = if text("saltenv").is_empty() { "base" } else { text("saltenv") };
    let below = prefix.trim_matches('/');
    let listing = || told(files.listing(env), cmd, env, prefix).unwrap_or_default();
    let names = |all: &[String]| Value::list(all.iter().filter(|name| name.starts_with(below)));
    let roots = &files.roots;
    match cmd {
        "_file_envs" => Value::list(files.envs()),
        "_file_list" => names(&listing().files),
        "_dir_list" => names(&listing().dirs),
        "_file_list_emptydirs" => names(&listing().empty_dirs),
        "_symlink_list" => Value::map(listing().links.iter().filter(|(link, _)| link.starts_with(below))),
        "_file_hash" => hash(roots, env, path),
        "_file_find" => match told(roots.find(env, path), cmd, env, path).flatten() {
            Some(found) => Value::map([
                // Any text that is not empty will do; where the file really lies is nobody's business.
                ("path", Value::from(found.rel.as_str())),
                ("rel", found.rel.into()),
                ("stat", Value::list(found.stat)),
                ("back", "roots".into()),
            ]),
            None => Value::map([("path", ""), ("rel", "")]),
        },
        "_file_hash_and_stat" => {
            let stat = told(roots.find(env, path), cmd, env, path).flatten().map(|found| Value::list(found.stat));
            Value::list([hash(roots, env, path), stat.into()])
        }
        "_serve_file" => {
            let from = load.get("loc").and_then(Value::as_i64).and_then(|loc| u64::try_from(loc).ok()).unwrap_or(0);
            match told(roots.read_chunk(env, path, from, CHUNK), cmd, env, path).flatten() {
                Some(data) => Value::map([("data", Value::from(data)), ("dest", path.into())]),
                None => Value::map([("data", ""), ("dest", "")]),
            }
        }
        _ => Value::Map(Map::new()),
    }
}

/// An empty text where there is no file: minions take anything else for a broken transport.
fn hash(files: &FileRoots, env: &str, path: &str) -> Value {
    match told(files.hash(env, path), "_file_hash", env, path).flatten() {
        Some(hsum) => Value::map([("hash_type", "sha256"), ("hsum", &hsum)]),
        None => "".into(),
    }
}

fn told<T, E: std::fmt::Display>(found: Result<T, E>, cmd: &str, env: &str, path: &str) -> Option<T> {
    found.inspect_err(|error| tracing::warn!(cmd, env, path, %error, "a file request was refused")).ok()
}
