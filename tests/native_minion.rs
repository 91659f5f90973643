//! Native minions, under our server and under a stock salt-master: the daily work, and what must hold when things break.

use saltern_e2e::native::NativeMinion;
use saltern_e2e::tree::{LARGE, Tree};
use saltern_e2e::{SIGN_IN, SmallDisk, events_with_tag};
use saltern_testkit::installed::Line;
use saltern_testkit::process::Saltern;
use saltern_testkit::salt::{self, StockMaster};
use saltern_testkit::wait;
use serde_json::{Value, json};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// A server with native minions that have answered it.
struct House {
    server: Saltern,
    minions: Vec<NativeMinion>,
    tree: Tree,
}

impl House {
    async fn start(ids: &[&str]) -> Self {
        let tree = Tree::default();
        let server = Saltern::start(&tree.config(), &["--auto-accept"]).await;
        let minions = ids.iter().map(|id| NativeMinion::start(id, server.ports(), "")).collect();
        let house = Self { server, minions, tree };
        house.wait_for_all().await;
        house
    }

    async fn wait_for_all(&self) {
        wait::until_ok("every minion to answer a ping", SIGN_IN, async || {
            let answers = self.server.cli_json(&["run", "-t", "2", "*", "test.ping"]).await;
            let all = self.minions.iter().all(|minion| answers[minion.id()] == true);
            if all { Ok(()) } else { Err(answers.to_string()) }
        })
        .await;
    }

    async fn run(&self, words: &[&str]) -> Value {
        let mut command = vec!["run", "*"];
        command.extend(words);
        self.server.cli_json(&command).await
    }

    #[track_caller]
    fn all_say(&self, answers: &Value, expected: &Value) {
        for minion in &self.minions {
            assert_eq!(&answers[minion.id()], expected, "{}", minion.id());
        }
    }

    /// Runs a job and gives `job show` of it when everybody has answered.
    async fn shown(&self, words: &[&str]) -> Value {
        let mut command = vec!["run", "--async", "*"];
        command.extend(words);
        let accepted = self.server.cli_json(&command).await;
        self.job(accepted["jid"].as_str().expect("an accepted job has an id"), self.minions.len()).await
    }

    async fn job(&self, jid: &str, expected: usize) -> Value {
        wait::until_ok("every return of the job", PATIENCE, async || {
            let job = self.server.cli_json(&["job", "show", jid]).await;
            let returned = job["returns"].as_object().map_or(0, |returns| returns.len());
            if returned == expected { Ok(job) } else { Err(format!("{returned} of {expected} returned")) }
        })
        .await
    }
}

#[tokio::test]
async fn native_minions_do_the_daily_work() {
    let house = House::start(&["n1", "n2", "n3"]).await;
    for text in ["grüße, Γειά, 日本語, 🧂", "\u{1}\u{7f}\u{fffd} \\x00\\xff %s {0}", "deadbeef00ff"] {
        house.all_say(&house.run(&["test.echo", text]).await, &json!(text));
    }
    let job = house.shown(&["cmd.run", "echo out; exit 3"]).await;
    for minion in &house.minions {
        let returned = &job["returns"][minion.id()];
        assert_eq!(
            (&returned["return"], &returned["retcode"], &returned["success"]),
            (&json!("out"), &json!(3), &json!(false))
        );
    }
    house.all_say(&house.run(&["no_such.function"]).await, &json!("'no_such.function' is not available."));
    let raised = house.run(&["test.exception", "on purpose"]).await;
    let text = raised["n1"].as_str().unwrap();
    assert!(text.starts_with("The minion function caused an exception: ") && text.contains("on purpose"), "{text}");
    let grains = house.run(&["grains.items"]).await;
    assert_eq!((&grains["n2"]["id"], &grains["n2"]["kernel"]), (&json!("n2"), &json!("Linux")));
    let targeted = house.server.cli_json(&["run", "-C", "G@kernel:Linux and n[12]", "test.ping"]).await;
    assert_eq!(targeted, json!({ "n1": true, "n2": true }));
    let pillar = house.run(&["pillar.items"]).await;
    assert_eq!(pillar["n3"]["nested"]["deep"], json!({ "other": "merged", "key": "value for n3" }));
    house.all_say(&house.run(&["mine.send", "test.echo", "mined"]).await, &json!(true));
    let mined = house.run(&["mine.get", "*", "test.echo"]).await;
    house.all_say(&mined["n1"], &json!("mined"));
    house.all_say(&house.run(&["event.send", "my/deploy/done", "{version: 7}"]).await, &json!(true));
    let events = events_with_tag(&house.server, "my/deploy/done").await;
    assert_eq!(events.len(), 3, "{events:?}");
    assert!(events.iter().all(|event| event["data"]["data"]["version"] == 7), "{events:?}");
    for minion in &house.minions {
        let path = house.tree.out(minion.id(), "large.bin");
        let path = path.to_str().unwrap();
        let got = house
            .server
            .cli_json(&["run", minion.id(), "cp.get_file", "salt://large.bin", path, "makedirs=True"])
            .await;
        assert_eq!(got[minion.id()], json!(path));
        assert_eq!(std::fs::read(path).unwrap(), std::fs::read(house.tree.large()).unwrap());
        assert_eq!(std::fs::metadata(path).unwrap().len(), LARGE as u64);
    }
}

#[tokio::test]
async fn every_job_is_acknowledged_before_its_return() {
    let house = House::start(&["n1"]).await;
    let job = house.shown(&["test.ping"]).await;
    let jid = job["jid"].as_str().unwrap();
    let acks = events_with_tag(&house.server, &format!("salt/job/{jid}/ack/n1")).await;
    let returns = events_with_tag(&house.server, &format!("salt/job/{jid}/ret/n1")).await;
    assert!(acks[0]["number"].as_i64() < returns[0]["number"].as_i64(), "{acks:?} {returns:?}");
}

#[tokio::test]
async fn a_job_that_is_killed_with_its_agent_is_reported_as_interrupted_and_never_run_again() {
    let mut house = House::start(&["n1"]).await;
    let witness = house.minions[0].file("witness");
    let command = format!("echo ran >> {}; sleep 300", witness.display());
    let accepted = house.server.cli_json(&["run", "--async", "n1", "cmd.run", &command]).await;
    let jid = accepted["jid"].as_str().unwrap().to_owned();
    wait::until_blocking("the job to be under way", PATIENCE, || witness.exists());
    house.minions[0].kill();
    house.minions[0].launch();
    let job = house.job(&jid, 1).await;
    let text = job["returns"]["n1"]["return"].as_str().unwrap();
    assert!(text.contains("interrupted") && job["returns"]["n1"]["success"] == false, "{text}");
    house.wait_for_all().await;
    assert_eq!(std::fs::read_to_string(&witness).unwrap(), "ran\n");
}

#[tokio::test]
async fn a_hundred_answers_wait_for_a_master_that_is_down() {
    let mut house = House::start(&["n1"]).await;
    let gate = house.minions[0].file("gate");
    let command = format!("while ! test -e {}; do sleep 0.2; done; echo done", gate.display());
    let mut jids = Vec::new();
    for _ in 0..100 {
        let accepted = house.server.cli_json(&["run", "--async", "n1", "cmd.run", &command]).await;
        jids.push(accepted["jid"].as_str().unwrap().to_owned());
    }
    wait::until_ok("every job to be acknowledged", PATIENCE, async || {
        let acks = events_with_tag(&house.server, "salt/job/*/ack/n1").await;
        let begun = jids.iter().filter(|jid| acks.iter().any(|ack| ack["jid"] == **jid)).count();
        if begun >= 64 { Ok(()) } else { Err(format!("{begun} are under way")) }
    })
    .await;
    house.server.kill9();
    // All of them end while nobody listens; those beyond the limit of jobs at once begin only now.
    std::fs::write(&gate, "").unwrap();
    let spool = house.minions[0].data_dir().join("spool");
    // By name: the answer to a question of the server itself may lie there, too.
    wait::until_blocking("every answer to be kept", PATIENCE, || {
        jids.iter().all(|jid| spool.join(format!("{jid}.return")).exists())
    });
    house.server.launch().await;
    for jid in &jids {
        let job = house.job(jid, 1).await;
        assert_eq!(job["returns"]["n1"]["return"], json!("done"));
        let returns = events_with_tag(&house.server, &format!("salt/job/{jid}/ret/*")).await;
        assert_eq!(returns.len(), 1, "{jid}");
    }
    wait::until_blocking("the kept answers to be gone", PATIENCE, || {
        std::fs::read_dir(&spool).is_ok_and(|entries| entries.flatten().count() == 0)
    });
}

#[tokio::test]
async fn a_running_job_is_found_and_can_be_killed() {
    let house = House::start(&["n1"]).await;
    let accepted = house.server.cli_json(&["run", "--async", "n1", "cmd.run", "sleep 300"]).await;
    let jid = accepted["jid"].as_str().unwrap().to_owned();
    wait::until_ok("the job to be found", PATIENCE, async || {
        let found = house.run(&["saltutil.find_job", &jid]).await;
        if found["n1"]["fun"] == "cmd.run" { Ok(()) } else { Err(found.to_string()) }
    })
    .await;
    let killed = house.run(&["saltutil.kill_job", &jid]).await;
    let text = killed["n1"].as_str().unwrap_or_default();
    assert!(text.starts_with(&format!("Signal 9 sent to job {jid} at pid ")), "{text}");
    wait::until_ok("the job to be gone", PATIENCE, async || {
        let found = house.run(&["saltutil.find_job", &jid]).await;
        if found["n1"] == json!({}) { Ok(()) } else { Err(found.to_string()) }
    })
    .await;
}

#[tokio::test]
async fn without_room_on_the_disk_jobs_are_refused_and_not_acknowledged() {
    let scratch = saltern_testkit::scratch::Scratch::new("small");
    let mount = scratch.path().join("fs");
    let Some(disk) = SmallDisk::mount(&mount, 1) else { return };
    let server = Saltern::start("", &["--auto-accept"]).await;
    let minion = NativeMinion::start_in("n1", server.ports(), &mount.join("data"));
    let house = House { server, minions: vec![minion], tree: Tree::default() };
    house.wait_for_all().await;
    disk.fill();
    // What is left of the ledger's last page has room for a few more jobs; their answers tell that they cannot be kept.
    let mut refused = None;
    for _ in 0..200 {
        let accepted = house.server.cli_json(&["run", "--async", "n1", "test.ping"]).await;
        let jid = accepted["jid"].as_str().unwrap().to_owned();
        let job = house.job(&jid, 1).await;
        let returned = &job["returns"]["n1"];
        let text = returned["return"].as_str().unwrap_or_default();
        assert!(text.contains("space") && returned["success"] == false, "{job}");
        if text.contains("refused") {
            refused = Some(jid);
            break;
        }
    }
    let jid = refused.expect("a job without room in the ledger is refused");
    assert_eq!(events_with_tag(&house.server, &format!("salt/job/{jid}/ack/*")).await, Vec::<Value>::new());
    disk.free();
    house.wait_for_all().await;
}

#[tokio::test]
async fn an_idle_agent_is_small() {
    let house = House::start(&["n1"]).await;
    // The debug build is larger than what is shipped; the figure of the release build is in docs/benchmarks.md.
    let kib = house.minions[0].resident_kib();
    assert!(kib > 0 && kib < 40 * 1024, "{kib} KiB");
}

#[tokio::test]
async fn a_native_minion_works_under_a_stock_master() {
    let Some(salt) = salt::version(Line::L3008) else { return };
    let master = StockMaster::start(&salt, "").await;
    let minion = NativeMinion::start("n1", master.ports(), "");
    let ask = async |words: &[&str]| {
        let mut command = vec!["--static", "--out=json", "-t", "20", "n1"];
        command.extend(words);
        let output = master.cli("salt", &command).await;
        serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default()["n1"].clone()
    };
    wait::until_ok("the minion to answer the stock master", SIGN_IN, async || {
        let answer = ask(&["test.ping"]).await;
        if answer == json!(true) { Ok(()) } else { Err(format!("{answer}; {}", minion.log())) }
    })
    .await;
    assert_eq!(ask(&["cmd.run", "echo grüße"]).await, json!("grüße"));
    assert_eq!(ask(&["grains.items"]).await["kernel"], json!("Linux"));
    assert_eq!(ask(&["no_such.function"]).await, json!("'no_such.function' is not available."));
    let keys = master.cli("salt-key", &["--out=json", "-l", "accepted"]).await;
    let keys: Value = serde_json::from_slice(&keys.stdout).unwrap_or_default();
    assert_eq!(keys["minions"], json!(["n1"]));
    // A job that takes longer than the client's time-out is found running, and waited for.
    let output =
        master.cli("salt", &["--static", "--out=json", "-t", "1", "n1", "cmd.run", "sleep 6; echo late"]).await;
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    assert_eq!(answer["n1"], json!("late"), "{}", String::from_utf8_lossy(&output.stderr));
}
