//! Files for minions: lists, hashes, contents, out of the file roots and nothing else.

use super::Master;
use crate::Error;
use saltern_core::value::{Map, Value};
use saltern_render::fileserver::FileRoots;
use std::sync::Arc;

/// Bytes per answer. Stock masters send as much.
const CHUNK: usize = 1 << 20;

impl Master {
    /// Answers a file request on a thread that may wait for the disk.
    pub(super) async fn serve_files(&self, cmd: &str, load: Map) -> Result<Value, Error> {
        let (files, cmd) = (self.files.clone(), cmd.to_owned());
        let served = tokio::task::spawn_blocking(move || serve(&files, &cmd, &load));
        served.await.map_err(|error| Error::Internal(format!("a file request died: {error}")))
    }
}

/// What cannot be read, or may not be, is answered like what is not there: minions need no more, and strangers get none.
fn serve(files: &Arc<FileRoots>, cmd: &str, load: &Map) -> Value {
    let text = |name: &str| load.get(name).and_then(Value::as_str).unwrap_or_default();
    let (path, prefix) = (text("path"), text("prefix"));
    let env = if text("saltenv").is_empty() { "base" } else { text("saltenv") };
    let names = |found: Result<Vec<String>, _>| Value::list(told(found, cmd, env, prefix).unwrap_or_default());
    match cmd {
        "_file_envs" => Value::list(files.envs()),
        "_file_list" => names(files.file_list(env, prefix)),
        "_dir_list" => names(files.dir_list(env, prefix)),
        "_file_list_emptydirs" => names(files.empty_dirs(env, prefix)),
        "_symlink_list" => Value::map(told(files.symlink_list(env, prefix), cmd, env, prefix).unwrap_or_default()),
        "_file_hash" => hash(files, env, path),
        "_file_find" => match told(files.find(env, path), cmd, env, path).flatten() {
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
            let stat = told(files.find(env, path), cmd, env, path).flatten().map(|found| Value::list(found.stat));
            Value::list([hash(files, env, path), stat.into()])
        }
        "_serve_file" => {
            let from = load.get("loc").and_then(Value::as_i64).and_then(|loc| u64::try_from(loc).ok()).unwrap_or(0);
            match told(files.read_chunk(env, path, from, CHUNK), cmd, env, path).flatten() {
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
