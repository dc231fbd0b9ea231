-- A table that answers what elasticsearch/index.json answers, each question by an index: by station and time, by time, by
-- value, by words of a name, near a place, and by any member of the document. A query finds an index only if it asks for
-- the very expression that stands here; sinkbench/sinks/postgres/asking.py writes them. What is no number or place, such
-- as an empty text, is null, as in that index.
CREATE TABLE tides (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stored   timestamptz NOT NULL DEFAULT clock_timestamp(),
    payload  jsonb NOT NULL
);
CREATE INDEX ON tides ((payload #>> '{metadata,id}'), (payload #>> '{data,0,t}'));
CREATE INDEX ON tides ((payload #>> '{data,0,t}'));
CREATE INDEX ON tides ((jsonb_path_query_first(payload, '$.data[0].v.double()', '{}', true)::float8));
CREATE INDEX ON tides USING gin (to_tsvector('simple', payload #>> '{metadata,name}'));
CREATE INDEX ON tides USING gist ((CASE WHEN payload #>> '{metadata,location}' ~ '^-?[0-9]+[.]?[0-9]*, ?-?[0-9]+[.]?[0-9]*$'
    THEN point(
        split_part(payload #>> '{metadata,location}', ',', 2)::float8,
        split_part(payload #>> '{metadata,location}', ',', 1)::float8) END));
CREATE INDEX ON tides USING gin (payload jsonb_path_ops);
