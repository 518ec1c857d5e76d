-- +goose Up
-- What lists are sorted by, and the figures of their rows. NULL in active: no event of a
-- conversation yet.
ALTER TABLE sessions
    ADD COLUMN active    bigint,                                        -- when the session was last active
    ADD COLUMN activity  bigint NOT NULL DEFAULT 0,                     -- active, above it those that run, above these those that wait
    ADD COLUMN title_key text   COLLATE "C" NOT NULL DEFAULT '',        -- the title in lower case, or the id
    ADD COLUMN totals_at bigint NOT NULL DEFAULT 0,                     -- the events before this offset are in what follows
    ADD COLUMN tokens    bigint NOT NULL DEFAULT 0,
    ADD COLUMN cost      bigint NOT NULL DEFAULT 0,                     -- in millionths of a dollar
    ADD COLUMN duration  bigint NOT NULL DEFAULT 0,                     -- of the recording, in milliseconds
    ADD COLUMN failures  bigint NOT NULL DEFAULT 0,                     -- of tools
    ADD COLUMN totals    text;                                          -- JSON object, the row of a list
UPDATE sessions SET active = h.updated, activity = h.updated,
    title_key = lower(CASE WHEN title = '' THEN id ELSE left(title, 60) END)
FROM heads h WHERE h.session = gen AND kind = 'session';
CREATE INDEX sessions_by_activity  ON sessions (activity, gen)  WHERE kind = 'session' AND deleted IS NULL;
CREATE INDEX sessions_by_title_key ON sessions (title_key, gen) WHERE kind = 'session' AND deleted IS NULL;
CREATE INDEX sessions_by_tokens    ON sessions (tokens, gen)    WHERE kind = 'session' AND deleted IS NULL;
CREATE INDEX sessions_by_cost      ON sessions (cost, gen)      WHERE kind = 'session' AND deleted IS NULL;
CREATE INDEX sessions_by_duration  ON sessions (duration, gen)  WHERE kind = 'session' AND deleted IS NULL;
CREATE INDEX sessions_by_failures  ON sessions (failures, gen)  WHERE kind = 'session' AND deleted IS NULL;
