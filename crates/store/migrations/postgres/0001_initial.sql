-- Times are microseconds since the epoch, flags are 0 or 1, ids and JSON are text, bodies are bytes with an encoding number.
-- What is ordered or paged by has the collation "C": ids are then in the order of their bytes, as they are in SQLite and in
-- memory whatever the database's locale, and no update of the C library can put an index out of order.

CREATE TABLE counters (
    name  TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    value BIGINT NOT NULL
);

-- What is known of a machine that has been accepted at least once.
CREATE TABLE minions (
    id          TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    first_seen  BIGINT NOT NULL,
    last_seen   BIGINT NOT NULL,
    started     BIGINT,
    address     TEXT,
    version     TEXT,
    ack_method  TEXT NOT NULL,
    ack_setting BIGINT
);

-- The current key of an id (slot 0: unaccepted, accepted or rejected), and the last foreign key that claimed it (slot 1: denied).
CREATE TABLE keys (
    minion      TEXT COLLATE "C" NOT NULL,
    slot        BIGINT NOT NULL,
    state       TEXT NOT NULL,
    pem         TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    since       BIGINT NOT NULL,
    PRIMARY KEY (minion, slot)
);

CREATE TABLE grains (
    minion   TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    at       BIGINT NOT NULL,
    encoding BIGINT NOT NULL,
    body     BYTEA NOT NULL
);

CREATE TABLE mine (
    minion   TEXT COLLATE "C" NOT NULL,
    fun      TEXT COLLATE "C" NOT NULL,
    at       BIGINT NOT NULL,
    encoding BIGINT NOT NULL,
    body     BYTEA NOT NULL,
    PRIMARY KEY (minion, fun)
);
CREATE INDEX mine_by_fun ON mine (fun, minion);

CREATE TABLE actions (
    id          BIGINT PRIMARY KEY,
    kind        TEXT NOT NULL,
    fun         TEXT NOT NULL,
    arg         TEXT NOT NULL,
    target      TEXT NOT NULL,
    target_type TEXT NOT NULL,
    initiator   TEXT NOT NULL,
    created     BIGINT NOT NULL,
    due         BIGINT NOT NULL,
    deadline    BIGINT NOT NULL,
    internal    BIGINT NOT NULL
);

-- One action on one minion.
CREATE TABLE runs (
    action      BIGINT NOT NULL,
    minion      TEXT COLLATE "C" NOT NULL,
    state       TEXT NOT NULL,
    reason      TEXT,
    waiting_for TEXT,
    attempt     BIGINT NOT NULL,
    jid         TEXT COLLATE "C",
    deadline    BIGINT NOT NULL,
    sent        BIGINT,
    picked_up   BIGINT,
    ended       BIGINT,
    retcode     BIGINT,
    PRIMARY KEY (action, minion)
);
CREATE INDEX runs_open_by_action ON runs (action) WHERE ended IS NULL;

-- One dispatch of a run; its return, if any, has the same key.
CREATE TABLE attempts (
    jid    TEXT COLLATE "C" NOT NULL,
    minion TEXT COLLATE "C" NOT NULL,
    action BIGINT NOT NULL,
    number BIGINT NOT NULL,
    sent   BIGINT NOT NULL,
    acked  BIGINT,
    PRIMARY KEY (jid, minion)
);

-- One publish. `published` is empty until it has gone out: what a crash left so is published at the next start.
CREATE TABLE jobs (
    jid       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    action    BIGINT NOT NULL,
    created   BIGINT NOT NULL,
    published BIGINT,
    fun       TEXT NOT NULL,
    arg       TEXT NOT NULL,
    target    TEXT NOT NULL,
    target_type TEXT NOT NULL,
    initiator TEXT NOT NULL,
    minions   TEXT NOT NULL,
    missing   TEXT NOT NULL,
    load      BYTEA NOT NULL,
    internal  BIGINT NOT NULL
);
CREATE INDEX jobs_by_action ON jobs (action);
CREATE INDEX jobs_unpublished ON jobs (created, jid) WHERE published IS NULL;

CREATE TABLE returns (
    jid      TEXT COLLATE "C" NOT NULL,
    minion   TEXT COLLATE "C" NOT NULL,
    at       BIGINT NOT NULL,
    fun      TEXT NOT NULL,
    retcode  BIGINT NOT NULL,
    success  BIGINT NOT NULL,
    encoding BIGINT NOT NULL,
    body     BYTEA NOT NULL,
    PRIMARY KEY (jid, minion)
);

-- The numbered event log. A return's event has no body of its own (encoding -1, empty): it is the row in `returns`.
CREATE TABLE events (
    number   BIGINT PRIMARY KEY,
    at       BIGINT NOT NULL,
    tag      TEXT NOT NULL,
    minion   TEXT COLLATE "C",
    jid      TEXT COLLATE "C",
    encoding BIGINT NOT NULL,
    body     BYTEA NOT NULL
);
CREATE INDEX events_by_job ON events (jid, number) WHERE jid IS NOT NULL;

CREATE TABLE audit (
    number  BIGINT PRIMARY KEY,
    at      BIGINT NOT NULL,
    who     TEXT NOT NULL,
    origin  TEXT NOT NULL,
    what    TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail  TEXT NOT NULL
);
