//! How the server is doing, for `saltern doctor`.

use super::{App, Caller};
use crate::Error;
use crate::clock;
use saltern_core::access::Wish;
use saltern_core::keys::KeyState;
use std::time::Duration;

/// How a port is doing.
#[derive(Clone, Copy, Debug)]
pub struct PortStatus {
    /// Its number
    pub port: u16,
    /// Connections open now
    pub connections: usize,
}

/// How the server is doing.
#[derive(Clone, Debug)]
pub struct Status {
    /// This program's version
    pub version: &'static str,
    /// How long it has been up
    pub up: Duration,
    /// The database, without a password
    pub database: String,
    /// The data directory
    pub data_dir: String,
    /// The address both ports listen on
    pub interface: std::net::IpAddr,
    /// The port minions subscribe to
    pub publish_port: PortStatus,
    /// The port of requests
    pub ret_port: u16,
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
    /// Keys of the configuration that are Salt's and mean nothing here
    pub ignored_settings: Vec<String>,
    /// File environments
    pub environments: Vec<String>,
}

impl App {
    /// Whether the server can work: its database answers. Nobody has to say who he is for this.
    pub async fn ready(&self) -> Result<(), Error> {
        Ok(self.master.store.last_event().await.map(drop)?)
    }

    /// How the server is doing now.
    pub async fn status(&self, caller: &Caller) -> Result<Status, Error> {
        self.may(caller, &Wish::Inspect)?;
        let master = &self.master;
        let keys = master.keys.list();
        let count = |state: KeyState| keys.iter().filter(|key| key.state == state).count();
        Ok(Status {
            version: env!("CARGO_PKG_VERSION"),
            up: clock::now().since(self.started),
            database: master.config.database.describe(),
            data_dir: master.config.data_dir.display().to_string(),
            interface: master.config.interface,
            publish_port: PortStatus { port: master.config.publish_port, connections: self.publisher.subscribers() },
            ret_port: master.config.ret_port,
            accepted: count(KeyState::Accepted),
            present: master.present().len(),
            pending: count(KeyState::Unaccepted),
            denied: count(KeyState::Denied),
            last_event: master.store.last_event().await?,
            write_backlog: master.store.backlog(),
            dropped_auths: master.pool.dropped(),
            ignored_settings: master.config.ignored.clone(),
            environments: master.files.envs(),
        })
    }
}
