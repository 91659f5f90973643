//! A minion is believed about itself only: one id in the envelope, in the load, behind the session and behind the token.

use crate::house::House;
use saltern_core::ids::Jid;
use saltern_core::value::{Map, Value};
use saltern_testkit::fake_minion::{FakeMinion, Forgery, Job};
use saltern_wire::envelope::Error;

struct Pair {
    house: House,
    a: FakeMinion,
    b: FakeMinion,
}

impl Pair {
    async fn new() -> Self {
        let house = House::open().await;
        let (a, b) = (FakeMinion::accepted(house.requests, "a").await, FakeMinion::accepted(house.requests, "b").await);
        Self { house, a, b }
    }

    /// Asserts that `a` is refused with this forgery, and that nothing came of it.
    async fn refuses(&self, forgery: Forgery) {
        let before = self.house.rows();
        for (cmd, fields) in
            [("_minion_event", Value::map([("tag", "custom"), ("data", "x")])), ("_file_envs", Value::Map(Map::new()))]
        {
            let answer = self.a.forged_request(cmd, fields.as_map().unwrap().clone(), &forgery).await;
            assert_eq!(answer.unwrap_err(), Error::BadLoad, "{cmd}");
        }
        assert_eq!(self.house.rows(), before);
    }

    /// A job for `b` alone.
    async fn job_for_b(&self) -> Job {
        let jid = self.house.ping(&["b"]).await;
        let load = Value::map([("fun", Value::from("test.ping")), ("arg", Value::List(Vec::new()))]);
        Job { jid, load: load.as_map().unwrap().clone() }
    }
}

#[tokio::test]
async fn another_id_inside_is_refused() {
    let pair = Pair::new().await;
    pair.refuses(Forgery { inner_id: Some("b".into()), ..Forgery::default() }).await;
}

#[tokio::test]
async fn another_id_in_the_envelope_is_refused() {
    let pair = Pair::new().await;
    pair.refuses(Forgery { outer_id: Some("b".into()), ..Forgery::default() }).await;
    pair.refuses(Forgery { outer_id: Some("b".into()), inner_id: Some("b".into()), ..Forgery::default() }).await;
}

#[tokio::test]
async fn another_minions_token_is_refused() {
    let pair = Pair::new().await;
    let token = pair.b.key.token().unwrap();
    pair.refuses(Forgery { token: Some(token), ..Forgery::default() }).await;
}

#[tokio::test]
async fn a_missing_or_broken_token_is_refused() {
    let pair = Pair::new().await;
    pair.refuses(Forgery { token: Some(Vec::new()), ..Forgery::default() }).await;
    pair.refuses(Forgery { token: Some(b"salt".to_vec()), ..Forgery::default() }).await;
    // Also after the genuine one is known.
    pair.a.request("_file_envs", ()).await;
    let mut token = pair.a.key.token().unwrap();
    token[100] ^= 1;
    pair.refuses(Forgery { token: Some(token), ..Forgery::default() }).await;
}

#[tokio::test]
async fn a_signature_of_something_else_is_no_token() {
    let pair = Pair::new().await;
    let token = pair.a.key.x931_sign(b"salty").unwrap();
    pair.refuses(Forgery { token: Some(token), ..Forgery::default() }).await;
}

#[tokio::test]
async fn a_stolen_session_is_worth_nothing_without_the_key() {
    let pair = Pair::new().await;
    let session = Some(pair.b.access().session.clone());
    // Under its own name it is the wrong session, under the other's it has the wrong token.
    pair.refuses(Forgery { session: session.clone(), ..Forgery::default() }).await;
    let as_b = || Forgery {
        outer_id: Some("b".into()),
        inner_id: Some("b".into()),
        session: session.clone(),
        ..Forgery::default()
    };
    pair.refuses(as_b()).await;
    let token = pair.a.key.token().unwrap();
    pair.refuses(Forgery { token: Some(token), ..as_b() }).await;
}

#[tokio::test]
async fn a_return_for_a_job_that_was_not_for_it_is_refused() {
    let pair = Pair::new().await;
    let job = pair.job_for_b().await;
    let before = pair.house.rows();
    pair.a.return_for(&job, "forged").await;
    let mut as_resource = pair.a.return_fields(&job, "forged");
    as_resource.insert("resource_id", "b");
    pair.a.request("_return", as_resource).await;
    assert_eq!(pair.house.rows(), before);
    pair.b.return_for(&job, "genuine").await;
    let detail = pair.house.app().job(&crate::house::caller(), job.jid).await.unwrap();
    assert_eq!(detail.returns.len(), 1);
    assert_eq!(detail.returns[0].value, Value::from("genuine"));
}

#[tokio::test]
async fn a_return_for_a_job_nobody_gave_is_refused() {
    let pair = Pair::new().await;
    let before = pair.house.rows();
    for jid in ["20200101000000000000", "99999999999999999999"] {
        let job = Job { jid: Jid::parse(jid).unwrap(), load: Map::new() };
        let mut fields = pair.a.return_fields(&job, true);
        fields.insert("fun", "test.ping");
        fields.insert("fun_args", Value::List(Vec::new()));
        pair.a.request("_return", fields).await;
    }
    assert_eq!(pair.house.rows(), before);
}

#[tokio::test]
async fn a_return_is_filed_under_its_sender_whatever_it_says() {
    let pair = Pair::new().await;
    let jid = pair.house.ping(&["a", "b"]).await;
    let load = Value::map([("fun", Value::from("test.ping")), ("arg", Value::List(Vec::new()))]);
    let job = Job { jid, load: load.as_map().unwrap().clone() };
    let mut fields = pair.a.return_fields(&job, Value::map([("id", "b")]));
    fields.insert("resource_id", "b");
    fields.insert("minion", "b");
    let last = pair.house.last_event().await;
    pair.a.request("_return", fields).await;
    let detail = pair.house.app().job(&crate::house::caller(), jid).await.unwrap();
    assert_eq!(detail.returns.iter().map(|returned| returned.minion.as_str()).collect::<Vec<_>>(), ["a"]);
    assert_eq!(pair.house.tags_after(last).await, [format!("salt/job/{jid}/ret/a")]);
}

#[tokio::test]
async fn an_acknowledgement_counts_for_its_sender_and_its_job_only() {
    let pair = Pair::new().await;
    let job = pair.job_for_b().await;
    let before = pair.house.rows();
    for tag in [
        format!("salt/job/{}/ack/a", job.jid),
        format!("salt/job/{}/start/a", job.jid),
        format!("salt/job/{}/prog/a/1", job.jid),
        format!("salt/job/{}/ack/b", job.jid),
        format!("salt/job/{}/start/b", job.jid),
        format!("salt/job/{}/prog/b/1", job.jid),
        "salt/job/20200101000000000000/ack/a".into(),
    ] {
        pair.a.event(&tag, Value::map([("id", "b")])).await;
    }
    assert_eq!(pair.house.rows(), before);
    let runs = pair.house.app().job(&crate::house::caller(), job.jid).await.unwrap().runs;
    assert!(runs.iter().all(|run| run.picked_up.is_none()));
    let last = pair.house.last_event().await;
    pair.b.event(&format!("salt/job/{}/start/b", job.jid), Value::map([("id", "a")])).await;
    let told = pair.house.events_after(last).await;
    assert!(told.iter().all(|event| event.minion.as_ref().is_some_and(|minion| minion.as_str() == "b")));
    assert!(pair.house.app().job(&crate::house::caller(), job.jid).await.unwrap().runs[0].picked_up.is_some());
}
