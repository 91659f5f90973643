//! What somebody asked for, once: its parameters and rules, how its runs stand, and the lists of it.

use crate::counters::{self, Counter};
use crate::counts::Counts;
use crate::db::{Row, Tx, params};
use crate::{Error, Result, Store};
use saltern_core::action::Policy;
use saltern_core::ids::{ActionId, Jid, LaunchId, MinionId, RecurringId};
use saltern_core::time::Timestamp;

/// An action to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAction {
    /// Its type, e.g. `function`
    pub kind: String,
    /// What people call it
    pub name: String,
    /// The parameters of its type, as JSON text
    pub params: String,
    /// The function
    pub fun: String,
    /// Its arguments, as JSON text
    pub arg: String,
    /// The target expression, as JSON text
    pub target: String,
    /// The target's type
    pub target_type: String,
    /// Who asked
    pub initiator: String,
    /// From where: the address, the socket, or what else made it
    pub origin: String,
    /// The organisation it belongs to
    pub org: String,
    /// When it was asked for
    pub created: Timestamp,
    /// When it is due
    pub due: Timestamp,
    /// When whatever is still open ends
    pub deadline: Timestamp,
    /// The rules it is carried out by
    pub policy: Policy,
    /// Why it was admitted as it was, as JSON text
    pub decision: String,
    /// What the asker wants to be kept with it, as JSON text
    pub metadata: Option<String>,
    /// Where else its returns go
    pub ret: String,
    /// Whether it is housekeeping of the server itself
    pub internal: bool,
    /// Whether it was late: begun after it should have been
    pub late: bool,
    /// The launch of a chain that it belongs to
    pub launch: Option<LaunchId>,
    /// Its number there, from 1 on; nothing: it brings others to minions
    pub step: Option<i64>,
    /// The recurring action that it is one time of
    pub recurring: Option<RecurringId>,
}

/// A stored action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// Its id
    pub id: ActionId,
    /// What was asked for
    pub new: NewAction,
    /// The job of the first attempts, once there is one
    pub jid: Option<Jid>,
    /// Whether it is held: nothing of it is sent
    pub paused: Option<Paused>,
    /// When it was put away
    pub archived: Option<Timestamp>,
    /// When its last open run ended; nothing while any is open
    pub ended: Option<Timestamp>,
    /// How its runs stand
    pub counts: Counts,
}

/// Who holds an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paused {
    /// Since when
    pub at: Timestamp,
    /// The user, or the rule
    pub by: String,
    /// For what reason
    pub why: String,
}

/// A page of actions, newest first.
#[derive(Clone, Debug, Default)]
pub struct ActionPage {
    /// Only actions older than this one
    pub before: Option<ActionId>,
    /// At most so many
    pub limit: usize,
    /// With the server's own housekeeping
    pub internal: bool,
    /// Those that were put away, instead of the others
    pub archived: bool,
    /// Only such
    pub filter: ActionFilter,
    /// Only those of this user
    pub initiator: Option<String>,
    /// Only those with a run on this minion
    pub minion: Option<MinionId>,
}

/// Which actions are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ActionFilter {
    /// All
    #[default]
    All,
    /// Those with a run that has not ended
    Open,
    /// Those with a run that failed, whether or not others are still open
    Failed,
    /// Those that have ended without a failure
    Completed,
}

const INSERT: &str = "INSERT INTO actions (id, kind, name, params, fun, arg, target, target_type, initiator, origin, org, \
    created, due, deadline, policy, decision, metadata, ret, internal, interactive, late, jid, ended, deleting, \
    total, queued, running, completed, failed, unreachable, cancelled, launch, step, recurring) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, 0, \
    ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33)";

macro_rules! select {
    ($rest:expr) => {
        concat!(
            "SELECT a.id, a.kind, a.name, a.params, a.fun, a.arg, a.target, a.target_type, a.initiator, a.origin, a.org, \
             a.created, a.due, a.deadline, a.policy, a.decision, a.metadata, a.ret, a.internal, a.late, a.jid, \
             a.paused, a.paused_by, a.paused_why, a.archived, a.ended, \
             a.total, a.queued, a.running, a.completed, a.failed, a.unreachable, a.cancelled, a.launch, a.step, a.recurring \
             FROM actions a ",
            $rest
        )
    };
}

// A run is looked up by its whole key for each action. With EXISTS, PostgreSQL may well read all runs there are instead.
macro_rules! page {
    ($which:literal) => {
        select!(concat!(
            "WHERE ",
            $which,
            " AND a.id < ?1 AND a.internal <= ?2 AND a.deleting = 0 AND (?3 = '' OR a.initiator = ?3) \
             AND (?4 = '' OR ?4 = (SELECT r.minion FROM runs r WHERE r.action = a.id AND r.minion = ?4)) \
             ORDER BY a.id DESC LIMIT ?5"
        ))
    };
}

const ONE: &str = select!("WHERE a.id = ?1 AND a.deleting = 0");
pub(crate) const PAGE_ALL: &str = page!("a.archived IS NULL");
pub(crate) const PAGE_OPEN: &str = page!("a.archived IS NULL AND a.ended IS NULL");
pub(crate) const PAGE_FAILED: &str = page!("a.archived IS NULL AND a.failed > 0");
pub(crate) const PAGE_COMPLETED: &str = page!("a.archived IS NULL AND a.ended IS NOT NULL AND a.failed = 0");
pub(crate) const ARCHIVE_ALL: &str = page!("a.archived IS NOT NULL");
pub(crate) const ARCHIVE_OPEN: &str = page!("a.archived IS NOT NULL AND a.ended IS NULL");
pub(crate) const ARCHIVE_FAILED: &str = page!("a.archived IS NOT NULL AND a.failed > 0");
pub(crate) const ARCHIVE_COMPLETED: &str = page!("a.archived IS NOT NULL AND a.ended IS NOT NULL AND a.failed = 0");
pub(crate) const OPEN: &str = select!("WHERE a.ended IS NULL AND a.step IS NULL AND a.id > ?1 ORDER BY a.id LIMIT ?2");
pub(crate) const OF_LAUNCH: &str =
    select!("WHERE a.launch = ?1 AND a.step IS NOT NULL AND a.deleting = 0 ORDER BY a.step, a.id");
pub(crate) const OVERDUE: &str =
    select!("WHERE a.ended IS NULL AND a.deadline <= ?1 ORDER BY a.deadline, a.id LIMIT ?2");

/// Writes an action with the counts of the runs that are made with it; without any it has ended.
pub(crate) async fn insert(
    tx: &Tx<'_>,
    action: &NewAction,
    jid: Option<Jid>,
    counts: Counts,
    ended: Timestamp,
) -> Result<ActionId> {
    let id = counters::take(tx, Counter::Action, 1).await?;
    let a = action;
    let policy = serde_json::to_string(&a.policy).map_err(|error| Error::Database(error.to_string()))?;
    let ended = (counts.open() == 0).then_some(ended);
    let values = params![
        id,
        &a.kind,
        &a.name,
        &a.params,
        &a.fun,
        &a.arg,
        &a.target,
        &a.target_type,
        &a.initiator,
        &a.origin,
        &a.org,
        a.created,
        a.due,
        a.deadline,
        policy,
        &a.decision,
        a.metadata.as_ref(),
        &a.ret,
        a.internal,
        a.policy.interactive,
        a.late,
        jid,
        ended,
        counts.total,
        counts.queued,
        counts.running,
        counts.completed,
        counts.failed,
        counts.unreachable,
        counts.cancelled,
        a.launch,
        a.step,
        a.recurring,
    ];
    tx.execute(INSERT, values).await?;
    Ok(ActionId(id))
}

impl Store {
    /// One action.
    pub async fn action(&self, id: ActionId) -> Result<Option<Action>> {
        self.query(ONE, params![id]).await?.into_iter().next().map(read).transpose()
    }

    /// A page of actions, newest first.
    pub async fn actions(&self, page: &ActionPage) -> Result<Vec<Action>> {
        let statement = match (page.archived, page.filter) {
            (false, ActionFilter::All) => PAGE_ALL,
            (false, ActionFilter::Open) => PAGE_OPEN,
            (false, ActionFilter::Failed) => PAGE_FAILED,
            (false, ActionFilter::Completed) => PAGE_COMPLETED,
            (true, ActionFilter::All) => ARCHIVE_ALL,
            (true, ActionFilter::Open) => ARCHIVE_OPEN,
            (true, ActionFilter::Failed) => ARCHIVE_FAILED,
            (true, ActionFilter::Completed) => ARCHIVE_COMPLETED,
        };
        let before = page.before.map_or(i64::MAX, |id| id.0);
        let initiator = page.initiator.as_deref().unwrap_or_default();
        let minion = page.minion.as_ref().map_or("", MinionId::as_str);
        self.list(statement, params![before, page.internal, initiator, minion, page.limit]).await
    }

    /// Actions with a run that has not ended, after `after` in the order of ids. Without the steps of launches: those are
    /// not sent themselves.
    pub async fn open_actions(&self, after: ActionId, limit: usize) -> Result<Vec<Action>> {
        self.list(OPEN, params![after, limit]).await
    }

    /// Open actions whose deadline has passed, the one that is over longest first.
    pub async fn overdue_actions(&self, now: Timestamp, limit: usize) -> Result<Vec<Action>> {
        self.list(OVERDUE, params![now, limit]).await
    }

    /// The steps of a launch, in their order.
    pub async fn launch_actions(&self, launch: LaunchId) -> Result<Vec<Action>> {
        self.list(OF_LAUNCH, params![launch]).await
    }

    async fn list(&self, sql: &'static str, values: Vec<crate::db::Param>) -> Result<Vec<Action>> {
        self.query(sql, values).await?.into_iter().map(read).collect()
    }
}

/// The rules of an action as they are kept.
pub(crate) fn read_policy(text: &str) -> Result<Policy> {
    serde_json::from_str(text).map_err(|_| Error::Shape { what: "actions.policy", column: 0 })
}

fn read(mut row: Row) -> Result<Action> {
    let new = NewAction {
        kind: row.text(1)?,
        name: row.text(2)?,
        params: row.text(3)?,
        fun: row.text(4)?,
        arg: row.text(5)?,
        target: row.text(6)?,
        target_type: row.text(7)?,
        initiator: row.text(8)?,
        origin: row.text(9)?,
        org: row.text(10)?,
        created: row.time(11)?,
        due: row.time(12)?,
        deadline: row.time(13)?,
        policy: read_policy(&row.text(14)?)?,
        decision: row.text(15)?,
        metadata: row.opt_text(16)?,
        ret: row.text(17)?,
        internal: row.flag(18)?,
        late: row.flag(19)?,
        launch: row.opt_int(33)?.map(LaunchId),
        step: row.opt_int(34)?,
        recurring: row.opt_int(35)?.map(RecurringId),
    };
    let jid = row.opt_jid(20)?;
    let (by, why) = (row.opt_text(22)?.unwrap_or_default(), row.opt_text(23)?.unwrap_or_default());
    Ok(Action {
        id: ActionId(row.int(0)?),
        new,
        jid,
        paused: row.opt_time(21)?.map(|at| Paused { at, by, why }),
        archived: row.opt_time(24)?,
        ended: row.opt_time(25)?,
        counts: Counts::read(&row, 26)?,
    })
}
