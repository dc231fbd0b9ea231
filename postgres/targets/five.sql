-- As indexed.sql, without the index on the whole document: what elasticsearch/targets/five.json answers.
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
