//! What a refused person can see, in paused time.

use super::backends;
use saltern_api::login::{Gate, Limits, Refused, Settings};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn gate(limits: &Limits) -> Gate {
    Gate::new(backends(Settings::default()), limits)
}

#[tokio::test(start_paused = true)]
async fn answers_and_their_times_are_the_same_whatever_was_wrong() {
    let gate = gate(&Limits::default());
    let long = "x".repeat(100_000);
    let tries = [
        ("stranger", "some password"),
        ("ann", "wrong password"),
        ("dora", "right or wrong"),
        ("ann", ""),
        ("", "password"),
        ("ann", &long),
        (&long, "password"),
        ("a\0b", "password"),
    ];
    for (user, password) in tries {
        let start = Instant::now();
        let answer = gate.vouch(HERE, "local", user, password).await;
        let took = start.elapsed();
        assert_eq!(answer, Err(Refused::Denied), "{user:?}");
        assert_eq!(answer.unwrap_err().to_string(), "the user name or the password is wrong");
        assert_eq!(took, Duration::from_secs(1), "{user:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_right_password_is_answered_at_once() {
    let gate = gate(&Limits::default());
    let start = Instant::now();
    assert!(gate.vouch(HERE, "local", "ann", "ann's password").await.is_ok());
    assert_eq!(start.elapsed(), Duration::from_millis(300));
}

#[tokio::test(start_paused = true)]
async fn the_eleventh_try_within_a_minute_is_told_when_to_come_back() {
    let gate = gate(&Limits::default());
    for _ in 0..10 {
        assert_eq!(gate.vouch(HERE, "local", "ann", "guess").await, Err(Refused::Denied));
    }
    let start = Instant::now();
    // Ten tries of one second each: the first was ten seconds ago. The right password changes nothing.
    let answer = gate.vouch(HERE, "local", "ann", "ann's password").await;
    assert_eq!(answer, Err(Refused::TooMany { retry_after: Duration::from_secs(50) }));
    assert_eq!(answer.unwrap_err().to_string(), "too many log-ins: try again in 50 s");
    assert_eq!(start.elapsed(), Duration::ZERO);
    tokio::time::advance(Duration::from_secs(50)).await;
    assert!(gate.vouch(HERE, "local", "ann", "ann's password").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn guesses_in_parallel_count_like_guesses_one_after_the_other() {
    let gate = Arc::new(gate(&Limits::default()));
    let guesses = (0..50).map(|_| {
        let gate = Arc::clone(&gate);
        tokio::spawn(async move { gate.vouch(HERE, "local", "ann", "guess").await })
    });
    let mut denied = 0;
    for guess in guesses.collect::<Vec<_>>() {
        denied += usize::from(guess.await.unwrap() == Err(Refused::Denied));
    }
    assert_eq!(denied, 10);
}

#[tokio::test(start_paused = true)]
async fn programs_that_log_in_with_every_request_are_not_slowed_down() {
    let gate = gate(&Limits::default());
    for _ in 0..100 {
        assert!(gate.vouch(HERE, "local", "ann", "ann's password").await.is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_log_ins_wait_than_there_are_places() {
    let gate = Arc::new(gate(&Limits { at_once: 2, ..Limits::default() }));
    let waiting: Vec<_> = (1..=2)
        .map(|host| {
            let gate = Arc::clone(&gate);
            tokio::spawn(async move { gate.vouch([192, 0, 2, host].into(), "local", "stranger", "guess").await })
        })
        .collect();
    tokio::task::yield_now().await;
    let answer = gate.vouch(HERE, "local", "ann", "ann's password").await;
    assert_eq!(answer, Err(Refused::TooMany { retry_after: Duration::from_secs(1) }));
    for guess in waiting {
        assert_eq!(guess.await.unwrap(), Err(Refused::Denied));
    }
    assert!(gate.vouch(HERE, "local", "ann", "ann's password").await.is_ok());
}
