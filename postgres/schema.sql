-- The table that the PostgreSQL pipelines fill. A trial creates one with its own name in place of "tides".
-- Change it as you like, but keep an identity column, and the column "payload" of json or jsonb. Functions with
-- triggers, types, partitions and other tables may be here, too: name them without a schema, and they live in one of
-- the trial's own. What would stay behind after a trial, or be missing in it, is refused.
CREATE TABLE tides (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stored   timestamptz NOT NULL DEFAULT clock_timestamp(),
    payload  jsonb NOT NULL
);
