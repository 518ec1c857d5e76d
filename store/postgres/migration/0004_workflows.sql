-- +goose Up
-- Diagrams of workflows. A name has versions; the one with the highest number is the
-- current one. The digest is that of the diagram, so a version never changes.
CREATE TABLE workflows (
    name    text COLLATE "C" NOT NULL,
    digest  text COLLATE "C" NOT NULL,
    number  bigint NOT NULL,
    title   text   NOT NULL,
    added   bigint NOT NULL,
    size    bigint NOT NULL,
    diagram bytea  NOT NULL,
    PRIMARY KEY (name, digest)
);
CREATE UNIQUE INDEX workflow_numbers ON workflows (name, number);
