//! Minions that run things on others: only where the operator says so.

use crate::house::House;
use saltern_core::ids::Jid;
use saltern_core::value::{Map, Value};
use saltern_testkit::fake_minion::FakeMinion;

fn nothing() -> Value {
    Value::Map(Map::new())
}

async fn publish(minion: &FakeMinion, cmd: &str, tgt: &str, tgt_type: &str, fun: &str) -> Value {
    let fields = [
        ("tgt", Value::from(tgt)),
        ("tgt_type", tgt_type.into()),
        ("fun", fun.into()),
        ("arg", Value::List(Vec::new())),
        ("ret", "".into()),
        ("tmo", 1.into()),
        ("form", "clean".into()),
    ];
    minion.request(cmd, fields).await
}

async fn allowing() -> House {
    let peer = Value::map([("a", Value::list(["test.*", "grains.item"])), ("b.*", Value::list(["cmd.run"]))]);
    House::furnished(vec![("auto_accept".into(), true.into()), ("peer".into(), peer)], |dir| {
        std::fs::write(dir.join("pillar/top.sls"), "base:\n  'b': [role]\n").unwrap();
        std::fs::write(dir.join("pillar/role.sls"), "password: hunter2\n").unwrap();
    })
    .await
}

#[tokio::test]
async fn publishing_is_off_by_default() {
    let house = House::open().await;
    let minion = FakeMinion::accepted(house.requests, "a").await;
    let before = house.rows();
    for cmd in ["minion_pub", "minion_publish"] {
        assert_eq!(publish(&minion, cmd, "*", "glob", "test.ping").await, nothing());
    }
    assert_eq!(minion.request("minion_runner", [("fun", "manage.up")]).await, nothing());
    assert_eq!(house.rows(), before);
}

#[tokio::test]
async fn only_the_functions_listed_for_a_minion_are_allowed() {
    let house = allowing().await;
    let (a, b) = (FakeMinion::accepted(house.requests, "a").await, FakeMinion::accepted(house.requests, "b").await);
    let before = house.rows();
    for (minion, fun) in [
        (&a, "cmd.run"),
        (&a, "grains.items"),
        (&a, "xtest.ping"),
        (&a, "publish.publish"),
        (&a, "test.ping\ncmd.run"),
        (&a, ""),
        (&b, "test.ping"),
        (&b, "publish.publish"),
    ] {
        for cmd in ["minion_pub", "minion_publish"] {
            assert_eq!(publish(minion, cmd, "*", "glob", fun).await, nothing(), "{} {fun}", minion.id);
        }
        let many =
            [("tgt", Value::from("*")), ("fun", Value::list(["test.ping", fun])), ("arg", Value::List(Vec::new()))];
        assert_eq!(minion.request("minion_pub", many).await, nothing());
    }
    assert_eq!(house.rows(), before);
    assert_ne!(publish(&a, "minion_pub", "*", "glob", "test.ping").await, nothing());
    assert_ne!(publish(&b, "minion_pub", "*", "glob", "cmd.run").await, nothing());
}

#[tokio::test]
async fn the_publisher_alone_sees_the_returns() {
    let house = allowing().await;
    let a = FakeMinion::accepted(house.requests, "a").await;
    let mut b = FakeMinion::accepted(house.requests, "b").await;
    let c = FakeMinion::accepted(house.requests, "c").await;
    b.subscribe().await;
    house.subscribed().await;
    let told = publish(&a, "minion_pub", "b", "glob", "test.ping").await;
    assert_eq!(told.get("minions"), Some(&Value::list(["b"])));
    let jid = Jid::parse(told.get("jid").unwrap().as_str().unwrap()).unwrap();
    let job = b.next_job().await;
    assert_eq!(job.jid, jid);
    b.return_for(&job, "pong").await;
    let asked = [("jid", Value::from(jid))];
    assert_eq!(a.request("pub_ret", asked.clone()).await.get("b").unwrap().get("ret"), Some(&"pong".into()));
    for other in [&b, &c] {
        assert_eq!(other.request("pub_ret", asked.clone()).await, nothing(), "{}", other.id);
    }
    // Nor does a publisher see what somebody else has published.
    let theirs = house.ping(&["b"]).await;
    let job = b.next_job().await;
    b.return_for(&job, "pong").await;
    assert_eq!(a.request("pub_ret", [("jid", Value::from(theirs))]).await, nothing());
    for jid in ["../../etc/passwd", "req", "", "2026"] {
        assert_eq!(a.request("pub_ret", [("jid", jid)]).await, nothing(), "{jid}");
    }
}

#[tokio::test]
async fn a_job_of_a_minion_is_logged_under_its_name() {
    let house = allowing().await;
    let a = FakeMinion::accepted(house.requests, "a").await;
    let told = publish(&a, "minion_pub", "a", "glob", "test.ping").await;
    let jid = Jid::parse(told.get("jid").unwrap().as_str().unwrap()).unwrap();
    assert_eq!(house.app().job(&crate::house::caller(), jid).await.unwrap().job.user, "minion a");
    assert_eq!(house.rows()["audit"], 1);
}

#[tokio::test]
async fn patterns_cannot_be_used_to_guess_pillar() {
    let house = allowing().await;
    let a = FakeMinion::start(house.requests, "a").await;
    let _b = FakeMinion::start(house.requests, "b").await;
    for (tgt, tgt_type) in [("password:h*", "pillar"), ("password:h.*", "pillar_pcre"), ("I@password:h*", "compound")] {
        assert_eq!(publish(&a, "minion_pub", tgt, tgt_type, "test.ping").await, nothing(), "{tgt_type} {tgt}");
    }
    let told = publish(&a, "minion_pub", "password:hunter2", "pillar", "test.ping").await;
    assert_eq!(told.get("minions"), Some(&Value::list(["b"])));
}

#[tokio::test]
async fn targets_that_mean_nobody_publish_nothing() {
    let house = allowing().await;
    let a = FakeMinion::accepted(house.requests, "a").await;
    let before = house.rows();
    for (tgt, tgt_type) in [("nobody", "glob"), ("(", "pcre"), ("x", "no-such-type"), ("", "list")] {
        for cmd in ["minion_pub", "minion_publish"] {
            assert_eq!(publish(&a, cmd, tgt, tgt_type, "test.ping").await, nothing(), "{tgt_type} {tgt}");
        }
    }
    assert_eq!(house.rows(), before);
}
