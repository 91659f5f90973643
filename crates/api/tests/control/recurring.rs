//! What recurs and maintenance windows, as the client asks for them.

use super::actions::house_with_a_minion;
use saltern_api::client::FeedQuery;
use saltern_api::shape::{
    Assigned, CalendarContent, CatchUp, EntityKind, Maintenance, NewCalendar, NewSchedule, Overlap, RecurringDraft,
    RecurringEntity, RecurringVerb, RecurringWhat, ScheduleContent, Strategy, Subjects, WindowChange,
};
use saltern_core::action::Policy;

const EMPTY: &str = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\nEND:VCALENDAR\r\n";

fn on_web1() -> RecurringEntity {
    RecurringEntity { kind: EntityKind::Minion, subject: "web1".into() }
}

#[tokio::test]
async fn the_client_makes_changes_and_removes_what_recurs() {
    let (house, _minion) = house_with_a_minion().await;
    let client = &house.client;
    let draft = RecurringDraft {
        name: "nightly".into(),
        entity: on_web1(),
        what: RecurringWhat { kind: Some("states".into()), ..RecurringWhat::default() },
        cron: "30 2 * * SUN".into(),
        zone: "Europe/Prague".into(),
        active: true,
        spread: 0,
        overlap: Overlap::Queue,
        catch_up: CatchUp::All,
        catch_up_limit: 60,
        in_window: false,
        deadline: Some(3_600),
        policy: Policy::default(),
    };
    assert_eq!(client.preview_draft(&draft, 2).await.unwrap().len(), 2);
    let made = client.create_recurring(&draft).await.unwrap();
    assert_eq!(RecurringDraft::of(&made), draft);
    assert_eq!(client.recurrings(Some(&on_web1())).await.unwrap(), std::slice::from_ref(&made));
    assert_eq!(client.recurrings_of_minion("web1").await.unwrap().len(), 1);
    assert_eq!(client.preview_recurring(made.id, 3).await.unwrap().len(), 3);
    assert_eq!(client.fires(made.id, Some(made.created), 5).await.unwrap().fires, []);
    let off = client.act_on_recurring(made.id, RecurringVerb::Deactivate).await.unwrap().recurring;
    assert!(!off.active && off.next.is_none());
    let changed = client.put_recurring(made.id, off.version, &RecurringDraft { spread: 60, ..draft }).await.unwrap();
    assert_eq!((changed.spread, changed.active), (60, true));
    client.delete_recurring(made.id, changed.version).await.unwrap();
    assert_eq!(client.recurrings(None).await.unwrap(), []);
    house.close().await;
}

#[tokio::test]
async fn the_client_makes_changes_and_removes_windows() {
    let (house, _minion) = house_with_a_minion().await;
    let client = &house.client;
    let calendar = NewCalendar { name: "c".into(), ical: Some(EMPTY.into()), ..NewCalendar::default() };
    client.create_calendar(&calendar).await.unwrap();
    let schedule = NewSchedule { name: "a b".into(), calendar: Some("c".into()), ..NewSchedule::default() };
    client.create_schedule(&schedule).await.unwrap();
    let to = Subjects { minions: vec!["web1".into()], groups: Vec::new() };
    let assign = WindowChange::Assign(Assigned { schedule: "a b".into(), org: None, to: to.clone() });
    assert_eq!(client.preview_windows(&assign).await.unwrap(), []);
    client.assign_schedule(None, "a b", Strategy::Refuse, &to).await.unwrap();
    assert_eq!(client.schedule(None, "a b").await.unwrap().minions, ["web1"]);
    assert!(!client.windows_of("web1", 3).await.unwrap().open);
    client.start_maintenance("web1", &Maintenance { why: "disk".into(), until: None }).await.unwrap();
    assert_eq!(client.maintenance().await.unwrap()[0].why, "disk");
    client.end_maintenance("web1").await.unwrap();
    assert!(client.feed(&FeedQuery::default()).await.unwrap().starts_with("BEGIN:VCALENDAR"));
    let content = CalendarContent { zone: Some("Europe/Prague".into()), ..CalendarContent::default() };
    let changed = client.put_calendar(None, "c", 1, Strategy::Cancel, &content).await.unwrap();
    let kept = client.calendar(None, "c").await.unwrap();
    assert_eq!((kept.calendar.zone.as_str(), kept.ical.as_str()), ("Europe/Prague", EMPTY));
    client.put_schedule(None, "a b", 1, Strategy::Next, &ScheduleContent::default()).await.unwrap();
    client.unassign_schedule(None, "a b", Strategy::Refuse, &to).await.unwrap();
    assert!(client.windows_of("web1", 3).await.unwrap().open);
    client.delete_calendar(None, "c", changed.version, Strategy::Refuse).await.unwrap();
    let version = client.schedules(None).await.unwrap()[0].version;
    client.delete_schedule(None, "a b", version, Strategy::Refuse).await.unwrap();
    assert!(client.calendars(None).await.unwrap().is_empty() && client.schedules(None).await.unwrap().is_empty());
    house.close().await;
}
