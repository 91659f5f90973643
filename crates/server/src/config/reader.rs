//! Reads the configuration: file, then variables, then flags; checks each key; builds the typed [`Config`].

use super::settings::{IGNORED, SETTINGS};
use super::{Config, Roots};
use saltern_core::target::Nodegroups;
use saltern_core::value::{Map, Value};
use saltern_render::yaml;
use saltern_store::Location;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why a configuration cannot be used: one sentence that names the place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct ConfigError {
    place: String,
    problem: String,
}

/// Where settings come from; later ones win.
#[derive(Debug, Default)]
pub struct Sources {
    /// A YAML file
    pub file: Option<PathBuf>,
    /// The process environment; only `SALTERN_<KEY>` of known keys count
    pub environment: Vec<(String, String)>,
    /// Flags, under the name of the key they set
    pub overrides: Vec<(String, Value)>,
}

/// The settings with the place each came from, for messages.
pub(super) struct Keys {
    values: Vec<(String, Value, String)>,
}

impl Config {
    /// Reads and checks everything.
    pub fn load(sources: Sources) -> Result<Self, ConfigError> {
        let mut keys = Keys { values: Vec::new() };
        let mut ignored = Vec::new();
        if let Some(path) = &sources.file {
            for (key, value) in read_file(path)? {
                let name = key.key_text().into_owned();
                let place = format!("{} key {name}", path.display());
                if SETTINGS.iter().any(|setting| setting.key == name) || name.starts_with("saltgui_") {
                    keys.set(name, value, place);
                } else if IGNORED.contains(&name.as_str()) {
                    keys.set(name.clone(), value, place);
                    ignored.push(name);
                } else {
                    return Err(ConfigError { problem: unknown(&name), place });
                }
            }
        }
        for (name, text) in sources.environment {
            let key = name.strip_prefix("SALTERN_").unwrap_or_default().to_ascii_lowercase();
            if SETTINGS.iter().any(|setting| setting.key == key) {
                let place = format!("variable {name}");
                let value = yaml::load(&text)
                    .map_err(|error| ConfigError { place: place.clone(), problem: error.to_string() })?;
                keys.set(key, value, place);
            }
        }
        for (key, value) in sources.overrides {
            let place = format!("flag --{}", key.replace('_', "-"));
            keys.set(key, value, place);
        }
        keys.build(ignored)
    }
}

impl Keys {
    fn set(&mut self, key: String, value: Value, place: String) {
        self.values.retain(|(known, _, _)| *known != key);
        self.values.push((key, value, place));
    }

    fn build(&self, ignored: Vec<String>) -> Result<Config, ConfigError> {
        let data_dir = self.path("data_dir")?.unwrap_or_else(|| "/var/lib/saltern".into());
        let database = match self.text("database")? {
            Some(text) => Location::parse(&text).map_err(|error| self.wrong("database", &error.to_string()))?,
            None => Location::Sqlite(data_dir.join("saltern.db")),
        };
        let interface = match self.text("interface")? {
            Some(text) => text.parse().map_err(|_| self.wrong("interface", "is not an IP address"))?,
            None => std::net::Ipv4Addr::UNSPECIFIED.into(),
        };
        let nodegroups_value = self.get("nodegroups").cloned().unwrap_or_else(|| Value::Map(Map::new()));
        let nodegroups =
            Nodegroups::from_value(&nodegroups_value).map_err(|error| self.wrong("nodegroups", &error.to_string()))?;
        let strategy = self.one_of(
            "pillar_source_merging_strategy",
            &["smart", "recurse", "aggregate", "overwrite", "list", "none"],
        )?;
        let config = Config {
            database,
            interface,
            publish_port: self.port("publish_port", 4505)?,
            ret_port: self.port("ret_port", 4506)?,
            id: self.text("id")?.unwrap_or_else(default_id),
            keysize: u32::try_from(self.number("keysize", 2048, 2048..=8192)?).unwrap_or(2048),
            auto_accept: self.flag("auto_accept", false)?,
            open_mode: self.flag("open_mode", false)?,
            autosign_file: self.path("autosign_file")?,
            autoreject_file: self.path("autoreject_file")?,
            autosign_grains_dir: self.path("autosign_grains_dir")?,
            max_minions: self.size("max_minions", 0)?,
            max_pending_keys: self.size("max_pending_keys", 10_000)?,
            denied_waits: self.flag("denied_waits", true)?,
            minimum_auth_version: self.number("minimum_auth_version", 3, 2..=3)?,
            request_server_ttl: Some(self.seconds("request_server_ttl", 300)?).filter(|ttl| !ttl.is_zero()),
            publish_session: self.seconds("publish_session", 86_400)?.max(Duration::from_secs(60)),
            file_roots: self.roots("file_roots", "/srv/salt")?,
            files: saltern_render::fileserver::Settings {
                follow_symlinks: self.flag("fileserver_followsymlinks", true)?,
                ignore_symlinks: self.flag("fileserver_ignoresymlinks", false)?,
                ignore_regex: self.texts("file_ignore_regex")?,
                ignore_glob: self.texts("file_ignore_glob")?,
                ..Default::default()
            },
            pillar_roots: self.roots("pillar_roots", "/srv/pillar")?,
            pillar_source_merging_strategy: strategy,
            pillar_merge_lists: self.flag("pillar_merge_lists", false)?,
            pillarenv_from_saltenv: self.flag("pillarenv_from_saltenv", false)?,
            pillar_safe_render_error: self.flag("pillar_safe_render_error", true)?,
            top_file_merging_strategy: self.one_of("top_file_merging_strategy", &["merge", "same", "merge_all"])?,
            env_order: self.texts("env_order")?,
            default_top: self.text("default_top")?.unwrap_or_else(|| "base".into()),
            state_events: self.flag("state_events", true)?,
            nodegroups,
            nodegroups_value,
            peer: self.peer()?,
            job_ack: self.flag("job_ack", true)?,
            auth_events: self.flag("auth_events", true)?,
            presence_events: self.flag("presence_events", false)?,
            minion_data_cache_events: self.flag("minion_data_cache_events", true)?,
            max_return_size: self.size("max_return_size", 16 << 20)?.max(1024),
            max_connections: self.size("max_connections", 40_000)?.max(16),
            job_deadline: self.seconds("job_deadline", 86_400)?.max(Duration::from_secs(1)),
            ack_timeout: self.seconds("ack_timeout", 5)?.max(Duration::from_secs(1)),
            max_running: self.size("max_running", 10_000)?,
            start_rate: self.size("start_rate", 0)?,
            max_queued: self.size("max_queued", 1_000_000)?,
            blackout: self.texts("blackout")?,
            keep_jobs: self.seconds("keep_jobs_seconds", 2_592_000)?,
            keep_actions: self.size("keep_actions", 1_000_000)?,
            keep_events: self.seconds("keep_events_seconds", 2_592_000)?,
            keep_events_count: self.size("keep_events", 10_000_000)?,
            webhook_timeout: self
                .seconds("webhook_timeout", 10)?
                .clamp(Duration::from_secs(1), Duration::from_secs(300)),
            webhook_tries: self.number("webhook_tries", 12, 1..=1_000)?,
            calendar_near_urls: self.flag("calendar_near_urls", false)?,
            timeout: self.seconds("timeout", 10)?.max(Duration::from_secs(1)),
            gather_job_timeout: self.seconds("gather_job_timeout", 5)?.max(Duration::from_secs(1)),
            state_opts: self.state_opts()?,
            http: self.http()?,
            login: self.login()?,
            shown: self.shown(),
            ignored,
            data_dir,
        };
        if config.publish_port == config.ret_port && config.publish_port != 0 {
            return Err(self.wrong("ret_port", "is the same as publish_port"));
        }
        Ok(config)
    }

    /// What goes to minions as it is.
    fn state_opts(&self) -> Result<Map, ConfigError> {
        let mut opts = Map::new();
        opts.push("state_top", self.text("state_top")?.unwrap_or_else(|| "top.sls".into()));
        for (key, default) in [
            ("failhard", false),
            ("state_auto_order", true),
            ("state_aggregate", false),
            ("jinja_trim_blocks", false),
            ("jinja_lstrip_blocks", false),
        ] {
            opts.push(key, self.flag(key, default)?);
        }
        opts.push("state_top_saltenv", Value::Nil);
        opts.push("env_order", Value::list(self.texts("env_order")?));
        opts.push("default_top", self.text("default_top")?.unwrap_or_else(|| "base".into()));
        opts.push(
            "top_file_merging_strategy",
            self.one_of("top_file_merging_strategy", &["merge", "same", "merge_all"])?,
        );
        opts.push("jinja_env", Map::new());
        opts.push("jinja_sls_env", Map::new());
        Ok(opts)
    }

    fn peer(&self) -> Result<Vec<(String, Vec<String>)>, ConfigError> {
        let wrong = || self.wrong("peer", "must be a map of minion patterns to lists of function patterns");
        let Some(value) = self.get("peer") else { return Ok(Vec::new()) };
        let entry = |(minions, funs): &(Value, Value)| {
            let funs: Option<Vec<String>> = funs.as_list()?.iter().map(|fun| fun.as_str().map(str::to_owned)).collect();
            let minions = minions.key_text().into_owned();
            let funs = funs?;
            let all_valid = std::iter::once(&minions).chain(&funs).all(|pattern| regex::Regex::new(pattern).is_ok());
            all_valid.then_some((minions, funs))
        };
        value.as_map().ok_or_else(wrong)?.iter().map(|pair| entry(pair).ok_or_else(wrong)).collect()
    }

    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        debug_assert!(SETTINGS.iter().any(|setting| setting.key == key), "{key} is not in the table");
        self.values.iter().find(|(known, value, _)| known == key && !value.is_nil()).map(|(_, value, _)| value)
    }

    /// A map, empty if it is not set.
    pub(super) fn map(&self, key: &str) -> Result<Map, ConfigError> {
        match self.get(key) {
            None => Ok(Map::new()),
            Some(Value::Map(map)) => Ok(map.clone()),
            Some(_) => Err(self.wrong(key, "must be a map")),
        }
    }

    /// The keys that begin so, without that beginning.
    pub(super) fn with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.values.iter().filter_map(move |(key, value, _)| Some((key.strip_prefix(prefix)?, value)))
    }

    /// What a key was set to, also one that means nothing here.
    pub(super) fn any(&self, key: &str) -> Option<&Value> {
        self.values.iter().find(|(known, _, _)| known == key).map(|(_, value, _)| value)
    }

    pub(super) fn wrong(&self, key: &str, problem: &str) -> ConfigError {
        let place = self
            .values
            .iter()
            .find(|(known, _, _)| known == key)
            .map_or_else(|| key.to_owned(), |(_, _, place)| place.clone());
        ConfigError { place, problem: problem.to_owned() }
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<String>, ConfigError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text.to_string())),
            Some(Value::Int(int)) => Ok(Some(int.to_string())),
            Some(_) => Err(self.wrong(key, "must be text")),
        }
    }

    pub(super) fn path(&self, key: &str) -> Result<Option<PathBuf>, ConfigError> {
        Ok(self.text(key)?.map(PathBuf::from))
    }

    pub(super) fn flag(&self, key: &str, default: bool) -> Result<bool, ConfigError> {
        match self.get(key) {
            None => Ok(default),
            Some(value) => value.as_bool().ok_or_else(|| self.wrong(key, "must be yes or no")),
        }
    }

    fn number(&self, key: &str, default: i64, range: std::ops::RangeInclusive<i64>) -> Result<i64, ConfigError> {
        let Some(value) = self.get(key) else { return Ok(default) };
        let within = |number: &i64| range.contains(number);
        let (least, most) = (range.start(), range.end());
        value
            .as_i64()
            .filter(within)
            .ok_or_else(|| self.wrong(key, &format!("must be a whole number from {least} to {most}")))
    }

    fn port(&self, key: &str, default: u16) -> Result<u16, ConfigError> {
        Ok(u16::try_from(self.number(key, default.into(), 0..=65_535)?).unwrap_or(default))
    }

    pub(super) fn size(&self, key: &str, default: i64) -> Result<usize, ConfigError> {
        Ok(usize::try_from(self.number(key, default, 0..=i64::from(u32::MAX))?).unwrap_or(0))
    }

    pub(super) fn seconds(&self, key: &str, default: i64) -> Result<Duration, ConfigError> {
        let seconds = self.number(key, default, 0..=31_536_000)?;
        Ok(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
    }

    fn one_of(&self, key: &str, words: &[&str]) -> Result<String, ConfigError> {
        match self.text(key)? {
            None => Ok(words.first().copied().unwrap_or_default().to_owned()),
            Some(word) if words.contains(&word.as_str()) => Ok(word),
            Some(word) => Err(self.wrong(key, &format!("is {word:?}, must be one of {}", words.join(", ")))),
        }
    }

    pub(super) fn texts(&self, key: &str) -> Result<Vec<String>, ConfigError> {
        let wrong = || self.wrong(key, "must be a list of texts");
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let items = value.as_list().ok_or_else(wrong)?;
        items.iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
    }

    fn roots(&self, key: &str, default: &str) -> Result<Roots, ConfigError> {
        let wrong = || self.wrong(key, "must be a map of environments to lists of directories");
        let Some(value) = self.get(key) else { return Ok(vec![("base".into(), vec![default.into()])]) };
        let entry = |(env, dirs): &(Value, Value)| {
            let dirs = dirs.as_list().ok_or_else(wrong)?;
            let dirs =
                dirs.iter().map(|dir| dir.as_str().map(PathBuf::from).ok_or_else(wrong)).collect::<Result<_, _>>()?;
            Ok((env.as_str().ok_or_else(wrong)?.to_owned(), dirs))
        };
        value.as_map().ok_or_else(wrong)?.iter().map(entry).collect()
    }
}

fn read_file(path: &Path) -> Result<Map, ConfigError> {
    let wrong = |problem: String| ConfigError { place: path.display().to_string(), problem };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    match yaml::load(&text).map_err(|error| wrong(error.to_string()))? {
        Value::Map(map) => Ok(map),
        Value::Nil => Ok(Map::new()),
        _ => Err(wrong("must be a map of settings".into())),
    }
}

/// What to say of a key nobody knows, with the nearest one that exists.
fn unknown(name: &str) -> String {
    let nearest = SETTINGS.iter().map(|setting| setting.key).min_by_key(|key| distance(key, name)).unwrap_or_default();
    if distance(nearest, name) <= 3 {
        format!("is not a setting; did you mean {nearest}?")
    } else {
        "is not a setting; docs/reference/configuration.md lists them all".into()
    }
}

/// Edit distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut before = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = before + usize::from(x != *y);
            before = row[j + 1];
            row[j + 1] = change.min(before + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

fn default_id() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{host}_master")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<Config, ConfigError> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("master");
        std::fs::write(&file, text).unwrap();
        Config::load(Sources { file: Some(file), ..Sources::default() })
            .map_err(|error| ConfigError { place: error.place.rsplit('/').next().unwrap_or_default().into(), ..error })
    }

    #[test]
    fn a_master_file_of_salt_can_be_given_as_it_is() {
        let config = load(
            "interface: 127.0.0.1\nret_port: 5506\nworker_threads: 5\nauto_accept: True\nfile_roots:\n  base: [/a, /b]\n  dev: [/c]\n\
             nodegroups:\n  web: 'web*'\npeer:\n  .*: [test.ping]\n",
        )
        .unwrap();
        assert_eq!(config.ret_port, 5506);
        assert!(config.auto_accept);
        assert_eq!(config.file_roots.len(), 2);
        assert_eq!(config.ignored, ["worker_threads"]);
        assert_eq!(config.peer, [(".*".to_owned(), vec!["test.ping".to_owned()])]);
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        let said = |text: &str| load(text).unwrap_err().to_string();
        assert_eq!(said("publish_prot: 1"), "master key publish_prot: is not a setting; did you mean publish_port?");
        assert_eq!(said("publish_port: x"), "master key publish_port: must be a whole number from 0 to 65535");
        assert_eq!(said("auto_accept: 3"), "master key auto_accept: must be yes or no");
        assert_eq!(said("interface: here"), "master key interface: is not an IP address");
        assert_eq!(said("database: 'mysql://x'").split(": ").next(), Some("master key database"));
        assert!(said("a: [").starts_with("master: "), "{}", said("a: ["));
    }

    #[test]
    fn flags_win_over_variables_and_variables_over_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("master");
        std::fs::write(&file, "publish_port: 1\nret_port: 2\ntimeout: 3").unwrap();
        let config = Config::load(Sources {
            file: Some(file),
            environment: vec![("SALTERN_RET_PORT".into(), "20".into()), ("SALTERN_PUBLISH_PORT".into(), "10".into())],
            overrides: vec![("publish_port".into(), Value::Int(100))],
        })
        .unwrap();
        assert_eq!((config.publish_port, config.ret_port, config.timeout.as_secs()), (100, 20, 3));
    }

    #[test]
    fn no_key_is_both_used_and_ignored() {
        assert!(!SETTINGS.iter().any(|setting| IGNORED.contains(&setting.key)));
    }
}
