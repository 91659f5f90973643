//! What recurs, and windows, with stock minions of every line: each time is carried out by the machines and accounted for.
//!
//! Of the scenarios 71 to 103 here are 71, 74, 79, 81, 91, 92, 95 and 99. Where the others are, by their numbers or as:
//! 72 and 86 `cli/src/cmd/recurring/show.rs`; 73, 75 to 78, 80, 84 and 87 to 90 `server/tests/engine/recurring`; 83
//! `server/tests/schedule/crowd.rs`; 85 `calendar/tests/cron_oracle.rs`; 93, 94, 96 to 98, 100, 101 and 103
//! `server/tests/engine/windows`, and again as clients see them in `api/tests/v1/windows.rs`; 102 `calendar/tests/ical_oracle.rs`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use saltern_e2e::{Fleet, events_with_tag};
use saltern_testkit::wait;
use serde_json::Value;
use std::time::Duration;

/// Longer than anything here takes, on a busy machine.
const LONG: Duration = Duration::from_secs(90);

struct Site(Fleet);

impl Site {
    async fn open() -> Option<Self> {
        Fleet::start("", &[]).await.map(Self)
    }

    fn read(&self, minion: &str, name: &str) -> Option<String> {
        std::fs::read_to_string(self.0.written(minion, name)).ok().map(|text| text.trim_end().to_owned())
    }

    /// The action of the first time after so many, when it has ended.
    async fn fired_after(&self, name: &str, before: usize) -> Value {
        let action = wait::until_ok("a time to have fired", LONG, async || {
            let fires = self.0.server.cli_json(&["recurring", "fires", name]).await;
            let fired = |fire: &&Value| fire["outcome"] == "fired";
            let mut fired: Vec<&Value> = fires.as_array().unwrap().iter().filter(fired).collect();
            fired.reverse();
            fired.get(before).map(|fire| fire["action"].to_string()).ok_or_else(|| fires.to_string())
        })
        .await;
        self.0.done(&["action", "wait", &action]).await;
        self.0.server.cli_json(&["action", "show", &action]).await
    }
}

#[tokio::test]
async fn scenario_71_states_recur_and_history_names_them() {
    let Some(site) = Site::open().await else { return };
    site.0.put_state("daily", "done").await;
    let one = site.0.ids()[0].to_owned();
    site.0
        .done(&[
            "recurring",
            "create",
            "soon",
            "--cron",
            "* * * * * *",
            "--minion",
            &one,
            "--states",
            "catalogue.daily",
        ])
        .await;
    let action = site.fired_after("soon", 0).await;
    site.0.done(&["recurring", "disable", "soon"]).await;
    assert_eq!(action["name"], "Apply recurring states [catalogue.daily]", "{action}");
    assert_eq!(site.read(&one, "daily").as_deref(), Some("done"));
    assert!(site.0.ids()[1..].iter().all(|id| site.read(id, "daily").is_none()), "it is for one minion");
    // Scenario 79: one word about it when it is over.
    let digests = wait::until_ok("its digest", LONG, async || {
        let digests = events_with_tag(&site.0.server, "saltern/recurring/*/digest").await;
        if digests.is_empty() { Err("none yet") } else { Ok(digests) }
    })
    .await;
    assert_eq!(digests[0]["data"]["ok"], 1, "{}", digests[0]);
}

#[tokio::test]
async fn scenario_74_what_recurs_in_test_mode_tells_and_changes_nothing() {
    let Some(site) = Site::open().await else { return };
    site.0.put_state("wanted", "changed").await;
    let words =
        ["recurring", "create", "dry", "--cron", "* * * * * *", "--org", "--states", "catalogue.wanted", "--test"];
    site.0.done(&words).await;
    let action = site.fired_after("dry", 0).await;
    site.0.done(&["recurring", "disable", "dry"]).await;
    let all = site.0.ids().len();
    assert_eq!(action["counts"]["completed"], all, "{action}");
    assert!(site.0.ids().iter().all(|id| site.read(id, "wanted").is_none()), "nothing was changed");
    let jid = action["jid"].as_str().unwrap();
    let job = site.0.server.cli_json(&["job", "show", jid]).await.to_string();
    assert!(job.contains("is set to be changed") || job.contains("would be"), "{job}");
}

#[tokio::test]
async fn scenario_81_assigned_states_are_those_of_the_moment() {
    let Some(site) = Site::open().await else { return };
    site.0.put_state("first", "1").await;
    site.0.put_state("second", "2").await;
    let one = site.0.ids()[0].to_owned();
    site.0.done(&["state", "assign", "first", "--minion", &one]).await;
    site.0.done(&["recurring", "create", "kept", "--cron", "*/5 * * * * *", "--minion", &one, "--assigned"]).await;
    site.fired_after("kept", 0).await;
    assert_eq!((site.read(&one, "first").as_deref(), site.read(&one, "second")), (Some("1"), None));
    site.0.done(&["state", "assign", "second", "--minion", &one]).await;
    wait::until("the next time to apply the second state", LONG, || async {
        site.read(&one, "second").as_deref() == Some("2")
    })
    .await;
    site.0.done(&["recurring", "disable", "kept"]).await;
}

/// Scenarios 91, 92, 95 and 99.
#[tokio::test]
async fn outside_of_a_window_nothing_is_changed_and_what_recurs_says_so() {
    let Some(site) = Site::open().await else { return };
    let one = site.0.ids()[0].to_owned();
    // One window, far away.
    let calendar = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\nUID:a\r\nSUMMARY:patching\r\n\
        DTSTART:20990104T020000Z\r\nDTEND:20990104T040000Z\r\nRRULE:FREQ=YEARLY\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
    let file = site.0.server.write("far.ics", calendar);
    site.0.done(&["window", "calendar", "put", "far", "-f", file.to_str().unwrap()]).await;
    site.0.done(&["window", "schedule", "put", "nights", "--kind", "single", "--calendar", "far"]).await;
    site.0.done(&["window", "assign", "nights", "--minion", &one]).await;
    let refused = site.0.server.cli(&["run", &one, "cmd.run", "touch /nonexistent/x"]).await;
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && why.contains("--in-window"), "{why}");
    // What only looks is answered.
    assert_eq!(site.0.run(&one, "test.ping", &[]).await[&one], true);
    site.0
        .done(&["recurring", "create", "patches", "--cron", "* * * * * *", "--target", "*", "script", "body=true"])
        .await;
    let action = site.fired_after("patches", 0).await;
    site.0.done(&["recurring", "disable", "patches"]).await;
    assert_eq!(action["counts"]["total"], site.0.ids().len() - 1, "{action}");
    let fires = site.0.server.cli_json(&["recurring", "fires", "patches"]).await.to_string();
    assert!(fires.contains(&one), "who was left out is named: {fires}");
    site.0.done(&["window", "maintenance", "on", &one, "--why", "an emergency"]).await;
    site.0.run(&one, "cmd.run", &["true"]).await;
}
