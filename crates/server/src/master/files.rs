//! Files for minions: lists, hashes, contents, out of the file roots and the state catalogue and nothing else.
//!
//! A file of an operator wins over one of the catalogue that has the same path.

use super::catalogue::{Offer, Served};
use super::{Master, Member};
use crate::Error;
use bytes::Bytes;
use saltern_core::value::{Map, Value};
use saltern_render::fileserver::{FileRoots, Found, Listing};
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
    /// Answers a file request on a thread that may wait for the disk. Who does not say who he is gets what is for everybody.
    pub(super) async fn serve_files(
        self: &Arc<Self>,
        member: Option<&Arc<Member>>,
        cmd: &str,
        load: Map,
    ) -> Result<Value, Error> {
        let offer = match member {
            Some(member) => Some(self.offer(member, text(&load, "path")).await?),
            None => None,
        };
        let (files, cmd) = (self.files.clone(), cmd.to_owned());
        let served = tokio::task::spawn_blocking(move || serve(&files, offer, &cmd, &load));
        served.await.map_err(|error| Error::Internal(format!("a file request died: {error}")))
    }
}

/// What cannot be read, or may not be, is answered like what is not there: minions need no more, and strangers get none.
fn serve(files: &Files, offer: Option<Offer>, cmd: &str, load: &Map) -> Value {
    let (path, prefix) = (text(load, "path"), text(load, "prefix"));
    let env = if text(load, "saltenv").is_empty() { "base" } else { text(load, "saltenv") };
    let offer = offer.filter(|_| files.roots.has_env(env));
    let (more_files, more_folders) =
        offer.as_ref().map_or((&[][..], &[][..]), |offer| (offer.files(), offer.folders()));
    let below = prefix.trim_matches('/');
    let listing = || told(files.listing(env), cmd, env, prefix).unwrap_or_default();
    let names = |all: &[String], more: &[String]| {
        let more = more.iter().filter(|name| all.binary_search(name).is_err());
        Value::list(all.iter().chain(more).filter(|name| name.starts_with(below)))
    };
    let place = Place { roots: &files.roots, offer: offer.as_ref(), cmd, env, path };
    match cmd {
        "_file_envs" => Value::list(files.envs()),
        "_file_list" => names(&listing().files, more_files),
        "_dir_list" => names(&listing().dirs, more_folders),
        "_file_list_emptydirs" => {
            let empty = |name: &&String| name.starts_with(below) && more_folders.binary_search(name).is_err();
            Value::list(listing().empty_dirs.iter().filter(empty))
        }
        "_symlink_list" => Value::map(listing().links.iter().filter(|(link, _)| link.starts_with(below))),
        "_file_hash" => place.hash(),
        "_file_find" => match place.find() {
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
            let stat = place.find().map(|found| Value::list(found.stat));
            Value::list([place.hash(), stat.into()])
        }
        "_serve_file" => {
            let from = load.get("loc").and_then(Value::as_i64).and_then(|loc| u64::try_from(loc).ok()).unwrap_or(0);
            match place.read(from) {
                Some(data) => Value::map([("data", Value::from(data)), ("dest", path.into())]),
                None => Value::map([("data", ""), ("dest", "")]),
            }
        }
        _ => Value::Map(Map::new()),
    }
}

/// What is asked for, and where it may be.
struct Place<'a> {
    roots: &'a FileRoots,
    offer: Option<&'a Offer>,
    cmd: &'a str,
    env: &'a str,
    path: &'a str,
}

impl Place<'_> {
    fn find(&self) -> Option<Found> {
        let found = self.told(self.roots.find(self.env, self.path));
        found.or_else(|| {
            let Served { path, content, changed, .. } = self.served()?;
            let size = i64::try_from(content.len()).unwrap_or(i64::MAX);
            // mode, ino, dev, nlink, uid, gid, size, and three times
            Some(Found { rel: path, stat: [0o100_644, 0, 0, 1, 0, 0, size, changed, changed, changed] })
        })
    }

    /// An empty text where there is no file: minions take anything else for a broken transport.
    fn hash(&self) -> Value {
        let hash = self.told(self.roots.hash(self.env, self.path));
        match hash.or_else(|| Some(self.served()?.hash)) {
            Some(hsum) => Value::map([("hash_type", "sha256"), ("hsum", &hsum)]),
            None => "".into(),
        }
    }

    fn read(&self, from: u64) -> Option<Bytes> {
        let chunk = self.told(self.roots.read_chunk(self.env, self.path, from, CHUNK));
        chunk.or_else(|| {
            let content = self.served()?.content;
            let from = usize::try_from(from).unwrap_or(usize::MAX).min(content.len());
            Some(content.slice(from..content.len().min(from.saturating_add(CHUNK))))
        })
    }

    fn served(&self) -> Option<Served> {
        self.offer?.file(self.path)
    }

    fn told<T>(&self, found: Result<Option<T>, saltern_render::Error>) -> Option<T> {
        told(found, self.cmd, self.env, self.path).flatten()
    }
}

fn text<'a>(load: &'a Map, name: &str) -> &'a str {
    load.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn told<T, E: std::fmt::Display>(found: Result<T, E>, cmd: &str, env: &str, path: &str) -> Option<T> {
    found.inspect_err(|error| tracing::warn!(cmd, env, path, %error, "a file request was refused")).ok()
}
