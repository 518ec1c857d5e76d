-- +goose Up
-- Push notification configs of A2A: where clients want to be told of a task. config is
-- sealed; only protocol/a2a/push opens it. acked is the offset below which everything was
-- told; NULL: nothing follows.
CREATE TABLE push_configs (
    session INTEGER NOT NULL,
    task    TEXT    NOT NULL,
    id      TEXT    NOT NULL,
    config  BLOB    NOT NULL,
    acked   INTEGER,
    PRIMARY KEY (session, task, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX active_push_configs ON push_configs (session, task, id, acked) WHERE acked IS NOT NULL;
