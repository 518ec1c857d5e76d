-- +goose Up
-- JSON of what the runs of a session may use together, and of what they have used; null for
-- no limit, and for nothing.
ALTER TABLE sessions ADD COLUMN budget text;
ALTER TABLE sessions ADD COLUMN spent text;
-- What the runs in all sessions of an owner have used in a day (2026-11-24) or a month
-- (2026-11), and how often the budget of that period was granted again.
CREATE TABLE spending (
    owner   text COLLATE "C" NOT NULL,
    period  text COLLATE "C" NOT NULL,
    tokens  bigint NOT NULL DEFAULT 0,
    usd     double precision NOT NULL DEFAULT 0,
    turns   bigint NOT NULL DEFAULT 0,
    seconds double precision NOT NULL DEFAULT 0,
    grants  bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (owner, period)
);
