-- +goose Up
-- JSON array of the inputs that wait; null for none.
ALTER TABLE sessions ADD COLUMN inputs text;
CREATE INDEX sessions_waiting ON sessions (gen) WHERE inputs IS NOT NULL;
