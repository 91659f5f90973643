-- Chains of actions, what is launched from them, and where each minion stands with a launch; and states that are kept here.

-- Templates. `steps` is JSON.
CREATE TABLE chains (
    id          INTEGER PRIMARY KEY,
    name        TEXT NOT NULL,
    owner       TEXT NOT NULL,
    org         TEXT NOT NULL,
    description TEXT NOT NULL,
    shared      INTEGER NOT NULL,
    steps       TEXT NOT NULL,
    created     INTEGER NOT NULL,
    changed     INTEGER NOT NULL,
    changed_by  TEXT NOT NULL,
    version     INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX chains_by_owner ON chains (owner, name);
CREATE INDEX chains_by_name ON chains (name, id);

-- One execution of a chain. `key` is what minions know it by. The counts are those of its minions, kept by whoever ends one;
-- `ended` is empty while any is open.
CREATE TABLE launches (
    id              INTEGER PRIMARY KEY,
    key             TEXT NOT NULL,
    chain           INTEGER,
    name            TEXT NOT NULL,
    initiator       TEXT NOT NULL,
    origin          TEXT NOT NULL,
    org             TEXT NOT NULL,
    created         INTEGER NOT NULL,
    due             INTEGER NOT NULL,
    deadline        INTEGER NOT NULL,
    steps           TEXT NOT NULL,
    approvals       TEXT NOT NULL,
    cancelled       INTEGER,
    cancelled_by    TEXT,
    stopped         INTEGER NOT NULL,
    ended           INTEGER,
    total           INTEGER NOT NULL,
    open            INTEGER NOT NULL,
    completed       INTEGER NOT NULL,
    failed          INTEGER NOT NULL,
    cancelled_count INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX launches_by_key ON launches (key);
CREATE INDEX launches_by_chain ON launches (chain, id) WHERE chain IS NOT NULL;
CREATE INDEX launches_open ON launches (id) WHERE ended IS NULL;
CREATE INDEX launches_finished ON launches (ended, id) WHERE ended IS NOT NULL;

-- What minions are to do, by its hash: those that are to do the same share it.
CREATE TABLE plans (
    hash TEXT NOT NULL PRIMARY KEY,
    body TEXT NOT NULL
) STRICT;

-- Where a minion stands with a launch. `holds` is 1 from its first chunk to its end: no other launch may begin there then.
CREATE TABLE launch_minions (
    launch  INTEGER NOT NULL,
    minion  TEXT NOT NULL,
    plan    TEXT NOT NULL,
    chunk   INTEGER NOT NULL,
    state   TEXT NOT NULL,
    holds   INTEGER NOT NULL,
    failed  INTEGER NOT NULL,
    carrier INTEGER,
    since   INTEGER NOT NULL,
    boot_id TEXT,
    asked   INTEGER NOT NULL,
    outcome TEXT,
    message TEXT,
    PRIMARY KEY (launch, minion)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX launch_minions_held ON launch_minions (minion) WHERE holds = 1;
CREATE INDEX launch_minions_open ON launch_minions (minion, launch) WHERE state <> 'ended';
CREATE INDEX launch_minions_by_state ON launch_minions (launch, state, minion);
CREATE INDEX launch_minions_by_plan ON launch_minions (plan);

-- Steps of a launch have its id and their number; what carries chunks to minions has its id alone.
ALTER TABLE actions ADD COLUMN launch INTEGER;
ALTER TABLE actions ADD COLUMN step INTEGER;
CREATE INDEX actions_by_launch ON actions (launch, step) WHERE launch IS NOT NULL;

-- States that are kept here, what they have been, and what they are assigned to.
CREATE TABLE states (
    name        TEXT NOT NULL,
    org         TEXT NOT NULL,
    description TEXT NOT NULL,
    content     TEXT NOT NULL,
    version     INTEGER NOT NULL,
    created     INTEGER NOT NULL,
    changed     INTEGER NOT NULL,
    changed_by  TEXT NOT NULL,
    PRIMARY KEY (org, name)
) STRICT;

CREATE TABLE state_versions (
    org     TEXT NOT NULL,
    name    TEXT NOT NULL,
    version INTEGER NOT NULL,
    content TEXT NOT NULL,
    at      INTEGER NOT NULL,
    by      TEXT NOT NULL,
    PRIMARY KEY (org, name, version)
) STRICT;

CREATE TABLE state_assignments (
    org     TEXT NOT NULL,
    name    TEXT NOT NULL,
    kind    TEXT NOT NULL,
    subject TEXT NOT NULL,
    PRIMARY KEY (org, name, kind, subject)
) STRICT, WITHOUT ROWID;
CREATE INDEX state_assignments_by_subject ON state_assignments (kind, subject);
