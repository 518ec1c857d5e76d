-- +goose Up
-- The id of the key with which a session is encrypted, see internal/sessionkeys. NULL: it is
-- not. A view has the key of its session. The events are BLOB then, also of a session.
ALTER TABLE sessions ADD COLUMN key BLOB;
ALTER TABLE sessions ADD COLUMN sealed BLOB;        -- encrypted: title, labels, inputs, waiting
ALTER TABLE sessions ADD COLUMN sealed_totals BLOB; -- encrypted: totals
CREATE INDEX sessions_encrypted ON sessions (gen) WHERE key IS NOT NULL;
-- The key that is erased before the events are removed.
ALTER TABLE purges ADD COLUMN key BLOB;

-- As before, but of an encrypted event there is only where it is.
DROP VIEW log;
CREATE VIEW log AS
SELECT id AS session, offset,
       json_extract(text, '$.type') AS type,
       json_extract(text, '$.timestamp') AS timestamp,
       json_extract(text, '$.channel') AS channel,
       json_extract(text, '$.thread') AS thread,
       json_extract(text, '$.invocation') AS invocation,
       json_extract(text, '$.actor') AS actor,
       json_extract(text, '$.data') AS data,
       pos, event
FROM (
    SELECT id, offset, event, pos, CASE WHEN typeof(event) = 'text' THEN event END AS text
    FROM (
        SELECT s.id, e.offset, e.event, e.pos
        FROM sessions s
        JOIN places p ON p.session = s.gen
        CROSS JOIN json_each(p.pos) j
        CROSS JOIN events e ON e.pos = j.value
        WHERE s.kind = 'session' AND s.deleted IS NULL
        UNION ALL
        SELECT s.id, e.offset, e.event, e.pos
        FROM sessions s
        JOIN fresh e ON e.session = s.gen
        WHERE s.kind = 'session' AND s.deleted IS NULL
        UNION ALL
        SELECT s.id, e.offset, e.event, e.pos
        FROM sessions s
        JOIN lineage l ON l.session = s.gen
        JOIN places p ON p.session = l.ancestor AND p.first < l.to_offset AND p.next > l.from_offset
        CROSS JOIN json_each(p.pos) j
        CROSS JOIN events e ON e.pos = j.value AND e.offset >= l.from_offset AND e.offset < l.to_offset
        WHERE s.kind = 'session' AND s.deleted IS NULL
        UNION ALL
        SELECT s.id, e.offset, e.event, e.pos
        FROM sessions s
        JOIN lineage l ON l.session = s.gen
        JOIN fresh e ON e.session = l.ancestor AND e.offset >= l.from_offset AND e.offset < l.to_offset
        WHERE s.kind = 'session' AND s.deleted IS NULL
    )
);
