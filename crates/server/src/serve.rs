//! Brings a server up, keeps it running, takes it down: in one place, in a stated order.

use crate::access::{Directory, Passwords};
use crate::app::{App, Hub};
use crate::config::Config;
use crate::engine::Tags;
use crate::master::{self, CHAIN_MODULE_FILE, Catalogue, EXECUTOR_FILE, KeyBook, Master, Member, Requests};
use crate::pool::Pool;
use crate::secrets::{self, Rotating};
use crate::tasks::{Kind, Tasks};
use crate::webhooks::{self, Webhooks};
use crate::{Error, clock};
use saltern_core::ids::{JidSource, MinionId};
use saltern_render::fileserver::FileRoots;
use saltern_store::{Counter, Options as StoreOptions, Store};
use saltern_wire::zmtp::publisher::Publisher;
use saltern_wire::zmtp::replier::Replier;
use saltern_wire::zmtp::{self, Options as ZmtpOptions};
use std::collections::HashMap;
use std::fs::File;
use std::future::Future;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpListener;

/// Serials reserved for one run of the server: more than it can publish.
const SERIALS: usize = 1 << 40;

/// A server that serves.
pub struct Server {
    app: App,
    tasks: Tasks,
    /// Where minions subscribe
    pub publish_address: SocketAddr,
    /// Where minions send requests
    pub return_address: SocketAddr,
    _lock: File,
}

/// Starts a server; when this returns it serves. An error is one sentence that says what to do.
pub async fn serve(config: Config) -> Result<Server, Error> {
    let started = clock::now();
    let lock = claim_data_dir(&config.data_dir)?;
    let pki = config.data_dir.join("pki");
    let rsa = secrets::load_or_create_rsa(&pki, config.keysize)?;
    let keys = Rotating::load_or_create(&pki, started)?;
    let publish_listener = bind(&config, config.publish_port, "publish_port")?;
    let return_listener = bind(&config, config.ret_port, "ret_port")?;
    let (publish_address, return_address) = (local(&publish_listener)?, local(&return_listener)?);
    let options = StoreOptions { teller: Some(Arc::new(Tags)), ..StoreOptions::default() };
    let store = Store::open(&config.database, &options).await.map_err(|error| Error::Start(error.to_string()))?;

    let options = ZmtpOptions { max_connections: config.max_connections, ..ZmtpOptions::default() };
    let publisher = Publisher::new(options.clone());
    let (config, tasks) =
        (Config { publish_port: publish_address.port(), ret_port: return_address.port(), ..config }, Tasks::new());
    let (master, publish_queue) = Master::assemble(config, store, rsa, keys, tasks.clone()).await?;
    let serial = master.store.reserve(Counter::Serial, SERIALS).await?;
    master.join_servers().await?;
    // Before anything is started: without windows everything would be allowed.
    master.reread_windows().await?;

    let replier = Replier::new(options, Arc::new(Requests(master.clone())));
    let stop = tasks.stop_token();
    tasks.spawn(Kind::Essential, "publish port", {
        let (publisher, stop) = (publisher.clone(), stop.clone());
        async move { publisher.serve(publish_listener, stop).await }
    });
    tasks.spawn(Kind::Essential, "request port", async move { replier.serve(return_listener, stop).await });
    tasks.spawn(
        Kind::Essential,
        "publisher",
        master::run_publisher(master.clone(), publisher.clone(), serial, publish_queue),
    );
    let hub = Hub::new();
    tasks.spawn(Kind::Essential, "event readers", hub.clone().run(master.store.clone(), tasks.stop_token()));
    tasks.spawn(Kind::Essential, "tokens", master.clone().keep_tokens());
    tasks.spawn(Kind::Essential, "key renewal", master.clone().keep_keys_fresh());
    tasks.spawn(Kind::Essential, "minion records", master.clone().keep_minions_recorded());
    tasks.spawn(Kind::Essential, "presence events", master.clone().keep_presence_told());
    tasks.spawn(Kind::Essential, "maintenance windows", master.clone().keep_windows());
    tasks.spawn(Kind::Essential, "calendars", master.clone().keep_calendars());
    tasks.spawn(Kind::Essential, "dispatcher", master.clone().keep_dispatching());
    tasks.spawn(Kind::Essential, "launches", master.clone().keep_chaining());
    tasks.spawn(Kind::Essential, "what recurs", master.clone().keep_recurring());
    tasks.spawn(Kind::Essential, "watch over the silent", master.clone().keep_watch());
    tasks.spawn(Kind::Essential, "other servers", master.clone().keep_in_touch());
    tasks.spawn(Kind::Essential, "retention", master.clone().keep_forgetting());
    let app = App { master, publisher, hub, webhooks: Webhooks::new(), started };
    tasks.spawn(Kind::Essential, "webhooks", webhooks::run(app.clone()));
    Ok(Server { app, tasks, publish_address, return_address, _lock: lock })
}

impl Server {
    /// The facade for whoever offers it to users.
    pub fn app(&self) -> App {
        self.app.clone()
    }

    /// Serves until `stop` ends, or until something it cannot do without has died; then stops in order.
    pub async fn run_until(self, stop: impl Future<Output = ()>) -> Result<(), Error> {
        let outcome = tokio::select! {
            () = stop => Ok(()),
            task = self.tasks.failed() => Err(Error::Internal(format!("the task {task:?} has ended; see the log"))),
        };
        self.stop().await;
        outcome
    }

    /// Stops: ports first, then tasks, then the store with everything that was handed to it.
    pub async fn stop(self) {
        self.tasks.stop().await;
        self.app.master.record_minions().await;
        let Self { app, _lock: lock, .. } = self;
        let store = app.master.store.clone();
        drop(app);
        store.close().await;
        drop(lock);
    }
}

impl Master {
    /// Reads what is known and puts the master together. Returns it with the queue its publisher serves.
    async fn assemble(
        config: Config,
        store: Store,
        rsa: saltern_wire::crypto::PrivateKey,
        keys: Rotating,
        tasks: Tasks,
    ) -> Result<(Arc<Self>, master::PublishQueue), Error> {
        let now = clock::now();
        let known: HashMap<MinionId, _> =
            store.minions().await?.into_iter().map(|minion| (minion.id.clone(), minion)).collect();
        let book = KeyBook::new(store.keys().await?);
        let mut members = HashMap::new();
        for (id, pem) in book.accepted() {
            let member = Member::new(id.clone(), pem, known.get(&id), now);
            members.insert(id, Arc::new(member));
        }
        load_grains(&store, &members).await?;
        let invalid = |error: saltern_render::Error| Error::Start(error.to_string());
        let mut files = FileRoots::new(config.file_roots.clone(), config.files.clone()).map_err(invalid)?;
        for (path, content) in [EXECUTOR_FILE, CHAIN_MODULE_FILE] {
            files = files.with_builtin(path, content).map_err(invalid)?;
        }
        let newest = store.newest_jid().await?;
        let directory = Directory::open(&store).await?;
        let catalogue = Catalogue::open(&store).await?;
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let pool = Pool::start("auth", cores, 4096, master::AUTH_PATIENCE)
            .map_err(|error| Error::Start(format!("cannot start threads: {error}")))?;
        Self::new(master::Parts {
            config,
            store,
            rsa,
            keys,
            tasks,
            book,
            members,
            files,
            catalogue,
            pool,
            jids: JidSource::after(newest),
            directory,
            passwords: Passwords::new()?,
            renders: cores,
        })
    }
}

async fn load_grains(store: &Store, members: &HashMap<MinionId, Arc<Member>>) -> Result<(), Error> {
    const PAGE: usize = 1_000;
    let mut after = String::new();
    loop {
        let page = store.grains_after(&after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.minion.to_string();
        for row in page {
            if let Some(member) = members.get(&row.minion) {
                member.facts().set_grains(Arc::new(row.body), row.at);
            }
        }
    }
}

/// Makes the data directory ours: it is there, private, writable, and no other server uses it.
fn claim_data_dir(dir: &Path) -> Result<File, Error> {
    let cannot = |verb: &str, error: std::io::Error| {
        Error::Start(format!("cannot {verb} the data directory {}: {error}", dir.display()))
    };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(|error| cannot("make", error))?;
    let path = dir.join("lock");
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(|error| cannot("write to", error))?;
    file.try_lock()
        .map_err(|_| Error::Start(format!("another saltern server uses the data directory {}", dir.display())))?;
    Ok(file)
}

fn bind(config: &Config, port: u16, key: &str) -> Result<TcpListener, Error> {
    let address = SocketAddr::new(config.interface, port);
    zmtp::bind(address).map_err(|error| {
        let cause = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
        Error::Start(format!(
            "cannot listen on {address} ({key}): {cause}; stop what uses it, or set {key} or interface"
        ))
    })
}

fn local(listener: &TcpListener) -> Result<SocketAddr, Error> {
    listener.local_addr().map_err(|error| Error::Start(format!("cannot tell the port: {error}")))
}
