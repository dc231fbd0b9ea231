-- Only a BRIN index on the time: small and cheap, and of use because readings come about in the order of their times.
CREATE TABLE tides (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stored   timestamptz NOT NULL DEFAULT clock_timestamp(),
    payload  jsonb NOT NULL
);
CREATE INDEX ON tides USING brin ((payload #>> '{data,0,t}'));
