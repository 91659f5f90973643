//! A past that never was: a million finished runs, written into a stopped server's SQLite file.
//!
//! Everything is copied from one `test.ping` that the server itself has carried out, with other names and times, so that the
//! rows are what the server writes. What does not fit a later schema fails here, and is not measured.
//!
//! Invariants: numbers go on where the server's counters stand, and the counters follow; all of it is younger than what the
//! server forgets by default, or it would shrink while it is measured.

use anyhow::{Context as _, Result, ensure};
use rusqlite::Connection;
use std::path::Path;

/// How many actions, and on how many minions each.
pub(crate) const ACTIONS: i64 = 1_000;
pub(crate) const MINIONS: i64 = 1_000;

/// What was written.
pub(crate) struct Past {
    /// The action in the middle of it
    pub(crate) action: i64,
    /// Its job
    pub(crate) jid: String,
    /// One of its minions
    pub(crate) minion: String,
    /// Size of the database afterwards
    pub(crate) bytes: u64,
}

const MODEL: &str = "
CREATE TEMP TABLE model AS SELECT a.id AS action, a.jid, a.created, min(r.minion) AS minion
FROM actions a JOIN runs r ON r.action = a.id WHERE a.id = ?1 AND r.state = 'completed' GROUP BY a.id";

// Half an hour apart and the last an hour before the model: 21 of the 30 days that are kept. The oldest have failures or
// are archived, so that a list of these finds them behind everything else.
const PLAN: &str = "
CREATE TEMP TABLE past (n INTEGER PRIMARY KEY, action INTEGER, at INTEGER, jid TEXT, is_failed INTEGER, is_archived INTEGER);
WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < (SELECT actions FROM size)),
    at (n, at) AS (SELECT n, (SELECT created FROM model) - ((SELECT actions FROM size) + 2 - n) * 1800000000 FROM n)
INSERT INTO past
SELECT n, (SELECT value FROM counters WHERE name = 'action') + n, at,
    strftime('%Y%m%d%H%M%S', at / 1000000, 'unixepoch') || printf('%06d', at % 1000000),
    n <= 100, n > 100 AND n <= 200
FROM at;

CREATE TEMP TABLE fleet (m INTEGER PRIMARY KEY, minion TEXT, is_failed INTEGER);
WITH RECURSIVE m (m) AS (SELECT 1 UNION ALL SELECT m + 1 FROM m WHERE m < (SELECT minions FROM size))
INSERT INTO fleet SELECT m, printf('past-%05d', m), m % 10 = 0 FROM m;";

const ACTION_ROWS: &str = "
INSERT INTO actions (id, kind, name, params, fun, arg, target, target_type, initiator, origin, org, created, due, deadline,
    policy, decision, metadata, ret, internal, interactive, late, jid, archived, ended, deleting,
    total, queued, running, completed, failed, unreachable, cancelled)
SELECT p.action, a.kind, a.name, a.params, a.fun, a.arg, a.target, a.target_type, a.initiator, a.origin, a.org, p.at,
    p.at + a.due - a.created, p.at + a.deadline - a.created, a.policy, a.decision, a.metadata, a.ret, a.internal,
    a.interactive, a.late, p.jid, CASE WHEN p.is_archived THEN p.at + 60000000 END, p.at + 1000000, 0,
    f.total, 0, 0, f.total - p.is_failed * f.failed, p.is_failed * f.failed, 0, 0
FROM past p, (SELECT count(*) AS total, sum(is_failed) AS failed FROM fleet) f, model JOIN actions a ON a.id = model.action";

const JOB_ROWS: &str = "
INSERT INTO jobs (jid, action, created, fun, arg, target, target_type, initiator, minions, missing, internal)
SELECT p.jid, p.action, p.at, j.fun, j.arg, j.target, j.target_type, j.initiator, f.minions, '', j.internal
FROM past p, (SELECT group_concat(minion, char(10)) AS minions FROM fleet) f, model JOIN jobs j ON j.jid = model.jid";

const RUN_ROWS: &str = "
INSERT INTO runs (action, minion, state, reason, attempt, deliveries, jid, sent, picked_up, ended, retcode, late)
SELECT p.action, f.minion, CASE WHEN p.is_failed AND f.is_failed THEN 'failed' ELSE r.state END,
    CASE WHEN p.is_failed AND f.is_failed THEN 'returned_error' END, r.attempt, r.deliveries, p.jid, p.at + 1000,
    CASE WHEN r.picked_up IS NOT NULL THEN p.at + 1500 END, p.at + 2000 + f.m, p.is_failed AND f.is_failed, r.late
FROM past p CROSS JOIN fleet f, model JOIN runs r ON r.action = model.action AND r.minion = model.minion
ORDER BY p.n, f.m";

const RETURN_ROWS: &str = "
INSERT INTO returns (jid, minion, at, fun, retcode, success, encoding, body)
SELECT p.jid, f.minion, p.at + 2000 + f.m, r.fun, p.is_failed AND f.is_failed, NOT (p.is_failed AND f.is_failed),
    r.encoding, r.body
FROM past p CROSS JOIN fleet f, model JOIN returns r ON r.jid = model.jid AND r.minion = model.minion
ORDER BY p.n, f.m";

const EVENT_ROWS: &str = "
INSERT INTO events (number, at, tag, minion, jid, encoding, body)
SELECT (SELECT value FROM counters WHERE name = 'event') + (p.n - 1) * (SELECT minions FROM size) + f.m,
    p.at + 2000 + f.m, 'salt/job/' || p.jid || '/ret/' || f.minion, f.minion, p.jid, -1, x''
FROM past p CROSS JOIN fleet f
ORDER BY p.n, f.m";

const COUNTERS: &str = "
UPDATE counters SET value = value + (SELECT actions FROM size) WHERE name = 'action';
UPDATE counters SET value = value + (SELECT actions * minions FROM size) WHERE name = 'event';";

/// Writes it, after the model of this action. The server must not run.
pub(crate) fn write(database: &Path, model: i64) -> Result<Past> {
    let mut connection = Connection::open(database).context("cannot open the server's database")?;
    // Nobody needs what a power cut would leave of it.
    connection.pragma_update(None, "synchronous", "OFF")?;
    connection.pragma_update(None, "cache_size", -256_000)?;
    let tx = connection.transaction()?;
    tx.execute_batch("CREATE TEMP TABLE size (actions INTEGER, minions INTEGER);")?;
    tx.execute("INSERT INTO size VALUES (?1, ?2)", [ACTIONS, MINIONS])?;
    tx.execute(MODEL, [model])?;
    tx.execute_batch(PLAN)?;
    for (what, sql, rows) in [
        ("actions", ACTION_ROWS, ACTIONS),
        ("jobs", JOB_ROWS, ACTIONS),
        ("runs", RUN_ROWS, ACTIONS * MINIONS),
        ("returns", RETURN_ROWS, ACTIONS * MINIONS),
        ("events", EVENT_ROWS, ACTIONS * MINIONS),
    ] {
        let written = tx.execute(sql, []).with_context(|| format!("cannot write {what}"))?;
        ensure!(i64::try_from(written) == Ok(rows), "{written} {what} instead of {rows}: is the model complete?");
    }
    tx.execute_batch(COUNTERS)?;
    let (action, jid) =
        tx.query_row("SELECT action, jid FROM past WHERE n = ?1", [ACTIONS / 2], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let minion = tx.query_row("SELECT minion FROM fleet WHERE m = ?1", [MINIONS / 2], |row| row.get(0))?;
    tx.commit()?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    drop(connection);
    Ok(Past { action, jid, minion, bytes: database.metadata()?.len() })
}
