//! A server in this process, with a runtime of its own so that it can be killed, and what tests ask it.

use crate::logs;
use saltern_core::action::Policy;
use saltern_core::ids::Jid;
use saltern_core::keys::KeyState;
use saltern_core::target::Target;
use saltern_core::value::{Map, Value};
use saltern_server::app::{App, Caller, EventEntry, EventQuery, KeyMatch, KeyVerb, RunRequest};
use saltern_server::config::{Config, Sources};
use saltern_server::{Server, serve};
use saltern_testkit::fake_minion::{FakeMinion, PATIENCE, key_named};
use saltern_testkit::wait;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tokio::runtime::Runtime;

/// A running server and its data directory.
pub(crate) struct House {
    running: Option<(Server, Runtime)>,
    settings: Vec<(String, Value)>,
    pub(crate) dir: tempfile::TempDir,
    /// Where minions send requests
    pub(crate) requests: SocketAddr,
    /// Where minions subscribe
    pub(crate) publications: SocketAddr,
}

impl House {
    /// A server that accepts every key.
    pub(crate) async fn open() -> Self {
        Self::with([("auto_accept", Value::from(true))]).await
    }

    /// A server with these settings besides the ones every test needs.
    pub(crate) async fn with<const N: usize>(settings: [(&str, Value); N]) -> Self {
        let settings = settings.map(|(key, value)| (key.to_owned(), value));
        Self::furnished(settings.into(), |_| {}).await
    }

    /// A server with these settings, and files put into its directory first.
    pub(crate) async fn furnished(mut settings: Vec<(String, Value)>, furnish: impl FnOnce(&Path)) -> Self {
        logs::capture();
        let dir = tempfile::tempdir().unwrap();
        let pki = dir.path().join("data/pki");
        std::fs::create_dir_all(&pki).unwrap();
        // The server would make a key of its own; this one is made once for all tests.
        std::fs::write(pki.join("master.pem"), key_named("the server").to_pem().unwrap().as_bytes()).unwrap();
        for folder in ["files", "pillar"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
        }
        furnish(dir.path());
        let at = |name: &str| Value::from(dir.path().join(name).to_str().unwrap());
        let roots = |name: &str| Value::map([("base", Value::list([at(name)]))]);
        let usual = [
            ("data_dir", at("data")),
            ("interface", "127.0.0.1".into()),
            ("publish_port", 0.into()),
            ("ret_port", 0.into()),
            ("file_roots", roots("files")),
            ("pillar_roots", roots("pillar")),
            // Otherwise every start of a minion is followed by a job of the server's own.
            ("job_ack", false.into()),
            // Sign-ins are logged in their own time; without them what a test did is all there is.
            ("auth_events", false.into()),
        ];
        for (key, value) in usual {
            if !settings.iter().any(|(known, _)| known == key) {
                settings.push((key.into(), value));
            }
        }
        let (server, runtime) = start(&settings).await;
        let (requests, publications) = (server.return_address, server.publish_address);
        Self { running: Some((server, runtime)), settings, dir, requests, publications }
    }

    /// The way users take.
    pub(crate) fn app(&self) -> App {
        self.running.as_ref().unwrap().0.app()
    }

    /// Stops the server in order and starts it again on the same data and ports.
    pub(crate) async fn restart(&mut self) {
        self.restart_after(|_| ()).await;
    }

    /// Stops the server, does something to what it left, and starts it again.
    pub(crate) async fn restart_after(&mut self, meanwhile: impl FnOnce(&Self)) {
        let (server, runtime) = self.running.take().unwrap();
        runtime.spawn(server.stop()).await.unwrap();
        runtime.shutdown_background();
        meanwhile(self);
        self.reopen().await;
    }

    /// Kills the server as far as a process can kill a part of itself: nothing is finished, saved or said.
    pub(crate) async fn crash(&mut self) {
        self.kill().await;
        self.reopen().await;
    }

    /// The same, and it does not come back.
    pub(crate) async fn kill(&mut self) {
        let (server, runtime) = self.running.take().unwrap();
        tokio::task::spawn_blocking(move || {
            runtime.shutdown_timeout(PATIENCE);
            drop(server);
        })
        .await
        .unwrap();
    }

    /// Starts a server that was killed, on the same data and ports.
    pub(crate) async fn reopen(&mut self) {
        for (key, value) in &mut self.settings {
            match key.as_str() {
                "publish_port" => *value = self.publications.port().into(),
                "ret_port" => *value = self.requests.port().into(),
                _ => {}
            }
        }
        self.running = Some(start(&self.settings).await);
    }

    /// Decides about one key.
    pub(crate) async fn decide(&self, verb: KeyVerb, id: &str, also: &[KeyState]) {
        let decided = self.app().decide_keys(&caller(), verb, &KeyMatch::Ids(vec![id.into()]), also).await;
        decided.unwrap_or_else(|error| panic!("{} {id}: {error}", verb.word()));
    }

    /// What is known of an id's keys: states and whether they are the key of that name.
    pub(crate) fn keys_of(&self, id: &str) -> Vec<(KeyState, String)> {
        let keys = self.app().keys(&caller()).into_iter().filter(|key| key.minion.as_str() == id);
        keys.map(|key| (key.state, key.pem)).collect()
    }

    /// Runs `test.ping` on a list of minions.
    pub(crate) async fn ping(&self, ids: &[&str]) -> Jid {
        self.run(ids, "test.ping", Vec::new()).await
    }

    /// Runs a function on a list of minions.
    pub(crate) async fn run(&self, ids: &[&str], fun: &str, args: Vec<Value>) -> Jid {
        let request = RunRequest {
            target: Target::list(ids.iter().copied()),
            funs: vec![fun.into()],
            args,
            kwargs: Map::new(),
            policy: Policy { interactive: true, ..Policy::default() },
            due: None,
            deadline: None,
            metadata: None,
            ret: String::new(),
            in_window: false,
        };
        self.app().run(&caller(), request).await.unwrap().jid.unwrap()
    }

    /// The number of the newest event.
    pub(crate) async fn last_event(&self) -> i64 {
        self.app().status(&caller()).await.unwrap().last_event
    }

    /// Events after a number.
    pub(crate) async fn events_after(&self, number: i64) -> Vec<EventEntry> {
        let query = EventQuery { since: Some(number), stored_only: true, ..EventQuery::default() };
        let mut stream = self.app().events(&caller(), &query).await.unwrap();
        let mut events = Vec::new();
        while let Some(event) = stream.next().await {
            events.push(event.unwrap());
        }
        events
    }

    /// The tags of the events after a number.
    pub(crate) async fn tags_after(&self, number: i64) -> Vec<String> {
        self.events_after(number).await.into_iter().map(|event| event.tag).collect()
    }

    /// How many rows each table has.
    pub(crate) fn rows(&self) -> BTreeMap<String, i64> {
        let path = self.dir.path().join("data/saltern.db");
        let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
        let database = rusqlite::Connection::open_with_flags(path, flags).unwrap();
        let mut tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").unwrap();
        let names: Vec<String> = tables.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        let count = |name: String| {
            let rows = database.query_row(&format!("SELECT count(*) FROM {name}"), [], |row| row.get(0)).unwrap();
            (name, rows)
        };
        names.into_iter().filter(|name| !name.starts_with("sqlite_")).map(count).collect()
    }

    /// Asserts that an honest minion is served at once on both ports.
    pub(crate) async fn serves(&self) {
        let served = tokio::time::timeout(PATIENCE, async {
            let mut honest = FakeMinion::accepted(self.requests, "honest").await;
            honest.subscribe().await;
            self.subscribed().await;
            // A sign-in proves nothing: who was away is back with its first request in its session, as every minion sends one.
            honest.request("_file_envs", ()).await;
            let jid = self.ping(&["honest"]).await;
            let job = honest.next_job().await;
            assert_eq!(job.jid, jid);
            honest.return_for(&job, true).await;
            let detail = self.app().job(&caller(), jid).await.unwrap();
            assert_eq!(detail.returns.len(), 1);
        });
        served.await.expect("an honest minion is served in time");
    }

    /// Waits until a subscription has arrived: the minion's word for it comes before the server has heard it.
    pub(crate) async fn subscribed(&self) {
        self.subscribers(1).await;
    }

    /// Waits until so many minions are subscribed.
    pub(crate) async fn subscribers(&self, count: usize) {
        wait::until("the subscriptions", Duration::from_secs(30), || async {
            self.app().status(&caller()).await.is_ok_and(|status| status.publish_port.connections >= count)
        })
        .await;
    }
}

/// Who runs things in tests.
pub(crate) fn caller() -> Caller {
    Caller::administrator("tester", "test")
}

impl Drop for House {
    fn drop(&mut self) {
        if let Some((_, runtime)) = self.running.take() {
            runtime.shutdown_background();
        }
    }
}

async fn start(settings: &[(String, Value)]) -> (Server, Runtime) {
    let config = Config::load(Sources { overrides: settings.to_vec(), ..Sources::default() }).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    // The port or the data directory of a killed server may take a moment to be free.
    let server = wait::until_ok("the server to start", PATIENCE, || {
        let starting = runtime.spawn(serve(config.clone()));
        async { starting.await.unwrap() }
    });
    (server.await, runtime)
}
