//! Maintenance windows: calendars, schedules, who they hold for, and what a change does to work that waits.

use super::House;
use saltern_core::time::Timestamp;
use saltern_server::clock;
use saltern_testkit::fake_minion::FakeMinion;
use serde_json::{Value, json};

/// A calendar with one event, from then on for two hours, each day.
fn daily(from: Timestamp) -> String {
    let time = |at: Timestamp| at.rfc3339().replace(['-', ':'], "");
    let (start, end) = (time(from), time(Timestamp(from.0 + 2 * 3_600_000_000)));
    [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:test",
        "BEGIN:VEVENT",
        "UID:1",
        "DTSTAMP:20260101T000000Z",
        &format!("DTSTART:{start}"),
        &format!("DTEND:{end}"),
        "RRULE:FREQ=DAILY",
        "SUMMARY:patching",
        "END:VEVENT",
        "END:VCALENDAR",
        "",
    ]
    .join("\r\n")
}

fn hours(hours: i64) -> Timestamp {
    let now = clock::now().secs();
    Timestamp::from_secs(now - now % 60 + hours * 3_600)
}

/// A house with web1, whose window is closed now and opens in four hours.
async fn closed_house() -> (House, FakeMinion) {
    let house = House::open().await;
    let minion = FakeMinion::start(house.server.return_address, "web1").await;
    let calendar = json!({ "name": "nights", "ical": daily(hours(4)) });
    assert_eq!(house.ask("POST /api/v1/calendars").json(&calendar).answer().await.status, 201);
    let schedule = json!({ "name": "web nights", "calendar": "nights" });
    assert_eq!(house.ask("POST /api/v1/schedules").json(&schedule).answer().await.status, 201);
    house.assign(json!({ "minions": ["web1"] })).await;
    (house, minion)
}

impl House {
    async fn assign(&self, to: Value) {
        self.ask("POST /api/v1/schedules/web%20nights/assignments").json(&to).answer().await.ok();
    }

    async fn reboot(&self, more: Value) -> super::Answer {
        let mut body = json!({ "type": "reboot", "target": "web1" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.ask("POST /api/v1/actions").json(&body).answer().await
    }
}

#[tokio::test]
async fn a_schedule_holds_for_whom_it_is_assigned_to() {
    let (house, _minion) = closed_house().await;
    let schedule = house.ask("GET /api/v1/schedules/web%20nights").answer().await.ok();
    assert_eq!((&schedule["minions"], &schedule["problem"]), (&json!(["web1"]), &Value::Null));
    assert_eq!(schedule["assigned_to"], json!({ "minions": ["web1"], "groups": [] }));
    let windows = house.ask("GET /api/v1/minions/web1/windows?limit=2").answer().await.ok();
    assert_eq!((&windows["open"], windows["windows"].as_array().unwrap().len()), (&json!(false), 2));
    assert_eq!(windows["windows"][0]["summary"], "patching");
    let feed = house.ask("GET /api/v1/windows/feed.ics?minion=web1").answer().await;
    assert_eq!(feed.header("content-type"), Some("text/calendar; charset=utf-8"));
    assert!(feed.text.starts_with("BEGIN:VCALENDAR") && feed.text.contains("web nights"), "{}", feed.text);
    let calendars = house.ask("GET /api/v1/calendars").answer().await.ok();
    assert!(calendars["calendars"][0].get("ical").is_none(), "texts are not in lists: {calendars}");
    house.close().await;
}

#[tokio::test]
async fn scenario_95_what_would_start_outside_is_refused_with_the_next_window() {
    let (house, _minion) = closed_house().await;
    let refused = house.reboot(json!({})).await;
    let detail = refused.json()["detail"].as_str().unwrap().to_owned();
    assert!(refused.status == 409 && detail.contains("web1 (next: ") && detail.contains("--in-window"), "{refused:?}");
    assert_eq!(house.ask("GET /api/v1/actions").answer().await.ok()["actions"], json!([]));
    let moved = house.reboot(json!({ "in_window": true })).await.ok();
    let run = house.ask(&format!("GET /api/v1/actions/{}/runs/web1", moved["id"])).answer().await.ok();
    assert_eq!((&run["state"], &run["waiting_for"]), (&json!("queued"), &json!("window")));
    house.close().await;
}

#[tokio::test]
async fn who_overrides_a_window_says_why() {
    let (house, _minion) = closed_house().await;
    let nothing = house.reboot(json!({ "policy": { "override_window": " " } })).await;
    assert_eq!(nothing.status, 400, "{nothing:?}");
    let done = house.reboot(json!({ "policy": { "override_window": "the disk is full" } })).await;
    assert_eq!(done.status, 201, "{done:?}");
    let audit = house.ask("GET /api/v1/audit?limit=1000").answer().await.text;
    assert!(audit.contains("window.override") && audit.contains("the disk is full"), "{audit}");
    house.close().await;
}

#[tokio::test]
async fn a_launch_keeps_to_windows_too() {
    let (house, _minion) = closed_house().await;
    let chain = json!({ "name": "patch", "steps": [{ "type": "reboot", "target": "web1" }] });
    house.ask("POST /api/v1/chains").json(&chain).answer().await.ok();
    let launch = async |body: Value| house.ask("POST /api/v1/chains/patch/launch").json(&body).answer().await.status;
    assert_eq!(launch(json!({})).await, 409);
    assert_eq!(launch(json!({ "window": "maybe" })).await, 400);
    assert_eq!(launch(json!({ "in_window": true })).await, 201);
    house.close().await;
}

#[tokio::test]
async fn maintenance_by_hand_opens_a_minion() {
    let (house, _minion) = closed_house().await;
    let line = "PUT /api/v1/minions/web1/maintenance";
    assert_eq!(house.ask(line).json(&json!({ "why": "" })).answer().await.status, 400);
    assert_eq!(house.ask(line).json(&json!({ "why": "the disk" })).answer().await.status, 204);
    let windows = house.ask("GET /api/v1/minions/web1/windows").answer().await.ok();
    assert_eq!((&windows["open"], &windows["maintenance"]["why"]), (&json!(true), &json!("the disk")));
    let all = house.ask("GET /api/v1/windows/maintenance").answer().await.ok();
    assert_eq!(all["maintenance"][0]["minion"], "web1");
    for _ in 0..2 {
        assert_eq!(house.ask("DELETE /api/v1/minions/web1/maintenance").answer().await.status, 204);
    }
    let windows = house.ask("GET /api/v1/minions/web1/windows").answer().await.ok();
    assert_eq!((&windows["open"], &windows["maintenance"]), (&json!(false), &Value::Null));
    house.close().await;
}

#[tokio::test]
async fn scenario_97_a_change_that_takes_a_window_away_is_refused_or_cancels_what_waited() {
    let (house, _minion) = closed_house().await;
    let action = house.reboot(json!({ "in_window": true })).await.ok()["id"].clone();
    let change = json!({ "ical": daily(hours(9)) });
    let preview = json!({ "put_calendar": { "name": "nights", "ical": daily(hours(9)) } });
    let touched = house.ask("POST /api/v1/windows/preview").json(&preview).answer().await.ok();
    assert_eq!((&touched["touched"][0]["action"], &touched["touched"][0]["minion"]), (&action, &json!("web1")));
    let put = |strategy: &str| {
        let line = format!("PUT /api/v1/calendars/nights?strategy={strategy}");
        house.ask(&line).with("if-match", "\"1\"").json(&change).answer()
    };
    let refused = put("refuse").await;
    assert_eq!(refused.status, 409, "{refused:?}");
    assert_eq!(put("previous").await.status, 400);
    let done = put("cancel").await;
    assert_eq!((done.status, done.header("etag")), (200, Some("\"2\"")), "{done:?}");
    assert_eq!(done.ok()["touched"][0]["action"], action);
    let run = house.ask(&format!("GET /api/v1/actions/{action}/runs/web1")).answer().await.ok();
    assert_eq!(run["state"], "cancelled");
    assert_eq!(put("cancel").await.status, 412);
    house.close().await;
}

#[tokio::test]
async fn scenario_103_who_is_unassigned_may_be_changed_at_any_time() {
    let (house, _minion) = closed_house().await;
    let line = "POST /api/v1/schedules/web%20nights/assignments/remove";
    house.ask(line).json(&json!({ "minions": ["web1"] })).answer().await.ok();
    let windows = house.ask("GET /api/v1/minions/web1/windows").answer().await.ok();
    assert_eq!((&windows["open"], &windows["windows"]), (&json!(true), &json!([])));
    house.close().await;
}

#[tokio::test]
async fn what_makes_no_window_is_refused_with_its_place() {
    let (house, _minion) = closed_house().await;
    let bad = json!({ "name": "bad", "ical": "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nDTSTART:soon\r\n" });
    let refused = house.ask("POST /api/v1/calendars").json(&bad).answer().await;
    assert!(refused.status == 400 && refused.json()["detail"].as_str().unwrap().contains("line "), "{refused:?}");
    let none = house.ask("POST /api/v1/calendars").json(&json!({ "name": "none" })).answer().await;
    assert_eq!(none.status, 400, "{none:?}");
    let gone = json!({ "name": "x", "calendar": "gone" });
    assert_eq!(house.ask("POST /api/v1/schedules").json(&gone).answer().await.status, 404);
    let refresh = house.ask("POST /api/v1/calendars/nights/refresh").answer().await;
    assert_eq!(refresh.status, 409, "{refresh:?}");
    let stranger = json!({ "minions": ["web9"] });
    let line = "POST /api/v1/schedules/web%20nights/assignments";
    assert_eq!(house.ask(line).json(&stranger).answer().await.status, 404);
    house.close().await;
}
