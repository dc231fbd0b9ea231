-- The table of postgres/keyed.sql, and beside it the newest reading of each station, kept by a trigger. Records of one
-- gauge come in one partition, those of one station in many: so tasks update the same rows, each in the order of its own
-- records, and wait for each other (plans/deadlocks.yaml). What else a table needs is in postgres/schema.sql.
CREATE TABLE tides (
    id       bigint GENERATED ALWAYS AS IDENTITY,
    key      text PRIMARY KEY,
    stored   timestamptz NOT NULL DEFAULT clock_timestamp(),
    payload  jsonb NOT NULL
);

CREATE TABLE newest (
    station  text PRIMARY KEY,
    t        text NOT NULL,
    v        text NOT NULL
);

CREATE FUNCTION keep_newest() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO newest AS known (station, t, v)
    VALUES (NEW.payload #>> '{metadata,name}', NEW.payload #>> '{data,0,t}', NEW.payload #>> '{data,0,v}')
    ON CONFLICT (station) DO UPDATE SET t = EXCLUDED.t, v = EXCLUDED.v WHERE known.t <= EXCLUDED.t;
    RETURN NULL;
END
$$;

CREATE TRIGGER keep_newest AFTER INSERT OR UPDATE ON tides FOR EACH ROW
WHEN (num_nulls(NEW.payload #>> '{metadata,name}', NEW.payload #>> '{data,0,t}', NEW.payload #>> '{data,0,v}') = 0)
EXECUTE FUNCTION keep_newest();
