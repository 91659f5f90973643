-- What is done again and again, what became of each of its instants, and when restricted work may be done on minions.

-- `what`, `person` and `policy` are JSON. `next` is the instant that is to be accounted for next; nothing: there is none.
CREATE TABLE recurring (
    id             BIGINT PRIMARY KEY,
    name           TEXT COLLATE "C" NOT NULL,
    org            TEXT COLLATE "C" NOT NULL,
    entity_kind    TEXT COLLATE "C" NOT NULL,
    entity         TEXT COLLATE "C" NOT NULL,
    owner          TEXT COLLATE "C" NOT NULL,
    person         TEXT NOT NULL,
    creator        TEXT NOT NULL,
    what           TEXT NOT NULL,
    cron           TEXT NOT NULL,
    zone           TEXT NOT NULL,
    seed           TEXT NOT NULL,
    active         BIGINT NOT NULL,
    skip_next      BIGINT NOT NULL,
    spread         BIGINT NOT NULL,
    overlap        TEXT NOT NULL,
    catch_up       TEXT NOT NULL,
    catch_up_limit BIGINT NOT NULL,
    in_window      BIGINT NOT NULL,
    deadline       BIGINT,
    policy         TEXT NOT NULL,
    created        BIGINT NOT NULL,
    changed        BIGINT NOT NULL,
    version        BIGINT NOT NULL,
    next           BIGINT
);
CREATE UNIQUE INDEX recurring_by_entity ON recurring (entity_kind, entity, name);
CREATE INDEX recurring_by_org ON recurring (org, id);
CREATE INDEX recurring_by_owner ON recurring (owner, id);
CREATE INDEX recurring_next ON recurring (next, id) WHERE active = 1 AND next IS NOT NULL;

-- One row for each instant that was planned. `digested` is 0 while it is to be told how it ended.
CREATE TABLE fires (
    recurring BIGINT NOT NULL,
    planned   BIGINT NOT NULL,
    outcome   TEXT COLLATE "C" NOT NULL,
    why       TEXT NOT NULL,
    at        BIGINT NOT NULL,
    action    BIGINT,
    launch    BIGINT,
    minions   BIGINT NOT NULL,
    skipped   BIGINT NOT NULL,
    detail    TEXT NOT NULL,
    late      BIGINT NOT NULL,
    digested  BIGINT NOT NULL,
    PRIMARY KEY (recurring, planned)
);
CREATE INDEX fires_by_age ON fires (at, recurring, planned);
CREATE INDEX fires_undigested ON fires (recurring, planned) WHERE digested = 0;

ALTER TABLE actions ADD COLUMN recurring BIGINT;
CREATE INDEX actions_recurring ON actions (recurring, id) WHERE recurring IS NOT NULL AND ended IS NULL;
ALTER TABLE launches ADD COLUMN recurring BIGINT;
CREATE INDEX launches_recurring ON launches (recurring, id) WHERE recurring IS NOT NULL AND ended IS NULL;

-- Calendars, the schedules that are made of them, and whom those are assigned to.
CREATE TABLE calendars (
    org       TEXT COLLATE "C" NOT NULL,
    name      TEXT COLLATE "C" NOT NULL,
    url       TEXT,
    ical      TEXT NOT NULL,
    zone      TEXT NOT NULL,
    refresh   BIGINT,
    refreshed BIGINT,
    tried     BIGINT,
    error     TEXT,
    created   BIGINT NOT NULL,
    changed   BIGINT NOT NULL,
    version   BIGINT NOT NULL,
    PRIMARY KEY (org, name)
);

CREATE TABLE schedules (
    org      TEXT COLLATE "C" NOT NULL,
    name     TEXT COLLATE "C" NOT NULL,
    kind     TEXT NOT NULL,
    calendar TEXT,
    away     TEXT NOT NULL,
    created  BIGINT NOT NULL,
    version  BIGINT NOT NULL,
    PRIMARY KEY (org, name)
);

CREATE TABLE schedule_assignments (
    kind     TEXT COLLATE "C" NOT NULL,
    subject  TEXT COLLATE "C" NOT NULL,
    org      TEXT COLLATE "C" NOT NULL,
    schedule TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (kind, subject, org, schedule)
);
CREATE INDEX schedule_assignments_by_schedule ON schedule_assignments (org, schedule);

-- Minions whose windows somebody has opened by hand.
CREATE TABLE maintenance_modes (
    minion TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    by     TEXT NOT NULL,
    why    TEXT NOT NULL,
    since  BIGINT NOT NULL,
    until  BIGINT
);
