-- +goose Up
-- The checksum of each event, see store.Sum. NULL: it was written before there were any.
ALTER TABLE events ADD COLUMN sum bigint;
-- What the next event is chained to, see store.Link.
ALTER TABLE heads ADD COLUMN link bigint NOT NULL DEFAULT 0;
