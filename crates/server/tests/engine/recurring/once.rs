//! Every planned instant has one row, over absences, crashes, clocks that are put back and a second server.

use super::{NEVER, hold, now, on, on_a, ping};
use crate::house::{House, caller};
use crate::ward::{LONG, house, soon};
use saltern_core::time::Timestamp;
use saltern_core::value::Value;
use saltern_server::app::{ANY_VERSION, CatchUp, EntityKind, FireEntry, Overlap, RecurringDraft, RecurringVerb};
use saltern_testkit::{postgres, wait};
use std::time::Duration;

/// An hourly definition after a server was down over five instants, the newest half an hour ago.
async fn after_five_hours(catch_up: CatchUp, limit: Duration) -> (Vec<FireEntry>, House) {
    let mut house = house().await;
    house.minions_known(&["a"]).await;
    let half_past = now().secs() / 60 - 30;
    let cron = format!("{} * * * *", half_past.rem_euclid(60));
    let draft =
        RecurringDraft { catch_up, catch_up_limit: limit, overlap: Overlap::Allow, policy: hold(), ..on_a(&cron) };
    let definition = house.define(draft).await;
    let oldest = Timestamp::from_secs(half_past * 60 - 4 * 3600);
    house
        .restart_after(|house| house.change("UPDATE recurring SET next = ?1 WHERE id = ?2", [oldest.0, definition.0]))
        .await;
    let fires = house.accounted(definition, 5).await;
    let hour = Duration::from_secs(3600);
    assert!(fires.windows(2).all(|pair| pair[0].fire.planned.since(pair[1].fire.planned) == hour), "{fires:?}");
    assert_eq!(fires.len(), 5);
    (fires, house)
}

fn late(fires: &[FireEntry]) -> Vec<bool> {
    fires.iter().map(|entry| entry.fire.outcome == "fired" && entry.fire.late).collect()
}

#[tokio::test]
async fn scenario_84_after_an_absence_nothing_is_caught_up_with_where_nothing_is_to_be() {
    let (fires, _house) = after_five_hours(CatchUp::None, Duration::ZERO).await;
    assert!(
        fires.iter().all(|entry| entry.fire.outcome == "missed" && entry.fire.why.contains("not there")),
        "{fires:?}"
    );
}

#[tokio::test]
async fn scenario_84_after_an_absence_the_newest_is_caught_up_with_once() {
    let (fires, house) = after_five_hours(CatchUp::Once, Duration::ZERO).await;
    assert_eq!(late(&fires), [true, false, false, false, false]);
    assert!(fires[1..].iter().all(|entry| entry.fire.outcome == "missed"));
    assert!(house.action(fires[0].fire.action.unwrap()).await.new.late);
}

#[tokio::test]
async fn scenario_84_after_an_absence_all_that_are_not_too_old_are_caught_up_with() {
    let (fires, _house) = after_five_hours(CatchUp::All, Duration::from_secs(2 * 3600)).await;
    assert_eq!(late(&fires), [true, true, false, false, false]);
}

#[tokio::test]
async fn a_clock_that_was_put_back_fires_nothing_twice() {
    let house = house().await;
    house.minions_known(&["a"]).await;
    let draft = RecurringDraft { overlap: Overlap::Allow, policy: hold(), ..on_a("* * * * *") };
    let definition = house.define(draft.clone()).await;
    house.fired(definition).await;
    // The clock is an hour behind what was accounted for.
    let ahead = 3_600_000_000_i64;
    house.change("UPDATE fires SET planned = planned + ?1", [ahead]);
    house.change("UPDATE recurring SET next = next + ?1 WHERE id = ?2", [ahead, definition.0]);
    let newest = house.fires(definition).await[0].fire.planned;
    let next = house.app().recurring(&caller(), definition).await.unwrap().recurring.next.unwrap();
    assert!(next > newest);
    let changed = RecurringDraft { cron: "*/2 * * * *".into(), ..draft.clone() };
    let changed = house.app().put_recurring(&caller(), definition, changed, ANY_VERSION).await.unwrap();
    assert!(changed.recurring.next.unwrap() > newest, "a change plans nothing that was accounted for");
    // Even if it did, it would only be moved on.
    house.change("UPDATE recurring SET next = ?1 WHERE id = ?2", [now().0, definition.0]);
    house.change("UPDATE fires SET planned = (SELECT next FROM recurring WHERE id = ?1)", [definition.0]);
    house.knock().await;
    wait::until("the next instant to be another one", LONG, async || {
        house.app().recurring(&caller(), definition).await.unwrap().recurring.next.unwrap() > now()
    })
    .await;
    assert_eq!(house.fires(definition).await.len(), 1);
}

#[tokio::test]
async fn every_second_is_accounted_for_once_over_three_crashes() {
    let mut house = house().await;
    house.minions_known(&["a"]).await;
    let draft =
        RecurringDraft { overlap: Overlap::Allow, catch_up: CatchUp::All, policy: hold(), ..on_a("* * * * * *") };
    let definition = house.define(draft).await;
    for _ in 0..3 {
        let done = house.fires(definition).await.len();
        house.accounted(definition, done + 2).await;
        house.crash().await;
    }
    let done = house.fires(definition).await.len();
    let fires = house.accounted(definition, done + 2).await;
    let second = Duration::from_secs(1);
    assert!(fires.windows(2).all(|pair| pair[0].fire.planned.since(pair[1].fire.planned) == second), "{fires:?}");
    let mut actions: Vec<_> = fires.iter().map(|entry| entry.fire.action.unwrap()).collect();
    actions.dedup();
    assert_eq!(actions.len(), fires.len());
    let made: i64 = *house.rows().get("actions").unwrap();
    let fired = i64::try_from(house.fires(definition).await.len()).unwrap();
    assert!(made <= fired, "{made} actions for {fired} instants");
}

#[tokio::test]
async fn two_servers_on_one_database_fire_nothing_twice_and_leave_nothing_out() {
    let Some(url) = tokio::task::spawn_blocking(postgres::fresh_database).await.unwrap() else { return };
    let settings =
        |name: &str| vec![("database".to_owned(), Value::from(url.as_str())), ("id".to_owned(), name.into())];
    let mut one = House::furnished(settings("one"), |_| {}).await;
    one.minions_known(&["a"]).await;
    let draft =
        RecurringDraft { overlap: Overlap::Allow, catch_up: CatchUp::All, policy: hold(), ..on_a("* * * * * *") };
    let definition = one.define(draft.clone()).await;
    let other = House::furnished(settings("other"), |_| {}).await;
    let both = one.fires(definition).await.len();
    one.accounted(definition, both + 3).await;
    // Whoever looks, by whatever way, accounts for what is due: also by changing it on the other server.
    for _ in 0..5 {
        other.app().act_on_recurring(&caller(), definition, RecurringVerb::TakeOver).await.unwrap();
    }
    one.kill().await;
    let alone = other.fires(definition).await.len();
    let fires = other.accounted(definition, alone + 3).await;
    let second = Duration::from_secs(1);
    assert!(fires.windows(2).all(|pair| pair[0].fire.planned.since(pair[1].fire.planned) == second), "{fires:?}");
    assert!(fires.iter().all(|entry| entry.fire.outcome == "fired"), "{fires:?}");
    let mut actions: Vec<_> = fires.iter().map(|entry| entry.fire.action.unwrap()).collect();
    actions.sort_unstable();
    actions.dedup();
    assert_eq!(actions.len(), fires.len());
}

#[tokio::test]
async fn a_thousand_definitions_that_are_due_in_one_second_fire_within_ten() {
    let mut house = house().await;
    let mut ids = Vec::new();
    let minions: Vec<String> = (0..20).map(|number| format!("m{number}")).collect();
    let minions: Vec<&str> = minions.iter().map(String::as_str).collect();
    house.minions_known(&minions).await;
    for group in 0..10 {
        house.group(&format!("g{group}"), &minions[group..group + 10], None).await;
    }
    for number in 0..1_000 {
        let group = on(EntityKind::Group, &format!("g{}", number % 10));
        let draft = RecurringDraft::new(format!("ping {number}"), group, ping(), NEVER);
        ids.push(house.define(RecurringDraft { overlap: Overlap::Allow, policy: hold(), ..draft }).await);
    }
    house.restart_after(|house| house.change("UPDATE recurring SET next = ?1", [soon(4).0])).await;
    let last = *ids.last().unwrap();
    let due = house.app().recurring(&caller(), last).await.unwrap().recurring.next.unwrap();
    wait::until("all to have fired", LONG, async || house.rows().get("fires").copied() == Some(1_000)).await;
    let database = rusqlite::Connection::open(house.dir.path().join("data/saltern.db")).unwrap();
    let latest = "SELECT max(at), count(*) FROM fires WHERE outcome = 'fired' AND minions = 10";
    let (latest, count): (i64, i64) = database.query_row(latest, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    assert_eq!(count, 1_000);
    let took = Timestamp(latest).since(due.min(Timestamp(latest)));
    assert!(took < Duration::from_secs(10), "{took:?}");
}
