-- Times are microseconds since the epoch, flags are 0 or 1, ids and JSON are text, bodies are bytes with an encoding number.

CREATE TABLE counters (
    name  TEXT NOT NULL PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What is known of a machine that has been accepted at least once.
CREATE TABLE minions (
    id          TEXT NOT NULL PRIMARY KEY,
    first_seen  INTEGER NOT NULL,
    last_seen   INTEGER NOT NULL,
    started     INTEGER,
    address     TEXT,
    version     TEXT,
    ack_method  TEXT NOT NULL,
    ack_setting INTEGER
) STRICT, WITHOUT ROWID;

-- The current key of an id (slot 0: unaccepted, accepted or rejected), and the last foreign key that claimed it (slot 1: denied).
CREATE TABLE keys (
    minion      TEXT NOT NULL,
    slot        INTEGER NOT NULL,
    state       TEXT NOT NULL,
    pem         TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    since       INTEGER NOT NULL,
    PRIMARY KEY (minion, slot)
) STRICT, WITHOUT ROWID;

CREATE TABLE grains (
    minion   TEXT NOT NULL PRIMARY KEY,
    at       INTEGER NOT NULL,
    encoding INTEGER NOT NULL,
    body     BLOB NOT NULL
) STRICT;

CREATE TABLE mine (
    minion   TEXT NOT NULL,
    fun      TEXT NOT NULL,
    at       INTEGER NOT NULL,
    encoding INTEGER NOT NULL,
    body     BLOB NOT NULL,
    PRIMARY KEY (minion, fun)
) STRICT;
CREATE INDEX mine_by_fun ON mine (fun, minion);

CREATE TABLE actions (
    id          INTEGER PRIMARY KEY,
    kind        TEXT NOT NULL,
    fun         TEXT NOT NULL,
    arg         TEXT NOT NULL,
    target      TEXT NOT NULL,
    target_type TEXT NOT NULL,
    initiator   TEXT NOT NULL,
    created     INTEGER NOT NULL,
    due         INTEGER NOT NULL,
    deadline    INTEGER NOT NULL,
    internal    INTEGER NOT NULL
) STRICT;

-- One action on one minion.
CREATE TABLE runs (
    action      INTEGER NOT NULL,
    minion      TEXT NOT NULL,
    state       TEXT NOT NULL,
    reason      TEXT,
    waiting_for TEXT,
    attempt     INTEGER NOT NULL,
    jid         TEXT,
    deadline    INTEGER NOT NULL,
    sent        INTEGER,
    picked_up   INTEGER,
    ended       INTEGER,
    retcode     INTEGER,
    PRIMARY KEY (action, minion)
) STRICT, WITHOUT ROWID;
CREATE INDEX runs_open_by_action ON runs (action) WHERE ended IS NULL;

-- One dispatch of a run; its return, if any, has the same key.
CREATE TABLE attempts (
    jid    TEXT NOT NULL,
    minion TEXT NOT NULL,
    action INTEGER NOT NULL,
    number INTEGER NOT NULL,
    sent   INTEGER NOT NULL,
    acked  INTEGER,
    PRIMARY KEY (jid, minion)
) STRICT, WITHOUT ROWID;

-- One publish. `published` is empty until it has gone out: what a crash left so is published at the next start.
CREATE TABLE jobs (
    jid       TEXT NOT NULL PRIMARY KEY,
    action    INTEGER NOT NULL,
    created   INTEGER NOT NULL,
    published INTEGER,
    fun       TEXT NOT NULL,
    arg       TEXT NOT NULL,
    target    TEXT NOT NULL,
    target_type TEXT NOT NULL,
    initiator TEXT NOT NULL,
    minions   TEXT NOT NULL,
    missing   TEXT NOT NULL,
    load      BLOB NOT NULL,
    internal  INTEGER NOT NULL
) STRICT;
CREATE INDEX jobs_by_action ON jobs (action);
CREATE INDEX jobs_unpublished ON jobs (created, jid) WHERE published IS NULL;

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
) STRICT;

-- The numbered event log. A return's event has no body of its own (encoding -1, empty): it is the row in `returns`.
CREATE TABLE events (
    number   INTEGER PRIMARY KEY,
    at       INTEGER NOT NULL,
    tag      TEXT NOT NULL,
    minion   TEXT,
    jid      TEXT,
    encoding INTEGER NOT NULL,
    body     BLOB NOT NULL
) STRICT;
CREATE INDEX events_by_job ON events (jid, number) WHERE jid IS NOT NULL;

CREATE TABLE audit (
    number  INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    who     TEXT NOT NULL,
    origin  TEXT NOT NULL,
    what    TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail  TEXT NOT NULL
) STRICT;
