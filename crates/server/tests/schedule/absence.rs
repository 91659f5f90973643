//! A server that was down over five instants: what was missed is told in so many words, by the policy.

use crate::house::{House, caller};
use crate::ledger::{LONG, Ledger};
use crate::planner::{now, on_a};
use saltern_core::time::Timestamp;
use saltern_core::value::Value;
use saltern_server::app::{CatchUp, FireEntry, RecurringDraft};
use saltern_testkit::wait;
use std::time::Duration;

const MISSED: &str = "missed: the server was not there in time, and";
const LATE: &str = "fired: fired late: the server was not there in time";

/// What the rows of an hourly definition say, newest first, and how many were told to be missed.
async fn said(catch_up: CatchUp, limit: Duration) -> (Vec<String>, Vec<i64>) {
    let mut house = House::open().await;
    house.knows_a().await;
    // The newest was half an hour ago.
    let minute = now().secs() / 60 - 30;
    let draft = on_a("hourly", &format!("{} * * * *", minute.rem_euclid(60)));
    let id = house.define(RecurringDraft { catch_up, catch_up_limit: limit, ..draft }).await;
    let before = house.last_event().await;
    let oldest = Timestamp::from_secs((minute - 4 * 60) * 60);
    let ledger = Ledger::sqlite(house.dir.path());
    house.kill().await;
    ledger.change(&format!("UPDATE recurring SET next = {} WHERE id = {id}", oldest.0)).await;
    house.reopen().await;
    ledger.until_accounted(5).await;
    let fires = house.app().fires(&caller(), id, None, 100).await.unwrap();
    assert_eq!(fires.len(), 5);
    let words = |entry: &FireEntry| format!("{}: {}", entry.fire.outcome, entry.fire.why);
    let is_told = async || {
        let next = house.app().recurring(&caller(), id).await.unwrap().recurring.next;
        next.is_some_and(|next| next > now())
    };
    wait::until("the next instant to lie ahead", LONG, is_told).await;
    let tag = format!("saltern/recurring/{id}/missed");
    let told = house.events_after(before).await.into_iter().filter(|event| event.tag == tag);
    let told = told.filter_map(|event| event.data.get("count").and_then(Value::as_i64)).collect();
    (fires.iter().map(words).collect(), told)
}

#[tokio::test]
async fn without_catching_up_each_row_says_that_it_was_missed() {
    let (rows, told) = said(CatchUp::None, Duration::ZERO).await;
    assert_eq!(rows, vec![format!("{MISSED} catch-up is none"); 5]);
    assert_eq!(told, [5], "one event tells of all");
}

#[tokio::test]
async fn with_one_late_time_the_other_rows_say_that_only_the_newest_is_caught_up_with() {
    let (rows, told) = said(CatchUp::Once, Duration::ZERO).await;
    assert_eq!(rows[0], LATE);
    assert_eq!(rows[1..], vec![format!("{MISSED} only the newest is caught up with"); 4]);
    assert_eq!(told, [4]);
}

#[tokio::test]
async fn with_all_late_times_only_the_rows_of_the_too_old_ones_say_that_they_were_missed() {
    let (rows, told) = said(CatchUp::All, Duration::from_secs(3 * 3_600)).await;
    assert_eq!(rows[..3], [LATE; 3]);
    assert_eq!(rows[3..], vec![format!("{MISSED} it is too old to be caught up with"); 2]);
    assert_eq!(told, [2]);
}
