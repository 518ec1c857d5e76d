-- +goose Up
-- JSON array of the questions for which open runs wait; null for none.
ALTER TABLE sessions ADD COLUMN waiting text;
CREATE INDEX sessions_asking ON sessions (gen) WHERE waiting IS NOT NULL;
