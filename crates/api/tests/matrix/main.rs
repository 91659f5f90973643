//! Every route asked by every kind of person, of this organisation and of another: what each is answered, as one table.
//!
//! `table.txt` is the expectation, made to be read: a line per route, a column per person. `UPDATE=1 cargo test -p saltern-api
//! --test matrix` writes it anew; whoever changes a line has changed who may do what. A route that is not in the table, and a
//! line that is no route, fail.

#![expect(clippy::unwrap_used, reason = "a helper that meets the unexpected fails its test")]

mod cases;
mod strangers;
mod town;

use cases::CASES;
use saltern_testkit::http::Reply;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use town::{PEOPLE, Town};

#[tokio::test]
async fn everybody_is_answered_as_the_table_says() {
    let town = Town::open().await;
    let mut table = String::from("route");
    for person in PEOPLE {
        let _ = write!(table, " | {}", person.name);
    }
    table.push('\n');
    for case in CASES {
        let _ = write!(table, "{} {}", case.method, case.route);
        for person in PEOPLE {
            let (asked, reply) = town.ask(case, person).await;
            assert!(reply.status < 500, "{} {} for {}: {}", case.method, case.route, person.name, reply.text());
            assert_no_leak(&asked, &reply, case.route, person);
            let _ = write!(table, " | {}", reply.status);
        }
        table.push('\n');
    }
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/matrix/table.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(file, &table).unwrap();
    }
    let expected = std::fs::read_to_string(file).unwrap();
    for (found, expected) in table.lines().zip(expected.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(table.lines().count(), expected.lines().count());
}

/// No answer names a minion that its reader does not see, unless he named it himself.
fn assert_no_leak(asked: &str, reply: &Reply, route: &str, person: &town::Person) {
    let text = reply.text();
    for minion in ["web1", "web2", "sql1", "north1"] {
        let told = text.contains(minion) && !asked.contains(minion);
        assert!(!told || person.sees.contains(&minion), "{route} tells {} of {minion}: {text}", person.name);
    }
}

#[test]
fn the_table_has_every_route() {
    let document = saltern_api::openapi::document();
    let document: serde_json::Value = serde_json::to_value(&document).unwrap();
    let mut routes = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            routes.insert(format!("{} {path}", method.to_uppercase()));
        }
    }
    // Behind a blank stands what is special about one of several cases of a route.
    let route = |case: &cases::Case| match case.route.starts_with("/api/v1") {
        true => case.route.split(' ').next().unwrap().to_owned(),
        false => case.route.to_owned(),
    };
    let cases: BTreeSet<String> = CASES.iter().map(|case| format!("{} {}", case.method, route(case))).collect();
    let missing: Vec<_> = routes.difference(&cases).collect();
    assert!(missing.is_empty(), "not in the table: {missing:?}");
    let of_v1 = |route: &&String| route.contains(" /api/v1");
    let gone: Vec<_> = cases.iter().filter(of_v1).filter(|case| !routes.contains(*case)).collect();
    assert!(gone.is_empty(), "no such route: {gone:?}");
}
