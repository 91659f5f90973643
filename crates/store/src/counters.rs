//! Numbers that only grow: event numbers, action ids, publish serials.

use crate::audit::AuditEntry;
use crate::db::{Effects, Operation, Tx, params};
use crate::{Error, Result, Store};
use futures_util::future::LocalBoxFuture;

/// Which number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Numbers of the event log
    Event,
    /// Ids of actions
    Action,
    /// Serials of publications
    Serial,
    /// Numbers of the dead letters
    DeadLetter,
    /// Ids of webhooks
    Webhook,
    /// Ids of chains
    Chain,
    /// Ids of launches
    Launch,
    /// Ids of recurring actions
    Recurring,
    /// Changes of users, groups and organisations, so that other servers notice
    People,
    /// Changes of the state catalogue, likewise
    State,
    /// Changes of maintenance windows, likewise
    Windows,
}

impl Counter {
    const fn name(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Action => "action",
            Self::Serial => "serial",
            Self::DeadLetter => "dead_letter",
            Self::Webhook => "webhook",
            Self::Chain => "chain",
            Self::Launch => "launch",
            Self::People => "people",
            Self::State => "state",
            Self::Recurring => "recurring",
            Self::Windows => "windows",
        }
    }
}

// The row stays locked until the commit, so numbers are committed in their order even when several servers write.
const TAKE: &str = "INSERT INTO counters (name, value) VALUES (?1, ?2) \
    ON CONFLICT (name) DO UPDATE SET value = counters.value + excluded.value RETURNING value";

/// Takes `n` numbers inside a transaction and returns the first.
pub(crate) async fn take(tx: &Tx<'_>, counter: Counter, n: usize) -> Result<i64> {
    let rows = tx.query(TAKE, params![counter.name(), n]).await?;
    let last = rows.first().ok_or(Error::Shape { what: "counters", column: 0 })?.int(0)?;
    Ok(last - i64::try_from(n).unwrap_or(i64::MAX) + 1)
}

/// Users, groups or organisations were changed: it is audited, and counted so that other servers notice.
pub(crate) async fn people_changed(tx: &Tx<'_>, effects: &mut Effects, audit: &AuditEntry) -> Result<()> {
    take(tx, Counter::People, 1).await?;
    effects.audit([audit]);
    Ok(())
}

struct Reserve(Counter, usize);

impl Operation for Reserve {
    type Output = i64;
    const COMMUTES: bool = true;
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, _effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<i64>> {
        Box::pin(take(tx, self.0, self.1))
    }
}

impl Store {
    /// The last number that was taken; 0 if none was.
    pub async fn taken(&self, counter: Counter) -> Result<i64> {
        let rows = self.query("SELECT value FROM counters WHERE name = ?1", params![counter.name()]).await?;
        rows.first().map_or(Ok(0), |row| row.int(0))
    }

    /// Takes `n` numbers for good, and returns the first of them.
    pub async fn reserve(&self, counter: Counter, n: usize) -> Result<i64> {
        self.write(Reserve(counter, n)).await
    }
}
