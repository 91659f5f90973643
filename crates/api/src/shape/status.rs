//! How the server is doing, as JSON.

use super::Time;
use saltern_core::time::Timestamp;
use saltern_server::app;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How the server is doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// Its version
    pub version: String,
    /// Its clock
    pub now: Time,
    /// Seconds it has been up
    pub up_seconds: u64,
    /// The database, without a password
    pub database: String,
    /// The data directory
    pub data_dir: String,
    /// The port minions subscribe to
    pub publish_port: Port,
    /// The port of requests
    pub ret_port: Port,
    /// Minions that are accepted
    pub accepted: usize,
    /// … and there
    pub present: usize,
    /// Keys that wait for a decision
    pub pending: usize,
    /// Foreign keys that claimed an accepted id
    pub denied: usize,
    /// Number of the newest event
    pub last_event: i64,
    /// Writes that wait for the database
    pub write_backlog: usize,
    /// Sign-ins dropped because their sender had given up
    pub dropped_auths: u64,
    /// Settings of the configuration that are Salt's and mean nothing here
    pub ignored_settings: Vec<String>,
    /// File environments
    pub environments: Vec<String>,
    /// Files and connections the process may have open; nothing means no limit
    pub open_files_limit: Option<u64>,
}

/// A port that minions use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Port {
    /// Its number
    pub port: u16,
    /// Connections open now, where they are counted
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<usize>,
}

impl Status {
    pub(crate) fn of(status: app::Status, now: Timestamp, open_files_limit: Option<u64>) -> Self {
        Self {
            version: status.version.into(),
            now: now.into(),
            up_seconds: status.up.as_secs(),
            database: status.database,
            data_dir: status.data_dir,
            publish_port: Port { port: status.publish_port.port, connections: Some(status.publish_port.connections) },
            ret_port: Port { port: status.ret_port, connections: None },
            accepted: status.accepted,
            present: status.present,
            pending: status.pending,
            denied: status.denied,
            last_event: status.last_event,
            write_backlog: status.write_backlog,
            dropped_auths: status.dropped_auths,
            ignored_settings: status.ignored_settings,
            environments: status.environments,
            open_files_limit,
        }
    }
}
