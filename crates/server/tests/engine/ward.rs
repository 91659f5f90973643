//! A server and minions in the hands of a test: what is asked for, what arrives, what becomes of it.

use crate::house::{House, caller};
use saltern_core::action::Policy;
use saltern_core::ids::{ActionId, MinionId};
use saltern_core::run::{Reason, RunState};
use saltern_core::target::Target;
use saltern_core::time::Timestamp;
use saltern_core::value::{Map, Value};
use saltern_server::app::{Accepted, ActionRequest, Done, Door, Verb, What};
use saltern_store::{Action, Run};
use saltern_testkit::fake_minion::{FakeMinion, Job};
use saltern_testkit::wait;
use std::time::Duration;

/// Longer than anything here takes, on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A server that asks for acknowledgements and is impatient about them.
pub(crate) async fn house() -> House {
    House::with([("auto_accept", true.into()), ("job_ack", true.into()), ("ack_timeout", 1.into())]).await
}

/// `test.ping` on these minions, by these rules.
pub(crate) fn ping(ids: &[&str], policy: Policy) -> ActionRequest {
    typed(ids, "function", [("fun", Value::from("test.ping"))], policy)
}

/// An action of a type on these minions.
pub(crate) fn typed<const N: usize>(
    ids: &[&str],
    kind: &str,
    params: [(&'static str, Value); N],
    policy: Policy,
) -> ActionRequest {
    ActionRequest {
        what: What::Typed { kind: kind.into(), params: Value::map(params).as_map().cloned().unwrap_or_default() },
        target: Target::list(ids.iter().copied()),
        name: None,
        policy,
        due: None,
        deadline: None,
        metadata: None,
        ret: String::new(),
        paused: false,
        in_window: false,
    }
}

impl House {
    pub(crate) async fn submit(&self, request: ActionRequest) -> Accepted {
        self.app().submit(&caller(), request, Door::Action).await.unwrap()
    }

    pub(crate) async fn action(&self, id: ActionId) -> Action {
        self.app().action(&caller(), id).await.unwrap()
    }

    pub(crate) async fn state(&self, id: ActionId, minion: &str) -> Run {
        let minion = MinionId::new(minion).unwrap();
        let runs = self.app().runs(&caller(), id, None, "", 1_000).await.unwrap();
        runs.into_iter().find(|run| run.minion == minion).unwrap()
    }

    /// Waits until a run is so.
    pub(crate) async fn becomes(&self, id: ActionId, minion: &str, state: RunState, reason: Option<Reason>) -> Run {
        wait::until_ok(&format!("the run on {minion} to be {state:?} {reason:?}"), LONG, async || {
            let run = self.state(id, minion).await;
            if run.state == state && run.reason == reason { Ok(run) } else { Err(format!("{run:?}")) }
        })
        .await
    }

    /// Waits until something is true of a run.
    pub(crate) async fn until(&self, id: ActionId, minion: &str, is_so: impl Fn(&Run) -> bool) {
        wait::until_ok("something to be true of the run", LONG, async || {
            let run = self.state(id, minion).await;
            if is_so(&run) { Ok(()) } else { Err(format!("{run:?}")) }
        })
        .await;
    }

    pub(crate) async fn wants_reboot(&self, minion: &str) -> Option<bool> {
        self.app().minions(&crate::house::caller(), Some(&Target::list([minion]))).await.unwrap()[0].reboot_needed
    }

    pub(crate) async fn act(&self, id: ActionId, verb: Verb) -> Done {
        self.app().act(&caller(), &[id], None, &verb).await.unwrap().remove(0)
    }

    /// Waits until the server knows that a minion is gone.
    pub(crate) async fn gone(&self, minion: &str) {
        wait::until("the minion to be gone", LONG, || async {
            let minions = self.app().minions(&crate::house::caller(), Some(&Target::list([minion]))).await.unwrap();
            minions.iter().all(|minion| matches!(minion.presence, saltern_server::Presence::Absent(_)))
        })
        .await;
    }

    /// Lets time pass while the server is down: everything that is due was due so much earlier.
    pub(crate) fn turn_back(&self, by: Duration) {
        let path = self.dir.path().join("data/saltern.db");
        let database = rusqlite::Connection::open(path).unwrap();
        let micros = i64::try_from(by.as_micros()).unwrap();
        database
            .execute("UPDATE actions SET due = due - ?1, deadline = deadline - ?1, created = created - ?1", [micros])
            .unwrap();
        database.execute("UPDATE runs SET due = due - ?1", [micros]).unwrap();
    }
}

/// A minion that acknowledges as 3008 does.
pub(crate) async fn minion(house: &House, id: &str) -> FakeMinion {
    minion_of(house, id, "3008.3").await
}

/// A minion of this version, signed in and subscribed.
pub(crate) async fn minion_of(house: &House, id: &str, version: &str) -> FakeMinion {
    let before = house.app().status(&crate::house::caller()).await.unwrap().publish_port.connections;
    let mut minion = FakeMinion::connect(house.requests, id).await;
    minion.grains = Value::map([("id", Value::from(id)), ("saltversion", version.into())]);
    assert_eq!(minion.auth().await, saltern_testkit::fake_minion::SignIn::Accepted);
    minion.subscribe().await;
    house.subscribers(before + 1).await;
    minion.announce().await;
    minion
}

/// What a minion does in a test.
pub(crate) trait Hands {
    /// The next job that runs this function. House questions are answered: nothing runs here, nothing is kept.
    async fn job(&mut self, fun: &str) -> Job;
    async fn ack(&self, job: &Job);
    async fn fails(&self, job: &Job, retcode: i64);
    /// Answers a question of the house; tells whether it was one.
    async fn answer_house(&mut self, job: &Job) -> bool;
    /// Answers questions of the house for ever, and fails if anything else arrives.
    async fn only_answers_house(&mut self);
}

impl Hands for FakeMinion {
    async fn job(&mut self, fun: &str) -> Job {
        loop {
            let job = self.next_job().await;
            if job.load.get("fun").and_then(Value::as_str) == Some(fun) {
                return job;
            }
            assert!(self.answer_house(&job).await, "{} got {:?} instead of {fun}", self.id, job.load.get("fun"));
        }
    }

    async fn ack(&self, job: &Job) {
        self.event(&format!("salt/job/{}/start/{}", job.jid, self.id), Value::map([("jid", job.jid)])).await;
    }

    async fn fails(&self, job: &Job, retcode: i64) {
        let mut fields = self.return_fields(job, "no");
        fields.insert("retcode", retcode);
        fields.insert("success", false);
        self.request("_return", fields).await;
    }

    async fn only_answers_house(&mut self) {
        loop {
            let asked = self.next_job().await;
            assert!(self.answer_house(&asked).await, "it was sent again");
        }
    }

    async fn answer_house(&mut self, job: &Job) -> bool {
        match job.load.get("fun").and_then(Value::as_str).unwrap_or_default() {
            "saltutil.running" => self.return_for(job, Value::List(Vec::new())).await,
            "saltutil.find_job" | "saltutil.find_cached_job" => self.return_for(job, Value::Map(Map::new())).await,
            "saltutil.sync_executors" => self.return_for(job, Value::list(["executors.saltern_ack"])).await,
            _ => return false,
        }
        true
    }
}

/// So long from now.
pub(crate) fn soon(seconds: u64) -> Timestamp {
    saltern_server::clock::now().plus(Duration::from_secs(seconds))
}
