-- What is done again and again, what became of each of its instants, and when restricted work may be done on minions.

-- `what`, `person` and `policy` are JSON. `next` is the instant that is to be accounted for next; nothing: there is none.
CREATE TABLE recurring (
    id             INTEGER PRIMARY KEY,
    name           TEXT NOT NULL,
    org            TEXT NOT NULL,
    entity_kind    TEXT NOT NULL,
    entity         TEXT NOT NULL,
    owner          TEXT NOT NULL,
    person         TEXT NOT NULL,
    creator        TEXT NOT NULL,
    what           TEXT NOT NULL,
    cron           TEXT NOT NULL,
    zone           TEXT NOT NULL,
    seed           TEXT NOT NULL,
    active         INTEGER NOT NULL,
    skip_next      INTEGER NOT NULL,
    spread         INTEGER NOT NULL,
    overlap        TEXT NOT NULL,
    catch_up       TEXT NOT NULL,
    catch_up_limit INTEGER NOT NULL,
    in_window      INTEGER NOT NULL,
    deadline       INTEGER,
    policy         TEXT NOT NULL,
    created        INTEGER NOT NULL,
    changed        INTEGER NOT NULL,
    version        INTEGER NOT NULL,
    next           INTEGER
) STRICT;
CREATE UNIQUE INDEX recurring_by_entity ON recurring (entity_kind, entity, name);
CREATE INDEX recurring_by_org ON recurring (org, id);
CREATE INDEX recurring_by_owner ON recurring (owner, id);
CREATE INDEX recurring_next ON recurring (next, id) WHERE active = 1 AND next IS NOT NULL;

-- One row for each instant that was planned. `digested` is 0 while it is to be told how it ended.
CREATE TABLE fires (
    recurring INTEGER NOT NULL,
    planned   INTEGER NOT NULL,
    outcome   TEXT NOT NULL,
    why       TEXT NOT NULL,
    at        INTEGER NOT NULL,
    action    INTEGER,
    launch    INTEGER,
    minions   INTEGER NOT NULL,
    skipped   INTEGER NOT NULL,
    detail    TEXT NOT NULL,
    late      INTEGER NOT NULL,
    digested  INTEGER NOT NULL,
    PRIMARY KEY (recurring, planned)
) STRICT, WITHOUT ROWID;
CREATE INDEX fires_by_age ON fires (at, recurring, planned);
CREATE INDEX fires_undigested ON fires (recurring, planned) WHERE digested = 0;

ALTER TABLE actions ADD COLUMN recurring INTEGER;
CREATE INDEX actions_recurring ON actions (recurring, id) WHERE recurring IS NOT NULL AND ended IS NULL;
ALTER TABLE launches ADD COLUMN recurring INTEGER;
CREATE INDEX launches_recurring ON launches (recurring, id) WHERE recurring IS NOT NULL AND ended IS NULL;

-- Calendars, the schedules that are made of them, and whom those are assigned to.
CREATE TABLE calendars (
    org       TEXT NOT NULL,
    name      TEXT NOT NULL,
    url       TEXT,
    ical      TEXT NOT NULL,
    zone      TEXT NOT NULL,
    refresh   INTEGER,
    refreshed INTEGER,
    tried     INTEGER,
    error     TEXT,
    created   INTEGER NOT NULL,
    changed   INTEGER NOT NULL,
    version   INTEGER NOT NULL,
    PRIMARY KEY (org, name)
) STRICT;

CREATE TABLE schedules (
    org      TEXT NOT NULL,
    name     TEXT NOT NULL,
    kind     TEXT NOT NULL,
    calendar TEXT,
    away     TEXT NOT NULL,
    created  INTEGER NOT NULL,
    version  INTEGER NOT NULL,
    PRIMARY KEY (org, name)
) STRICT;

CREATE TABLE schedule_assignments (
    kind     TEXT NOT NULL,
    subject  TEXT NOT NULL,
    org      TEXT NOT NULL,
    schedule TEXT NOT NULL,
    PRIMARY KEY (kind, subject, org, schedule)
) STRICT, WITHOUT ROWID;
CREATE INDEX schedule_assignments_by_schedule ON schedule_assignments (org, schedule);

-- Minions whose windows somebody has opened by hand.
CREATE TABLE maintenance_modes (
    minion TEXT NOT NULL PRIMARY KEY,
    by     TEXT NOT NULL,
    why    TEXT NOT NULL,
    since  INTEGER NOT NULL,
    until  INTEGER
) STRICT;
