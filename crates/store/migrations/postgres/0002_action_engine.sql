-- Actions that wait, are tried again and are counted. Tables that change much are made anew and filled from the old ones.

ALTER TABLE actions RENAME TO actions_1;
ALTER INDEX actions_pkey RENAME TO actions_1_pkey;
ALTER TABLE runs RENAME TO runs_1;
ALTER INDEX runs_pkey RENAME TO runs_1_pkey;
ALTER TABLE attempts RENAME TO attempts_1;
ALTER INDEX attempts_pkey RENAME TO attempts_1_pkey;

-- What somebody asked for. The counts are those of its runs, kept by whoever changes a run: `running` is sent and picked up,
-- `unreachable` are those of `failed` whose minion could not be reached. `ended` is empty while any run is open.
CREATE TABLE actions (
    id          BIGINT PRIMARY KEY,
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
    created     BIGINT NOT NULL,
    due         BIGINT NOT NULL,
    deadline    BIGINT NOT NULL,
    policy      TEXT NOT NULL,
    decision    TEXT NOT NULL,
    metadata    TEXT,
    ret         TEXT NOT NULL,
    internal    BIGINT NOT NULL,
    interactive BIGINT NOT NULL,
    late        BIGINT NOT NULL,
    jid         TEXT COLLATE "C",
    paused      BIGINT,
    paused_by   TEXT,
    paused_why  TEXT,
    archived    BIGINT,
    ended       BIGINT,
    deleting    BIGINT NOT NULL,
    total       BIGINT NOT NULL,
    queued      BIGINT NOT NULL,
    running     BIGINT NOT NULL,
    completed   BIGINT NOT NULL,
    failed      BIGINT NOT NULL,
    unreachable BIGINT NOT NULL,
    cancelled   BIGINT NOT NULL
);

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
    action      BIGINT NOT NULL,
    minion      TEXT COLLATE "C" NOT NULL,
    state       TEXT NOT NULL,
    reason      TEXT,
    waiting_for TEXT,
    due         BIGINT,
    attempt     BIGINT NOT NULL,
    deliveries  BIGINT NOT NULL,
    jid         TEXT COLLATE "C",
    sent        BIGINT,
    picked_up   BIGINT,
    ended       BIGINT,
    retcode     BIGINT,
    message     TEXT,
    evidence    TEXT,
    late        BIGINT NOT NULL,
    PRIMARY KEY (action, minion)
);

INSERT INTO runs
SELECT action, minion, state, reason, waiting_for, NULL, attempt, 1, jid, sent, picked_up, ended, retcode, NULL, NULL, 0
FROM runs_1;

-- Attempts that were followed by another. The newest one of a run is the run itself.
CREATE TABLE attempts (
    action    BIGINT NOT NULL,
    minion    TEXT COLLATE "C" NOT NULL,
    number    BIGINT NOT NULL,
    jid       TEXT COLLATE "C",
    sent      BIGINT,
    picked_up BIGINT,
    ended     BIGINT,
    reason    TEXT,
    retcode   BIGINT,
    message   TEXT,
    PRIMARY KEY (action, minion, number)
);

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
ALTER TABLE minions ADD COLUMN reboot_needed BIGINT;

-- What a minion sent and nobody could make sense of.
CREATE TABLE dead_letters (
    number   BIGINT PRIMARY KEY,
    at       BIGINT NOT NULL,
    minion   TEXT COLLATE "C",
    what     TEXT NOT NULL,
    error    TEXT NOT NULL,
    encoding BIGINT NOT NULL,
    body     BYTEA NOT NULL
);

-- The server's own actions are forgotten sooner than others.
CREATE INDEX actions_housekeeping ON actions (ended) WHERE internal = 1 AND ended IS NOT NULL;

-- Servers that share this database, and whose minions are whose.
CREATE TABLE servers (
    place BIGINT NOT NULL PRIMARY KEY,
    name  TEXT NOT NULL,
    beat  BIGINT NOT NULL
);
ALTER TABLE minions ADD COLUMN server BIGINT;
