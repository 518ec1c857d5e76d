-- +goose Up
-- Diagrams of workflows. A name has versions; the one with the highest number is the
-- current one. The digest is that of the diagram, so a version never changes.
CREATE TABLE workflows (
    name    TEXT    NOT NULL,
    digest  TEXT    NOT NULL,
    number  INTEGER NOT NULL,
    title   TEXT    NOT NULL,
    added   INTEGER NOT NULL,
    size    INTEGER NOT NULL,
    diagram BLOB    NOT NULL,
    PRIMARY KEY (name, digest)
) STRICT;
CREATE UNIQUE INDEX workflow_numbers ON workflows (name, number);
