//! `GET /stats`: how busy this interface is, in the shape that SaltGUI shows; it also asks here whether its session lives.

use super::Salt;
use super::accept::Format;
use super::error::Failure;
use super::session::Signed;
use super::stamp;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use saltern_core::time::Timestamp;
use saltern_core::value::Value;
use saltern_server::clock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What is counted.
#[derive(Debug)]
pub(super) struct Counters {
    started: Timestamp,
    total: AtomicU64,
    current: AtomicU64,
    failed: AtomicU64,
}

impl Counters {
    pub(super) fn new() -> Self {
        Self { started: clock::now(), total: AtomicU64::new(0), current: AtomicU64::new(0), failed: AtomicU64::new(0) }
    }

    /// How long this interface has been up.
    pub(super) fn up(&self) -> Duration {
        clock::now().since(self.started)
    }

    fn shape(&self, now: Timestamp) -> Value {
        let total = self.total.load(Ordering::Relaxed);
        let up = now.since(self.started).as_secs_f64();
        let rate = if up > 0.0 { total as f64 / up } else { 0.0 };
        let requests = Value::map([
            ("Enabled", Value::from(true)),
            ("Current Time", stamp::seconds(now).into()),
            ("Current Requests", self.current.load(Ordering::Relaxed).into()),
            ("Requests/Second", rate.into()),
            ("Server Version", env!("CARGO_PKG_VERSION").into()),
            ("Start Time", stamp::seconds(self.started).into()),
            ("Total Requests", total.into()),
            ("Failed Requests", self.failed.load(Ordering::Relaxed).into()),
            ("Uptime", up.into()),
        ]);
        // Programs that watch salt-api look for it under this name.
        Value::map([("CherryPy Applications", requests)])
    }
}

/// `GET /stats`
pub(super) async fn show(State(salt): State<Salt>, format: Format, _signed: Signed) -> Result<Response, Failure> {
    Ok(format.reply(&salt.counters.shape(clock::now())))
}

/// Counts a request, also if its client hangs up.
pub(super) async fn count(State(salt): State<Salt>, request: Request, next: Next) -> Response {
    struct Under<'a>(&'a Counters);
    impl Drop for Under<'_> {
        fn drop(&mut self) {
            self.0.current.fetch_sub(1, Ordering::Relaxed);
        }
    }
    let counters = &salt.counters;
    counters.total.fetch_add(1, Ordering::Relaxed);
    counters.current.fetch_add(1, Ordering::Relaxed);
    let _under = Under(counters);
    let response = next.run(request).await;
    if response.status().is_server_error() {
        counters.failed.fetch_add(1, Ordering::Relaxed);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_at_the_top_is_an_object() {
        let counters = Counters::new();
        counters.total.store(10, Ordering::Relaxed);
        let shape = counters.shape(counters.started.plus(Duration::from_secs(5)));
        let map = shape.as_map().unwrap();
        assert!(map.values().all(|value| value.as_map().is_some()));
        assert_eq!(map.get("CherryPy Applications").unwrap().get("Requests/Second"), Some(&Value::from(2.0)));
    }
}
