//! Long-lived tasks: each has a name and a kind that says what its end means; all stop together, in a stated order.
//!
//! Order of stopping: the ports stop accepting and let requests in hand finish; then the background tasks; then the store
//! commits what it was given and closes.

use std::future::Future;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What it means when a task ends before it was told to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The server cannot go on without it: the process stops, and says which task it was.
    Essential,
    /// Work of its own that ends when it is done.
    Errand,
}

/// The running tasks and the way to stop them.
#[derive(Clone)]
pub(crate) struct Tasks {
    stop: CancellationToken,
    failed: CancellationToken,
    culprit: Arc<std::sync::OnceLock<&'static str>>,
    tracker: TaskTracker,
}

impl Tasks {
    pub(crate) fn new() -> Self {
        Self {
            stop: CancellationToken::new(),
            failed: CancellationToken::new(),
            culprit: Arc::default(),
            tracker: TaskTracker::new(),
        }
    }

    /// Told to stop when this is cancelled.
    pub(crate) fn stop_token(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Starts a task.
    pub(crate) fn spawn(&self, kind: Kind, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let tasks = self.clone();
        self.tracker.spawn(async move {
            let ended = tokio::spawn(task).await;
            if let Err(error) = &ended {
                tracing::error!(task = name, %error, "a task died");
            }
            if kind == Kind::Essential && !tasks.stop.is_cancelled() {
                let _ = tasks.culprit.set(name);
                tasks.failed.cancel();
            }
        });
    }

    /// Ends when an essential task has ended on its own; tells which.
    pub(crate) async fn failed(&self) -> &'static str {
        self.failed.cancelled().await;
        self.culprit.get().copied().unwrap_or("unknown")
    }

    /// Stops everything and waits for it.
    pub(crate) async fn stop(&self) {
        self.stop.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_end_of_an_essential_task_is_told() {
        let tasks = Tasks::new();
        tasks.spawn(Kind::Errand, "errand", async {});
        tasks.spawn(Kind::Essential, "port", async {});
        assert_eq!(tasks.failed().await, "port");
    }

    #[tokio::test]
    async fn stopping_waits_for_all() {
        let tasks = Tasks::new();
        let stop = tasks.stop_token();
        tasks.spawn(Kind::Essential, "port", async move { stop.cancelled().await });
        tasks.stop().await;
        assert!(!tasks.failed.is_cancelled());
    }
}
