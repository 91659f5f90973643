//! Chunks of action chains on stock Salt of every supported line, and the same functions of the native minion.
//!
//! The module is run by real `salt-call` processes; a power cut is a SIGKILL, a reboot is another text in the file of the
//! boot id. What the minions tell while they work is seen by a real server.

#![expect(clippy::panic, reason = "a machine that does the unexpected fails its test")]

use saltern_e2e::native::NativeMinion;
use saltern_e2e::{Fleet, events_with_tag};
use saltern_testkit::daemon::Daemon;
use saltern_testkit::installed::Line;
use saltern_testkit::process::run_to_end;
use saltern_testkit::salt::{self, Salt};
use saltern_testkit::scratch::Scratch;
use saltern_testkit::wait;
use serde_json::{Value, json};
use std::process::Command;
use std::time::Duration;

const MODULE: &str = include_str!("../crates/server/src/master/chain_module.py");
const PATIENCE: Duration = Duration::from_secs(120);

/// More fault points than there are: a chunk that is never through would be tried for ever.
const TOO_MANY: u64 = 200;

/// A machine with a stock Salt that has the module.
struct Machine {
    salt: Salt,
    scratch: Scratch,
}

impl Machine {
    fn new(salt: &Salt) -> Self {
        let machine = Self::without_module(salt);
        // Where a sync puts it.
        machine.scratch.write("cache/extmods/modules/saltern_chain.py", MODULE);
        machine
    }

    fn without_module(salt: &Salt) -> Self {
        let scratch = Scratch::new("chm");
        let root = scratch.path().display().to_string();
        scratch.write(
            "etc/minion",
            format!(
                "id: m1\nroot_dir: {root}\ncachedir: {root}/cache\nextension_modules: {root}/cache/extmods\n\
                 pki_dir: {root}/pki\nsock_dir: {root}/sock\nlog_file: {root}/log\nfile_client: local\n\
                 file_roots: {{base: [{root}/srv]}}\nsaltern_boot_id_file: {root}/boot_id\n"
            ),
        );
        scratch.write("srv/_modules/saltern_chain.py", MODULE);
        scratch.write("srv/good.sls", "fine: {test.succeed_without_changes: []}\n");
        scratch.write("srv/bad.sls", "broken: {test.fail_without_changes: []}\n");
        scratch.write("boot_id", "boot-1\n");
        Self { salt: salt.clone(), scratch }
    }

    /// One machine of each line.
    fn of_each_line() -> Vec<Self> {
        salt::versions().iter().map(Self::new).collect()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.salt.program("salt-call"));
        command.arg("-c").arg(self.scratch.path().join("etc")).args(["--local", "--out", "json", "-l", "quiet"]);
        command.args(words).current_dir(self.scratch.path());
        command
    }

    async fn call(&self, words: &[&str]) -> Value {
        let output = run_to_end(self.command(words), PATIENCE).await;
        let answer: Option<Value> = serde_json::from_slice(&output.stdout).ok();
        match answer {
            Some(mut answer) => answer["local"].take(),
            None => panic!("{} {words:?}: {}", self.salt.version, String::from_utf8_lossy(&output.stderr)),
        }
    }

    fn start_command(&self, launch: &str, chunk: u32, steps: &Value) -> Command {
        self.command(&["saltern_chain.start", launch, &chunk.to_string(), &steps.to_string()])
    }

    async fn start(&self, launch: &str, chunk: u32, steps: Value) -> Value {
        self.call(&["saltern_chain.start", launch, &chunk.to_string(), &steps.to_string()]).await
    }

    async fn resume(&self) -> Value {
        self.call(&["saltern_chain.resume"]).await
    }

    async fn status(&self) -> Value {
        self.call(&["saltern_chain.status"]).await
    }

    /// Runs a command that dies at a fault point; whether it did.
    async fn dies_at(&self, mut command: Command, point: u64) -> bool {
        use std::os::unix::process::ExitStatusExt as _;
        command.env("SALTERN_CHAIN_CRASH_AT", point.to_string());
        run_to_end(command, PATIENCE).await.status.signal() == Some(9)
    }

    /// Starts a chunk in a process of its own and waits until its first step, which [`Machine::held`] made, is under way.
    async fn begin(&self, steps: &Value) -> Daemon {
        let mut command = self.start_command("7", 1, steps);
        let daemon = Daemon::spawn("salt-call", &mut command, &self.scratch.path().join("console"), &[]);
        wait::until("the first step", PATIENCE, async || self.scratch.path().join("begun").exists()).await;
        daemon
    }

    /// A step that notes that it was run.
    fn note(&self, id: &str) -> Value {
        json!({ "id": id, "kind": "call", "fun": "cmd.run", "arg": [format!("echo {id} >> {}", self.file("notes"))] })
    }

    /// A step that is under way until there is a file `go`, and notes then that it was run.
    fn held(&self, id: &str) -> Value {
        let [begun, go, notes] = ["begun", "go", "notes"].map(|name| self.file(name));
        let script = format!("touch {begun}; while [ ! -e {go} ]; do sleep 0.05; done; echo {id} >> {notes}");
        json!({ "id": id, "kind": "call", "fun": "cmd.run", "arg": [script] })
    }

    fn notes(&self) -> String {
        std::fs::read_to_string(self.file("notes")).unwrap_or_default().replace('\n', "")
    }

    fn boot(&self, id: &str) {
        self.scratch.write("boot_id", id);
    }

    fn file(&self, name: &str) -> String {
        self.scratch.path().join(name).display().to_string()
    }
}

fn with(mut step: Value, key: &str, value: Value) -> Value {
    step[key] = value;
    step
}

/// The states of the chunk and of its steps.
fn states(answer: &Value) -> String {
    let mut words = vec![answer["state"].as_str().unwrap_or("?").to_owned()];
    let steps = answer["steps"].as_object().into_iter().flatten();
    words.extend(steps.map(|(id, step)| format!("{id}:{}", step["state"].as_str().unwrap_or("?"))));
    words.join(" ")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_module_is_synced_and_explains_itself() {
    for salt in salt::versions() {
        let machine = Machine::without_module(&salt);
        assert_eq!(machine.call(&["saltutil.sync_modules"]).await, json!(["modules.saltern_chain"]));
        let docs = machine.call(&["sys.doc", "saltern_chain"]).await;
        for name in ["start", "resume", "status", "cancel", "stop", "clear"] {
            let doc = docs[format!("saltern_chain.{name}")].as_str().unwrap_or_default();
            assert!(doc.contains("CLI Example"), "{}: {name}: {doc}", salt.version);
        }
        assert_eq!(docs.as_object().map(|docs| docs.len()), Some(6), "{docs}");
        assert_eq!(machine.status().await["state"], "none");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_run_in_order_and_keep_the_shape_of_their_results() {
    for machine in Machine::of_each_line() {
        let good =
            json!({ "id": "s", "kind": "call", "fun": "state.apply", "arg": ["good"], "kwarg": { "queue": true } });
        let echo =
            json!({ "id": "e", "kind": "call", "fun": "test.arg_clean", "arg": [1, "a=b"], "kwarg": { "x": [2] } });
        let answer = machine.start("7", 1, json!([machine.note("b"), machine.note("a"), good, echo])).await;
        assert_eq!(states(&answer), "done b:done a:done s:done e:done", "{answer}");
        assert_eq!(machine.notes(), "ba");
        assert_eq!(answer["boot_id"], "boot-1");
        let applied = &answer["steps"]["s"]["ret"]["test_|-fine_|-fine_|-succeed_without_changes"];
        assert_eq!(applied["result"], true, "{answer}");
        assert_eq!(answer["steps"]["e"]["ret"], json!({ "args": [1, "a=b"], "kwargs": { "x": [2] } }));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_skips_what_needs_success_and_runs_what_waits_for_it() {
    for machine in Machine::of_each_line() {
        let steps = json!([
            { "id": "s", "kind": "call", "fun": "state.apply", "arg": ["bad"] },
            machine.note("b"),
            with(machine.note("c"), "after", json!("failed")),
            with(machine.note("d"), "after", json!("always")),
        ]);
        let answer = machine.start("7", 1, steps).await;
        assert_eq!(states(&answer), "failed s:failed b:skipped c:done d:done", "{answer}");
        assert_eq!(answer["steps"]["s"]["retcode"], 2);
        assert_eq!(machine.notes(), "cd");
        // It reaches into the next chunk.
        assert_eq!(states(&machine.start("7", 2, json!([machine.note("e")])).await), "failed e:skipped");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_way_a_function_fails_its_step_has() {
    for machine in Machine::of_each_line() {
        let failing = |fun: &str, arg: Value| json!({ "id": fun, "fun": fun, "arg": arg, "after": "always" });
        let steps = json!([
            failing("cmd.run", json!(["exit 3"])),
            failing("test.exception", json!(["boom"])),
            failing("test.assertion", json!([1, 2, 3])),
            failing("no.such", json!([])),
            failing("test.false", json!([])),
        ]);
        let answer = machine.start("7", 1, steps).await;
        let step = |id: &str| (answer["steps"][id]["retcode"].clone(), answer["steps"][id]["ret"].to_string());
        assert_eq!(step("cmd.run").0, 3);
        assert!(step("test.exception").1.contains("boom"), "{answer}");
        assert!(step("test.assertion").1.contains("Passed invalid arguments"), "{answer}");
        assert_eq!(step("no.such"), (json!(1), "\"'no.such' is not available.\"".into()));
        // An answer that is false is an answer.
        assert_eq!(step("test.false"), (json!(0), "false".into()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reboot_is_over_when_the_boot_id_differs() {
    for machine in Machine::of_each_line() {
        let reboot = with(machine.note("r"), "kind", json!("reboot"));
        let answer = machine.start("7", 1, json!([machine.note("a"), reboot])).await;
        assert_eq!(states(&answer), "rebooting a:done r:started", "{answer}");
        // The agent alone was restarted.
        assert_eq!(states(&machine.resume().await), "rebooting a:done r:started");
        let refused = machine.start("7", 2, json!([machine.note("b")])).await;
        assert_eq!((&refused["error"], &refused["state"]), (&json!("not_yet"), &json!("rebooting")));
        let refused = machine.start("8", 1, json!([machine.note("x")])).await;
        assert_eq!((&refused["error"], &refused["launch"]), (&json!("busy"), &json!("7")));
        machine.boot("boot-2");
        assert_eq!(states(&machine.resume().await), "done a:done r:done");
        assert_eq!(states(&machine.start("7", 2, json!([machine.note("b")])).await), "done b:done");
        assert_eq!(machine.notes(), "arb");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_start_runs_nothing_again() {
    for machine in Machine::of_each_line() {
        let first = machine.start("7", 1, json!([machine.note("a")])).await;
        assert_eq!(machine.start("7", 1, json!([machine.note("a")])).await, first);
        assert_eq!(machine.notes(), "a");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_resumes_at_once_run_once() {
    for machine in Machine::of_each_line() {
        let steps = json!([machine.note("a"), { "id": "s", "fun": "test.sleep", "arg": [3] }, machine.note("b")]);
        // The chunk is written down whole, and nothing of it was begun.
        assert!(machine.dies_at(machine.start_command("7", 1, &steps), 4).await);
        assert_eq!(states(&machine.status().await), "running a:waiting s:waiting b:waiting");
        let (one, other) = tokio::join!(machine.resume(), machine.resume());
        assert_eq!(machine.notes(), "ab", "{one} {other}");
        assert_eq!(states(&machine.status().await), "done a:done s:done b:done");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_step_ends_the_chain_unless_it_may_be_repeated() {
    for machine in Machine::of_each_line() {
        let mut agent = machine.begin(&json!([machine.held("a"), machine.note("b")])).await;
        assert_eq!(machine.start("8", 1, json!([machine.note("x")])).await["error"], "busy");
        agent.kill();
        assert_eq!(states(&machine.resume().await), "stopped a:interrupted b:skipped");
        assert_eq!(machine.call(&["saltern_chain.clear", "7"]).await["cleared"], "7");
        std::fs::remove_file(machine.file("begun")).expect("the step made it");
        let repeatable = with(machine.held("a"), "repeatable", json!(true));
        machine.begin(&json!([repeatable, machine.note("b")])).await.kill();
        machine.scratch.write("go", "");
        assert_eq!(states(&machine.resume().await), "done a:done b:done");
        assert_eq!(machine.notes(), "ab");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_lets_the_running_step_finish_and_begins_nothing_more() {
    for machine in Machine::of_each_line() {
        let agent = machine.begin(&json!([machine.held("a"), machine.note("b")])).await;
        let answer = machine.call(&["saltern_chain.cancel", "7"]).await;
        assert_eq!((states(&answer).as_str(), &answer["alive"]), ("running a:started b:waiting", &json!(true)));
        machine.scratch.write("go", "");
        wait::until("the end of the chunk", PATIENCE, async || !agent.is_running()).await;
        assert_eq!(states(&machine.status().await), "cancelled a:done b:cancelled");
        assert_eq!(machine.start("7", 2, json!([machine.note("c")])).await["error"], "cancelled");
        assert_eq!(machine.notes(), "a");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_kills_the_running_step() {
    for machine in Machine::of_each_line() {
        let agent = machine.begin(&json!([machine.held("a"), machine.note("b")])).await;
        let answer = machine.call(&["saltern_chain.stop", "7"]).await;
        assert_eq!(states(&answer), "stopped a:interrupted b:cancelled", "{answer}");
        assert!(!agent.is_running());
        machine.scratch.write("go", "");
        assert_eq!(states(&machine.resume().await), "stopped a:interrupted b:cancelled");
        assert_eq!(machine.notes(), "");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_an_update_that_killed_the_agent_the_next_chunk_checks() {
    for machine in Machine::of_each_line() {
        let update = with(machine.held("u"), "kind", json!("update"));
        machine.begin(&json!([update])).await.kill();
        assert_eq!(states(&machine.resume().await), "updating u:started");
        let check = json!({ "id": "c", "kind": "check", "fun": "test.exception", "arg": ["not updated"] });
        let answer = machine.start("7", 2, json!([check, machine.note("b")])).await;
        assert_eq!(states(&answer), "failed c:failed b:skipped", "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_fails_if_it_does_not_return_what_is_expected() {
    for machine in Machine::of_each_line() {
        let check = |id: &str, gives: Value, wants: Value| {
            let check = json!({ "id": id, "kind": "check", "fun": "test.echo", "arg": [gives], "expect": wants });
            with(check, "after", json!("always"))
        };
        let steps = json!([
            check("same", json!({ "b": [1, null], "a": "3008.3" }), json!({ "a": "3008.3", "b": [1, null] })),
            check("any", json!("x"), Value::Null),
            check("other", json!("3006.1"), json!("3008.3")),
            check("kind", json!(1), json!(true)),
            check("long", json!("ä".repeat(300)), json!("")),
        ]);
        let answer = machine.start("7", 1, steps).await;
        let step = |id: &str| (answer["steps"][id]["state"].clone(), answer["steps"][id]["ret"].clone());
        assert_eq!(states(&answer), "failed same:done any:done other:failed kind:failed long:failed", "{answer}");
        assert_eq!(step("any").1, "x");
        assert_eq!(step("other").1, "not updated: test.echo gave \"3006.1\", wanted \"3008.3\"");
        assert_eq!(answer["steps"]["other"]["retcode"], 1);
        assert_eq!(step("kind").1, "not updated: test.echo gave 1, wanted true");
        assert_eq!(step("long").1, format!("not updated: test.echo gave \"{}..., wanted \"\"", "ä".repeat(199)));

        let command = machine.start_command("8", 1, &json!([with(machine.note("a"), "expect", json!(1))]));
        let refused = String::from_utf8_lossy(&run_to_end(command, PATIENCE).await.stderr).into_owned();
        assert!(refused.contains("step a: only a check has an expectation"), "{refused}");
        assert_eq!(machine.notes(), "");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_run_waits_for_another_one() {
    for machine in Machine::of_each_line() {
        let script = machine.held("x")["arg"][0].to_string();
        machine.scratch.write("srv/slow.sls", format!("slow: {{cmd.run: [{{name: {script}}}]}}\n"));
        let console = machine.scratch.path().join("console");
        let other = Daemon::spawn("salt-call", &mut machine.command(&["state.apply", "slow"]), &console, &[]);
        wait::until("the other run", PATIENCE, async || machine.scratch.path().join("begun").exists()).await;
        let good = json!({ "id": "s", "fun": "state.apply", "arg": ["good"], "kwarg": { "queue": true } });
        let refused = with(with(good.clone(), "id", json!("r")), "kwarg", json!({ "queue": false }));
        let steps = json!([refused, with(good, "after", json!("failed"))]);
        let (answer, ()) = tokio::join!(machine.start("7", 1, steps), async {
            wait::until("the step", PATIENCE, async || machine.status().await["steps"]["s"]["state"] == "started")
                .await;
            machine.scratch.write("go", "");
        });
        assert_eq!(states(&answer), "failed r:failed s:done", "{answer}");
        assert!(answer["steps"]["s"]["ret"].is_object(), "{answer}");
        wait::until("the end of the other run", PATIENCE, async || !other.is_running()).await;
        assert_eq!(machine.notes(), "x");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_full_disk_cannot_keep_is_told_at_once() {
    for machine in Machine::of_each_line() {
        let spoil = format!("mkdir {}/saltern_chain/store.json.new", machine.file("cache"));
        let steps = json!([{ "id": "a", "fun": "cmd.run", "arg": [spoil] }, machine.note("b")]);
        let answer = machine.start("7", 1, steps).await;
        assert_eq!((states(&answer).as_str(), &answer["error"]), ("running a:done b:waiting", &json!("store")));
        assert_eq!(states(&machine.status().await), "stopped a:interrupted b:skipped");
        assert_eq!(machine.notes(), "");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_store_is_told_and_kept_until_it_is_set_aside() {
    for machine in Machine::of_each_line() {
        machine.start("7", 1, json!([machine.note("a")])).await;
        machine.scratch.write("cache/saltern_chain/store.json", "{\"version\":1,");
        for name in ["status", "resume", "clear"] {
            assert_eq!(machine.call(&[&format!("saltern_chain.{name}")]).await["error"], "damaged", "{name}");
        }
        assert_eq!(machine.start("8", 1, json!([machine.note("b")])).await["error"], "damaged");
        let cleared = machine.call(&["saltern_chain.clear", "force=True"]).await;
        let kept = std::fs::read_to_string(cleared["kept"].as_str().unwrap_or_default());
        assert_eq!(kept.ok().as_deref(), Some("{\"version\":1,"));
        assert_eq!(machine.start("8", 1, json!([machine.note("b")])).await["state"], "done");
        assert_eq!(machine.notes(), "ab");
    }
}

/// Cuts the power at every instant between two writes of a chunk, and lets the machine come back.
async fn power_is_cut_at_every_instant(line: Line) {
    let Some(salt) = salt::version(line) else { return };
    let (mut done, mut stopped) = (0, 0);
    for point in 1..TOO_MANY {
        let machine = Machine::new(&salt);
        let steps = json!([machine.note("a"), with(machine.note("r"), "kind", json!("reboot"))]);
        if !machine.dies_at(machine.start_command("7", 1, &steps), point).await {
            // Six writes of four points each, and two around each of two calls.
            assert_eq!(point - 1, 6 * 4 + 2 * 2);
            assert!(done > 0 && stopped > 0);
            return;
        }
        machine.boot("boot-2");
        let answer = machine.resume().await;
        assert!(answer["error"].is_null(), "point {point}: {answer}");
        let times = |id| machine.notes().matches(id).count();
        for id in ["a", "r"] {
            let fits = match answer["steps"][id]["state"].as_str() {
                // A machine that came up again was rebooted, by whomever.
                Some("done") if id == "r" => times(id) <= 1,
                Some("done") => times(id) == 1,
                // Whether it was run cannot be known.
                Some("interrupted" | "started") => times(id) <= 1,
                Some("skipped") | None => times(id) == 0,
                Some(_) => false,
            };
            assert!(fits, "point {point}: {id} was run {} times: {answer}", times(id));
        }
        match answer["state"].as_str() {
            Some("done") => done += 1,
            Some("stopped") => stopped += 1,
            Some("none" | "rebooting") => {}
            _ => panic!("point {point}: {answer}"),
        }
    }
    panic!("the chunk is never through");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_account_is_true_after_a_power_cut_at_any_instant_3006() {
    power_is_cut_at_every_instant(Line::L3006).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_account_is_true_after_a_power_cut_at_any_instant_3007() {
    power_is_cut_at_every_instant(Line::L3007).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_account_is_true_after_a_power_cut_at_any_instant_3008() {
    power_is_cut_at_every_instant(Line::L3008).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn minions_tell_a_server_of_each_step_and_stop_when_told() {
    let roots = Scratch::new("roots");
    roots.write("_modules/saltern_chain.py", MODULE);
    let config = format!("file_roots: {{base: [{}]}}\n", roots.path().display());
    let Some(fleet) = Fleet::start(&config, &[]).await else { return };
    let native = NativeMinion::start("native", fleet.server.ports(), "");
    let mut ids = fleet.ids();
    ids.push(native.id());
    wait::until_ok("the native minion", PATIENCE, async || {
        let answers = fleet.server.cli_json(&["run", "-t", "5", "native", "test.ping"]).await;
        if answers["native"] == true { Ok(()) } else { Err(answers.to_string()) }
    })
    .await;
    fleet.run("m*", "saltutil.sync_modules", &[]).await;

    let steps = json!([{ "id": "a", "fun": "test.ping" }, { "id": "b", "fun": "test.arg", "arg": ["x"] }]).to_string();
    let answers = fleet.run("*", "saltern_chain.start", &["7", "1", &steps]).await;
    for id in &ids {
        assert_eq!(states(&answers[id]), "done a:done b:done", "{id}: {answers}");
    }
    let told = |id: &str, events: &[Value]| {
        let mut told = Vec::new();
        for event in
            events.iter().filter(|event| event["tag"].as_str().is_some_and(|tag| tag.contains(&format!("/prog/{id}/"))))
        {
            let data = &event["data"]["data"];
            let number = event["tag"].as_str().and_then(|tag| tag.rsplit('/').next()).unwrap_or_default().to_owned();
            told.push(format!("{number} {} {} {}", data["launch"], data["step"], data["state"]).replace('"', ""));
        }
        told.sort();
        told
    };
    let expected = ["1 7 a started", "2 7 a done", "3 7 b started", "4 7 b done"];
    wait::until_ok("progress of every minion", PATIENCE, async || {
        let events = events_with_tag(&fleet.server, "salt/job/*/prog/*").await;
        match ids.iter().find(|id| told(id, &events) != expected) {
            None => Ok(()),
            Some(id) => Err(format!("{id}: {:?} of {} events", told(id, &events), events.len())),
        }
    })
    .await;

    let check = json!([{ "id": "c", "kind": "check", "fun": "test.echo", "arg": ["x"], "expect": "y" }]).to_string();
    let answers = fleet.run("*", "saltern_chain.start", &["check", "1", &check]).await;
    for id in &ids {
        assert_eq!(states(&answers[id]), "failed c:failed", "{id}: {answers}");
        assert_eq!(answers[id]["steps"]["c"]["ret"], "not updated: test.echo gave \"x\", wanted \"y\"", "{id}");
    }

    let steps = json!([{ "id": "a", "fun": "cmd.run", "arg": ["sleep 600"] }, { "id": "b", "fun": "test.ping" }]);
    fleet.server.cli(&["run", "--async", "*", "saltern_chain.start", "8", "1", &steps.to_string()]).await;
    wait::until_ok("the step to be under way everywhere", PATIENCE, async || {
        let answers = fleet.run("*", "saltern_chain.status", &[]).await;
        match ids.iter().all(|id| answers[id]["steps"]["a"]["state"] == "started" && answers[id]["alive"] == true) {
            true => Ok(()),
            false => Err(answers.to_string()),
        }
    })
    .await;
    let answers = fleet.run("*", "saltern_chain.stop", &["8"]).await;
    for id in &ids {
        assert_eq!(states(&answers[id]), "stopped a:interrupted b:cancelled", "{id}: {answers}");
    }
}
