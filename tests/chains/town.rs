//! A server with machines of all kinds, and the few words in which chains are told.

use crate::machine::Machine;
use saltern_e2e::SIGN_IN;
use saltern_testkit::http::{Http, Reply, Request};
use saltern_testkit::process::Saltern;
use saltern_testkit::salt::{self, Salt};
use saltern_testkit::scratch::Scratch;
use saltern_testkit::wait;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::{Mutex, MutexGuard, OnceCell};

/// How long anything may take that is bound to happen: longer than the engine takes to become sure that a job is gone.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
/// The native machine of [`Town::open`].
pub(crate) const NATIVE: &str = "n1";

const PASSWORD: &str = "correct horse battery";

/// A server that serves a tree of states, with machines that have signed in.
pub(crate) struct Town {
    pub(crate) server: Saltern,
    pub(crate) machines: Vec<Machine>,
    http: Http,
    token: String,
    _files: Scratch,
}

/// One test at a time: each loads the machine, and those that share a town disturb nobody.
pub(crate) async fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::const_new(());
    TURN.lock().await
}

/// The town that the scenarios share, for one of them at a time: `m3006` to `m3008` and [`NATIVE`], all in another time zone than
/// the server. Nothing where Salt is not installed.
pub(crate) async fn shared() -> Option<(MutexGuard<'static, ()>, MutexGuard<'static, Town>)> {
    static TOWN: OnceCell<Option<Mutex<Town>>> = OnceCell::const_new();
    let turn = turn().await;
    let start = async || Some(Mutex::new(Town::open(&[NATIVE], &[("TZ", "Asia/Tokyo")]).await?));
    let mut town = TOWN.get_or_init(start).await.as_ref()?.lock().await;
    town.tidy_up().await;
    Some((turn, town))
}

impl Town {
    /// One stock machine of each line and these native ones, with this in the environment of all; nothing where Salt is not
    /// installed.
    pub(crate) async fn open(natives: &[&str], env: &[(&str, &str)]) -> Option<Self> {
        let versions = salt::versions();
        if versions.is_empty() {
            return None;
        }
        let mut town = Self::empty().await;
        let ports = town.server.ports();
        for version in &versions {
            town.machines.push(Machine::stock(version, &format!("m{}", version.line), ports, env));
        }
        town.machines.extend(natives.iter().map(|id| Machine::native(id, ports, env)));
        town.all_are_ready().await;
        Some(town)
    }

    /// So many stock machines of each line, the lines in turn; nothing where Salt is not installed.
    pub(crate) async fn of_stock(each: usize) -> Option<Self> {
        let versions = salt::versions();
        if versions.is_empty() {
            return None;
        }
        let mut town = Self::empty().await;
        let ports = town.server.ports();
        for number in 1..=each {
            let start = |salt: &Salt| Machine::stock(salt, &format!("m{}-{number}", salt.line), ports, &[]);
            town.machines.extend(versions.iter().map(start));
        }
        town.all_are_ready().await;
        Some(town)
    }

    /// Native machines only.
    pub(crate) async fn of_natives(ids: &[&str]) -> Self {
        let mut town = Self::empty().await;
        let ports = town.server.ports();
        town.machines.extend(ids.iter().map(|id| Machine::native(id, ports, &[])));
        town.all_are_ready().await;
        town
    }

    /// Everything as a scenario finds it, whatever became of the one before: the server and all machines up, no launch open,
    /// no notes.
    async fn tidy_up(&mut self) {
        self.server.launch().await;
        for machine in &mut self.machines {
            machine.arm(None);
            if !machine.is_up() {
                machine.start();
            }
        }
        let open = async |town: &Self| town.get("/launches?open=true&limit=1000").await["launches"].clone();
        let left = open(self).await.as_array().cloned().unwrap_or_default();
        for launch in &left {
            // Its own scenario has told what is wrong with it; the next one must not suffer.
            println!("left open by an earlier scenario: {}", launch["name"]);
            self.ask(Request::post(&format!("/api/v1/launches/{}/stop", launch["id"]), &json!(null))).await;
        }
        if !left.is_empty() {
            self.machines.iter_mut().for_each(Machine::reboot);
            let town = &*self;
            wait::until_ok("what was left open to end", PATIENCE, async || {
                let still = open(town).await;
                if still == json!([]) { Ok(()) } else { Err(still.to_string()) }
            })
            .await;
        }
        for machine in &self.machines {
            machine.take_notes();
            ["packages", "update", "version", "newest", "shutdowns"].iter().for_each(|name| machine.remove(name));
        }
    }

    async fn empty() -> Self {
        let files = Scratch::new("tree");
        files.write("top.sls", "base: {'*': [good]}\n");
        files.write("good.sls", "fine: {test.succeed_without_changes: []}\n");
        files.write("noted.sls", "noted: {cmd.run: [{name: 'echo s >> $NOTES'}]}\n");
        files.write("bad.sls", "broken: {test.fail_without_changes: []}\n");
        files.write("broken.sls", "{% if %}\nthis: does not render\n");
        let config = format!("file_roots: {{base: [{}]}}\n", files.path().display());
        let server = Saltern::start(&config, &["--auto-accept"]).await;
        let http = Http::at(&server.url());
        let mut town = Self { server, machines: Vec::new(), http, token: String::new(), _files: files };
        town.token = town.person("ann", "server-admin").await;
        town
    }

    /// Makes a user; gives a token for him.
    pub(crate) async fn person(&self, name: &str, role: &str) -> String {
        let words = ["user", "create", name, "--password", PASSWORD, "--role", role];
        assert!(self.server.cli(&words).await.status.success(), "{words:?}");
        let made = self.server.cli(&["token", "create", "--user", name]).await;
        let token = String::from_utf8_lossy(&made.stdout).trim().to_owned();
        assert_eq!(token.len(), 64, "{}", String::from_utf8_lossy(&made.stderr));
        token
    }

    /// Waits until every machine can acknowledge.
    pub(crate) async fn all_are_ready(&self) {
        wait::until_ok("every machine to be ready", SIGN_IN, async || {
            let minions = self.server.cli_json(&["minion", "list"]).await;
            let list = minions.as_array().map(Vec::as_slice).unwrap_or_default();
            let ready = list.iter().filter(|minion| minion["ack_method"] != "none").count();
            if ready == self.machines.len() { Ok(()) } else { Err(minions.to_string()) }
        })
        .await;
    }

    /// Waits until a machine answers a ping.
    pub(crate) async fn answers(&self, id: &str) {
        wait::until_ok("the machine to answer a ping", SIGN_IN, async || {
            let answers = self.server.cli_json(&["run", "-t", "5", id, "test.ping"]).await;
            if answers[id] == true { Ok(()) } else { Err(answers.to_string()) }
        })
        .await;
    }

    pub(crate) fn ids(&self) -> Vec<&str> {
        self.machines.iter().map(Machine::id).collect()
    }

    /// The stock machines.
    pub(crate) fn stock(&self) -> Vec<&str> {
        self.machines.iter().filter(|machine| !machine.is_native()).map(Machine::id).collect()
    }

    pub(crate) fn machine(&self, id: &str) -> &Machine {
        self.machines.iter().find(|machine| machine.id() == id).unwrap_or_else(|| panic!("there is no {id}"))
    }

    pub(crate) fn machine_mut(&mut self, id: &str) -> &mut Machine {
        self.machines.iter_mut().find(|machine| machine.id() == id).unwrap_or_else(|| panic!("there is no {id}"))
    }

    // --- requests ---

    /// A request of the administrator.
    pub(crate) async fn ask(&self, request: Request) -> Reply {
        self.http.send(&request.token(&self.token)).await
    }

    /// A request of somebody else.
    pub(crate) async fn ask_as(&self, token: &str, request: Request) -> Reply {
        self.http.send(&request.token(token)).await
    }

    /// What is found at a path.
    pub(crate) async fn get(&self, path: &str) -> Value {
        let reply = self.ask(Request::get(&format!("/api/v1{path}"))).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        reply.json()
    }

    /// Sends something that has to succeed.
    pub(crate) async fn post(&self, path: &str, body: Value) -> Value {
        let reply = self.ask(Request::post(&format!("/api/v1{path}"), &body)).await;
        assert!(reply.status < 300, "{path} {body}: {} {}", reply.status, reply.text());
        reply.json()
    }

    /// Sends something that has to be refused; gives the status and what was said.
    pub(crate) async fn refused(&self, path: &str, body: Value) -> (u16, String) {
        let reply = self.ask(Request::post(&format!("/api/v1{path}"), &body)).await;
        assert!(reply.status >= 400, "{path} {body} was not refused: {}", reply.text());
        (reply.status, reply.text())
    }

    // --- chains and launches ---

    /// Makes a chain; gives its number.
    pub(crate) async fn chain(&self, name: &str, steps: Value) -> i64 {
        self.post("/chains", json!({ "name": name, "steps": steps })).await["id"].as_i64().unwrap()
    }

    /// Launches a chain; gives the number of the launch.
    pub(crate) async fn launch(&self, chain: i64, request: Value) -> i64 {
        self.post(&format!("/chains/{chain}/launch"), request).await["id"].as_i64().unwrap()
    }

    /// Makes a chain and launches it on these machines, where its steps name none.
    pub(crate) async fn launched(&self, name: &str, machines: &[&str], steps: Value) -> i64 {
        let chain = self.chain(name, steps).await;
        self.launch(chain, json!({ "target": machines, "tgt_type": "list" })).await
    }

    pub(crate) async fn detail(&self, launch: i64) -> Value {
        self.get(&format!("/launches/{launch}")).await
    }

    /// Where a launch stands on one machine.
    pub(crate) async fn part(&self, launch: i64, machine: &str) -> Value {
        let parts = self.get(&format!("/launches/{launch}/minions?limit=1000")).await;
        let list = parts["minions"].as_array().unwrap();
        let part = list.iter().find(|part| part["minion"] == machine);
        part.unwrap_or_else(|| panic!("launch {launch} has no part for {machine}: {parts}")).clone()
    }

    /// Waits until a launch stands so on one machine.
    pub(crate) async fn part_is(&self, launch: i64, machine: &str, state: &str) -> Value {
        wait::until_ok(&format!("launch {launch} to be {state} on {machine}"), PATIENCE, async || {
            let part = self.part(launch, machine).await;
            if part["state"] == state { Ok(part) } else { Err(self.story(launch, machine).await) }
        })
        .await
    }

    /// The run of a step on a machine.
    pub(crate) async fn run(&self, launch: i64, step: usize, machine: &str) -> Value {
        let action = self.action(launch, step).await;
        self.get(&format!("/actions/{action}/runs/{machine}")).await
    }

    /// The action of a step.
    pub(crate) async fn action(&self, launch: i64, step: usize) -> i64 {
        let detail = self.detail(launch).await;
        let steps = detail["steps"].as_array().unwrap();
        let found = steps.iter().find(|found| found["step"] == step);
        found.and_then(|found| found["action"].as_i64()).unwrap_or_else(|| panic!("no step {step}: {detail}"))
    }

    /// Waits until a step has this state there, which may be `failed(lost)`.
    pub(crate) async fn step_is(&self, launch: i64, step: usize, machine: &str, state: &str) -> Value {
        wait::until_ok(&format!("step {step} of launch {launch} to be {state} on {machine}"), PATIENCE, async || {
            let run = self.run(launch, step, machine).await;
            if end(&run) == state { Ok(run) } else { Err(self.story(launch, machine).await) }
        })
        .await
    }

    /// Waits until a step waits for something there.
    pub(crate) async fn step_waits(&self, launch: i64, step: usize, machine: &str, what: &str) {
        wait::until_ok(&format!("step {step} of launch {launch} to wait for {what}"), PATIENCE, async || {
            let run = self.run(launch, step, machine).await;
            if run["waiting_for"] == what { Ok(()) } else { Err(self.story(launch, machine).await) }
        })
        .await;
    }

    /// How every step of a launch stands on a machine: `1 completed, 2 failed(lost)`.
    pub(crate) async fn steps_on(&self, launch: i64, machine: &str) -> String {
        let mut words = Vec::new();
        for step in self.detail(launch).await["steps"].as_array().unwrap() {
            let runs = self.get(&format!("/actions/{}/runs?limit=1000", step["action"])).await;
            let run = runs["runs"].as_array().unwrap().iter().find(|run| run["minion"] == machine);
            words.extend(run.map(|run| format!("{} {}", step["step"], end(run))));
        }
        words.join(", ")
    }

    /// Everything that is known about a launch on a machine, for the message of a failing test.
    pub(crate) async fn story(&self, launch: i64, machine: &str) -> String {
        let part = self.part(launch, machine).await;
        let why = self.get(&format!("/launches/{launch}/minions/{machine}/explain")).await;
        format!("{}; {part}; {why}", self.steps_on(launch, machine).await)
    }

    /// Waits until a launch has ended; gives it.
    pub(crate) async fn ended(&self, launch: i64) -> Value {
        self.ended_within(launch, PATIENCE).await
    }

    pub(crate) async fn ended_within(&self, launch: i64, patience: Duration) -> Value {
        wait::until_ok(&format!("launch {launch} to end"), patience, async || {
            let detail = self.detail(launch).await;
            if detail["state"] == "ended" {
                return Ok(detail);
            }
            let parts = self.get(&format!("/launches/{launch}/minions?limit=1000")).await;
            let open = parts["minions"].as_array().unwrap().iter().find(|part| part["state"] != "ended").cloned();
            match open.as_ref().and_then(|part| part["minion"].as_str()) {
                Some(machine) => Err(self.story(launch, machine).await),
                None => Err(detail.to_string()),
            }
        })
        .await
    }

    /// Waits until a launch has ended, all of it well.
    pub(crate) async fn completes(&self, launch: i64) -> Value {
        let detail = self.ended(launch).await;
        let counts = &detail["counts"];
        if counts["completed"] != counts["total"] {
            let parts = self.get(&format!("/launches/{launch}/minions?limit=1000")).await;
            panic!("launch {launch} has not completed: {detail} {parts}");
        }
        detail
    }

    /// What a machine returned for a step.
    pub(crate) async fn returned(&self, launch: i64, step: usize, machine: &str) -> Value {
        let run = self.run(launch, step, machine).await;
        let jid = run["jid"].as_str().unwrap_or_else(|| panic!("no job: {run}"));
        self.server.cli_json(&["job", "show", jid]).await["returns"][machine].clone()
    }

    /// Waits until a file is there.
    pub(crate) async fn appears(&self, machine: &str, file: &str) {
        let path = self.machine(machine).file(file);
        wait::until(&format!("{file} on {machine}"), PATIENCE, async || path.exists()).await;
    }

    /// Waits until machines keep nothing of chains any more, and asserts that the server has no carrier open.
    pub(crate) async fn nothing_is_left(&self) {
        for machine in &self.machines {
            let what = format!("{} to keep nothing of a chain", machine.id());
            wait::until(&what, PATIENCE, async || machine.is_clear()).await;
        }
        wait::until_ok("no carrier to be open", PATIENCE, async || {
            let actions = self.get("/actions?internal=true&limit=1000").await;
            let list = actions["actions"].as_array().unwrap();
            let open: Vec<&Value> =
                list.iter().filter(|action| action["type"] == "chain" && action["state"] == "open").collect();
            if open.is_empty() { Ok(()) } else { Err(format!("{open:?}")) }
        })
        .await;
    }
}

/// How a run ended, or where it stands: `completed`, `failed(lost)`.
pub(crate) fn end(run: &Value) -> String {
    let state = run["state"].as_str().unwrap_or_default();
    match run["reason"].as_str() {
        Some(reason) => format!("{state}({reason})"),
        None => state.to_owned(),
    }
}

/// A step that notes a word.
pub(crate) fn note(word: &str) -> Value {
    script(&format!("echo {word} >> \"$NOTES\""))
}

/// A step that is under way until there is a file `go`, and notes a word then.
pub(crate) fn held(word: &str) -> Value {
    script(&format!(
        "touch \"$FOLDER/begun\"; while [ ! -e \"$FOLDER/go\" ]; do sleep 0.05; done; echo {word} >> \"$NOTES\""
    ))
}

pub(crate) fn script(body: &str) -> Value {
    json!({ "type": "script", "params": { "body": body } })
}

pub(crate) fn reboot() -> Value {
    json!({ "type": "reboot" })
}

/// A step with something else about it.
pub(crate) fn with(mut step: Value, name: &str, value: impl Into<Value>) -> Value {
    step[name] = value.into();
    step
}

/// A step for these machines.
pub(crate) fn on(machines: &[&str], step: Value) -> Value {
    with(step, "target", json!({ "minions": machines }))
}
