//! `cp.*`: files of the master on this machine.

#[cfg(test)]
mod tests;

use super::call::Answer;
use super::{Call, Context, Digest, Failure, Function, Param};
use crate::fileclient::{FileClient, Source, cache_dir, cached_path, inside, listing};
use futures_util::FutureExt;
use saltern_core::target::{Glob, python_text};
use saltern_core::value::{Map, Value};
use std::path::{Path, PathBuf};

/// The most files that one call fetches.
const MOST_FILES: usize = 20_000;

const PATH: Param = Param::Required("path");
const SALTENV: Param = Param::Optional("saltenv", "None");
const PREFIX: Param = Param::Optional("prefix", "''");

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "cp.cache_dest",
        params: &[Param::Required("url"), SALTENV],
        doc: "Tell where a file would be in the cache.\n\n\
              CLI Example:\n\n    saltern run '*' cp.cache_dest salt://my/file\n",
        run: |call| call.at_once(cache_dest),
    },
    Function {
        name: "cp.cache_dir",
        params: &[
            PATH,
            SALTENV,
            Param::Optional("include_empty", "False"),
            Param::Optional("include_pat", "None"),
            Param::Optional("exclude_pat", "None"),
        ],
        doc: "Bring all files of a folder into the cache; give their paths.\n\n\
              CLI Example:\n\n    saltern run '*' cp.cache_dir salt://path/to/dir include_pat='*.conf'\n",
        run: |call| async move { cache_folder(&call, &client(&call)?).await }.boxed(),
    },
    Function {
        name: "cp.cache_file",
        params: &[
            PATH,
            SALTENV,
            Param::Optional("source_hash", "None"),
            Param::Optional("verify_ssl", "True"),
            Param::Optional("use_etag", "False"),
        ],
        doc: "Bring a file into the cache; give its path there, or False if the master does not have it.\n\n\
              CLI Example:\n\n    saltern run '*' cp.cache_file salt://path/to/file\n",
        run: |call| {
            async move {
                let cached = cache(&call.context, &call.text("path")?, &saltenv(&call)?).await?;
                Ok(cached.map_or(Value::Bool(false), |path| text(&path)).into())
            }
            .boxed()
        },
    },
    Function {
        name: "cp.cache_files",
        params: &[Param::Required("paths"), SALTENV],
        doc: "Bring several files into the cache, given as a list or separated by commas; give their paths there.\n\n\
              CLI Example:\n\n    saltern run '*' cp.cache_files salt://a,salt://b\n",
        run: |call| async move { cache_files(&call).await }.boxed(),
    },
    Function {
        name: "cp.cache_master",
        params: &[SALTENV],
        doc: "Bring all files of an environment into the cache; give their paths there.\n\n\
              CLI Example:\n\n    saltern run '*' cp.cache_master\n",
        run: |call| async move { cache_master(&call, &client(&call)?).await }.boxed(),
    },
    Function {
        name: "cp.envs",
        params: &[],
        doc: "List the environments of the master.\n\nCLI Example:\n\n    saltern run '*' cp.envs\n",
        run: |call| async move { Ok(client(&call)?.request("_file_envs", Map::new()).await?.into()) }.boxed(),
    },
    Function {
        name: "cp.get_dir",
        params: &[
            PATH,
            Param::Required("dest"),
            SALTENV,
            Param::Optional("template", "None"),
            Param::Optional("gzip", "None"),
            Param::Keywords("kwargs"),
        ],
        doc: "Copy a folder of the master, with all that is in it, into a folder here.\n\n\
              CLI Example:\n\n    saltern run '*' cp.get_dir salt://path/to/dir /minion/dest\n",
        run: |call| async move { get_dir(&call, &client(&call)?).await }.boxed(),
    },
    Function {
        name: "cp.get_file",
        params: &[
            PATH,
            Param::Required("dest"),
            SALTENV,
            Param::Optional("makedirs", "False"),
            Param::Optional("template", "None"),
            Param::Optional("gzip", "None"),
            Param::Keywords("kwargs"),
        ],
        doc: "Copy a file of the master to a place here; give that place, or nothing if there is no such file.\n\n\
              \
              CLI Example:\n\n    saltern run '*' cp.get_file salt://path/to/file /minion/dest makedirs=True\n",
        run: |call| async move { get_file(&call, &client(&call)?).await }.boxed(),
    },
    Function {
        name: "cp.get_file_str",
        params: &[PATH, SALTENV],
        doc: "Give the content of a file of the master, or False if it does not have it.\n\n\
              CLI Example:\n\n    saltern run '*' cp.get_file_str salt://my/file\n",
        run: |call| async move { get_file_str(&call).await }.boxed(),
    },
    Function {
        name: "cp.get_url",
        params: &[
            PATH,
            Param::Optional("dest", "''"),
            SALTENV,
            Param::Optional("makedirs", "False"),
            Param::Optional("source_hash", "None"),
        ],
        doc: "Copy a file from a salt:// address to a place here, or into the cache; give that place.\n\n\
              Other addresses than salt:// and paths of this machine are not supported.\n\n\
              CLI Example:\n\n    saltern run '*' cp.get_url salt://my/file /tmp/mine\n",
        run: |call| async move { get_url(&call).await }.boxed(),
    },
    Function {
        name: "cp.hash_file",
        params: &[PATH, SALTENV],
        doc: "Give the hash of a file, on the master with salt:// and here without.\n\n\
              CLI Example:\n\n    saltern run '*' cp.hash_file salt://path/to/file\n",
        run: |call| async move { hash_file(&call).await }.boxed(),
    },
    Function {
        name: "cp.is_cached",
        params: &[PATH, SALTENV],
        doc: "Give the path of a file in the cache, or nothing if it is not there.\n\n\
              CLI Example:\n\n    saltern run '*' cp.is_cached salt://path/to/file\n",
        run: |call| call.blocking(is_cached),
    },
    Function {
        name: "cp.list_master",
        params: &[SALTENV, PREFIX],
        doc: "List the files of the master.\n\nCLI Example:\n\n    saltern run '*' cp.list_master prefix=web\n",
        run: |call| async move { list(&call, "_file_list").await }.boxed(),
    },
    Function {
        name: "cp.list_master_dirs",
        params: &[SALTENV, PREFIX],
        doc: "List the folders of the master.\n\nCLI Example:\n\n    saltern run '*' cp.list_master_dirs\n",
        run: |call| async move { list(&call, "_dir_list").await }.boxed(),
    },
    Function {
        name: "cp.list_master_symlinks",
        params: &[SALTENV, PREFIX],
        doc: "List the links of the master, and where they lead.\n\n\
              CLI Example:\n\n    saltern run '*' cp.list_master_symlinks\n",
        run: |call| {
            async move {
                let load = listing(&saltenv(&call)?, &call.opt_text("prefix")?.unwrap_or_default());
                Ok(client(&call)?.request("_symlink_list", load).await?.into())
            }
            .boxed()
        },
    },
    Function {
        name: "cp.list_minion",
        params: &[SALTENV],
        doc: "List the files in the cache.\n\nCLI Example:\n\n    saltern run '*' cp.list_minion\n",
        run: |call| call.blocking(list_minion),
    },
    Function {
        name: "cp.list_states",
        params: &[SALTENV],
        doc: "List the states of the master.\n\nCLI Example:\n\n    saltern run '*' cp.list_states\n",
        run: |call| async move { list_states(&call, &client(&call)?).await }.boxed(),
    },
];

/// Brings a file into the cache; a path of this machine is its own copy. Nothing if the master does not have it.
pub(super) async fn cache(context: &Context, url: &str, env: &str) -> Result<Option<PathBuf>, Failure> {
    match Source::parse(url, env) {
        Some(source) => FileClient::new(context.link()?, &context.data_dir).cache(&source).await,
        None => local(url).map(Some),
    }
}

/// The environment that is meant: asked for, configured, or `base`.
pub(super) fn saltenv(call: &Call) -> Result<String, Failure> {
    let configured = || call.context.opts.get("saltenv").and_then(Value::as_str).map(str::to_owned);
    let given = call.opt_text("saltenv")?.or_else(configured);
    Ok(given.filter(|env| !env.is_empty()).unwrap_or_else(|| "base".into()))
}

fn client(call: &Call) -> Result<FileClient, Failure> {
    Ok(FileClient::new(call.context.link()?, &call.context.data_dir))
}

/// A path of this machine, with or without `file://`.
fn local(url: &str) -> Result<PathBuf, Failure> {
    let path = url.strip_prefix("file://").unwrap_or(url);
    if let Some((scheme, _)) = path.split_once("://") {
        let text = format!("{scheme}:// is not supported by this minion: only salt://, file:// and paths");
        return Err(Failure::Command(text));
    }
    if !path.starts_with('/') {
        return Err(Failure::Command(format!("Path '{path}' is not absolute")));
    }
    Ok(path.into())
}

fn source(call: &Call) -> Result<Source, Failure> {
    let url = call.text("path")?;
    Source::parse(&url, &saltenv(call)?).ok_or_else(|| Failure::Command(format!("Unsupported path: {url}")))
}

fn text(path: &Path) -> Value {
    Value::from(path.to_string_lossy().into_owned())
}

fn no_template(call: &Call) -> Result<(), Failure> {
    match call.get("template") {
        None => Ok(()),
        Some(_) => Err(Failure::Command("this minion does not render files: 'template' cannot be used".into())),
    }
}

fn cache_dest(call: &Call) -> Answer {
    let url = call.text("url")?;
    Ok(match Source::parse(&url, &saltenv(call)?) {
        Some(source) => text(&cached_path(&cache_dir(&call.context.data_dir), &source)?).into(),
        None => text(&local(&url)?).into(),
    })
}

async fn cache_files(call: &Call) -> Answer {
    let urls: Vec<String> = match call.get("paths") {
        Some(Value::List(items)) => items.iter().map(|item| python_text(item).into_owned()).collect(),
        _ => call.text("paths")?.split(',').map(str::to_owned).collect(),
    };
    bounded(urls.len())?;
    let env = saltenv(call)?;
    let mut places = Vec::with_capacity(urls.len());
    for url in urls {
        places.push(cache(&call.context, &url, &env).await?.map_or(Value::Bool(false), |path| text(&path)));
    }
    Ok(places.into())
}

async fn cache_master(call: &Call, client: &FileClient) -> Answer {
    let env = saltenv(call)?;
    let names = client.list("_file_list", &env, "").await?;
    cache_all(client, &env, names).await
}

async fn cache_folder(call: &Call, client: &FileClient) -> Answer {
    let source = source(call)?;
    let folder = format!("{}/", source.path.trim_end_matches('/'));
    let (include, exclude) = (pattern(call, "include_pat")?, pattern(call, "exclude_pat")?);
    let mut names = client.list("_file_list", &source.env, folder.trim_end_matches('/')).await?;
    names.retain(|name| {
        name.starts_with(&folder)
            && include.as_ref().is_none_or(|pattern| pattern.matches(name))
            && !exclude.as_ref().is_some_and(|pattern| pattern.matches(name))
    });
    cache_all(client, &source.env, names).await
}

async fn cache_all(client: &FileClient, env: &str, names: Vec<String>) -> Answer {
    bounded(names.len())?;
    let mut places = Vec::with_capacity(names.len());
    for path in names {
        let cached = client.cache(&Source { path, env: env.to_owned() }).await?;
        places.extend(cached.map(|path| text(&path)));
    }
    Ok(places.into())
}

/// A glob, or a regular expression after `E@`.
enum Pattern {
    Glob(Glob),
    Regex(regex::Regex),
}

impl Pattern {
    fn matches(&self, name: &str) -> bool {
        match self {
            Self::Glob(glob) => glob.matches(name),
            Self::Regex(regex) => regex.is_match(name),
        }
    }
}

fn pattern(call: &Call, param: &str) -> Result<Option<Pattern>, Failure> {
    let Some(text) = call.opt_text(param)? else { return Ok(None) };
    Ok(Some(match text.strip_prefix("E@") {
        None => Pattern::Glob(Glob::new(&text)),
        Some(regex) => {
            Pattern::Regex(regex::Regex::new(regex).map_err(|error| Failure::Invocation(error.to_string()))?)
        }
    }))
}

fn bounded(files: usize) -> Result<(), Failure> {
    if files <= MOST_FILES {
        return Ok(());
    }
    Err(Failure::Command(format!("{files} files are more than the {MOST_FILES} that one call fetches")))
}

async fn get_file(call: &Call, client: &FileClient) -> Answer {
    no_template(call)?;
    let (source, dest) = (source(call)?, call.text("dest")?);
    let is_there = client.hash(&source).await?.is_some();
    Ok(if is_there { fetch(call, client, &source, &dest).await? } else { "".into() }.into())
}

/// The place a file came to; `False` where its folder is missing or the master does not have it.
async fn fetch(call: &Call, client: &FileClient, source: &Source, dest: &str) -> Result<Value, Failure> {
    let mut place = PathBuf::from(dest);
    if dest.ends_with('/') || place.is_dir() {
        place.push(source.path.rsplit('/').next().unwrap_or(&source.path));
    }
    let folder = place.parent().unwrap_or(Path::new("/"));
    if !folder.is_dir() {
        if !call.flag("makedirs", false) {
            return Ok(false.into());
        }
        tokio::fs::create_dir_all(folder).await?;
    }
    Ok(if client.fetch(source, &place).await? { text(&place) } else { false.into() })
}

async fn get_url(call: &Call) -> Answer {
    let (url, env) = (call.text("path")?, saltenv(call)?);
    let dest = call.opt_text("dest")?.filter(|dest| !dest.is_empty());
    match (Source::parse(&url, &env), dest) {
        (Some(source), Some(dest)) => Ok(fetch(call, &client(call)?, &source, &dest).await?.into()),
        _ => Ok(cache(&call.context, &url, &env).await?.map_or(Value::Bool(false), |path| text(&path)).into()),
    }
}

async fn get_file_str(call: &Call) -> Answer {
    let cached = cache(&call.context, &call.text("path")?, &saltenv(call)?).await?;
    let Some(path) = cached else { return Ok(false.into()) };
    Ok(tokio::fs::read(path).await.map_or(Value::Bool(false), Value::from).into())
}

async fn get_dir(call: &Call, client: &FileClient) -> Answer {
    no_template(call)?;
    let source = source(call)?;
    let (folder, dest) = (source.path.trim_end_matches('/'), PathBuf::from(call.text("dest")?));
    // The folder itself comes along: what is above it on the master does not.
    let above = folder.rsplit_once('/').map_or(0, |(above, _)| above.len() + 1);
    let is_in = |name: &str| name.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
    let names = client.list("_file_list", &source.env, folder).await?;
    bounded(names.len())?;
    let mut places = Vec::new();
    for name in names.into_iter().filter(|name| is_in(name)) {
        let place = inside(&dest, &name[above..])?;
        tokio::fs::create_dir_all(place.parent().unwrap_or(&dest)).await?;
        if client.fetch(&Source { path: name, env: source.env.clone() }, &place).await? {
            places.push(place);
        }
    }
    for name in client.list("_file_list_emptydirs", &source.env, folder).await?.into_iter().filter(|name| is_in(name)) {
        let place = inside(&dest, &name[above..])?;
        tokio::fs::create_dir_all(&place).await?;
        places.push(place);
    }
    places.sort();
    Ok(places.iter().map(|path| text(path)).collect::<Vec<_>>().into())
}

async fn hash_file(call: &Call) -> Answer {
    let url = call.text("path")?;
    let shaped = |kind: &str, digits: String| Value::map([("hsum", Value::from(digits)), ("hash_type", kind.into())]);
    if let Some(source) = Source::parse(&url, &saltenv(call)?) {
        let hash = client(call)?.hash(&source).await?;
        return Ok(hash.map_or_else(|| "".into(), |hash| shaped(&hash.kind, hash.digits)).into());
    }
    let hashed = tokio::task::spawn_blocking(move || Digest::new("sha256")?.of_file(Path::new(&url)).ok()).await;
    let hashed = hashed.map_err(|error| Failure::Exception(error.to_string()))?;
    Ok(hashed.map_or_else(|| Value::Map(Map::new()), |digits| shaped("sha256", digits)).into())
}

fn is_cached(call: &Call) -> Answer {
    let (url, env) = (call.text("path")?, saltenv(call)?);
    let source =
        Source::parse(&url, &env).unwrap_or_else(|| Source { path: url.trim_start_matches(['|', '/']).into(), env });
    let place = cached_path(&cache_dir(&call.context.data_dir), &source).ok().filter(|place| place.exists());
    Ok(place.map_or_else(|| "".into(), |place| text(&place)).into())
}

async fn list(call: &Call, what: &'static str) -> Answer {
    let names = client(call)?.list(what, &saltenv(call)?, &call.opt_text("prefix")?.unwrap_or_default()).await?;
    Ok(Value::list(names).into())
}

async fn list_states(call: &Call, client: &FileClient) -> Answer {
    let names = client.list("_file_list", &saltenv(call)?, "").await?;
    let state =
        |name: &String| Some(name.strip_suffix("/init.sls").or_else(|| name.strip_suffix(".sls"))?.replace('/', "."));
    let mut states: Vec<String> = names.iter().filter_map(state).collect();
    states.sort();
    states.dedup();
    Ok(Value::list(states).into())
}

fn list_minion(call: &Call) -> Answer {
    let mut folders = vec![inside(&cache_dir(&call.context.data_dir), &saltenv(call)?)?];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(_) => files.push(entry.path()),
                Err(_) => {}
            }
        }
    }
    files.sort();
    Ok(files.iter().map(|path| text(path)).collect::<Vec<_>>().into())
}
