-- Only B-trees: by station and time, by time, by value.
CREATE TABLE tides (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stored   timestamptz NOT NULL DEFAULT clock_timestamp(),
    payload  jsonb NOT NULL
);
CREATE INDEX ON tides ((payload #>> '{metadata,id}'), (payload #>> '{data,0,t}'));
CREATE INDEX ON tides ((payload #>> '{data,0,t}'));
CREATE INDEX ON tides ((jsonb_path_query_first(payload, '$.data[0].v.double()', '{}', true)::float8));
