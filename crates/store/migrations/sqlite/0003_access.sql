-- Who may do what, and what is remembered of it. Everything that is changed under somebody's eyes has a version: who changes
-- it says which one he has seen.

-- Organisations own users, groups and minions. A minion without a row in minion_orgs belongs to `default`.
CREATE TABLE organisations (
    name        TEXT NOT NULL PRIMARY KEY,
    description TEXT NOT NULL,
    created     INTEGER NOT NULL,
    version     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO organisations VALUES ('default', '', unixepoch() * 1000000, 1);

CREATE TABLE minion_orgs (
    minion TEXT NOT NULL PRIMARY KEY,
    org    TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX minion_orgs_by_org ON minion_orgs (org, minion);

-- `password` is a hash in PHC form; empty for those whom another system vouches for.
CREATE TABLE users (
    name      TEXT NOT NULL PRIMARY KEY,
    org       TEXT NOT NULL,
    auth      TEXT NOT NULL,
    password  TEXT,
    full_name TEXT NOT NULL,
    disabled  INTEGER NOT NULL,
    created   INTEGER NOT NULL,
    version   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX users_by_org ON users (org, name);

-- `role`, or `role:group`; the group stands by itself, too, so that its grants go with it.
CREATE TABLE grants (
    user_name  TEXT NOT NULL,
    role       TEXT NOT NULL,
    group_name TEXT,
    PRIMARY KEY (user_name, role)
) STRICT, WITHOUT ROWID;
CREATE INDEX grants_by_group ON grants (group_name, user_name) WHERE group_name IS NOT NULL;

-- Members by name, and by a target expression that is resolved when it is asked for.
CREATE TABLE groups (
    name        TEXT NOT NULL PRIMARY KEY,
    org         TEXT NOT NULL,
    description TEXT NOT NULL,
    target_type TEXT,
    target      TEXT,
    created     INTEGER NOT NULL,
    version     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX groups_by_org ON groups (org, name);

CREATE TABLE group_members (
    group_name TEXT NOT NULL,
    minion     TEXT NOT NULL,
    PRIMARY KEY (group_name, minion)
) STRICT, WITHOUT ROWID;
CREATE INDEX group_members_by_minion ON group_members (minion, group_name);

-- Sessions and API tokens. The secret itself is never stored: `hash` is its SHA-256.
CREATE TABLE tokens (
    id        TEXT NOT NULL PRIMARY KEY,
    hash      BLOB NOT NULL,
    kind      TEXT NOT NULL,
    user_name TEXT NOT NULL,
    auth      TEXT NOT NULL,
    groups    TEXT NOT NULL,
    name      TEXT NOT NULL,
    scope     TEXT NOT NULL,
    created   INTEGER NOT NULL,
    expires   INTEGER NOT NULL,
    last_used INTEGER,
    origin    TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX tokens_by_hash ON tokens (hash);
CREATE INDEX tokens_by_user ON tokens (user_name, id);
CREATE INDEX tokens_by_expiry ON tokens (expires, id);

-- Subscriptions of events by HTTP. `cursor` is the number of the last event that was dealt with.
CREATE TABLE webhooks (
    id         INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    url        TEXT NOT NULL,
    secret     TEXT NOT NULL,
    tag        TEXT NOT NULL,
    jid        TEXT,
    action     INTEGER,
    minion     TEXT,
    owner      TEXT NOT NULL,
    active     INTEGER NOT NULL,
    cursor     INTEGER NOT NULL,
    failures   INTEGER NOT NULL,
    next_try   INTEGER,
    last_error TEXT,
    created    INTEGER NOT NULL,
    version    INTEGER NOT NULL
) STRICT;

-- Events that a webhook could not be given.
CREATE TABLE webhook_dead (
    webhook  INTEGER NOT NULL,
    number   INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    error    TEXT NOT NULL,
    PRIMARY KEY (webhook, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_dead_by_age ON webhook_dead (at, webhook, number);

-- Requests with an idempotency key. `status` is empty while the first of them is being answered.
CREATE TABLE requests (
    user_name   TEXT NOT NULL,
    key         TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    at          INTEGER NOT NULL,
    status      INTEGER,
    headers     TEXT NOT NULL,
    encoding    INTEGER NOT NULL,
    body        BLOB NOT NULL,
    PRIMARY KEY (user_name, key)
) STRICT;
CREATE INDEX requests_by_age ON requests (at, user_name, key);

-- Runner calls: jobs that the server itself carries out.
CREATE TABLE calls (
    jid       TEXT NOT NULL PRIMARY KEY,
    fun       TEXT NOT NULL,
    user_name TEXT NOT NULL,
    created   INTEGER NOT NULL,
    ended     INTEGER,
    success   INTEGER,
    encoding  INTEGER NOT NULL,
    body      BLOB NOT NULL
) STRICT;
CREATE INDEX calls_open ON calls (jid) WHERE ended IS NULL;

-- What minions say about their functions, once for each kind of minion. `words` is what is searched, in small letters.
CREATE TABLE functions (
    name    TEXT NOT NULL,
    kind    TEXT NOT NULL,
    doc     TEXT NOT NULL,
    argspec TEXT NOT NULL,
    at      INTEGER NOT NULL,
    words   TEXT NOT NULL,
    PRIMARY KEY (name, kind)
) STRICT;
CREATE INDEX functions_by_kind ON functions (kind, name);

-- What clients of salt-api keep on the server, by bank and key.
CREATE TABLE banks (
    bank     TEXT NOT NULL,
    key      TEXT NOT NULL,
    encoding INTEGER NOT NULL,
    body     BLOB NOT NULL,
    PRIMARY KEY (bank, key)
) STRICT;

-- Each entry's hash covers the one before it; the head is the last. Entries that are there get theirs in this same step.
ALTER TABLE audit ADD COLUMN hash BLOB NOT NULL DEFAULT x'';
-- What is looked up by is short, or PostgreSQL cannot index it.
UPDATE audit SET who = substr(who, 1, 250) WHERE length(who) > 250;
UPDATE audit SET subject = substr(subject, 1, 250) WHERE length(subject) > 250;
CREATE INDEX audit_by_who ON audit (who, number);
CREATE INDEX audit_by_subject ON audit (subject, number);
CREATE TABLE audit_head (
    place  INTEGER NOT NULL PRIMARY KEY,
    number INTEGER NOT NULL,
    hash   BLOB NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO audit_head VALUES (0, 0, zeroblob(32));
DELETE FROM counters WHERE name = 'audit';
