-- As indexed.sql, with what is indexed in columns of its own, which PostgreSQL fills from the document. The view says which
-- column holds which member; queries ask it instead of the document.
CREATE TABLE tides (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stored    timestamptz NOT NULL DEFAULT clock_timestamp(),
    payload   jsonb NOT NULL,
    station   text GENERATED ALWAYS AS (payload #>> '{metadata,id}') STORED,
    name      text GENERATED ALWAYS AS (payload #>> '{metadata,name}') STORED,
    place     point GENERATED ALWAYS AS (
                  CASE WHEN payload #>> '{metadata,location}' ~ '^-?[0-9]+[.]?[0-9]*, ?-?[0-9]+[.]?[0-9]*$' THEN point(
                  split_part(payload #>> '{metadata,location}', ',', 2)::float8,
                  split_part(payload #>> '{metadata,location}', ',', 1)::float8) END) STORED,
    t         text GENERATED ALWAYS AS (payload #>> '{data,0,t}') STORED,
    v         float8 GENERATED ALWAYS AS (jsonb_path_query_first(payload, '$.data[0].v.double()', '{}', true)::float8) STORED
);
CREATE VIEW readings AS SELECT
    (payload #>> '{bench,seq}')::bigint AS "bench.seq",
    station AS "metadata.id",
    name AS "metadata.name",
    place AS "metadata.location",
    t AS "data.0.t",
    v AS "data.0.v",
    payload
    FROM tides;
CREATE INDEX ON tides (station, t);
CREATE INDEX ON tides (t);
CREATE INDEX ON tides (v);
CREATE INDEX ON tides USING gin (to_tsvector('simple', name));
CREATE INDEX ON tides USING gist (place);
CREATE INDEX ON tides USING gin (payload jsonb_path_ops);
