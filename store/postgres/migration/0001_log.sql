-- +goose Up
-- The server that owns these tables: at most one. epoch counts the owners. Each commit
-- checks the epoch of its server in its own transaction, so that an owner that was
-- paused writes nothing after another one has taken over.
CREATE TABLE owner (
    id      integer PRIMARY KEY CHECK (id = 1),
    epoch   bigint      NOT NULL,
    name    text        NOT NULL,          -- of the process: host and number
    until   timestamptz NOT NULL,          -- end of the lease, by the clock of this database
    commits bigint      NOT NULL           -- number of the newest commit of this epoch
);
INSERT INTO owner VALUES (1, 0, '', to_timestamp(0), 0);

-- One row a session: its entry in the catalogue. gen is never used twice. Times are
-- milliseconds since 1970, ttl is in nanoseconds. Texts that come from outside have the
-- bytes that the type text cannot hold escaped with U+001A.
CREATE TABLE sessions (
    gen          bigint PRIMARY KEY,
    id           text COLLATE "C" NOT NULL UNIQUE,
    kind         text     NOT NULL,
    created      bigint   NOT NULL,
    title        text     NOT NULL DEFAULT '',
    owner        text     NOT NULL DEFAULT '',
    agent        text     NOT NULL DEFAULT '',
    labels       text,                     -- JSON object
    status       text     NOT NULL DEFAULT '',
    runs         text,                     -- JSON array of the open runs
    open_runs    bigint   NOT NULL DEFAULT 0,
    resumable    boolean,                  -- of a cancelled session
    last_jump    bigint   NOT NULL DEFAULT 0, -- offset of the newest event that takes others back
    copy         boolean  NOT NULL DEFAULT false, -- a fork that stands for itself
    closed       boolean  NOT NULL DEFAULT false,
    closed_by    text,                     -- JSON, the producer that closed it
    parent       text COLLATE "C" NOT NULL DEFAULT '', -- id of the session it was forked from
    fork_at      bigint   NOT NULL DEFAULT 0, -- events below this offset are inherited
    forks        bigint   NOT NULL DEFAULT 0, -- sessions forked from this one that are kept
    deleted      bigint,                   -- when; kept only because forks is not 0
    content_type text     NOT NULL DEFAULT '',
    origin       text     NOT NULL DEFAULT '',
    stream_seq   bytea    NOT NULL DEFAULT '',
    ttl          bigint   NOT NULL DEFAULT 0,
    expires      bigint,
    touched      bigint   NOT NULL,
    deadline     bigint                    -- when it expires as far as this row knows
);
CREATE INDEX sessions_by_kind     ON sessions (kind, gen);
CREATE INDEX sessions_by_owner    ON sessions (owner);
CREATE INDEX sessions_by_parent   ON sessions (parent);
CREATE INDEX sessions_by_deadline ON sessions (deadline) WHERE deadline IS NOT NULL;
CREATE INDEX sessions_running     ON sessions (open_runs) WHERE open_runs > 0;

-- What changes with every append, apart from the wide rows that do not. The free space
-- in its pages lets an update stay in its page, without a change of the index.
CREATE TABLE heads (
    session bigint PRIMARY KEY,
    head    bigint NOT NULL,               -- the offset that the next event gets
    updated bigint NOT NULL
) WITH (fillfactor = 50);

-- The log: the envelope of an event as JSON, or the message of a stream. It is bytea,
-- because neither text nor jsonb can hold the character U+0000.
CREATE TABLE events (
    session  bigint NOT NULL,
    "offset" bigint NOT NULL,
    event    bytea  NOT NULL,
    PRIMARY KEY (session, "offset")
);

-- Where the inherited events of a fork are: one row an ancestor.
CREATE TABLE lineage (
    session     bigint NOT NULL,
    from_offset bigint NOT NULL,
    to_offset   bigint NOT NULL,
    ancestor    bigint NOT NULL,
    PRIMARY KEY (session, from_offset)
);
CREATE INDEX lineage_by_ancestor ON lineage (ancestor);

-- The newest accepted append of each producer.
CREATE TABLE producers (
    session bigint NOT NULL,
    id      text COLLATE "C" NOT NULL,
    epoch   bigint NOT NULL,
    seq     bigint NOT NULL,
    first   bigint NOT NULL,
    next    bigint NOT NULL,
    PRIMARY KEY (session, id)
) WITH (fillfactor = 70);

-- Deleted sessions whose events are still to be removed, a few at a time.
CREATE TABLE purges (session bigint PRIMARY KEY);

CREATE TABLE facts (name text PRIMARY KEY, value bigint NOT NULL);
INSERT INTO facts VALUES
    ('gen', 0),     -- no session has a gen above this
    ('clean', 1),   -- whether the newest owner stopped in good order
    ('erased', 0),  -- number of the newest erasure
    ('cleaned', 0); -- observers have removed their copies for the erasures up to this one

-- The search index: it can be created from the log at any time.
CREATE TABLE docs (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session    bigint NOT NULL,
    "offset"   bigint NOT NULL,
    kind       text   NOT NULL,
    role       text   NOT NULL,
    thread     text   NOT NULL,
    invocation text   NOT NULL,
    time       bigint NOT NULL,
    text       text   NOT NULL,
    words      tsvector NOT NULL
);
CREATE INDEX docs_by_session ON docs (session, "offset");
CREATE INDEX docs_by_word ON docs USING gin (words);
CREATE TABLE indexed (
    session bigint PRIMARY KEY,
    seen    bigint NOT NULL,
    resume  bigint NOT NULL,
    base    bigint NOT NULL
);

-- The rest is for people with psql; the program does not use it.
CREATE VIEW catalogue AS
SELECT s.id, s.kind, s.title, s.owner, s.agent, s.status, h.head, s.closed,
       to_timestamp(s.created / 1000.0) AS created, to_timestamp(h.updated / 1000.0) AS updated,
       s.parent, s.fork_at, s.labels, s.runs, s.gen
FROM sessions s JOIN heads h ON h.session = s.gen
WHERE s.deleted IS NULL;

-- Every event of every session, those that a fork inherited included.
CREATE VIEW log AS
SELECT s.id AS session, e."offset", convert_from(e.event, 'UTF8') AS event
FROM sessions s JOIN events e ON e.session = s.gen
WHERE s.kind = 'session' AND s.deleted IS NULL
UNION ALL
SELECT s.id, e."offset", convert_from(e.event, 'UTF8')
FROM sessions s
JOIN lineage l ON l.session = s.gen
JOIN events e ON e.session = l.ancestor AND e."offset" >= l.from_offset AND e."offset" < l.to_offset
WHERE s.kind = 'session' AND s.deleted IS NULL;
