-- +goose Up
-- What lists are sorted by, and the figures of their rows. NULL in active: no event of a
-- conversation yet.
ALTER TABLE sessions ADD COLUMN active    INTEGER;                     -- when the session was last active
ALTER TABLE sessions ADD COLUMN activity  INTEGER NOT NULL DEFAULT 0;  -- active, above it those that run, above these those that wait
ALTER TABLE sessions ADD COLUMN title_key TEXT    NOT NULL DEFAULT ''; -- the title in lower case, or the id
ALTER TABLE sessions ADD COLUMN totals_at INTEGER NOT NULL DEFAULT 0;  -- the events before this offset are in what follows
ALTER TABLE sessions ADD COLUMN tokens    INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN cost      INTEGER NOT NULL DEFAULT 0;  -- in millionths of a dollar
ALTER TABLE sessions ADD COLUMN duration  INTEGER NOT NULL DEFAULT 0;  -- of the recording, in milliseconds
ALTER TABLE sessions ADD COLUMN failures  INTEGER NOT NULL DEFAULT 0;  -- of tools
ALTER TABLE sessions ADD COLUMN totals    TEXT;                        -- JSON object, the row of a list
UPDATE sessions SET active = (SELECT updated FROM heads WHERE session = gen),
    activity = (SELECT updated FROM heads WHERE session = gen),
    title_key = lower(CASE WHEN title = '' THEN id ELSE substr(title, 1, 60) END)
WHERE kind = 'session';
CREATE INDEX sessions_by_activity  ON sessions (activity)  WHERE kind = 'session' AND deleted IS NULL;
CREATE INDEX sessions_by_title_key ON sessions (title_key) WHERE kind = 'session' AND deleted IS NULL;
CREATE INDEX sessions_by_tokens    ON sessions (tokens)    WHERE kind = 'session' AND deleted IS NULL;
CREATE INDEX sessions_by_cost      ON sessions (cost)      WHERE kind = 'session' AND deleted IS NULL;
CREATE INDEX sessions_by_duration  ON sessions (duration)  WHERE kind = 'session' AND deleted IS NULL;
CREATE INDEX sessions_by_failures  ON sessions (failures)  WHERE kind = 'session' AND deleted IS NULL;
