-- Who may do what, and what is remembered of it. Everything that is changed under somebody's eyes has a version: who changes
-- it says which one he has seen.

-- Organisations own users, groups and minions. A minion without a row in minion_orgs belongs to `default`.
CREATE TABLE organisations (
    name        TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    description TEXT NOT NULL,
    created     BIGINT NOT NULL,
    version     BIGINT NOT NULL
);
INSERT INTO organisations VALUES ('default', '', CAST(extract(epoch FROM now()) * 1000000 AS BIGINT), 1);

CREATE TABLE minion_orgs (
    minion TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    org    TEXT COLLATE "C" NOT NULL
);
CREATE INDEX minion_orgs_by_org ON minion_orgs (org, minion);

-- `password` is a hash in PHC form; empty for those whom another system vouches for.
CREATE TABLE users (
    name      TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    org       TEXT COLLATE "C" NOT NULL,
    auth      TEXT NOT NULL,
    password  TEXT,
    full_name TEXT NOT NULL,
    disabled  BIGINT NOT NULL,
    created   BIGINT NOT NULL,
    version   BIGINT NOT NULL
);
CREATE INDEX users_by_org ON users (org, name);

-- `role`, or `role:group`; the group stands by itself, too, so that its grants go with it.
CREATE TABLE grants (
    user_name  TEXT COLLATE "C" NOT NULL,
    role       TEXT COLLATE "C" NOT NULL,
    group_name TEXT COLLATE "C",
    PRIMARY KEY (user_name, role)
);
CREATE INDEX grants_by_group ON grants (group_name, user_name) WHERE group_name IS NOT NULL;

-- Members by name, and by a target expression that is resolved when it is asked for.
CREATE TABLE groups (
    name        TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    org         TEXT COLLATE "C" NOT NULL,
    description TEXT NOT NULL,
    target_type TEXT,
    target      TEXT,
    created     BIGINT NOT NULL,
    version     BIGINT NOT NULL
);
CREATE INDEX groups_by_org ON groups (org, name);

CREATE TABLE group_members (
    group_name TEXT COLLATE "C" NOT NULL,
    minion     TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (group_name, minion)
);
CREATE INDEX group_members_by_minion ON group_members (minion, group_name);

-- Sessions and API tokens. The secret itself is never stored: `hash` is its SHA-256.
CREATE TABLE tokens (
    id        TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    hash      BYTEA NOT NULL,
    kind      TEXT NOT NULL,
    user_name TEXT COLLATE "C" NOT NULL,
    auth      TEXT NOT NULL,
    groups    TEXT NOT NULL,
    name      TEXT NOT NULL,
    scope     TEXT NOT NULL,
    created   BIGINT NOT NULL,
    expires   BIGINT NOT NULL,
    last_used BIGINT,
    origin    TEXT NOT NULL
);
CREATE UNIQUE INDEX tokens_by_hash ON tokens (hash);
CREATE INDEX tokens_by_user ON tokens (user_name, id);
CREATE INDEX tokens_by_expiry ON tokens (expires, id);

-- Subscriptions of events by HTTP. `cursor` is the number of the last event that was dealt with.
CREATE TABLE webhooks (
    id         BIGINT PRIMARY KEY,
    name       TEXT NOT NULL,
    url        TEXT NOT NULL,
    secret     TEXT NOT NULL,
    tag        TEXT NOT NULL,
    jid        TEXT COLLATE "C",
    action     BIGINT,
    minion     TEXT,
    owner      TEXT NOT NULL,
    active     BIGINT NOT NULL,
    cursor     BIGINT NOT NULL,
    failures   BIGINT NOT NULL,
    next_try   BIGINT,
    last_error TEXT,
    created    BIGINT NOT NULL,
    version    BIGINT NOT NULL
);

-- Events that a webhook could not be given.
CREATE TABLE webhook_dead (
    webhook  BIGINT NOT NULL,
    number   BIGINT NOT NULL,
    at       BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    error    TEXT NOT NULL,
    PRIMARY KEY (webhook, number)
);
CREATE INDEX webhook_dead_by_age ON webhook_dead (at, webhook, number);

-- Requests with an idempotency key. `status` is empty while the first of them is being answered.
CREATE TABLE requests (
    user_name   TEXT COLLATE "C" NOT NULL,
    key         TEXT COLLATE "C" NOT NULL,
    fingerprint BYTEA NOT NULL,
    at          BIGINT NOT NULL,
    status      BIGINT,
    headers     TEXT NOT NULL,
    encoding    BIGINT NOT NULL,
    body        BYTEA NOT NULL,
    PRIMARY KEY (user_name, key)
);
CREATE INDEX requests_by_age ON requests (at, user_name, key);

-- Runner calls: jobs that the server itself carries out.
CREATE TABLE calls (
    jid       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    fun       TEXT NOT NULL,
    user_name TEXT NOT NULL,
    created   BIGINT NOT NULL,
    ended     BIGINT,
    success   BIGINT,
    encoding  BIGINT NOT NULL,
    body      BYTEA NOT NULL
);
CREATE INDEX calls_open ON calls (jid) WHERE ended IS NULL;

-- What minions say about their functions, once for each kind of minion. `words` is what is searched, in small letters.
CREATE TABLE functions (
    name    TEXT COLLATE "C" NOT NULL,
    kind    TEXT COLLATE "C" NOT NULL,
    doc     TEXT NOT NULL,
    argspec TEXT NOT NULL,
    at      BIGINT NOT NULL,
    words   TEXT NOT NULL,
    PRIMARY KEY (name, kind)
);
CREATE INDEX functions_by_kind ON functions (kind, name);

-- What clients of salt-api keep on the server, by bank and key.
CREATE TABLE banks (
    bank     TEXT COLLATE "C" NOT NULL,
    key      TEXT COLLATE "C" NOT NULL,
    encoding BIGINT NOT NULL,
    body     BYTEA NOT NULL,
    PRIMARY KEY (bank, key)
);

-- Each entry's hash covers the one before it; the head is the last. Entries that are there get theirs in this same step.
ALTER TABLE audit ADD COLUMN hash BYTEA NOT NULL DEFAULT '';
ALTER TABLE audit ALTER COLUMN hash DROP DEFAULT;
-- What is looked up by is short, or PostgreSQL cannot index it.
UPDATE audit SET who = substr(who, 1, 250) WHERE length(who) > 250;
UPDATE audit SET subject = substr(subject, 1, 250) WHERE length(subject) > 250;
CREATE INDEX audit_by_who ON audit (who, number);
CREATE INDEX audit_by_subject ON audit (subject, number);
CREATE TABLE audit_head (
    place  BIGINT NOT NULL PRIMARY KEY,
    number BIGINT NOT NULL,
    hash   BYTEA NOT NULL
);
INSERT INTO audit_head VALUES (0, 0, decode(repeat('00', 32), 'hex'));
DELETE FROM counters WHERE name = 'audit';
