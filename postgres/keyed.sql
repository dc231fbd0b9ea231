-- The table of pipelines that insert, update and delete rows by the record's key. A trial creates one with its own name in
-- place of "tides". Changes are audited by the column "key"; what else it needs is in schema.sql. The identity column
-- counts insertions, those that turn into updates, too: it is no key.
CREATE TABLE tides (
    id       bigint GENERATED ALWAYS AS IDENTITY,
    key      text PRIMARY KEY,
    stored   timestamptz NOT NULL DEFAULT clock_timestamp(),
    payload  jsonb NOT NULL
);
