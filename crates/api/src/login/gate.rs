//! The gate in front of the backends: how often somebody may try, and when he hears that he is refused.

use super::tries::Tries;
use super::{Backends, Identity, LONGEST_USER, Refused};
use std::fmt;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Refusals are told at whole multiples of this time after the arrival. Nearly all are decided within the first, so they
/// all take as long, whatever was wrong; one that a slow backend decides later shows no more than that.
const REFUSAL: Duration = Duration::from_secs(1);

/// How often somebody may try.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Tries of one name from one address within the window.
    pub per_user: usize,
    /// Tries from one address within the window.
    pub per_address: usize,
    /// How long a try counts.
    pub window: Duration,
    /// How many addresses, and how many names at addresses, are remembered.
    pub keys: usize,
    /// How many log-ins may be under way at once, those included that wait to be refused.
    pub at_once: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { per_user: 10, per_address: 60, window: Duration::from_secs(60), keys: 10_000, at_once: 1_000 }
    }
}

/// The door that everybody who logs in from afar comes through.
pub struct Gate {
    backends: Backends,
    tries: Mutex<Tries>,
    places: Semaphore,
}

impl Gate {
    /// A gate in front of `backends`.
    pub fn new(backends: Backends, limits: &Limits) -> Self {
        let places = Semaphore::new(limits.at_once.clamp(1, Semaphore::MAX_PERMITS));
        Self { backends, tries: Mutex::new(Tries::new(limits)), places }
    }

    /// Asks the backend that `eauth` means, unless there have been too many tries from that address.
    pub async fn vouch(&self, from: IpAddr, eauth: &str, user: &str, password: &str) -> Result<Identity, Refused> {
        let arrival = Instant::now();
        // What is too long means nothing to any backend, and must neither be hashed nor fill the log.
        let [eauth, user] = [eauth, user].map(|text| if text.len() > LONGEST_USER { "" } else { text });
        let Ok(_place) = self.places.try_acquire() else {
            return Err(Refused::TooMany { retry_after: REFUSAL });
        };
        let attempt = self.tries().take(from, user, arrival).map_err(|retry_after| {
            tracing::info!(user, peer = %from, "log-in refused: too many tries");
            Refused::TooMany { retry_after }
        })?;
        let answer = self.backends.vouch(eauth, user, password).await;
        match &answer {
            Ok(_) => self.tries().give_back(attempt),
            Err(_) => {
                tracing::info!(user, eauth, peer = %from, "log-in refused");
                tokio::time::sleep_until(moment_of_refusal(arrival, Instant::now())).await;
            }
        }
        answer
    }

    fn tries(&self) -> std::sync::MutexGuard<'_, Tries> {
        // Whoever panicked did so between two whole changes of a table of counts.
        self.tries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Gate").field(&self.backends).finish()
    }
}

fn moment_of_refusal(arrival: Instant, now: Instant) -> Instant {
    let passed = now.duration_since(arrival).as_nanos().div_ceil(REFUSAL.as_nanos()).max(1);
    arrival + REFUSAL * u32::try_from(passed).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_come_at_whole_seconds_after_the_arrival() {
        let arrival = Instant::now();
        for (decided_ms, told_s) in [(0, 1), (999, 1), (1_000, 1), (1_001, 2), (2_500, 3)] {
            let told = moment_of_refusal(arrival, arrival + Duration::from_millis(decided_ms));
            assert_eq!(told - arrival, Duration::from_secs(told_s), "decided after {decided_ms} ms");
        }
    }
}
