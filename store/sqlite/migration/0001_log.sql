-- +goose Up
-- 'TPDK': how we know our own files.
PRAGMA application_id = 1414546507;

-- One row a session: its entry in the catalogue. gen is never used twice.
-- Times are milliseconds since 1970, ttl is in nanoseconds.
CREATE TABLE sessions (
    gen          INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT    NOT NULL UNIQUE,
    kind         TEXT    NOT NULL,
    created      INTEGER NOT NULL,
    title        TEXT    NOT NULL DEFAULT '',
    owner        TEXT    NOT NULL DEFAULT '',
    agent        TEXT    NOT NULL DEFAULT '',
    labels       TEXT,                          -- JSON object
    status       TEXT    NOT NULL DEFAULT '',
    runs         TEXT,                          -- JSON array of the open runs
    open_runs    INTEGER NOT NULL DEFAULT 0,
    resumable    INTEGER,                       -- of a cancelled session
    last_jump    INTEGER NOT NULL DEFAULT 0,    -- offset of the newest event that takes others back
    copy         INTEGER NOT NULL DEFAULT 0,    -- a fork that stands for itself
    closed       INTEGER NOT NULL DEFAULT 0,
    closed_by    TEXT,                          -- JSON, the producer that closed it
    parent       TEXT    NOT NULL DEFAULT '',   -- id of the session it was forked from
    fork_at      INTEGER NOT NULL DEFAULT 0,    -- events below this offset are inherited
    forks        INTEGER NOT NULL DEFAULT 0,    -- sessions forked from this one that are kept
    deleted      INTEGER,                       -- when; kept only because forks is not 0
    content_type TEXT    NOT NULL DEFAULT '',
    origin       TEXT    NOT NULL DEFAULT '',
    stream_seq   BLOB    NOT NULL DEFAULT x'',
    ttl          INTEGER NOT NULL DEFAULT 0,
    expires      INTEGER,
    touched      INTEGER NOT NULL,
    deadline     INTEGER                        -- when it expires as far as this row knows
) STRICT;
CREATE INDEX sessions_by_kind     ON sessions (kind);
CREATE INDEX sessions_by_owner    ON sessions (owner);
CREATE INDEX sessions_by_parent   ON sessions (parent);
CREATE INDEX sessions_by_deadline ON sessions (deadline) WHERE deadline IS NOT NULL;
CREATE INDEX sessions_running     ON sessions (open_runs) WHERE open_runs > 0;

-- What changes with every append, apart from the wide rows that do not.
CREATE TABLE heads (
    session INTEGER PRIMARY KEY,
    head    INTEGER NOT NULL,                   -- the offset that the next event gets
    updated INTEGER NOT NULL
) STRICT;

-- The log. pos is the order in which events of all sessions became durable.
CREATE TABLE events (
    pos     INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    offset  INTEGER NOT NULL,
    event   NOT NULL                            -- TEXT, the envelope; of a stream BLOB, the message
);

-- Where the events of a session are: one row for up to 256 of them, of offset
-- first up to next. All below pos 'placed' of facts are here; of those above it,
-- the newest of a session may not be.
CREATE TABLE places (
    session INTEGER NOT NULL,
    first   INTEGER NOT NULL,
    next    INTEGER NOT NULL,
    pos     TEXT    NOT NULL,                   -- JSON array, the pos of each event
    UNIQUE (session, first)
) STRICT;

-- Where the inherited events of a fork are: one row an ancestor.
CREATE TABLE lineage (
    session     INTEGER NOT NULL,
    from_offset INTEGER NOT NULL,
    to_offset   INTEGER NOT NULL,
    ancestor    INTEGER NOT NULL,
    PRIMARY KEY (session, from_offset)
) STRICT, WITHOUT ROWID;

-- The newest accepted append of each producer.
CREATE TABLE producers (
    session INTEGER NOT NULL,
    id      TEXT    NOT NULL,
    epoch   INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    first   INTEGER NOT NULL,
    next    INTEGER NOT NULL,
    PRIMARY KEY (session, id)
) STRICT, WITHOUT ROWID;

-- Deleted sessions whose events are still to be removed, a few at a time.
CREATE TABLE purges (session INTEGER PRIMARY KEY) STRICT;

CREATE TABLE facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO facts VALUES
    ('pos', 0),    -- no event has a pos below this that was not given out before
    ('placed', 0), -- see places
    ('clean', 1);  -- whether the folder was closed in good order

-- The rest is for people with sqlite3; the program does not use it.
CREATE VIEW catalogue AS
SELECT s.id, s.kind, s.title, s.owner, s.agent, s.status, h.head, s.closed,
       strftime('%Y-%m-%dT%H:%M:%fZ', s.created / 1000.0, 'unixepoch') AS created,
       strftime('%Y-%m-%dT%H:%M:%fZ', h.updated / 1000.0, 'unixepoch') AS updated,
       s.parent, s.fork_at, s.labels, s.runs, s.gen
FROM sessions s JOIN heads h ON h.session = s.gen
WHERE s.deleted IS NULL;

-- Events that are not in places.
CREATE VIEW fresh AS
SELECT e.session, e.offset, e.pos, e.event
FROM events e
WHERE e.pos > (SELECT value FROM facts WHERE name = 'placed')
  AND e.offset >= coalesce((SELECT p.next FROM places p WHERE p.session = e.session ORDER BY p.first DESC LIMIT 1), 0);

-- Every event of every session, those that a fork inherited included.
CREATE VIEW log AS
SELECT id AS session, offset,
       json_extract(event, '$.type') AS type,
       json_extract(event, '$.timestamp') AS timestamp,
       json_extract(event, '$.channel') AS channel,
       json_extract(event, '$.thread') AS thread,
       json_extract(event, '$.invocation') AS invocation,
       json_extract(event, '$.actor') AS actor,
       json_extract(event, '$.data') AS data,
       pos, event
FROM (
    SELECT s.id, e.offset, e.event, e.pos
    FROM sessions s
    JOIN places p ON p.session = s.gen
    CROSS JOIN json_each(p.pos) j
    CROSS JOIN events e ON e.pos = j.value
    WHERE s.kind = 'session' AND s.deleted IS NULL
    UNION ALL
    SELECT s.id, e.offset, e.event, e.pos
    FROM sessions s
    JOIN fresh e ON e.session = s.gen
    WHERE s.kind = 'session' AND s.deleted IS NULL
    UNION ALL
    SELECT s.id, e.offset, e.event, e.pos
    FROM sessions s
    JOIN lineage l ON l.session = s.gen
    JOIN places p ON p.session = l.ancestor AND p.first < l.to_offset AND p.next > l.from_offset
    CROSS JOIN json_each(p.pos) j
    CROSS JOIN events e ON e.pos = j.value AND e.offset >= l.from_offset AND e.offset < l.to_offset
    WHERE s.kind = 'session' AND s.deleted IS NULL
    UNION ALL
    SELECT s.id, e.offset, e.event, e.pos
    FROM sessions s
    JOIN lineage l ON l.session = s.gen
    JOIN fresh e ON e.session = l.ancestor AND e.offset >= l.from_offset AND e.offset < l.to_offset
    WHERE s.kind = 'session' AND s.deleted IS NULL
);
