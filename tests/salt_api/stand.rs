//! The set-up behind the captures, rebuilt: the users, the keys, the two minions, the states and the jobs they speak of.

use saltern_e2e::SIGN_IN;
use saltern_e2e::native::NativeMinion;
use saltern_testkit::fake_minion::{FakeMinion, key_named};
use saltern_testkit::http::{Http, Reply, Request};
use saltern_testkit::process::Saltern;
use saltern_testkit::salt::{self, Line, StockMinion};
use saltern_testkit::wait;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::sync::{Mutex, MutexGuard, OnceCell};

/// How long a job may take to be there with all its answers.
const JOB: Duration = Duration::from_secs(60);

/// A server with everything the captures speak of.
pub(crate) struct Stand {
    pub(crate) server: Saltern,
    pub(crate) http: Http,
    minions: Mutex<Vec<StockMinion>>,
    native: Option<NativeMinion>,
    /// Tokens by user, and what else stands in a request for something that is different each time
    known: Mutex<HashMap<String, String>>,
    turn: Mutex<()>,
}

impl Stand {
    /// The one that all tests share, with stock minions `web1` and `db1`; nothing where Salt is not installed.
    pub(crate) async fn shared() -> Option<&'static Stand> {
        static STAND: OnceCell<Option<Stand>> = OnceCell::const_new();
        STAND.get_or_init(Stand::start).await.as_ref()
    }

    /// This test's turn: what it does to keys and jobs disturbs nobody.
    pub(crate) async fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    async fn start() -> Option<Stand> {
        let salt = salt::version(Line::L3006)?;
        let stand = Stand::launch("", "").await;
        let start = |id: &str| {
            let more = format!("grains:\n  roles: [{id}]\nmine_functions:\n  test.ping: []\n");
            StockMinion::start(&salt, id, stand.server.ports(), &more)
        };
        let stand = Stand { minions: Mutex::new(["web1", "db1"].map(start).into()), ..stand };
        stand.sign_in("ghost1").await;
        for id in ["web1", "db1", "ghost1"] {
            stand.accept(id).await;
        }
        stand.wait_for(&["web1", "db1"]).await;
        // What `runner-cache.mine` and `-pillar` look at, and a file that is as the state wants it.
        for fun in ["mine.update", "saltutil.refresh_pillar"] {
            stand.local("*", fun, json!([])).await;
        }
        stand.local("web1", "state.apply", json!(["hello"])).await;
        Some(stand)
    }

    /// A server for the captures that were made with other settings: with an app, with a rule for everybody, with hooks for
    /// everybody, and with one client only. Its `web1` is a native minion.
    pub(crate) async fn otherwise() -> Stand {
        let stand = Stand::launch("    '*': [grains.item]\n", OTHERWISE).await;
        let native = NativeMinion::start("web1", stand.server.ports(), "");
        let stand = Stand { native: Some(native), ..stand };
        stand.accept("web1").await;
        stand.wait_for(&["web1"]).await;
        stand
    }

    /// Starts a server; `rules` are more of `external_auth.file`, `settings` more of its configuration.
    async fn launch(rules: &str, settings: &str) -> Stand {
        let mut server = prepare(rules, settings);
        server.launch().await;
        let http = Http::at(&server.url());
        wait::until("HTTP to be served", Duration::from_secs(30), || http.is_up()).await;
        let (minions, known, turn) = (Mutex::default(), Mutex::default(), Mutex::default());
        Stand { server, http, minions, native: None, known, turn }
    }

    /// Restarts the server; its minions come back.
    pub(crate) async fn restart(&mut self) {
        self.server.restart().await;
        let http = self.http;
        wait::until("HTTP to be served again", Duration::from_secs(30), || http.is_up()).await;
        if self.native.is_some() {
            self.wait_for(&["web1"]).await;
        }
    }

    /// Kills a minion and starts it again.
    pub(crate) async fn restart_minion(&self, id: &str) {
        let mut minions = self.minions.lock().await;
        let minion = minions.iter_mut().find(|minion| minion.id() == id).expect("the minion is one of ours");
        minion.kill();
        minion.launch();
    }

    /// Lets somebody sign in, with the key that goes by its name.
    pub(crate) async fn sign_in(&self, id: &str) {
        let server = SocketAddr::from(([127, 0, 0, 1], self.server.ports().return_port));
        FakeMinion::connect(server, id).await.auth().await;
    }

    /// Accepts a key as soon as it is there.
    pub(crate) async fn accept(&self, id: &str) {
        self.decide("accept", id).await;
    }

    async fn decide(&self, verb: &str, id: &str) {
        wait::until_ok(&format!("the key of {id}"), SIGN_IN, async || {
            let output = self.server.cli(&["key", verb, "-y", id]).await;
            if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
        })
        .await;
    }

    async fn wait_for(&self, ids: &[&str]) {
        wait::until_ok("every minion to answer a ping", SIGN_IN, async || {
            let answers = self.server.cli_json(&["run", "-t", "5", "-L", &ids.join(","), "test.ping"]).await;
            if ids.iter().all(|id| answers[id] == true) { Ok(()) } else { Err(answers.to_string()) }
        })
        .await;
    }

    /// The keys the captures speak of: `pend1` and `pend2` wait, `rej1` is out, and somebody else claims to be `den1`.
    pub(crate) async fn bring_keys(&self) {
        self.remove_keys().await;
        for id in ["pend1", "pend2", "rej1", "den1"] {
            self.sign_in(id).await;
        }
        self.decide("reject", "rej1").await;
        self.decide("accept", "den1").await;
        let server = SocketAddr::from(([127, 0, 0, 1], self.server.ports().return_port));
        FakeMinion::connect_with(server, "den1", key_named("somebody else")).await.auth().await;
    }

    /// The only key the captures of 3006 speak of: `pend1` waits.
    pub(crate) async fn bring_pending_key(&self) {
        self.remove_keys().await;
        self.sign_in("pend1").await;
    }

    /// Takes away every key but those of the minions and of `ghost1`.
    pub(crate) async fn remove_keys(&self) {
        for id in ["pend1", "pend2", "rej1", "den1", "newmin", "kick1", "evmin"] {
            // Fails where there is none, which is what is wanted.
            self.server.cli(&["key", "delete", "-y", id]).await;
        }
    }

    /// A token of this user: the same one each time.
    pub(crate) async fn token(&self, user: &str) -> String {
        let mut known = self.known.lock().await;
        if let Some(token) = known.get(user) {
            return token.clone();
        }
        let token = self.log_in(user).await;
        known.insert(user.to_owned(), token.clone());
        token
    }

    /// Logs a user in and gives the new token.
    pub(crate) async fn log_in(&self, user: &str) -> String {
        let reply = self.http.send(&Request::post("/login", &credentials(user))).await;
        assert_eq!(reply.status, 200, "{user} cannot log in: {}", reply.text());
        reply.json()["return"][0]["token"].as_str().expect("a login gives a token").to_owned()
    }

    /// Fills in what stands in a capture for something that is different each time.
    pub(crate) async fn fill(&self, text: &str, user: Option<&str>) -> String {
        let user = user.unwrap_or("admin");
        let mut text = text.to_owned();
        if text.contains("{token}") {
            text = text.replace("{token}", &self.token(user).await);
        }
        if text.contains("{fresh}") {
            let token = self.log_in(user).await;
            self.known.lock().await.insert("{spent}".into(), token.clone());
            text = text.replace("{fresh}", &token);
        }
        if text.contains("{eauth}") {
            let reply = self.http.send(&Request::post("/token", &credentials(user))).await;
            let token = reply.json()[0]["token"].as_str().unwrap_or_default().to_owned();
            text = text.replace("{eauth}", &token);
        }
        for (name, value) in self.known.lock().await.iter().filter(|(name, _)| name.starts_with('{')) {
            text = text.replace(name.as_str(), value);
        }
        text
    }

    /// Remembers what a `{jid:name}` stands for.
    async fn remember(&self, name: &str, jid: &str) {
        self.known.lock().await.insert(format!("{{jid:{name}}}"), jid.to_owned());
    }

    /// Sends low data as `admin`.
    pub(crate) async fn low(&self, low: &Value) -> Reply {
        self.low_as("admin", low).await
    }

    /// Sends low data as somebody.
    pub(crate) async fn low_as(&self, user: &str, low: &Value) -> Reply {
        let request = Request::post("/", low).header("Accept", "application/json").token(&self.token(user).await);
        self.http.send(&request).await
    }

    /// The first element of what low data returned; fails the test where it was refused.
    pub(crate) async fn result(&self, low: &Value) -> Value {
        let reply = self.low(low).await;
        assert_eq!(reply.status, 200, "{low}: {}", reply.text());
        reply.json()["return"][0].take()
    }

    /// Runs a function on minions and gives `{minion: return}`.
    pub(crate) async fn local(&self, tgt: &str, fun: &str, arg: Value) -> Value {
        self.result(&json!({ "client": "local", "tgt": tgt, "fun": fun, "arg": arg })).await
    }

    /// Starts low data of an asynchronous client, gives its job id and what it is called in captures.
    pub(crate) async fn start_job(&self, name: &str, low: &Value) -> String {
        let started = self.result(low).await;
        let jid = started["jid"].as_str().unwrap_or_else(|| panic!("{low}: no job id: {started}")).to_owned();
        self.remember(name, &jid).await;
        jid
    }

    /// Waits until these have answered a job (the server itself for what a runner does).
    pub(crate) async fn wait_for_job(&self, jid: &str, ids: &[&str]) {
        let low = json!({ "client": "runner", "fun": "jobs.list_job", "jid": jid });
        wait::until_ok("a job's answers", JOB, async || {
            let job = self.result(&low).await;
            if ids.iter().all(|id| job["Result"].get(id).is_some()) { Ok(()) } else { Err(job.to_string()) }
        })
        .await;
    }

    /// The jobs the captures speak of.
    pub(crate) async fn bring_jobs(&self) {
        let arguments = json!({ "client": "local_async", "tgt": "web1,db1", "tgt_type": "list", "fun": "test.arg",
            "arg": ["a", 1], "kwarg": { "k": "v" }, "metadata": { "ticket": "T-9" } });
        let simple =
            |tgt: &str, fun: &str, arg: Value| json!({ "client": "local_async", "tgt": tgt, "fun": fun, "arg": arg });
        let runner = |fun: &str| json!({ "client": "runner_async", "fun": fun });
        let mut with_arguments = runner("test.arg");
        with_arguments["arg"] = json!([1, "x"]);
        with_arguments["kwarg"] = json!({ "a": "b" });
        let mut orchestrate = runner("state.orchestrate");
        orchestrate["mods"] = json!("orch.failing");
        for (name, low, ids) in [
            ("arguments", arguments, &["web1", "db1"] as &[&str]),
            ("partial", simple("*", "test.ping", json!([])), &["web1", "db1"]),
            ("state", simple("web1", "state.apply", json!(["hello"])), &["web1"]),
            ("state-failed", simple("web1", "state.apply", json!(["fail"])), &["web1"]),
            ("unknown-function", simple("db1", "nosuch.func", json!([])), &["db1"]),
            ("runner", with_arguments, &[MASTER]),
            ("failed-runner", runner("jobs.list_job"), &[MASTER]),
            ("orchestrate", orchestrate, &[MASTER]),
            ("wheel", json!({ "client": "wheel_async", "fun": "key.list_all" }), &[]),
        ] {
            let jid = self.start_job(name, &low).await;
            self.wait_for_job(&jid, ids).await;
        }
        // A compound command: once there was one, the real server could no longer search for functions.
        let compound =
            json!({ "client": "local", "tgt": "web1", "fun": ["test.ping", "test.echo"], "arg": [[], ["x"]] });
        self.result(&compound).await;
    }

    /// Text of this stand with its own folder called what it was called in the captures.
    pub(crate) fn moved(&self, text: &str) -> String {
        text.replace(&self.server.root().display().to_string(), "/srv/demo")
    }
}

/// The name of the server in the captures.
pub(crate) const MASTER: &str = "host1_master";

/// What a user logs in with.
pub(crate) fn credentials(user: &str) -> Value {
    json!({ "username": user, "password": format!("{user}pw"), "eauth": "file" })
}

/// Writes the files of a server and its configuration.
fn prepare(rules: &str, settings: &str) -> Saltern {
    let server = Saltern::prepare("", &[]);
    let root = server.root().display().to_string();
    let users = USERS.map(|user| format!("{user}:{user}pw\n")).concat();
    server.write("users.txt", users);
    for (path, content) in FILES {
        server.write(&format!("srv/{path}"), content.replace("{root}", &root));
    }
    // The rules go on where the configuration ends.
    let config = format!("{CONFIG}{rules}{settings}");
    server.configure(&config.replace("{root}", &root));
    server
}

const USERS: [&str; 9] =
    ["admin", "ops", "tester", "webonly", "runneronly", "wheelonly", "jobsonly", "argonly", "noperm"];

const CONFIG: &str = "\
id: host1_master
timeout: 5
gather_job_timeout: 3
presence_events: true
nodegroups:
  web: L@web1
  all: '* and not L@zzz'
cors_origins: ['http://example.test']
file_roots:
  base: ['{root}/srv/salt']
pillar_roots:
  base: ['{root}/srv/pillar']
saltgui_templates:
  t1: {description: First template, target: 'web*', command: test.ping}
  t2: {description: Run highstate, targettype: compound, target: 'G@os:Debian', command: [state.apply, 'test=true']}
saltgui_hide_jobs: [test.fib]
saltgui_tooltip_mode: full
reactor:
  - 'custom/react/*': ['{root}/srv/salt/react.sls']
sharedsecret: s3cret
external_auth:
  sharedsecret:
    '*': ['.*', '@runner', '@wheel', '@jobs']
  file:
    ^filename: '{root}/users.txt'
    admin: ['.*', '@runner', '@wheel', '@jobs']
    ops: ['.*', {'@runner': ['jobs.*', 'manage.*']}, {'@wheel': [key.list_all, key.finger]}]
    tester: ['test.*', grains.items, sys.doc]
    webonly: [{'web*': ['test.*', 'grains.*']}]
    runneronly: ['@runner']
    wheelonly: ['@wheel']
    jobsonly: ['@jobs']
    argonly: [{'*': [test.ping, {test.echo: {args: ['ok.*']}}, {test.kwarg: {kwargs: {a: '1'}}}]}]
";

const OTHERWISE: &str = "\
rest_cherrypy:
  app: '{root}/srv/app/index.html'
  static: '{root}/srv/app/static'
  webhook_disable_auth: true
netapi_enable_clients: [local]
";

const FILES: &[(&str, &str)] = &[
    ("salt/top.sls", "base:\n  '*':\n    - hello\n"),
    (
        "salt/hello.sls",
        "hello-file:\n  file.managed:\n    - name: {root}/hello-{{ grains.id }}.txt\n    - contents: hello world\n\n\
         noop:\n  test.nop: []\n",
    ),
    (
        "salt/fail.sls",
        "bad:\n  test.fail_without_changes: []\n\ngood:\n  test.succeed_with_changes:\n    - require:\n      - test: bad\n",
    ),
    ("salt/broken.sls", "broken:\n  test.nop: [\n}\n"),
    ("salt/react.sls", "{}\n"),
    (
        "salt/orch/ping.sls",
        "ping_all:\n  salt.function:\n    - name: test.ping\n    - tgt: '*'\n\nhello_state:\n  salt.state:\n    - tgt: web1\n\
         \x20   - sls: hello\n",
    ),
    ("salt/orch/failing.sls", "fail_state:\n  salt.state:\n    - tgt: web1\n    - sls: fail\n"),
    ("pillar/top.sls", "base:\n  '*':\n    - data\n"),
    ("pillar/data.sls", "greet: world\nnested:\n  a: 1\n  b: [x, y]\nsecret_password: hunter2\n"),
    ("app/index.html", "<!DOCTYPE html>\n<title>the app</title>\n"),
    ("app/static/scripts/config.js", "export const config = {};\n"),
];
