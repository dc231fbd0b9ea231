-- The table that the PostgreSQL pipelines fill. Each trial makes one by this file and gives it the trial's name;
-- by hand it is "tides". Change it as you like, but keep the column "payload".
CREATE TABLE tides (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stored   timestamptz NOT NULL DEFAULT clock_timestamp(),
    payload  jsonb NOT NULL
);
