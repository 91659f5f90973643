-- Actions that wait, are tried again and are counted. Tables that change much are made anew and filled from the old ones.

ALTER TABLE actions RENAME TO actions_1;
ALTER TABLE runs RENAME TO runs_1;
ALTER TABLE attempts RENAME TO attempts_1;

-- What somebody asked for. The counts are those of its runs, kept by whoever changes a run: `running` is sent and picked up,
-- `unreachable` are those of `failed` whose minion could not be reached. `ended` is empty while any run is open.
CREATE TABLE actions (
    id          INTEGER PRIMARY KEY,
    kind        TEXT NOT NULL,
    name        TEXT NOT NULL,
    params      TEXT NOT NULL,
    fun         TEXT NOT NULL,
    arg         TEXT NOT NULL,
    target      TEXT NOT NULL,
    target_type TEXT NOT NULL,
    initiator   TEXT NOT NULL,
    origin      TEXT NOT NULL,
    org         TEXT NOT NULL,
    created     INTEGER NOT NULL,
    due         INTEGER NOT NULL,
    deadline    INTEGER NOT NULL,
    policy      TEXT NOT NULL,
    decision    TEXT NOT NULL,
    metadata    TEXT,
    ret         TEXT NOT NULL,
    internal    INTEGER NOT NULL,
    interactive INTEGER NOT NULL,
    late        INTEGER NOT NULL,
    jid         TEXT,
    paused      INTEGER,
    paused_by   TEXT,
    paused_why  TEXT,
    archived    INTEGER,
    ended       INTEGER,
    deleting    INTEGER NOT NULL,
    total       INTEGER NOT NULL,
    queued      INTEGER NOT NULL,
    running     INTEGER NOT NULL,
    completed   INTEGER NOT NULL,
    failed      INTEGER NOT NULL,
    unreachable INTEGER NOT NULL,
    cancelled   INTEGER NOT NULL
) STRICT;

INSERT INTO actions
SELECT a.id, a.kind, a.fun, '{}', a.fun, a.arg, a.target, a.target_type, a.initiator, '', '', a.created, a.due, a.deadline,
       '{}', '{}', NULL, '', a.internal, 0, 0, (SELECT min(j.jid) FROM jobs j WHERE j.action = a.id),
       NULL, NULL, NULL, NULL,
       CASE WHEN coalesce(c.running, 0) = 0 THEN coalesce(c.ended, a.created) END,
       0, coalesce(c.total, 0), 0, coalesce(c.running, 0), coalesce(c.completed, 0), coalesce(c.failed, 0), 0, 0
FROM actions_1 a LEFT JOIN (
    SELECT r.action, count(*) AS total, max(r.ended) AS ended,
           sum(CASE WHEN r.ended IS NULL THEN 1 ELSE 0 END) AS running,
           sum(CASE WHEN r.state = 'completed' THEN 1 ELSE 0 END) AS completed,
           sum(CASE WHEN r.state = 'failed' THEN 1 ELSE 0 END) AS failed
    FROM runs_1 r GROUP BY r.action
) c ON c.action = a.id;

CREATE INDEX actions_open ON actions (id) WHERE ended IS NULL;
CREATE INDEX actions_overdue ON actions (deadline, id) WHERE ended IS NULL;
CREATE INDEX actions_finished ON actions (ended, id) WHERE ended IS NOT NULL;
CREATE INDEX actions_failed ON actions (id) WHERE failed > 0;
CREATE INDEX actions_archived ON actions (id) WHERE archived IS NOT NULL;

-- One action on one minion. `due` is when a queued run may be taken; empty: not before it is released.
CREATE TABLE runs (
    action      INTEGER NOT NULL,
    minion      TEXT NOT NULL,
    state       TEXT NOT NULL,
    reason      TEXT,
    waiting_for TEXT,
    due         INTEGER,
    attempt     INTEGER NOT NULL,
    deliveries  INTEGER NOT NULL,
    jid         TEXT,
    sent        INTEGER,
    picked_up   INTEGER,
    ended       INTEGER,
    retcode     INTEGER,
    message     TEXT,
    evidence    TEXT,
    late        INTEGER NOT NULL,
    PRIMARY KEY (action, minion)
) STRICT, WITHOUT ROWID;

INSERT INTO runs
SELECT action, minion, state, reason, waiting_for, NULL, attempt, 1, jid, sent, picked_up, ended, retcode, NULL, NULL, 0
FROM runs_1;

-- Attempts that were followed by another. The newest one of a run is the run itself.
CREATE TABLE attempts (
    action    INTEGER NOT NULL,
    minion    TEXT NOT NULL,
    number    INTEGER NOT NULL,
    jid       TEXT,
    sent      INTEGER,
    picked_up INTEGER,
    ended     INTEGER,
    reason    TEXT,
    retcode   INTEGER,
    message   TEXT,
    PRIMARY KEY (action, minion, number)
) STRICT, WITHOUT ROWID;

INSERT INTO attempts
SELECT a.action, a.minion, a.number, a.jid, a.sent, a.acked, NULL, NULL, NULL, NULL
FROM attempts_1 a JOIN runs_1 r ON r.action = a.action AND r.minion = a.minion WHERE a.number < r.attempt;

DROP TABLE attempts_1;
DROP TABLE runs_1;
DROP TABLE actions_1;

CREATE INDEX runs_queued ON runs (action, due, minion) WHERE state = 'queued';
CREATE INDEX runs_open ON runs (minion, action) WHERE ended IS NULL;

-- What was accepted and not published is found by its runs.
DROP INDEX jobs_unpublished;
DROP INDEX jobs_by_action;
ALTER TABLE jobs DROP COLUMN published;
ALTER TABLE jobs DROP COLUMN load;
CREATE INDEX jobs_by_action ON jobs (action, jid);

ALTER TABLE minions ADD COLUMN boot_id TEXT;
ALTER TABLE minions ADD COLUMN reboot_needed INTEGER;

-- What a minion sent and nobody could make sense of.
CREATE TABLE dead_letters (
    number   INTEGER PRIMARY KEY,
    at       INTEGER NOT NULL,
    minion   TEXT,
    what     TEXT NOT NULL,
    error    TEXT NOT NULL,
    encoding INTEGER NOT NULL,
    body     BLOB NOT NULL
) STRICT;

-- The server's own actions are forgotten sooner than others.
CREATE INDEX actions_housekeeping ON actions (ended) WHERE internal = 1 AND ended IS NOT NULL;

-- Servers that share this database, and whose minions are whose.
CREATE TABLE servers (
    place INTEGER NOT NULL PRIMARY KEY,
    name  TEXT NOT NULL,
    beat  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
ALTER TABLE minions ADD COLUMN server INTEGER;

-- One tree instead of two: a return is written once and found by its key.
ALTER TABLE returns RENAME TO returns_1;
CREATE TABLE returns (
    jid      TEXT NOT NULL,
    minion   TEXT NOT NULL,
    at       INTEGER NOT NULL,
    fun      TEXT NOT NULL,
    retcode  INTEGER NOT NULL,
    success  INTEGER NOT NULL,
    encoding INTEGER NOT NULL,
    body     BLOB NOT NULL,
    PRIMARY KEY (jid, minion)
) STRICT, WITHOUT ROWID;
INSERT INTO returns SELECT jid, minion, at, fun, retcode, success, encoding, body FROM returns_1;
DROP TABLE returns_1;
