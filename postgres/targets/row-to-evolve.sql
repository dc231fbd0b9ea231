-- As row.sql, without the column that the records' schema calls optional. The connector adds it with schema.evolution basic;
-- others it does not add.
CREATE TABLE tides (
    id                 bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stored             timestamptz NOT NULL DEFAULT clock_timestamp(),
    metadata_id        text NOT NULL,
    metadata_name      text NOT NULL,
    metadata_lat       text NOT NULL,
    metadata_lon       text NOT NULL,
    metadata_location  text NOT NULL,
    data_t             text NOT NULL,
    data_v             text NOT NULL,
    data_s             text NOT NULL,
    data_f             text NOT NULL,
    data_q             text NOT NULL,
    bench_run          text NOT NULL,
    bench_seq          bigint NOT NULL,
    bench_due_us       bigint NOT NULL,
    bench_sent_us      bigint NOT NULL
);
