-- Chains of actions, what is launched from them, and where each minion stands with a launch; and states that are kept here.

-- Templates. `steps` is JSON.
CREATE TABLE chains (
    id          BIGINT PRIMARY KEY,
    name        TEXT COLLATE "C" NOT NULL,
    owner       TEXT COLLATE "C" NOT NULL,
    org         TEXT NOT NULL,
    description TEXT NOT NULL,
    shared      BIGINT NOT NULL,
    steps       TEXT NOT NULL,
    created     BIGINT NOT NULL,
    changed     BIGINT NOT NULL,
    changed_by  TEXT NOT NULL,
    version     BIGINT NOT NULL
);
CREATE UNIQUE INDEX chains_by_owner ON chains (owner, name);
CREATE INDEX chains_by_name ON chains (name, id);

-- One execution of a chain. `key` is what minions know it by. The counts are those of its minions, kept by whoever ends one;
-- `ended` is empty while any is open.
CREATE TABLE launches (
    id              BIGINT PRIMARY KEY,
    key             TEXT COLLATE "C" NOT NULL,
    chain           BIGINT,
    name            TEXT NOT NULL,
    initiator       TEXT NOT NULL,
    origin          TEXT NOT NULL,
    org             TEXT NOT NULL,
    created         BIGINT NOT NULL,
    due             BIGINT NOT NULL,
    deadline        BIGINT NOT NULL,
    steps           TEXT NOT NULL,
    approvals       TEXT NOT NULL,
    cancelled       BIGINT,
    cancelled_by    TEXT,
    stopped         BIGINT NOT NULL,
    ended           BIGINT,
    total           BIGINT NOT NULL,
    open            BIGINT NOT NULL,
    completed       BIGINT NOT NULL,
    failed          BIGINT NOT NULL,
    cancelled_count BIGINT NOT NULL
);
CREATE UNIQUE INDEX launches_by_key ON launches (key);
CREATE INDEX launches_by_chain ON launches (chain, id) WHERE chain IS NOT NULL;
CREATE INDEX launches_open ON launches (id) WHERE ended IS NULL;
CREATE INDEX launches_finished ON launches (ended, id) WHERE ended IS NOT NULL;

-- What minions are to do, by its hash: those that are to do the same share it.
CREATE TABLE plans (
    hash TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    body TEXT NOT NULL
);

-- Where a minion stands with a launch. `holds` is 1 from its first chunk to its end: no other launch may begin there then.
CREATE TABLE launch_minions (
    launch  BIGINT NOT NULL,
    minion  TEXT COLLATE "C" NOT NULL,
    plan    TEXT COLLATE "C" NOT NULL,
    chunk   BIGINT NOT NULL,
    state   TEXT COLLATE "C" NOT NULL,
    holds   BIGINT NOT NULL,
    failed  BIGINT NOT NULL,
    carrier BIGINT,
    since   BIGINT NOT NULL,
    boot_id TEXT,
    asked   BIGINT NOT NULL,
    outcome TEXT,
    message TEXT,
    PRIMARY KEY (launch, minion)
);
CREATE UNIQUE INDEX launch_minions_held ON launch_minions (minion) WHERE holds = 1;
CREATE INDEX launch_minions_open ON launch_minions (minion, launch) WHERE state <> 'ended';
CREATE INDEX launch_minions_by_state ON launch_minions (launch, state, minion);
CREATE INDEX launch_minions_by_plan ON launch_minions (plan);

-- Steps of a launch have its id and their number; what carries chunks to minions has its id alone.
ALTER TABLE actions ADD COLUMN launch BIGINT;
ALTER TABLE actions ADD COLUMN step BIGINT;
CREATE INDEX actions_by_launch ON actions (launch, step) WHERE launch IS NOT NULL;

-- States that are kept here, what they have been, and what they are assigned to.
CREATE TABLE states (
    name        TEXT COLLATE "C" NOT NULL,
    org         TEXT COLLATE "C" NOT NULL,
    description TEXT NOT NULL,
    content     TEXT NOT NULL,
    version     BIGINT NOT NULL,
    created     BIGINT NOT NULL,
    changed     BIGINT NOT NULL,
    changed_by  TEXT NOT NULL,
    PRIMARY KEY (org, name)
);

CREATE TABLE state_versions (
    org     TEXT COLLATE "C" NOT NULL,
    name    TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    content TEXT NOT NULL,
    at      BIGINT NOT NULL,
    by      TEXT NOT NULL,
    PRIMARY KEY (org, name, version)
);

CREATE TABLE state_assignments (
    org     TEXT COLLATE "C" NOT NULL,
    name    TEXT COLLATE "C" NOT NULL,
    kind    TEXT COLLATE "C" NOT NULL,
    subject TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (org, name, kind, subject)
);
CREATE INDEX state_assignments_by_subject ON state_assignments (kind, subject);
