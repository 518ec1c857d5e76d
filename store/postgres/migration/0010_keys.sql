-- +goose Up
-- As in SQLite, so that both have the same columns. This store does not encrypt yet.
ALTER TABLE sessions ADD COLUMN key bytea;
ALTER TABLE sessions ADD COLUMN sealed bytea;
ALTER TABLE sessions ADD COLUMN sealed_totals bytea;
