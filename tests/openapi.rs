//! The server against its own OpenAPI document: schemathesis sends what the document allows and what it forbids, and looks
//! whether every answer is one that the document tells of.
//!
//! All its checks are made but one: `positive_data_acceptance` wants everything that fits the schema to be taken, and a
//! schema cannot say that a target is no expression or that a function's name has no dot.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use saltern_testkit::fake_minion::FakeMinion;
use saltern_testkit::http::{Http, Request};
use saltern_testkit::installed::ClientProgram;
use saltern_testkit::pepper::installed;
use saltern_testkit::postgres::fresh_database;
use saltern_testkit::process::{Saltern, run_to_end};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// How long one run may take on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(300);

/// Operations that have no end, or end when they like.
const ENDLESS: [&str; 4] = ["follow_events", "follow_events_ws", "watch_job", "wait_for_job"];

/// Operations by which a program can lock itself out.
const OWN_END: [&str; 5] = ["log_out", "delete_token", "delete_user", "change_user", "change_password"];

/// What schemathesis does not know: a change without `If-Match` is answered 428, and one with an old one 412, whatever else
/// is wrong with it.
const CONFIG: &str = "\
[checks.missing_required_header]
expected-statuses = [400, 401, 403, 428]
[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 409, 412, 413, 415, 422, 428]
";

/// A server with something of everything, and a token that may do everything.
struct House {
    server: Saltern,
    token: String,
    schemathesis: std::path::PathBuf,
}

impl House {
    async fn open() -> Option<Self> {
        Self::with(&["--auto-accept"]).await
    }

    async fn with(flags: &[&str]) -> Option<Self> {
        let schemathesis = installed(ClientProgram::Schemathesis)?.path();
        let server = Saltern::start("", flags).await;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.ports().return_port));
        for id in ["web1", "db1"] {
            FakeMinion::start(address, id).await;
        }
        let made =
            server.cli(&["user", "create", "admin", "--password", "correct horse battery", "--role", "server-admin"]);
        assert!(made.await.status.success());
        let made = server.cli(&["token", "create", "--user", "admin", "--name", "test", "--scope", "all"]).await;
        let token = String::from_utf8(made.stdout).unwrap().trim().to_owned();
        let house = Self { server, token, schemathesis };
        house.fill().await;
        Some(house)
    }

    /// Something to look at.
    async fn fill(&self) {
        for (path, body) in [
            ("organisations", json!({ "name": "acme" })),
            ("groups", json!({ "name": "web", "target": "web*", "tgt_type": "glob" })),
            ("users", json!({ "name": "ann", "password": "correct horse battery", "roles": ["reader:web"] })),
            ("webhooks", json!({ "name": "hook", "url": "http://127.0.0.1:9/", "active": false })),
            ("run", json!({ "target": "*", "fun": "test.ping" })),
            ("actions", json!({ "type": "reboot", "target": "web*", "paused": true })),
        ] {
            let request = Request::post(&format!("/api/v1/{path}"), &body).token(&self.token);
            let reply = Http::at(&self.server.url()).send(&request).await;
            assert!(matches!(reply.status, 200 | 201), "{path}: {reply:?}");
        }
    }

    async fn document(&self) -> Value {
        let reply = Http::at(&self.server.url()).send(&Request::get("/api/v1/openapi.json")).await;
        serde_json::from_slice(&reply.body).unwrap()
    }

    /// Runs schemathesis, which has to find nothing.
    async fn check(&self, document: &str, arguments: &[&str]) {
        let config = self.server.write("schemathesis.toml", CONFIG);
        let mut command = Command::new(&self.schemathesis);
        command
            .current_dir(self.server.root())
            .arg("--config-file")
            .arg(config)
            .args(["--no-color", "run", document, "--url", &self.server.url()])
            .args(["--header", &format!("X-Auth-Token: {}", self.token)])
            .args(["--checks", "all", "--exclude-checks", "positive_data_acceptance"])
            // One worker: with more of them CPython 3.11 loses count of its recursion depth now and then.
            .args(["--seed", "7", "--workers", "1", "--continue-on-failure", "--warnings", "off"])
            .args(arguments);
        for operation in ENDLESS {
            command.args(["--exclude-operation-id", operation]);
        }
        let output = run_to_end(command, PATIENCE).await;
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{told}\n{}", String::from_utf8_lossy(&output.stderr));
        assert!(!told.contains("Selected: 0/"), "nothing was tested:\n{told}");
        let log = self.server.log();
        let defects: Vec<&str> =
            log.lines().filter(|line| line.contains(" ERROR ") || line.contains("status=5")).collect();
        assert!(defects.is_empty(), "{defects:#?}");
    }
}

#[tokio::test]
async fn every_answer_is_one_that_the_document_tells_of() {
    let Some(house) = House::open().await else { return };
    // Names of fields are guessed wrong nearly always, and what is refused for that is not looked at any further.
    let mut document = house.document().await;
    without_parameter(&mut document, "fields");
    let document = house.server.write("openapi.json", document.to_string());
    let mut arguments = vec!["--max-examples", "20"];
    OWN_END.iter().for_each(|operation| arguments.extend(["--exclude-operation-id", operation]));
    house.check(text(&document), &arguments).await;
}

#[tokio::test]
async fn who_locks_himself_out_is_told_so() {
    let Some(house) = House::open().await else { return };
    let document = house.server.write("openapi.json", house.document().await.to_string());
    let mut arguments = vec!["--phases", "coverage,fuzzing", "--max-examples", "20"];
    OWN_END.iter().for_each(|operation| arguments.extend(["--include-operation-id", operation]));
    house.check(text(&document), &arguments).await;
}

#[tokio::test]
async fn the_document_as_it_is_served_holds_on_postgresql() {
    let Some(database) = fresh_database() else { return };
    let Some(house) = House::with(&["--auto-accept", "--database", &database]).await else { return };
    let url = format!("{}/api/v1/openapi.json", house.server.url());
    let mut arguments = vec!["--phases", "coverage"];
    OWN_END.iter().for_each(|operation| arguments.extend(["--exclude-operation-id", operation]));
    house.check(&url, &arguments).await;
}

fn without_parameter(document: &mut Value, name: &str) {
    let items = document["paths"].as_object_mut().unwrap().values_mut();
    for operation in items.flat_map(|item| item.as_object_mut().unwrap().values_mut()) {
        if let Some(parameters) = operation.get_mut("parameters").and_then(Value::as_array_mut) {
            parameters.retain(|parameter| parameter["name"] != name);
        }
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap_or_else(|| panic!("{} is not text", path.display()))
}
