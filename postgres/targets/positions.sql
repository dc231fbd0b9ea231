-- A table whose key is where a record lies in Kafka, for postgres/jdbc-idempotent: a record that comes twice replaces
-- itself. What else a table needs is in postgres/schema.sql. The identity column counts what is replaced, too.
CREATE TABLE tides (
    id                   bigint GENERATED ALWAYS AS IDENTITY,
    __connect_topic      text,
    __connect_partition  integer,
    __connect_offset     bigint,
    stored               timestamptz NOT NULL DEFAULT clock_timestamp(),
    payload              jsonb NOT NULL,
    PRIMARY KEY (__connect_topic, __connect_partition, __connect_offset)
);
