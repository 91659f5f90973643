//! Whatever is refused, and by whom, is problem JSON.

use super::{House, nobody};
use serde_json::json;

#[tokio::test]
async fn whatever_is_refused_is_problem_json() {
    let house = House::open().await;
    let run = || house.ask("POST /api/v1/run");
    for (answer, status, code) in [
        (house.ask("GET /nowhere").answer().await, 404, "not_found"),
        (house.ask("GET /api/v1/nowhere").answer().await, 404, "not_found"),
        (house.ask("DELETE /api/v1/jobs").answer().await, 405, "method_not_allowed"),
        (house.ask("GET /api/v1/jobs?limit=0").answer().await, 400, "invalid"),
        (house.ask("GET /api/v1/jobs?typo=1").answer().await, 400, "invalid"),
        (house.ask("GET /api/v1/jobs/7").answer().await, 400, "invalid"),
        (house.ask("GET /api/v1/jobs/20261115195631000000").answer().await, 404, "not_found"),
        (house.ask("GET /api/v1/minions/..").answer().await, 400, "invalid"),
        (house.ask("GET /api/v1/minions/%ff").answer().await, 400, "invalid"),
        (run().text("text/plain", "{}").answer().await, 415, "invalid"),
        (run().text("application/json", "{").answer().await, 400, "invalid"),
        (run().text("application/json", "[]").answer().await, 400, "invalid"),
        (run().json(&json!({ "target": "*", "fun": "test.ping", "more": 1 })).answer().await, 400, "invalid"),
        (run().with("content-length", "999999999").answer().await, 413, "too_large"),
    ] {
        assert_eq!(answer.problem(), (status, code.to_owned()), "{answer:?}");
    }
    house.close().await;
}

#[tokio::test]
async fn what_does_not_take_a_method_says_what_it_takes() {
    let house = House::open().await;
    let answer = house.ask("PUT /api/v1/users").answer().await;
    assert_eq!(answer.status, 405);
    assert_eq!(answer.header("allow"), Some("GET,HEAD,POST"));
    house.close().await;
}

#[tokio::test]
async fn nobody_gets_only_what_is_for_everybody() {
    let house = House::open().await;
    let stranger = house.asked_by(None);
    for path in ["jobs", "actions", "minions", "keys", "users", "users/me", "audit", "status", "webhooks", "functions"]
    {
        let answer = stranger.ask(&format!("GET /api/v1/{path}")).answer().await;
        assert_eq!(answer.problem(), (401, "unauthenticated".into()), "{path}");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    }
    assert_eq!(stranger.ask("GET /metrics").answer().await.status, 401);
    for path in ["/healthz", "/readyz", "/api/v1/openapi.json", "/api/v1/docs", "/api/v1/docs.css"] {
        assert_eq!(stranger.ask(&format!("GET {path}")).answer().await.status, 200, "{path}");
    }
    house.close().await;
}

#[tokio::test]
async fn who_may_not_is_told_so() {
    let house = House::open().await;
    let eve = house.asked_by(nobody());
    for path in ["audit", "audit/verify", "status", "dead-letters"] {
        let answer = eve.ask(&format!("GET /api/v1/{path}")).answer().await;
        assert_eq!(answer.problem(), (403, "forbidden".into()), "{path}");
    }
    let made = eve.ask("POST /api/v1/organisations").json(&json!({ "name": "x" })).answer().await;
    assert_eq!(made.problem(), (403, "forbidden".into()));
    house.close().await;
}

#[tokio::test]
async fn the_documentation_needs_nothing_from_elsewhere_and_no_script() {
    let house = House::open().await;
    let page = house.ask("GET /api/v1/docs").answer().await;
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    for forbidden in ["<script", "style=\"", "<style", "http://", "src="] {
        assert!(!page.text.contains(forbidden), "{forbidden}");
    }
    assert!(page.text.contains("href=\"/api/v1/docs.css\"") && page.text.contains("/api/v1/jobs/{jid}"));
    house.close().await;
}
