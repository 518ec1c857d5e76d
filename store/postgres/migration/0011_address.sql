-- +goose Up
-- address: where other servers reach the owner, '' if they cannot. key: the servers of this
-- database sign forwarded requests with it. A process that can read the key can also read and
-- write all sessions.
ALTER TABLE owner ADD COLUMN address text NOT NULL DEFAULT '';
ALTER TABLE owner ADD COLUMN key text NOT NULL DEFAULT gen_random_uuid()::text || gen_random_uuid()::text;
