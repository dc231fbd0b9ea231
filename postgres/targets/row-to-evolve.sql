-- As row.sql, with nothing but what a trial itself needs. The connector adds the other columns, which are in each record's schema:
-- schema.evolution basic.
CREATE TABLE tides (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stored     timestamptz NOT NULL DEFAULT clock_timestamp(),
    bench_run  text NOT NULL,
    bench_seq  bigint NOT NULL
);
