//! A throw-away PostgreSQL for tests.
//!
//! One cluster serves a whole test process, and each test gets an empty database in it. It listens on a Unix socket in
//! its own folder and on a loopback port, trusts everybody who reaches them, and writes without syncing: what is tested
//! is our use of PostgreSQL, not its recovery.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use crate::daemon::Daemon;
use crate::scratch::Scratch;
use crate::{installed, ports, tier, wait};

/// The superuser of every test cluster.
const USER: &str = "saltern";

/// Quick and small: nothing is synced, and the log it would recover from stays short.
const SETTINGS: [&str; 6] = [
    "fsync=off",
    "full_page_writes=off",
    "max_connections=200",
    "shared_buffers=32MB",
    "max_wal_size=128MB",
    "timezone=UTC",
];

/// A running PostgreSQL server with a data folder of its own; stopped and removed on drop.
#[derive(Debug)]
pub struct Cluster {
    // Declared before the folder: the server is stopped before its files are removed.
    server: Mutex<Option<Daemon>>,
    programs: PathBuf,
    owner: Option<Owner>,
    port: u16,
    databases: AtomicU32,
    scratch: Scratch,
}

/// A new, empty database in this process's shared cluster, as a `postgres://` URL.
///
/// Nothing where PostgreSQL is not installed or not wanted; see [`tier`].
pub fn fresh_database() -> Option<String> {
    Cluster::shared().map(Cluster::fresh_database)
}

/// The same, for suites of hundreds: the database is dropped with what this returns, or a run fills the disk.
pub fn passing_database() -> Option<Passing> {
    let cluster = Cluster::shared()?;
    Some(Passing { name: cluster.new_database(), cluster })
}

/// A database that lasts as long as this does, whoever is still connected to it.
#[derive(Debug)]
pub struct Passing {
    cluster: &'static Cluster,
    name: String,
}

impl Passing {
    /// Its address, as a `postgres://` URL.
    pub fn url(&self) -> String {
        self.cluster.url(&self.name)
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        // Not worth a panic: the cluster's folder goes with the process.
        let _ = self.cluster.client("dropdb").args(["--force", "--if-exists", &self.name]).output();
    }
}

impl Cluster {
    /// The cluster of this test process, started by the first test that asks.
    pub fn shared() -> Option<&'static Cluster> {
        static SHARED: OnceLock<Option<Cluster>> = OnceLock::new();
        SHARED.get_or_init(Cluster::start).as_ref()
    }

    /// A cluster for one test that wants to stop it; others use [`Cluster::shared`].
    pub fn start() -> Option<Cluster> {
        if tier::is_fast() {
            return None;
        }
        let Some(programs) = installed::postgres_programs() else {
            tier::skip("PostgreSQL", "no `initdb` was found; `make setup` installs it");
            return None;
        };
        let scratch = Scratch::new("pg");
        let cluster = Cluster {
            server: Mutex::new(None),
            programs,
            owner: Owner::needed(),
            port: ports::free(),
            databases: AtomicU32::new(0),
            scratch,
        };
        cluster.initialise();
        cluster.resume();
        Some(cluster)
    }

    /// A new, empty database, as a `postgres://` URL.
    pub fn fresh_database(&self) -> String {
        self.url(&self.new_database())
    }

    fn new_database(&self) -> String {
        let name = format!("t{}", self.databases.fetch_add(1, Ordering::Relaxed));
        // template0, because nobody can be connected to it: template1 refuses to be copied while somebody is.
        let mut createdb = self.client("createdb");
        run(createdb.args(["--template", "template0", &name]));
        name
    }

    /// The URL of a database, which need not exist.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/{database}", self.port)
    }

    /// The loopback port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder of its Unix socket.
    pub fn socket_dir(&self) -> &Path {
        self.scratch.path()
    }

    /// Stops the server at once; its data stays. Connections break, new ones are refused.
    pub fn stop(&self) {
        self.server_slot().take();
    }

    /// Starts the server again on the same data and port, and waits until it answers.
    pub fn resume(&self) {
        let mut slot = self.server_slot();
        if slot.is_some() {
            return;
        }
        let mut postgres = self.server_command("postgres");
        postgres.arg("-D").arg(self.data_dir()).arg("-k").arg(self.scratch.path());
        postgres.args(["-p", &self.port.to_string(), "-h", "127.0.0.1"]);
        for setting in SETTINGS {
            postgres.args(["-c", setting]);
        }
        let log = self.scratch.path().join("postgres.log");
        let server = Daemon::spawn("PostgreSQL", &mut postgres, &log, &[]).quits_on_sigquit();
        wait::until_blocking("PostgreSQL to accept connections", Duration::from_secs(60), || {
            assert!(server.is_running(), "PostgreSQL ended while starting");
            self.client("pg_isready").stdout(Stdio::null()).status().is_ok_and(|status| status.success())
        });
        *slot = Some(server);
    }

    fn server_slot(&self) -> std::sync::MutexGuard<'_, Option<Daemon>> {
        match self.server.lock() {
            Ok(slot) => slot,
            Err(_) => panic!("another test panicked while it stopped or started PostgreSQL"),
        }
    }

    fn data_dir(&self) -> PathBuf {
        self.scratch.path().join("data")
    }

    fn initialise(&self) {
        if let Some(owner) = &self.owner {
            let chown = std::os::unix::fs::chown(self.scratch.path(), Some(owner.uid), Some(owner.gid));
            assert!(chown.is_ok(), "cannot give {} to {}: {chown:?}", self.scratch.path().display(), owner.name);
        }
        let mut initdb = self.server_command("initdb");
        initdb.arg("-D").arg(self.data_dir());
        initdb.args(["-U", USER, "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync", "--no-instructions"]);
        run(&mut initdb);
    }

    /// A server program, run by a user PostgreSQL consents to run as.
    fn server_command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.current_dir(self.scratch.path());
        if let Some(owner) = &self.owner {
            command.uid(owner.uid).gid(owner.gid);
        }
        command
    }

    /// A client program that speaks to this cluster whatever `PG…` variables are set.
    fn client(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"PG")) {
            command.env_remove(name);
        }
        command.args(["-h", "127.0.0.1", "-U", USER, "-p", &self.port.to_string()]);
        command
    }
}

/// An unprivileged user: PostgreSQL refuses to run as root.
#[derive(Debug)]
struct Owner {
    name: String,
    uid: u32,
    gid: u32,
}

impl Owner {
    /// The user to become, when we are root: Debian's `postgres`, else `nobody`, which every system has.
    fn needed() -> Option<Owner> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let found = ["postgres", "nobody"].iter().find_map(|name| Owner::parse(&passwd, name));
        assert!(found.is_some(), "PostgreSQL does not run as root, and there is no user postgres or nobody");
        found
    }

    fn parse(passwd: &str, name: &str) -> Option<Owner> {
        let line = passwd.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut numbers = line.split(':').skip(2).map(str::parse);
        Some(Owner { name: name.to_owned(), uid: numbers.next()?.ok()?, gid: numbers.next()?.ok()? })
    }
}

fn run(command: &mut Command) {
    match command.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => panic!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => panic!("cannot run {command:?}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_is_read_from_the_password_file() {
        let passwd = "root:x:0:0::/root:/bin/sh\npostgres:x:101:104:,,,:/var/lib/postgresql:/bin/bash\n";
        let owner = Owner::parse(passwd, "postgres").unwrap();
        assert_eq!((owner.uid, owner.gid), (101, 104));
        assert!(Owner::parse(passwd, "post").is_none());
    }
}
