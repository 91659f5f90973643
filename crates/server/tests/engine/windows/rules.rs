//! What holds for a minion: its own schedules, those of its groups, blackouts, and a maintenance mode.

use super::{DAY, HOUR, NOW, TOMORROW, assign, ical, id, minions, put_calendar, put_schedule, times};
use crate::house::caller;
use crate::ward::{house, minion};
use saltern_core::time::Timestamp;
use saltern_server::Error;
use saltern_server::app::{FeedFilter, Group, Strategy, Subject};
use saltern_testkit::wait;

#[tokio::test]
async fn a_minion_without_schedules_is_always_open() {
    let house = house().await;
    let _a = minion(&house, "a").await;
    assert!(house.is_open("a").await);
}

#[tokio::test]
async fn several_schedules_are_open_if_any_is() {
    let house = house().await;
    let _a = minion(&house, "a").await;
    house.window_for("later", "single", times(&[TOMORROW]), minions(&["a"])).await;
    assert!(!house.is_open("a").await);
    house.window_for("now", "single", times(&[NOW]), minions(&["a"])).await;
    assert!(house.is_open("a").await);
}

#[tokio::test]
async fn a_schedule_without_a_calendar_is_closed() {
    let house = house().await;
    let _a = minion(&house, "a").await;
    house.edit(put_schedule("never", "single", None), None, Strategy::Refuse).await.unwrap();
    house.edit(assign("never", minions(&["a"])), None, Strategy::Refuse).await.unwrap();
    assert!(!house.is_open("a").await);
    let entry = house.app().schedule(&caller(), None, "never").await.unwrap();
    assert_eq!(entry.problem.as_deref(), Some("it has no calendar"));
    assert_eq!(entry.minions, [id("a")]);
}

#[tokio::test]
async fn a_calendar_is_split_by_summary() {
    let house = house().await;
    let (_a, _b) = (minion(&house, "a").await, minion(&house, "b").await);
    let text = ical(&[(NOW.0, NOW.1, "SAP Maintenance Window"), (TOMORROW.0, TOMORROW.1, "Core Server Window")]);
    house.edit(put_calendar("exchange", text), None, Strategy::Refuse).await.unwrap();
    for (name, minion) in [("SAP Maintenance Window", "a"), ("Core Server Window", "b")] {
        house.edit(put_schedule(name, "multi", Some("exchange")), None, Strategy::Refuse).await.unwrap();
        house.edit(assign(name, minions(&[minion])), None, Strategy::Refuse).await.unwrap();
    }
    assert!(house.is_open("a").await);
    assert!(!house.is_open("b").await);
    let windows = house.app().windows_of(&caller(), &id("b"), None, 10).await.unwrap().windows;
    assert_eq!(windows.iter().map(|window| window.summary.as_str()).collect::<Vec<_>>(), ["Core Server Window"]);
}

#[tokio::test]
async fn a_blackout_closes_while_it_lasts_whatever_else_is_open() {
    let house = house().await;
    let _a = minion(&house, "a").await;
    house.window_for("open", "single", times(&[(-HOUR, DAY)]), minions(&["a"])).await;
    house.window_for("freeze", "blackout", times(&[(-60, HOUR)]), minions(&["a"])).await;
    assert!(!house.is_open("a").await);
    let windows = house.app().windows_of(&caller(), &id("a"), None, 10).await.unwrap().windows;
    let kinds: Vec<(&str, bool)> =
        windows.iter().map(|window| (window.schedule.as_str(), window.is_blackout)).collect();
    assert_eq!(kinds, [("open", false), ("freeze", true)]);
}

fn group(members: &[&str]) -> Group {
    Group {
        name: "web".into(),
        org: "default".into(),
        description: String::new(),
        target: None,
        members: members.iter().map(|name| id(name)).collect(),
        created: Timestamp(0),
        version: 0,
    }
}

#[tokio::test]
async fn schedules_of_a_group_hold_for_its_members_of_the_moment_and_own_ones_come_first() {
    let house = house().await;
    let (_a, _b, _c) = (minion(&house, "a").await, minion(&house, "b").await, minion(&house, "c").await);
    let app = house.app();
    app.put_group(&caller(), group(&["a", "b"]), None).await.unwrap();
    house.window_for("web", "single", times(&[TOMORROW]), vec![Subject::Group("web".into())]).await;
    house.window_for("own", "single", times(&[NOW]), minions(&["b"])).await;
    assert!(!house.is_open("a").await);
    assert!(house.is_open("b").await, "its own schedule comes before its group's");
    assert!(house.is_open("c").await);
    // Who comes into the group is under its windows at once.
    let version = app.group(&caller(), "web").await.unwrap().group.version;
    app.put_group(&caller(), group(&["b", "c"]), Some(version)).await.unwrap();
    assert!(!house.is_open("c").await);
    assert!(house.is_open("a").await);
}

#[tokio::test]
async fn a_blackout_of_a_group_holds_beside_windows_of_ones_own() {
    let house = house().await;
    let _a = minion(&house, "a").await;
    house.app().put_group(&caller(), group(&["a"]), None).await.unwrap();
    house.window_for("own", "single", times(&[NOW]), minions(&["a"])).await;
    house.window_for("freeze", "blackout", times(&[NOW]), vec![Subject::Group("web".into())]).await;
    assert!(!house.is_open("a").await);
}

#[tokio::test]
async fn maintenance_by_hand_opens_until_its_end() {
    let house = house().await;
    let _a = minion(&house, "a").await;
    house.window_for("later", "single", times(&[TOMORROW]), minions(&["a"])).await;
    let app = house.app();
    let none = app.start_maintenance(&caller(), &[id("a")], " ", None).await;
    assert!(matches!(none, Err(Error::Invalid(_))), "{none:?}");
    app.start_maintenance(&caller(), &[id("a")], "disk swap", None).await.unwrap();
    assert!(house.is_open("a").await);
    assert_eq!(app.maintenance(&caller())[0].why, "disk swap");
    assert_eq!(app.end_maintenance(&caller(), &[id("a")]).await.unwrap(), [id("a")]);
    assert!(!house.is_open("a").await);
    let until = saltern_server::clock::now().plus(std::time::Duration::from_secs(1));
    app.start_maintenance(&caller(), &[id("a")], "short", Some(until)).await.unwrap();
    wait::until("the maintenance to be over", crate::ward::LONG, || async { !house.is_open("a").await }).await;
    assert!(app.maintenance(&caller()).is_empty());
}

#[tokio::test]
async fn windows_outlive_the_server() {
    let mut house = house().await;
    let a = minion(&house, "a").await;
    house.window_for("later", "single", times(&[TOMORROW]), minions(&["a"])).await;
    drop(a);
    house.restart().await;
    assert!(!house.is_open("a").await);
}

#[tokio::test]
async fn the_feed_is_a_calendar_of_windows() {
    let house = house().await;
    let _a = minion(&house, "a").await;
    house.window_for("later", "single", times(&[TOMORROW]), minions(&["a"])).await;
    let feed = house.app().feed(&caller(), &FeedFilter::default()).await.unwrap();
    let read = saltern_calendar::ical::Calendar::parse(&feed, &saltern_calendar::ical::Limits::default()).unwrap();
    let now = saltern_server::clock::now();
    let windows = read.windows(now, now.plus(std::time::Duration::from_secs(90 * 86_400)), None).unwrap();
    assert_eq!(windows.len(), 1, "{feed}");
    assert_eq!(windows[0].summary, "later (maintenance)");
    assert!(windows[0].start > now.plus(std::time::Duration::from_secs(80_000)));
    let other = FeedFilter { schedule: Some("other".into()), ..FeedFilter::default() };
    assert!(!house.app().feed(&caller(), &other).await.unwrap().contains("VEVENT"));
}
