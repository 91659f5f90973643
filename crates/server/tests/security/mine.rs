//! The mine gives each minion what it may have, and nothing to guess with.

use crate::house::House;
use saltern_core::value::{Map, Value};
use saltern_testkit::fake_minion::FakeMinion;

async fn get(minion: &FakeMinion, tgt: &str, tgt_type: &str, fun: &str) -> Value {
    minion.request("_mine_get", [("tgt", tgt), ("tgt_type", tgt_type), ("fun", fun)]).await
}

async fn put(minion: &FakeMinion, fun: &str, value: Value) {
    assert_eq!(minion.request("_mine", [("data", Value::map([(fun, value)]))]).await, Value::from(true));
}

fn nothing() -> Value {
    Value::Map(Map::new())
}

#[tokio::test]
async fn values_are_offered_to_all_unless_a_rule_says_otherwise() {
    let house = House::open().await;
    let (a, b) = (FakeMinion::accepted(house.requests, "a").await, FakeMinion::accepted(house.requests, "b").await);
    put(&a, "open", "x".into()).await;
    let ruled = |allowed: &str| {
        Value::map([
            ("__data__", Value::from("y")),
            ("__saltmine_acl__", 1.into()),
            ("allow_tgt", allowed.into()),
            ("allow_tgt_type", "glob".into()),
        ])
    };
    put(&a, "for_b", ruled("b")).await;
    put(&a, "for_c", ruled("c*")).await;
    put(
        &a,
        "by_nonsense",
        ruled("")
            .as_map()
            .map(|map| {
                let mut map = map.clone();
                map.insert("allow_tgt", "[");
                map.insert("allow_tgt_type", "pcre");
                Value::Map(map)
            })
            .unwrap(),
    )
    .await;
    assert_eq!(get(&b, "*", "glob", "open").await, Value::map([("a", "x")]));
    assert_eq!(get(&b, "*", "glob", "for_b").await, Value::map([("a", "y")]));
    assert_eq!(get(&b, "*", "glob", "for_c").await, nothing());
    assert_eq!(get(&b, "*", "glob", "by_nonsense").await, nothing());
    let several = get(&b, "*", "glob", "open,for_c").await;
    assert_eq!(several, Value::map([("open", Value::map([("a", "x")])), ("for_c", nothing())]));
}

#[tokio::test]
async fn a_minion_changes_its_own_values_only() {
    let house = House::open().await;
    let (a, b) = (FakeMinion::accepted(house.requests, "a").await, FakeMinion::accepted(house.requests, "b").await);
    put(&a, "fun", "x".into()).await;
    b.request("_mine_delete", [("fun", "fun"), ("id", "a"), ("minion", "a")]).await;
    b.request("_mine_flush", [("id", "a")]).await;
    assert_eq!(get(&b, "*", "glob", "fun").await, Value::map([("a", "x")]));
    a.request("_mine_delete", [("fun", "fun")]).await;
    assert_eq!(get(&b, "*", "glob", "fun").await, nothing());
}

#[tokio::test]
async fn patterns_cannot_be_used_to_guess_pillar() {
    let house = House::furnished(vec![("auto_accept".into(), true.into())], |dir| {
        std::fs::write(dir.join("pillar/top.sls"), "base:\n  'a': [role]\n").unwrap();
        std::fs::write(dir.join("pillar/role.sls"), "password: hunter2\n").unwrap();
    })
    .await;
    let (a, b) = (FakeMinion::start(house.requests, "a").await, FakeMinion::start(house.requests, "b").await);
    put(&a, "fun", "x".into()).await;
    for (tgt, tgt_type) in [
        ("password:hunter*", "pillar"),
        ("password:*", "pillar"),
        ("password:h.*", "pillar_pcre"),
        ("I@password:h*", "compound"),
        ("J@password:h.*", "compound"),
        ("a and I@password:h*", "compound"),
    ] {
        assert_eq!(get(&b, tgt, tgt_type, "fun").await, nothing(), "{tgt_type} {tgt}");
    }
    for (tgt, tgt_type) in [("password:hunter2", "pillar"), ("I@password:hunter2", "compound"), ("a", "glob")] {
        assert_eq!(get(&b, tgt, tgt_type, "fun").await, Value::map([("a", "x")]), "{tgt_type} {tgt}");
    }
}

#[tokio::test]
async fn a_list_inside_a_compound_target_is_one_word_of_it() {
    let house = House::open().await;
    let (a, b) = (FakeMinion::accepted(house.requests, "a").await, FakeMinion::accepted(house.requests, "b").await);
    put(&a, "fun", "x".into()).await;
    put(&b, "fun", "y".into()).await;
    assert_eq!(get(&a, "L@a,missing and b", "compound", "fun").await, nothing());
    assert_eq!(get(&a, "L@a or b", "compound", "fun").await, Value::map([("a", "x"), ("b", "y")]));
}

#[tokio::test]
async fn requests_of_a_wrong_shape_get_nothing() {
    let house = House::open().await;
    let minion = FakeMinion::accepted(house.requests, "a").await;
    put(&minion, "fun", "x".into()).await;
    let many = Value::list((0..10_000).map(|number| format!("fun{number}")));
    for (tgt, tgt_type, fun) in [
        (Value::from("*"), "no-such-type", Value::from("fun")),
        ("(".into(), "pcre", "fun".into()),
        (7.into(), "glob", "fun".into()),
        ("*".into(), "range", "fun".into()),
        ("*".into(), "glob", 7.into()),
        ("*".into(), "glob", many),
    ] {
        let answer = minion.request("_mine_get", [("tgt", tgt), ("tgt_type", tgt_type.into()), ("fun", fun)]).await;
        assert_eq!(answer, nothing(), "{tgt_type}");
    }
    for data in [Value::Nil, "x".into(), Value::list([1])] {
        assert_eq!(minion.request("_mine", [("data", data)]).await, Value::from(false));
    }
}
