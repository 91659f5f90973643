//! Maintenance windows as they are kept: read as a whole, counted when they change, and calendars that are read anew.

use crate::database::{Database, on_both_databases};
use crate::fixtures::{all_tags, at, audit, audited, event, group, minion, organisation};
use saltern_store::{
    Assignment, Calendar, Counter, DEFAULT_ORGANISATION, Mode, Refresh, Schedule, Store, WindowChange, WindowData,
    Written,
};

on_both_databases! {
    what_is_kept_reads_back_as_a_whole,
    a_minion_may_be_opened_by_hand,
    every_change_is_counted,
    what_was_assigned_to_somebody_who_is_gone_is_taken_back,
    a_calendar_that_is_read_anew_has_its_new_text,
    a_calendar_that_cannot_be_read_keeps_its_text,
    what_comes_from_elsewhere_now_is_not_overwritten,
    an_organisation_with_calendars_or_schedules_stays,
}

pub(crate) fn calendar(name: &str) -> Calendar {
    Calendar {
        org: DEFAULT_ORGANISATION.into(),
        name: name.into(),
        url: Some("https://example.org/cal".into()),
        ical: "BEGIN:VCALENDAR".into(),
        zone: "UTC".into(),
        refresh: Some(3600),
        refreshed: Some(at(3)),
        tried: Some(at(4)),
        error: Some("gone".into()),
        created: at(1),
        changed: at(2),
        version: 1,
    }
}

pub(crate) fn schedule(name: &str) -> Schedule {
    Schedule {
        org: DEFAULT_ORGANISATION.into(),
        name: name.into(),
        kind: "multi".into(),
        calendar: Some("night".into()),
        away: "hold".into(),
        created: at(5),
        version: 1,
    }
}

pub(crate) fn assignment(kind: &str, subject: &str, schedule: &str) -> Assignment {
    Assignment {
        kind: kind.into(),
        subject: subject.into(),
        org: DEFAULT_ORGANISATION.into(),
        schedule: schedule.into(),
    }
}

/// Calendar night, schedule sunday, which holds for minion web1 and group web.
pub(crate) async fn set_up(store: &Store) {
    let change = WindowChange {
        put_calendar: Some((calendar("night"), None)),
        put_schedule: Some((schedule("sunday"), None)),
        assign: vec![assignment("minion", "web1", "sunday"), assignment("group", "web", "sunday")],
        audit: vec![audit("window.set_up")],
        ..WindowChange::default()
    };
    assert_eq!(store.change_windows(change).await.unwrap(), Written::Done(1));
}

fn mode(id: &str) -> Mode {
    Mode { minion: minion(id), by: "ann".into(), why: "a disk".into(), since: at(7), until: Some(at(8)) }
}

async fn what_is_kept_reads_back_as_a_whole(database: Database) {
    let store = database.open().await;
    assert_eq!(store.window_data().await.unwrap(), WindowData::default());
    set_up(&store).await;
    store.set_mode(mode("web1"), audit("mode")).await.unwrap();
    let wanted = WindowData {
        number: 2,
        calendars: vec![calendar("night")],
        schedules: vec![schedule("sunday")],
        assignments: vec![assignment("group", "web", "sunday"), assignment("minion", "web1", "sunday")],
        modes: vec![mode("web1")],
    };
    assert_eq!(store.window_data().await.unwrap(), wanted);
    assert_eq!(audited(&store).await, ["window.set_up", "mode"]);
}

async fn a_minion_may_be_opened_by_hand(database: Database) {
    let store = database.open().await;
    store.set_mode(mode("web1"), audit("1")).await.unwrap();
    let longer = Mode { until: None, why: "still".into(), ..mode("web1") };
    store.set_mode(longer.clone(), audit("2")).await.unwrap();
    assert_eq!(store.window_data().await.unwrap().modes, [longer]);
    assert!(store.clear_mode(minion("web1"), audit("3")).await.unwrap());
    assert!(!store.clear_mode(minion("web1"), audit("4")).await.unwrap());
    assert_eq!(store.window_data().await.unwrap().modes, []);
    assert_eq!(audited(&store).await, ["1", "2", "3"]);
}

async fn every_change_is_counted(database: Database) {
    let store = database.open().await;
    let mut seen = vec![store.taken(Counter::Windows).await.unwrap()];
    set_up(&store).await;
    seen.push(store.taken(Counter::Windows).await.unwrap());
    store.set_mode(mode("web1"), audit("1")).await.unwrap();
    seen.push(store.taken(Counter::Windows).await.unwrap());
    store.clear_mode(minion("web1"), audit("1")).await.unwrap();
    seen.push(store.taken(Counter::Windows).await.unwrap());
    store.note_refresh(refresh("night", Ok("another"))).await.unwrap();
    seen.push(store.taken(Counter::Windows).await.unwrap());
    store.forget_minion(minion("web1")).await.unwrap();
    seen.push(store.taken(Counter::Windows).await.unwrap());
    assert!(seen.is_sorted_by(|one, next| one < next), "{seen:?}");
    store.forget_minion(minion("web1")).await.unwrap();
    assert_eq!(store.taken(Counter::Windows).await.unwrap(), seen[5], "nothing has changed");
}

async fn what_was_assigned_to_somebody_who_is_gone_is_taken_back(database: Database) {
    let store = database.open().await;
    set_up(&store).await;
    store.put_group(group("web", &[]), None, audit("1")).await.unwrap();
    store.set_mode(mode("web1"), audit("2")).await.unwrap();
    store.delete_group("web".into(), None, audit("3")).await.unwrap();
    assert_eq!(store.window_data().await.unwrap().assignments, [assignment("minion", "web1", "sunday")]);
    store.forget_minion(minion("web1")).await.unwrap();
    let left = store.window_data().await.unwrap();
    assert_eq!((left.assignments, left.modes, left.schedules.len()), (vec![], vec![], 1));
}

fn refresh(name: &str, outcome: Result<&str, &str>) -> Refresh {
    Refresh {
        org: DEFAULT_ORGANISATION.into(),
        name: name.into(),
        url: "https://example.org/cal".into(),
        outcome: outcome.map(str::to_owned).map_err(str::to_owned),
        at: at(50),
        events: vec![event(&format!("refresh/{outcome:?}"))],
    }
}

async fn a_calendar_that_is_read_anew_has_its_new_text(database: Database) {
    let store = database.open().await;
    set_up(&store).await;
    assert!(store.note_refresh(refresh("night", Ok("another"))).await.unwrap());
    let wanted = Calendar {
        ical: "another".into(),
        refreshed: Some(at(50)),
        tried: Some(at(50)),
        error: None,
        version: 2,
        ..calendar("night")
    };
    assert_eq!(store.window_data().await.unwrap().calendars, std::slice::from_ref(&wanted));
    let later = Refresh { at: at(60), ..refresh("night", Ok("another")) };
    assert!(!store.note_refresh(later).await.unwrap());
    let wanted = Calendar { refreshed: Some(at(60)), tried: Some(at(60)), ..wanted };
    assert_eq!(store.window_data().await.unwrap().calendars, [wanted]);
    assert_eq!(all_tags(&store).await, [r#"refresh/Ok("another")"#]);
}

async fn a_calendar_that_cannot_be_read_keeps_its_text(database: Database) {
    let store = database.open().await;
    set_up(&store).await;
    for why in ["gone", "refused", "refused"] {
        assert!(!store.note_refresh(refresh("night", Err(why))).await.unwrap());
    }
    let wanted = Calendar { tried: Some(at(50)), error: Some("refused".into()), ..calendar("night") };
    assert_eq!(store.window_data().await.unwrap().calendars, [wanted]);
    assert_eq!(all_tags(&store).await, [r#"refresh/Err("refused")"#], "the same reason is told once");
}

async fn what_comes_from_elsewhere_now_is_not_overwritten(database: Database) {
    let store = database.open().await;
    set_up(&store).await;
    let elsewhere = Refresh { url: "https://example.org/old".into(), ..refresh("night", Ok("old")) };
    assert!(!store.note_refresh(elsewhere).await.unwrap());
    assert!(!store.note_refresh(refresh("nobody", Ok("x"))).await.unwrap());
    assert_eq!(store.window_data().await.unwrap().calendars, [calendar("night")]);
    assert_eq!(all_tags(&store).await, [""; 0]);
}

async fn an_organisation_with_calendars_or_schedules_stays(database: Database) {
    let store = database.open().await;
    store.put_organisation(organisation("acme"), None, audit("1")).await.unwrap();
    let acme = || "acme".to_owned();
    let calendars = WindowChange {
        put_calendar: Some((Calendar { org: acme(), ..calendar("night") }, None)),
        ..WindowChange::default()
    };
    store.change_windows(calendars).await.unwrap();
    let delete = async || store.delete_organisation(acme(), None, audit("2")).await.unwrap();
    assert_eq!(delete().await, Written::Exists);
    let schedules = WindowChange {
        delete_calendar: Some((acme(), "night".into(), None)),
        put_schedule: Some((Schedule { org: acme(), ..schedule("sunday") }, None)),
        ..WindowChange::default()
    };
    store.change_windows(schedules).await.unwrap();
    assert_eq!(delete().await, Written::Exists);
    let gone = WindowChange { delete_schedule: Some((acme(), "sunday".into(), None)), ..WindowChange::default() };
    store.change_windows(gone).await.unwrap();
    assert_eq!(delete().await, Written::Done(1));
}
