//! What an operator sets: a YAML file with Salt's own key names, `SALTERN_…` variables and flags over it.
//!
//! Read once, at the start, into one typed [`Config`]. Every key is in one table ([`settings::SETTINGS`]), which the
//! reader, the error messages and the reference page are made from. Keys of a Salt `master` file that have no meaning here
//! are named once and ignored; keys nobody knows are errors that name their place.

mod http;
mod reader;
mod secret;
mod settings;

pub use http::{Http, Login};
pub use reader::ConfigError;
pub use secret::Secret;
pub use settings::{SETTINGS, Setting, reference_page};

pub use reader::Sources;

use saltern_core::target::Nodegroups;
use saltern_core::value::{Map, Value};
use saltern_store::Location;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Directories by environment, in the order of the file.
pub type Roots = Vec<(String, Vec<PathBuf>)>;

/// Everything that can be set, with its value. The fields are named like the keys; `settings` says what each means.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields are named like the keys, and the table of keys explains each")]
pub struct Config {
    pub data_dir: PathBuf,
    pub database: Location,
    pub interface: IpAddr,
    pub publish_port: u16,
    pub ret_port: u16,
    pub id: String,
    pub keysize: u32,
    pub auto_accept: bool,
    pub open_mode: bool,
    pub autosign_file: Option<PathBuf>,
    pub autoreject_file: Option<PathBuf>,
    pub autosign_grains_dir: Option<PathBuf>,
    pub max_minions: usize,
    pub max_pending_keys: usize,
    pub denied_waits: bool,
    pub minimum_auth_version: i64,
    /// None: requests of any age
    pub request_server_ttl: Option<Duration>,
    pub publish_session: Duration,
    pub file_roots: Roots,
    pub files: saltern_render::fileserver::Settings,
    pub pillar_roots: Roots,
    pub pillar_source_merging_strategy: String,
    pub pillar_merge_lists: bool,
    pub pillarenv_from_saltenv: bool,
    pub pillar_safe_render_error: bool,
    pub top_file_merging_strategy: String,
    pub env_order: Vec<String>,
    pub default_top: String,
    pub state_events: bool,
    pub nodegroups: Nodegroups,
    /// `nodegroups` as it was written, for minions
    pub nodegroups_value: Value,
    /// Minion pattern to function patterns
    pub peer: Vec<(String, Vec<String>)>,
    pub job_ack: bool,
    pub auth_events: bool,
    pub presence_events: bool,
    pub minion_data_cache_events: bool,
    pub max_return_size: usize,
    pub max_connections: usize,
    pub job_deadline: Duration,
    pub ack_timeout: Duration,
    pub max_running: usize,
    pub start_rate: usize,
    pub max_queued: usize,
    pub blackout: Vec<String>,
    pub keep_jobs: Duration,
    pub keep_actions: usize,
    pub keep_events: Duration,
    pub keep_events_count: usize,
    pub webhook_timeout: Duration,
    pub webhook_tries: i64,
    pub calendar_near_urls: bool,
    pub timeout: Duration,
    pub gather_job_timeout: Duration,
    /// What `_master_opts` tells minions as it was set
    pub state_opts: Map,
    pub http: Http,
    pub login: Login,
    /// What clients are shown of the configuration
    pub shown: Map,
    /// Salt keys that were found and mean nothing here
    pub ignored: Vec<String>,
}

impl Config {
    /// `request_server_ttl` as time stamps are compared with it
    pub(crate) fn ttl_secs(&self) -> Option<i64> {
        self.request_server_ttl.map(|ttl| i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX))
    }
}
