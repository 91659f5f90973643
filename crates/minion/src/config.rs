//! What a minion is told: a YAML file with Salt's own key names, and flags over it.

use crate::Error;
use saltern_core::ids::MinionId;
use saltern_core::value::{Map, Value};
use std::path::{Path, PathBuf};

/// Everything that can be set.
#[derive(Clone, Debug)]
pub struct Config {
    /// The minion's id
    pub id: MinionId,
    /// Request ports of the masters, in the order in which they are tried
    pub masters: Vec<(String, u16)>,
    /// The publish port, if not the one the master tells
    pub publish_port: Option<u16>,
    /// Where the minion keeps its key, its ledger and its answers
    pub data_dir: PathBuf,
    /// Fingerprint of the master's key, if it is to be checked at the first sign-in
    pub master_finger: Option<String>,
    /// Whether each job is acknowledged before it runs
    pub job_ack: bool,
    /// Jobs at once
    pub max_jobs: usize,
    /// Grains set by the operator
    pub grains: Map,
    /// Mine functions: name to arguments
    pub mine_functions: Map,
    /// Files whose presence says that the machine has to be rebooted
    pub reboot_needed_files: Vec<PathBuf>,
    /// The configuration as it was written, for `config.get`
    pub opts: Map,
}

const KNOWN: &[&str] = &[
    "id",
    "master",
    "master_port",
    "publish_port",
    "data_dir",
    "master_finger",
    "job_ack",
    "max_jobs",
    "grains",
    "mine_functions",
    "reboot_needed_files",
];

impl Config {
    /// Reads a `minion` file, if there is one, with `overrides` over it.
    ///
    /// Keys of a stock minion's file that mean nothing here are kept for `config.get` and otherwise ignored.
    pub fn load(file: Option<&Path>, overrides: Map) -> Result<Self, Error> {
        let mut opts = match file {
            Some(path) => read(path)?,
            None => Map::new(),
        };
        for (key, value) in overrides {
            opts.insert(key, value);
        }
        let text = |key: &str| opts.get(key).filter(|value| !value.is_nil()).map(|value| value.key_text().into_owned());
        let port = |key: &str| match opts.get(key).filter(|value| !value.is_nil()) {
            None => Ok(None),
            Some(value) => match value.as_i64().and_then(|port| u16::try_from(port).ok()) {
                Some(port) => Ok(Some(port)),
                None => Err(Error::Config(format!("{key} must be a port number"))),
            },
        };
        let flag = |key: &str, default| match opts.get(key).filter(|value| !value.is_nil()) {
            None => Ok(default),
            Some(value) => value.as_bool().ok_or_else(|| Error::Config(format!("{key} must be yes or no"))),
        };
        let map = |key: &str| match opts.get(key) {
            None | Some(Value::Nil) => Ok(Map::new()),
            Some(Value::Map(map)) => Ok(map.clone()),
            Some(_) => Err(Error::Config(format!("{key} must be a map"))),
        };
        let reboot_needed_files = match opts.get("reboot_needed_files").filter(|value| !value.is_nil()) {
            None => crate::reboot_wish::FILES.iter().map(PathBuf::from).collect(),
            Some(value) => value
                .as_list()
                .and_then(|files| files.iter().map(|file| file.as_str().map(PathBuf::from)).collect())
                .ok_or_else(|| Error::Config("reboot_needed_files must be a list of paths".into()))?,
        };
        let id = text("id").unwrap_or_else(host_name);
        let id = MinionId::new(&id).map_err(|error| Error::Config(format!("id {id:?}: {error}")))?;
        let max_jobs =
            opts.get("max_jobs").map_or(Some(64), |value| value.as_i64().and_then(|n| usize::try_from(n).ok()));
        let config = Self {
            id,
            masters: masters(opts.get("master"), port("master_port")?.unwrap_or(4506))?,
            publish_port: port("publish_port")?,
            data_dir: text("data_dir").map_or_else(|| "/var/lib/saltern-minion".into(), PathBuf::from),
            master_finger: text("master_finger").filter(|finger| !finger.is_empty()),
            job_ack: flag("job_ack", true)?,
            max_jobs: max_jobs
                .filter(|n| *n > 0)
                .ok_or_else(|| Error::Config("max_jobs must be a number above 0".into()))?,
            grains: map("grains")?,
            mine_functions: map("mine_functions")?,
            reboot_needed_files,
            opts,
        };
        Ok(config)
    }

    /// The keys that mean something, for help texts.
    pub const fn keys() -> &'static [&'static str] {
        KNOWN
    }
}

fn read(path: &Path) -> Result<Map, Error> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::file("read", path, error))?;
    match saltern_render::yaml::load(&text) {
        Ok(Value::Map(map)) => Ok(map),
        Ok(Value::Nil) => Ok(Map::new()),
        Ok(_) => Err(Error::Config(format!("{}: must be a map of settings", path.display()))),
        Err(error) => Err(Error::Config(format!("{}: {error}", path.display()))),
    }
}

/// `host`, `host:port`, or a list of these.
fn masters(value: Option<&Value>, default_port: u16) -> Result<Vec<(String, u16)>, Error> {
    let one = |value: &Value| {
        let text = value.as_str().ok_or_else(|| Error::Config("master must be a name or a list of names".into()))?;
        match text.rsplit_once(':') {
            // An IPv6 address has more colons, and stands in brackets when a port follows.
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
                let port = port.parse().map_err(|_| Error::Config(format!("master {text:?} has no usable port")))?;
                Ok((host.to_owned(), port))
            }
            _ if text.contains(':') && !text.starts_with('[') => Ok((format!("[{text}]"), default_port)),
            _ => Ok((text.to_owned(), default_port)),
        }
    };
    match value {
        None | Some(Value::Nil) => Ok(vec![("salt".into(), default_port)]),
        Some(Value::List(items)) if !items.is_empty() => items.iter().map(one).collect(),
        Some(value) => Ok(vec![one(value)?]),
    }
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(key: &str, value: impl Into<Value>) -> Result<Config, Error> {
        let mut overrides = Map::new();
        overrides.insert("id", "m1");
        overrides.insert(key, value);
        Config::load(None, overrides)
    }

    #[test]
    fn masters_are_names_with_or_without_ports() {
        assert_eq!(with("master", "a").unwrap().masters, [("a".to_owned(), 4506)]);
        assert_eq!(with("master", "a:5506").unwrap().masters, [("a".to_owned(), 5506)]);
        assert_eq!(with("master", "::1").unwrap().masters, [("[::1]".to_owned(), 4506)]);
        assert_eq!(with("master", "[::1]:7").unwrap().masters, [("[::1]".to_owned(), 7)]);
        assert_eq!(
            with("master", Value::list(["a", "b:1"])).unwrap().masters,
            [("a".to_owned(), 4506), ("b".to_owned(), 1)]
        );
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(with("max_jobs", 0).unwrap_err().to_string(), "max_jobs must be a number above 0");
        assert_eq!(with("job_ack", "x").unwrap_err().to_string(), "job_ack must be yes or no");
        assert!(with("id", "../x").unwrap_err().to_string().starts_with("id \"../x\""));
    }
}
