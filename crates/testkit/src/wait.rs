//! Waiting for something that another process does.
//!
//! A test polls for the fact it needs, with a deadline, and says in words what it waited for. It never sleeps for a time
//! that "should be enough". Deadlines are wall-clock time: real processes do not obey tokio's paused clock.

use std::fmt::Display;
use std::future::Future;
use std::panic::Location;
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_millis(25);

/// Waits until `probe` answers true; fails the test, at the caller's line, when `timeout` has passed.
#[track_caller]
pub fn until<F, Fut>(what: &str, timeout: Duration, mut probe: F) -> impl Future<Output = ()>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = bool>,
{
    until_ok(what, timeout, move || {
        let answer = probe();
        async move { if answer.await { Ok(()) } else { Err("not yet") } }
    })
}

/// Waits until `probe` gives a value; fails the test with the last refusal when `timeout` has passed.
#[track_caller]
pub fn until_ok<F, Fut, T, E>(what: &str, timeout: Duration, mut probe: F) -> impl Future<Output = T>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
    E: Display,
{
    let caller = Location::caller();
    async move {
        let deadline = Instant::now() + timeout;
        loop {
            match probe().await {
                Ok(value) => return value,
                Err(last) if Instant::now() >= deadline => give_up(what, timeout, &last, caller),
                Err(_) => tokio::time::sleep(INTERVAL).await,
            }
        }
    }
}

/// Like [`until`], for set-up code that is not async.
#[track_caller]
pub fn until_blocking(what: &str, timeout: Duration, mut probe: impl FnMut() -> bool) {
    let caller = Location::caller();
    let deadline = Instant::now() + timeout;
    while !probe() {
        if Instant::now() >= deadline {
            give_up(what, timeout, &"not yet", caller);
        }
        std::thread::sleep(INTERVAL);
    }
}

fn give_up(what: &str, timeout: Duration, last: &dyn Display, caller: &Location<'_>) -> ! {
    panic!("waited {timeout:?} for {what}; last answer: {last} (at {caller})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[tokio::test]
    async fn until_ok_hands_out_the_first_value() {
        let calls = Cell::new(0);
        let third = until_ok("the third call", Duration::from_secs(5), || {
            calls.set(calls.get() + 1);
            let call = calls.get();
            async move { if call == 3 { Ok(call) } else { Err("too early") } }
        });
        assert_eq!(third.await, 3);
    }

    #[tokio::test]
    #[should_panic(expected = "for the moon; last answer: still day")]
    async fn giving_up_names_what_was_waited_for_and_the_last_answer() {
        until_ok("the moon", Duration::ZERO, || async { Err::<(), _>("still day") }).await;
    }
}
