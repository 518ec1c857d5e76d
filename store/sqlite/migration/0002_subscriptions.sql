-- +goose Up
-- Subscriptions of Durable Streams. state is JSON that only protocol/durable/subscription reads.
CREATE TABLE subscriptions (
    id    TEXT PRIMARY KEY,
    state TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- How far a subscription has acknowledged a session: all events below offset acked.
CREATE TABLE acks (
    session      INTEGER NOT NULL,
    subscription TEXT    NOT NULL,
    acked        INTEGER NOT NULL,
    PRIMARY KEY (session, subscription)
) STRICT, WITHOUT ROWID;
CREATE INDEX acks_by_subscription ON acks (subscription);
