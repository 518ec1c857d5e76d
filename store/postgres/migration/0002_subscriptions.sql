-- +goose Up
-- Subscriptions of Durable Streams. state is JSON that only protocol/durable/subscription reads.
CREATE TABLE subscriptions (
    id    text COLLATE "C" PRIMARY KEY,
    state bytea NOT NULL
);

-- How far a subscription has acknowledged a session: all events below offset acked.
CREATE TABLE acks (
    session      bigint NOT NULL,
    subscription text COLLATE "C" NOT NULL,
    acked        bigint NOT NULL,
    PRIMARY KEY (session, subscription)
);
CREATE INDEX acks_by_subscription ON acks (subscription);
