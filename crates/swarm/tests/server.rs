//! The swarm against our own server, in one process: what it counts is what the server has.

#![expect(clippy::unwrap_used, reason = "a helper that meets the unexpected fails its test")]

use saltern_core::action::Policy;
use saltern_core::ids::Jid;
use saltern_core::target::{Target, TargetType};
use saltern_core::value::{Map, Value};
use saltern_server::app::{App, Caller, KeyMatch, KeyVerb, RunRequest};
use saltern_server::config::{Config, Sources};
use saltern_server::{Server, serve};
use saltern_swarm::{Acks, Options, Patience, Swarm};
use saltern_testkit::fake_minion::key_named;
use saltern_testkit::wait;
use std::time::Duration;

/// Longer than anything here takes; never waited for when things go well.
const LONG: Duration = Duration::from_secs(60);

struct House {
    server: Server,
    _dir: tempfile::TempDir,
}

impl House {
    async fn open(auto_accept: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let pki = dir.path().join("data/pki");
        std::fs::create_dir_all(&pki).unwrap();
        std::fs::write(pki.join("master.pem"), key_named("the server").to_pem().unwrap().as_bytes()).unwrap();
        let at = |name: &str| Value::from(dir.path().join(name).to_str().unwrap());
        let none = || Value::map([("base", Value::list([at("nothing")]))]);
        let settings = [
            ("data_dir", at("data")),
            ("interface", "127.0.0.1".into()),
            ("publish_port", 0.into()),
            ("ret_port", 0.into()),
            ("file_roots", none()),
            ("pillar_roots", none()),
            ("auto_accept", auto_accept.into()),
        ];
        let overrides = settings.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        let config = Config::load(Sources { overrides, ..Sources::default() }).unwrap();
        Self { server: serve(config).await.unwrap(), _dir: dir }
    }

    fn app(&self) -> App {
        self.server.app()
    }

    fn options(&self, count: usize) -> Options {
        Options { ret_port: self.server.return_address.port(), count, ..Options::default() }
    }

    /// A swarm that is up, and that the server publishes to.
    async fn swarm(&self, options: Options) -> Swarm {
        let count = options.count;
        let swarm = Swarm::start(options).await.unwrap();
        assert!(swarm.all_ready(LONG).await, "{:?}", swarm.report());
        wait::until("the subscriptions", LONG, || async {
            self.app().status(&caller()).await.is_ok_and(|status| status.publish_port.connections >= count)
        })
        .await;
        swarm
    }

    async fn run(&self, target: &str, fun: &str) -> Jid {
        self.run_with(target, fun, Vec::new()).await
    }

    async fn run_with(&self, target: &str, fun: &str, args: Vec<Value>) -> Jid {
        let request = RunRequest {
            target: Target::new(TargetType::Glob, target),
            funs: vec![fun.into()],
            args,
            kwargs: Map::new(),
            policy: Policy::default(),
            due: None,
            deadline: None,
            metadata: None,
            ret: String::new(),
            in_window: false,
        };
        self.app().run(&caller(), request).await.unwrap().jid.unwrap()
    }
}

fn caller() -> Caller {
    Caller::administrator("tester", "test")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_minions_sign_in_and_their_returns_are_all_there() {
    let house = House::open(true).await;
    let swarm = house.swarm(house.options(50)).await;
    let jid = house.run("*", "test.ping").await;
    assert!(swarm.job_finished(jid.as_str(), LONG).await, "{:?}", swarm.report());

    let detail = house.app().job(&caller(), jid).await.unwrap();
    assert_eq!(detail.returns.len(), 50);
    assert!(detail.returns.iter().all(|entry| entry.success && entry.value == Value::from(true)));

    let report = swarm.stop().await;
    assert_eq!((report.minions, report.sign_in.minions, report.sign_in.ready), (50, 50, 50));
    assert_eq!((report.jobs.seen, report.jobs.finished, report.jobs.deliveries), (1, 1, 50));
    assert_eq!((report.jobs.executions, report.jobs.double_executions), (50, 0));
    assert_eq!((report.returns.sent, report.returns.confirmed), (50, 50));
    // The grains say 3008, so the server asked for an event when the job begins.
    assert_eq!((report.acks.confirmed, report.acks.lost), (50, 0));
    assert!(report.errors.is_empty(), "{:?}", report.errors);
    assert!(report.latency_ms.p50 > 0.0 && report.latency_ms.max >= report.latency_ms.p99);
    let job = &report.newest_jobs[0];
    assert_eq!((job.jid.as_str(), job.expected, job.executed, job.confirmed), (jid.as_str(), 50, 50, 50));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chunk_of_an_action_chain_is_gone_through_once_by_every_minion() {
    let house = House::open(true).await;
    let swarm = house.swarm(house.options(20)).await;
    let step = |number: i64| Value::map([("id", Value::from(number.to_string())), ("fun", "test.ping".into())]);
    for _ in 0..2 {
        let args = vec!["7".into(), 1.into(), Value::list((1..=5).map(step))];
        let jid = house.run_with("*", "saltern_chain.start", args).await;
        assert!(swarm.job_finished(jid.as_str(), LONG).await, "{:?}", swarm.report());
        let detail = house.app().job(&caller(), jid).await.unwrap();
        let is_done = |value: &Value| value.get("state").and_then(Value::as_str) == Some("done");
        assert!(detail.returns.len() == 20 && detail.returns.iter().all(|entry| is_done(&entry.value)));
    }
    swarm.halt().await;
    assert_eq!(swarm.steps().filter(|step| (&*step.launch, step.chunk, step.executed) == ("7", 1, 1)).count(), 100);
    let report = swarm.report();
    assert_eq!((report.steps.executed, report.steps.double_executions), (100, 0));
    assert!(report.errors.is_empty(), "{:?}", report.errors);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_those_a_job_means_answer_it() {
    let house = House::open(true).await;
    let swarm = house.swarm(Options { prefix: "web".into(), ..house.options(20) }).await;
    let jid = house.run("web1*", "test.ping").await;
    assert!(swarm.job_finished(jid.as_str(), LONG).await);
    let report = swarm.stop().await;
    assert_eq!((report.jobs.deliveries, report.returns.confirmed), (10, 10));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_sizes_and_lost_acks_are_as_ordered() {
    let house = House::open(true).await;
    let options =
        Options { fail_rate: 0.5, return_size: 2_000, lose_acks: 1.0, acks: Acks::Always, ..house.options(20) };
    let swarm = house.swarm(options).await;
    let jid = house.run("*", "cmd.run").await;
    assert!(swarm.job_finished(jid.as_str(), LONG).await);
    let detail = house.app().job(&caller(), jid).await.unwrap();
    let (good, bad): (Vec<_>, Vec<_>) = detail.returns.iter().partition(|entry| entry.success);
    assert!(!good.is_empty() && !bad.is_empty());
    assert!(good.iter().all(|entry| entry.value.as_str().is_some_and(|text| text.len() == 2_000)));
    assert!(bad.iter().all(|entry| entry.retcode == 1));
    let report = swarm.stop().await;
    assert_eq!((report.acks.confirmed, report.acks.lost, report.returns.confirmed), (0, 20, 20));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn minions_that_lose_their_connections_come_back_and_answer() {
    let house = House::open(true).await;
    let swarm = house.swarm(Options { churn: 100.0, ..house.options(10) }).await;
    wait::until("every minion to have been away, on average", LONG, || {
        std::future::ready(swarm.report().churned >= 10)
    })
    .await;
    // A job may miss those who are away when it is published; one of a few reaches somebody.
    wait::until("a job to be answered", LONG, || async {
        house.run("*", "test.ping").await;
        swarm.progress().returns > 0
    })
    .await;
    let report = swarm.stop().await;
    // Their sessions outlive their connections.
    assert_eq!(report.sign_in.accepted, 10, "{:?}", report.sign_in);
    assert_eq!(report.jobs.double_executions, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pending_minions_wait_until_they_are_accepted() {
    let house = House::open(false).await;
    let patience = Patience { pause: Duration::from_millis(50), ..Patience::default() };
    let swarm = Swarm::start(Options { patience, ..house.options(5) }).await.unwrap();
    wait::until("every key to be pending", LONG, || async { house.app().keys(&caller()).len() == 5 }).await;
    assert_eq!(swarm.progress().signed_in, 0);
    house.app().decide_keys(&caller(), KeyVerb::Accept, &KeyMatch::Glob("*".into()), &[]).await.unwrap();
    assert!(swarm.all_ready(LONG).await, "{:?}", swarm.report());
    assert!(swarm.stop().await.sign_in.told_to_wait >= 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_reader_keeps_nobody_from_finishing() {
    let house = House::open(true).await;
    let swarm = house.swarm(Options { slow_readers: 5, ..house.options(10) }).await;
    for _ in 0..3 {
        let jid = house.run("*", "test.ping").await;
        assert!(swarm.job_finished(jid.as_str(), LONG).await);
    }
    let report = swarm.stop().await;
    assert_eq!((report.jobs.finished, report.returns.confirmed, report.slow_readers.cut_off), (3, 15, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_keeps_jobs_coming_until_its_time_is_up() {
    let house = House::open(true).await;
    let swarm = house.swarm(house.options(10)).await;
    let flood = swarm
        .flood(Duration::from_millis(300), 4, || async {
            house.run("*", "test.ping").await;
            true
        })
        .await;
    assert!(flood.jobs > 4 && flood.failed == 0 && flood.returns > 0, "{flood:?}");
    assert!(swarm.jobs_finished(flood.jobs, LONG).await);
    assert_eq!(swarm.stop().await.returns.confirmed, flood.jobs * 10);
}
