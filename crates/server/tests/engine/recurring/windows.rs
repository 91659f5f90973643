//! What recurs and the maintenance windows of its minions.

use super::{NEVER, hold, id, now, on, what};
use crate::house::{House, caller};
use crate::ward::house;
use saltern_core::ids::MinionId;
use saltern_core::run::{RunState, WaitingFor};
use saltern_core::time::Timestamp;
use saltern_core::value::Value;
use saltern_server::app::{
    CalendarDraft, EntityKind, Overlap, RecurringDraft, ScheduleDraft, Strategy, Subject, WindowEdit,
};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);

/// One window for a minion, from and to these times.
async fn window(house: &House, minion: &MinionId, from: Timestamp, to: Timestamp) {
    let at = |at: Timestamp| at.rfc3339().replace(['-', ':'], "");
    let ical = format!(
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:test\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTAMP:20260101T000000Z\r\n\
         DTSTART:{}\r\nDTEND:{}\r\nSUMMARY:window\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n",
        at(from),
        at(to)
    );
    let name = minion.to_string();
    let calendar = CalendarDraft { name: name.clone(), ical: Some(ical), ..CalendarDraft::default() };
    let schedule = ScheduleDraft {
        name: name.clone(),
        kind: "single".into(),
        calendar: Some(name.clone()),
        ..ScheduleDraft::default()
    };
    let assignment = WindowEdit::Assign { org: None, schedule: name, to: vec![Subject::Minion(minion.clone())] };
    for edit in [WindowEdit::PutCalendar(calendar), WindowEdit::PutSchedule(schedule), assignment] {
        house.app().change_windows(&caller(), edit, None, Strategy::Refuse).await.unwrap();
    }
}

/// A definition on a minion whose window is open now, one whose is open in an hour, and one without any.
async fn nightly(house: &House, in_window: bool) -> saltern_core::ids::RecurringId {
    house.minions_known(&["free", "later", "open"]).await;
    let now = now();
    window(house, &id("open"), now.minus(HOUR), now.plus(HOUR)).await;
    window(house, &id("later"), now.plus(HOUR), now.plus(2 * HOUR)).await;
    let states = what(r#"{"type":"states"}"#);
    let draft = RecurringDraft::new("nightly", on(EntityKind::Target, "L@free,later,open"), states, NEVER);
    house.define(RecurringDraft { in_window, overlap: Overlap::Allow, policy: hold(), ..draft }).await
}

#[tokio::test]
async fn whose_window_is_closed_is_left_out_and_named() {
    let house = house().await;
    let definition = nightly(&house, false).await;
    let entry = house.fired(definition).await;
    assert_eq!(house.minions_of(entry.fire.action).await, ["free", "open"]);
    assert_eq!(entry.left_out, [(id("later"), "outside of its maintenance window".to_owned())]);
}

#[tokio::test]
async fn in_window_moves_whose_window_is_closed_to_its_next_one() {
    let house = house().await;
    let definition = nightly(&house, true).await;
    let entry = house.fired(definition).await;
    assert_eq!((entry.fire.outcome.as_str(), entry.fire.minions, entry.fire.skipped), ("fired", 3, 0));
    let run = house.state(entry.fire.action.unwrap(), "later").await;
    assert_eq!((run.state, run.waiting_for), (RunState::Queued, Some(WaitingFor::Window)));
    assert!(run.due.unwrap().since(entry.fire.planned) > HOUR - Duration::from_secs(60), "{run:?}");
}

#[tokio::test]
async fn who_may_not_be_changed_now_is_left_out_and_named() {
    let house = House::with([("auto_accept", true.into()), ("blackout", Value::list(["a"]))]).await;
    house.minions_known(&["a", "b"]).await;
    let states = what(r#"{"type":"states"}"#);
    let draft = RecurringDraft::new("nightly", on(EntityKind::Target, "L@a,b"), states, NEVER);
    let definition = house.define(RecurringDraft { policy: hold(), ..draft }).await;
    let entry = house.fired(definition).await;
    assert_eq!(house.minions_of(entry.fire.action).await, ["b"]);
    assert_eq!(entry.left_out, [(id("a"), "outside of its maintenance window".to_owned())]);
    let preview = house.app().preview_recurring(&caller(), definition, 3).await.unwrap();
    assert_eq!(preview.len(), 3);
    assert_eq!((preview[0].minions.clone(), preview[0].left_out.len()), (vec![id("b")], 1));
    assert!(preview.windows(2).all(|pair| pair[0].at < pair[1].at));
}
