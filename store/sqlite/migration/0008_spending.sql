-- +goose Up
-- JSON of what the runs of a session may use together, and of what they have used; null for
-- no limit, and for nothing.
ALTER TABLE sessions ADD COLUMN budget TEXT;
ALTER TABLE sessions ADD COLUMN spent TEXT;
-- What the runs in all sessions of an owner have used in a day (2026-11-24) or a month
-- (2026-11), and how often the budget of that period was granted again.
CREATE TABLE spending (
    owner   TEXT NOT NULL,
    period  TEXT NOT NULL,
    tokens  INTEGER NOT NULL DEFAULT 0,
    usd     REAL NOT NULL DEFAULT 0,
    turns   INTEGER NOT NULL DEFAULT 0,
    seconds REAL NOT NULL DEFAULT 0,
    grants  INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (owner, period)
) STRICT, WITHOUT ROWID;
