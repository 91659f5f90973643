//! What is known of each minion besides its key: when it was seen, what it runs, how it can acknowledge a job.

use crate::db::{Effects, Operation, Row, Tx, params};
use crate::{Result, Store, groups, organisations, recurring, states, windows};
use futures_util::future::LocalBoxFuture;
use saltern_core::ids::MinionId;
use saltern_core::time::Timestamp;

/// How a minion can say that it has begun a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum AckMethod {
    /// It cannot, or it is not known yet
    #[default]
    None,
    /// Salt 3008 and newer: the job's `start_event` field
    StartEvent,
    /// Older stock minions that have our executor
    Executor,
    /// Our own minion does it by itself
    Native,
}

/// One minion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Minion {
    /// Its id
    pub id: MinionId,
    /// When it was first accepted
    pub first_seen: Timestamp,
    /// Last authenticated traffic (written with some delay)
    pub last_seen: Timestamp,
    /// When its agent last said that it started
    pub started: Option<Timestamp>,
    /// Where it connected from
    pub address: Option<String>,
    /// Its Salt version, as its grains tell
    pub version: Option<String>,
    /// How it can acknowledge
    pub ack_method: AckMethod,
    /// The operator's word for this minion: acknowledge or not; nothing means as the server does
    pub ack_setting: Option<bool>,
    /// What names its current boot
    pub boot_id: Option<String>,
    /// Whether it says that it has to be restarted; nothing: not known
    pub reboot_needed: Option<bool>,
}

impl AckMethod {
    /// The word in the database and on the screen.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::StartEvent => "start_event",
            Self::Executor => "executor",
            Self::Native => "native",
        }
    }

    fn parse(text: &str) -> Self {
        [Self::StartEvent, Self::Executor, Self::Native].into_iter().find(|m| m.as_str() == text).unwrap_or_default()
    }
}

const ALL: &str = "SELECT id, first_seen, last_seen, started, address, version, ack_method, ack_setting, boot_id, reboot_needed \
    FROM minions ORDER BY id";
const PUT: &str = "INSERT INTO minions (id, first_seen, last_seen, started, address, version, ack_method, ack_setting, \
    boot_id, reboot_needed) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) \
    ON CONFLICT (id) DO UPDATE SET last_seen = excluded.last_seen, started = excluded.started, \
    address = excluded.address, version = excluded.version, ack_method = excluded.ack_method, \
    ack_setting = excluded.ack_setting, boot_id = excluded.boot_id, reboot_needed = excluded.reboot_needed";
const REMOVE: &str = "DELETE FROM minions WHERE id = ?1";

struct Put(Vec<Minion>);

impl Operation for Put {
    type Output = ();
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, _effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<()>> {
        let row = |m: &Minion| {
            let (method, setting) = (m.ack_method.as_str(), m.ack_setting);
            params![
                &m.id,
                m.first_seen,
                m.last_seen,
                m.started,
                m.address.as_ref(),
                m.version.as_ref(),
                method,
                setting,
                m.boot_id.as_ref(),
                m.reboot_needed,
            ]
        };
        let rows = self.0.iter().map(row).collect();
        Box::pin(async move { tx.execute_many(PUT, rows).await.map(drop) })
    }
}

struct Forget(MinionId);

impl Operation for Forget {
    type Output = ();
    fn apply<'a>(&'a self, tx: &'a Tx<'a>, _effects: &'a mut Effects) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(async move {
            tx.execute(REMOVE, params![&self.0]).await?;
            tx.execute("DELETE FROM grains WHERE minion = ?1", params![&self.0]).await?;
            tx.execute("DELETE FROM mine WHERE minion = ?1", params![&self.0]).await?;
            organisations::forget_minion(tx, &self.0).await?;
            groups::forget_minion(tx, &self.0).await?;
            states::forget_minion(tx, &self.0).await?;
            windows::forget_minion(tx, &self.0).await?;
            recurring::forget_minion(tx, &self.0).await
        })
    }
}

impl Store {
    /// Every minion that was ever accepted and not forgotten.
    pub async fn minions(&self) -> Result<Vec<Minion>> {
        self.query(ALL, params![]).await?.into_iter().map(read).collect()
    }

    /// Writes what is known of these minions.
    pub async fn record_minions(&self, minions: Vec<Minion>) -> Result<()> {
        self.write(Put(minions)).await
    }

    /// Forgets a minion, its grains and its mine, the organisation it was put in, the groups that name it and what was
    /// assigned to it; what recurs on it is stopped. Its jobs and returns stay.
    pub async fn forget_minion(&self, id: MinionId) -> Result<()> {
        self.write(Forget(id)).await
    }
}

fn read(mut row: Row) -> Result<Minion> {
    Ok(Minion {
        id: row.minion(0)?,
        first_seen: row.time(1)?,
        last_seen: row.time(2)?,
        started: row.opt_time(3)?,
        address: row.opt_text(4)?,
        version: row.opt_text(5)?,
        ack_method: AckMethod::parse(&row.text(6)?),
        ack_setting: row.opt_flag(7)?,
        boot_id: row.opt_text(8)?,
        reboot_needed: row.opt_flag(9)?,
    })
}
