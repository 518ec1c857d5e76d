-- +goose Up
-- Push notification configs of A2A: where clients want to be told of a task. config is
-- sealed; only protocol/a2a/push opens it. acked is the offset below which everything was
-- told; NULL: nothing follows.
CREATE TABLE push_configs (
    session bigint NOT NULL,
    task    text COLLATE "C" NOT NULL,
    id      text COLLATE "C" NOT NULL,
    config  bytea  NOT NULL,
    acked   bigint,
    PRIMARY KEY (session, task, id)
);
CREATE INDEX active_push_configs ON push_configs (session, task, id) WHERE acked IS NOT NULL;
