//! Files of the master: asked for by hash, fetched in pieces, kept in a cache, put in place whole or not at all.
//!
//! A copy whose hash is still the master's is not fetched again (wire reference, section 6.2).

use crate::Error;
use crate::functions::{Digest, Failure};
use crate::link::Link;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use saltern_core::value::{Map, Value};
use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;

/// How long the master is given for one answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Tries at one file: it may change on the master while it is fetched, and answers may be broken.
const TRIES: u32 = 3;

/// The largest file that is fetched. The master decides how much it sends; this is where we stop believing it.
const LARGEST: u64 = 64 << 30;

/// How a load is sent to the master.
type Ask = Arc<dyn Fn(Map) -> BoxFuture<'static, Result<Value, Error>> + Send + Sync>;

/// The way to the master's files. Cheap to clone.
#[derive(Clone)]
pub(crate) struct FileClient {
    ask: Ask,
    cache: PathBuf,
}

/// A file on the master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// Its path, relative to the root of its environment
    pub(crate) path: String,
    /// Its environment
    pub(crate) env: String,
}

/// What a file has to be like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hash {
    pub(crate) kind: String,
    pub(crate) digits: String,
}

impl FileClient {
    pub(crate) fn new(link: &Link, data_dir: &Path) -> Self {
        let link = link.clone();
        let ask: Ask = Arc::new(move |load| {
            let link = link.clone();
            async move { link.request_apart(load, PATIENCE).await }.boxed()
        });
        Self { ask, cache: cache_dir(data_dir) }
    }

    /// The hash of a file, if the master has it.
    pub(crate) async fn hash(&self, source: &Source) -> Result<Option<Hash>, Failure> {
        let answer = self.request("_file_hash", source.load()).await?;
        let text = |key| answer.get(key).and_then(Value::as_str).map(str::to_owned);
        Ok(text("hsum").zip(text("hash_type")).map(|(digits, kind)| Hash { kind, digits }))
    }

    /// Names in an environment: `_file_list`, `_dir_list`, `_file_list_emptydirs`.
    pub(crate) async fn list(&self, what: &'static str, env: &str, prefix: &str) -> Result<Vec<String>, Failure> {
        let answer = self.request(what, listing(env, prefix)).await?;
        let names = answer.as_list().ok_or_else(|| broken(what))?;
        Ok(names.iter().filter_map(Value::as_str).map(str::to_owned).collect())
    }

    /// An answer as it is: `_file_envs`, `_symlink_list`.
    pub(crate) async fn request(&self, what: &'static str, mut load: Map) -> Result<Value, Failure> {
        load.insert("cmd", what);
        (self.ask)(load).await.map_err(|error| Failure::Command(format!("the master did not answer {what}: {error}")))
    }

    /// Brings a file into the cache; where it is then. Nothing if the master does not have it.
    pub(crate) async fn cache(&self, source: &Source) -> Result<Option<PathBuf>, Failure> {
        let place = cached_path(&self.cache, source)?;
        let is_there = self.fetch_to(source, &place, Some(0o700)).await?;
        Ok(is_there.then_some(place))
    }

    /// Brings a file to a place whose folder is there; `false` if the master does not have it.
    pub(crate) async fn fetch(&self, source: &Source, place: &Path) -> Result<bool, Failure> {
        self.fetch_to(source, place, None).await
    }

    async fn fetch_to(&self, source: &Source, place: &Path, folder_mode: Option<u32>) -> Result<bool, Failure> {
        for _ in 0..TRIES {
            let Some(hash) = self.hash(source).await? else { return Ok(false) };
            if local_hash(place, &hash.kind).await? == Some(hash.digits.clone()) {
                return Ok(true);
            }
            if let Some(mode) = folder_mode {
                make_folder(place, mode)?;
            }
            // A link is a name for the file that is meant.
            let real = tokio::fs::canonicalize(place).await.unwrap_or_else(|_| place.to_owned());
            let part = Part::beside(&real)?;
            let old = std::fs::metadata(&real).ok();
            if self.download(source, &hash, &part, folder_mode.is_some()).await? {
                if let Some(old) = old.filter(|_| folder_mode.is_none()) {
                    part.look_like(&old)?;
                }
                part.put(&real)?;
                return Ok(true);
            }
            tracing::warn!(path = source.path, "a file changed while it was fetched; trying again");
        }
        Err(Failure::Command(format!("{}: what was fetched is not what the master announced", source.url())))
    }

    /// Writes the file piece by piece; whether it is what was announced.
    async fn download(&self, source: &Source, hash: &Hash, part: &Part, is_private: bool) -> Result<bool, Failure> {
        let unknown =
            || Failure::Command(format!("the master uses a kind of hash that is not known here: {}", hash.kind));
        let mut digest = Digest::new(&hash.kind).ok_or_else(unknown)?;
        let mode = if is_private { 0o600 } else { 0o666 };
        let mut file = tokio::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&part.0).await?;
        let mut at = 0_u64;
        loop {
            let data = self.piece(source, at).await?;
            if data.is_empty() {
                break;
            }
            digest.update(&data);
            file.write_all(&data).await?;
            at += data.len() as u64;
            if at > LARGEST {
                return Err(Failure::Command(format!("{}: larger than this minion takes", source.url())));
            }
        }
        file.sync_all().await?;
        Ok(digest.finish() == hash.digits)
    }

    async fn piece(&self, source: &Source, at: u64) -> Result<bytes::Bytes, Failure> {
        for _ in 0..TRIES {
            let mut load = source.load();
            load.insert("loc", at);
            let answer = self.request("_serve_file", load).await?;
            // Pieces are only packed when we ask for it, and we do not.
            if let Some(data) = answer.get("data").and_then(Value::to_raw) {
                return Ok(data);
            }
        }
        Err(broken("_serve_file"))
    }
}

impl Source {
    /// Reads `salt://path` or `salt://path?saltenv=env`; `env` is the one that counts otherwise.
    pub(crate) fn parse(url: &str, env: &str) -> Option<Self> {
        let rest = url.strip_prefix("salt://")?;
        let (path, env) = match rest.split_once("?saltenv=") {
            Some((path, env)) => (path, env),
            None => (rest.split_once("?env=").map_or(rest, |(path, _)| path), env),
        };
        Some(Self { path: path.trim_start_matches(['|', '/']).to_owned(), env: env.to_owned() })
    }

    /// The file as people write it.
    pub(crate) fn url(&self) -> String {
        format!("salt://{}", self.path)
    }

    fn load(&self) -> Map {
        let mut load = Map::with_capacity(5);
        load.push("path", &self.path);
        load.push("saltenv", &self.env);
        load
    }
}

/// Where copies of the master's files are kept.
pub(crate) fn cache_dir(data_dir: &Path) -> PathBuf {
    data_dir.join("cache/files")
}

/// Where the copy of a file is, or would be.
pub(crate) fn cached_path(cache: &Path, source: &Source) -> Result<PathBuf, Failure> {
    inside(&inside(cache, &source.env)?, &source.path)
}

/// A path below a folder, for names that come from elsewhere: they must not lead out of it.
pub(crate) fn inside(folder: &Path, name: &str) -> Result<PathBuf, Failure> {
    let is_normal = |part: Component<'_>| matches!(part, Component::Normal(_));
    if name.is_empty() || name.contains('\0') || !Path::new(name).components().all(is_normal) {
        return Err(Failure::Command(format!("not a path inside a folder: {name:?}")));
    }
    Ok(folder.join(name))
}

/// A load for lists.
pub(crate) fn listing(env: &str, prefix: &str) -> Map {
    let mut load = Map::with_capacity(5);
    load.push("saltenv", env);
    load.push("prefix", prefix.trim_matches('/'));
    load
}

fn broken(what: &str) -> Failure {
    Failure::Command(format!("the master's answer to {what} has a wrong shape"))
}

async fn local_hash(place: &Path, kind: &str) -> Result<Option<String>, Failure> {
    let (place, digest) = (place.to_owned(), Digest::new(kind));
    let hashed =
        tokio::task::spawn_blocking(move || place.is_file().then(|| digest?.of_file(&place).ok()).flatten()).await;
    hashed.map_err(|error| Failure::Exception(error.to_string()))
}

fn make_folder(place: &Path, mode: u32) -> Result<(), Failure> {
    use std::os::unix::fs::DirBuilderExt;
    let folder = place.parent().unwrap_or(place);
    // What was a file on the master may be a folder now, and the other way round.
    if let Some(file) = folder.ancestors().find(|path| path.is_file()) {
        std::fs::remove_file(file)?;
    }
    if place.is_dir() {
        std::fs::remove_dir_all(place)?;
    }
    Ok(std::fs::DirBuilder::new().recursive(true).mode(mode).create(folder)?)
}

/// A file under way; gone if it does not get to its place.
struct Part(PathBuf);

impl Part {
    fn beside(place: &Path) -> Result<Self, Failure> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| Failure::Exception(error.to_string()))?;
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        Ok(Self(place.with_file_name(format!(".{name}.{:016x}.part", u64::from_le_bytes(random)))))
    }

    /// Takes over owner and mode of the file that is to be replaced.
    fn look_like(&self, old: &Metadata) -> Result<(), Failure> {
        // Only root may give files away; for others the new file is simply theirs.
        let _ = std::os::unix::fs::chown(&self.0, Some(old.uid()), Some(old.gid()));
        Ok(std::fs::set_permissions(&self.0, PermissionsExt::from_mode(old.mode() & 0o7777))?)
    }

    fn put(self, place: &Path) -> Result<(), Failure> {
        Ok(std::fs::rename(&self.0, place)?)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // After the move there is nothing of this name.
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! A master's file tree in memory.

    use super::*;
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    /// The tree, and the commands it was asked.
    #[derive(Default)]
    pub(crate) struct Tree {
        pub(crate) files: BTreeMap<String, Vec<u8>>,
        pub(crate) asked: Vec<String>,
        /// A hash that is announced whatever the file is
        pub(crate) lie: Option<String>,
    }

    pub(crate) type Shared = Arc<Mutex<Tree>>;

    pub(crate) fn tree(files: &[(&str, &str)]) -> Shared {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect();
        Arc::new(Mutex::new(Tree { files, ..Tree::default() }))
    }

    pub(crate) fn client(tree: &Shared, data_dir: &Path) -> FileClient {
        let tree = tree.clone();
        let ask: Ask = Arc::new(move |load| std::future::ready(Ok(answer(&mut tree.lock().unwrap(), &load))).boxed());
        FileClient { ask, cache: cache_dir(data_dir) }
    }

    fn answer(tree: &mut Tree, load: &Map) -> Value {
        let text = |key| load.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        tree.asked.push(text("cmd"));
        let file = tree.files.get(&text("path"));
        match text("cmd").as_str() {
            "_file_hash" => match file {
                None => "".into(),
                Some(bytes) => {
                    let mut digest = Digest::new("sha256").unwrap();
                    digest.update(bytes);
                    let hsum = tree.lie.clone().unwrap_or_else(|| digest.finish());
                    Value::map([("hash_type", "sha256".to_owned()), ("hsum", hsum)])
                }
            },
            // Pieces of three bytes: more than one for most files.
            "_serve_file" => {
                let bytes = file.cloned().unwrap_or_default();
                let at = load.get("loc").and_then(Value::as_i64).unwrap() as usize;
                let piece = &bytes[at.min(bytes.len())..(at + 3).min(bytes.len())];
                Value::map([("data", Value::from(piece)), ("dest", text("path").into())])
            }
            "_file_list" => Value::list(tree.files.keys().filter(|path| path.starts_with(&text("prefix")))),
            _ => Value::List(Vec::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str) -> Source {
        Source { path: path.into(), env: "base".into() }
    }

    #[tokio::test]
    async fn a_file_comes_in_pieces_and_is_fetched_once() {
        let dir = tempfile::tempdir().unwrap();
        let tree = testing::tree(&[("a/b.txt", "hello world")]);
        let client = testing::client(&tree, dir.path());
        let place = client.cache(&source("a/b.txt")).await.unwrap().unwrap();
        assert_eq!(place, dir.path().join("cache/files/base/a/b.txt"));
        assert_eq!(std::fs::read_to_string(&place).unwrap(), "hello world");
        assert_eq!(place.metadata().unwrap().mode() & 0o777, 0o600);
        tree.lock().unwrap().asked.clear();
        client.cache(&source("a/b.txt")).await.unwrap().unwrap();
        assert_eq!(tree.lock().unwrap().asked, ["_file_hash"]);
    }

    #[tokio::test]
    async fn a_file_that_is_not_what_was_announced_replaces_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("f");
        std::fs::write(&place, "old").unwrap();
        let tree = testing::tree(&[("f", "new")]);
        tree.lock().unwrap().lie = Some("00".into());
        let failure = testing::client(&tree, dir.path()).fetch(&source("f"), &place).await.unwrap_err();
        assert!(matches!(failure, Failure::Command(text) if text.contains("not what the master announced")));
        assert_eq!(std::fs::read_to_string(&place).unwrap(), "old");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left behind");
    }

    #[tokio::test]
    async fn a_replaced_file_keeps_its_mode_and_a_link_stays_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("f"), dir.path().join("l"));
        std::fs::write(&file, "old").unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let tree = testing::tree(&[("f", "new")]);
        assert!(testing::client(&tree, dir.path()).fetch(&source("f"), &link).await.unwrap());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o640);
        assert!(link.is_symlink());
    }

    #[tokio::test]
    async fn a_file_the_master_does_not_have_is_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let client = testing::client(&testing::tree(&[]), dir.path());
        assert_eq!(client.cache(&source("x")).await.unwrap(), None);
    }

    #[test]
    fn names_cannot_lead_out_of_the_cache() {
        for path in ["../x", "a/../../x", "/etc/passwd", "", "a\0b", "a/./../b"] {
            assert!(cached_path(Path::new("/c"), &source(path)).is_err(), "{path:?}");
        }
        let bad = Source { path: "x".into(), env: "..".into() };
        assert!(cached_path(Path::new("/c"), &bad).is_err());
        assert_eq!(cached_path(Path::new("/c"), &source("a/b")).unwrap(), Path::new("/c/base/a/b"));
    }

    #[test]
    fn urls_name_path_and_environment() {
        assert_eq!(Source::parse("salt://a/b", "base"), Some(source("a/b")));
        assert_eq!(Source::parse("salt:///a/b", "base"), Some(source("a/b")));
        let dev = Source { path: "a?b".into(), env: "dev".into() };
        assert_eq!(Source::parse("salt://a?b?saltenv=dev", "base"), Some(dev));
        assert_eq!(Source::parse("http://a/b", "base"), None);
    }
}
