//! Lets one log line pass per minute, so that a hostile peer cannot fill a disk with its complaints.

use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;

const INTERVAL: Duration = Duration::from_secs(60);

/// A gate for one kind of log line.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last: Option<Instant>,
    suppressed: u64,
}

impl Throttle {
    /// `Some(n)` when a line may be written now, `n` being how many were suppressed since the last.
    pub(crate) fn pass(&self) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let now = Instant::now();
        if state.last.is_some_and(|last| now.duration_since(last) < INTERVAL) {
            state.suppressed += 1;
            return None;
        }
        state.last = Some(now);
        Some(std::mem::take(&mut state.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_line_per_minute_and_it_counts_the_others() {
        let throttle = Throttle::default();
        assert_eq!(throttle.pass(), Some(0));
        assert_eq!(throttle.pass(), None);
        assert_eq!(throttle.pass(), None);
        tokio::time::advance(INTERVAL).await;
        assert_eq!(throttle.pass(), Some(2));
    }
}
