-- The statements of this package, each below its name. Their values go by placeholders.

-- name: sequences
COPY (SELECT ({seq})::bigint FROM {table} WHERE {run} = {name} AND {seq} IS NOT NULL) TO STDOUT (FORMAT binary)

-- name: some
SELECT {seq}, {document}::text FROM {table} AS held WHERE {run} = %s AND {seq} = ANY(%s)

-- name: all
COPY (SELECT {document}::text FROM {table} WHERE {run} = {name} {chosen}) TO STDOUT (FORMAT binary)

-- name: versions
COPY (
    SELECT key::text, ({seq})::bigint FROM {table} WHERE {run} = {name} AND payload #> '{{bench,seq}}' IS NOT NULL
) TO STDOUT

-- name: arrivals
SELECT ({due_us})::bigint, (extract(epoch FROM stored) * 1000000)::bigint FROM {table}
WHERE {run} = %s AND ({seq})::bigint %% %s = 0

-- name: columns
SELECT attname FROM pg_attribute
WHERE attrelid = to_regclass(format('%%I.%%I', %s::text, %s::text)) AND attnum > 0 AND NOT attisdropped

-- name: keyed
SELECT attrelid FROM pg_attribute WHERE attrelid = to_regclass(quote_ident(%s)) AND attname = 'key'
    AND NOT attisdropped

-- name: identity
SELECT pg_get_serial_sequence(quote_ident(%s), attname)::regclass::oid FROM pg_attribute
WHERE attrelid = to_regclass(quote_ident(%s)) AND attidentity <> ''

-- name: unfilled
-- Columns that only a connector fills.
SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(quote_ident(%s)) AND attnum > 0 AND NOT attisdropped
    AND attnotnull AND NOT atthasdef AND attidentity = '' AND attname <> 'payload'

-- name: kinds
-- The columns of a table and what they hold. A domain has its base's category.
SELECT attname, CASE
    WHEN format_type(coalesce(nullif(typbasetype, 0), atttypid), NULL) IN ('json', 'jsonb') THEN 'document'
    WHEN typcategory = 'N' THEN 'number'
    WHEN typcategory IN ('S', 'E', 'B') OR typname = 'uuid' THEN 'text'
    ELSE 'other' END
FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum

-- name: size
-- A partitioned table itself has no pages.
WITH RECURSIVE parts(oid) AS (
    SELECT to_regclass(quote_ident(%s))::oid UNION SELECT inhrelid FROM pg_inherits JOIN parts ON inhparent = oid
) SELECT sum(pg_total_relation_size(oid)) FROM parts

-- name: parts
-- The table or its partitions, and their indexes. Partitioned tables and indexes have no pages.
WITH RECURSIVE parts(oid) AS (
    SELECT to_regclass(quote_ident(%s))::oid UNION SELECT inhrelid FROM pg_inherits JOIN parts ON inhparent = oid
)
SELECT CASE relkind WHEN 'i' THEN 'INDEX' ELSE 'TABLE' END, oid::regclass::text FROM pg_class
WHERE relkind IN ('r', 'i') AND oid IN (
    SELECT oid FROM parts UNION SELECT indexrelid FROM pg_index JOIN parts ON indrelid = parts.oid
)

-- name: bloat
SELECT pg_stat_get_dead_tuples(to_regclass(quote_ident(%s))), deadlocks, xact_rollback
FROM pg_stat_database WHERE datname = current_database()

-- name: tables
-- Tables and views that a user may name, visible ones without their schema.
SELECT pg_class.oid, nspname, relname, pg_table_is_visible(pg_class.oid)
FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND nspname !~ '^pg_' AND nspname <> 'information_schema'

-- name: reading
-- What each backend does now. WAL has wait events of its own within LWLock and IO. A backend that waits for its client
-- outside a transaction is idle. The sequence also counts insertions that turn into updates, but no deletions. These
-- are counted for tables with a key, whose rows connectors may delete.
SELECT coalesce(pg_sequence_last_value(%s), 0) + pg_stat_get_tuples_deleted(%s) AS stored,
    count(*) AS backends,
    count(*) FILTER (WHERE backend_start < %s::timestamptz) AS other_connections,
    count(*) FILTER (WHERE state <> 'idle') AS pg_busy,
    count(*) FILTER (WHERE wait_event_type = 'Lock') AS pg_wait_lock,
    count(*) FILTER (WHERE wait_event_type IN ('LWLock', 'IO') AND wait_event ILIKE 'wal%%') AS pg_wait_wal,
    count(*) FILTER (WHERE wait_event_type = 'LWLock' AND wait_event NOT ILIKE 'wal%%') AS pg_wait_lwlock,
    count(*) FILTER (WHERE wait_event_type = 'IO' AND wait_event NOT ILIKE 'wal%%') AS pg_wait_io,
    count(*) FILTER (WHERE wait_event_type = 'Client' AND state <> 'idle') AS pg_wait_client,
    -- How far the furthest standby is from having applied what is written.
    (SELECT max(pg_wal_lsn_diff(CASE WHEN NOT pg_is_in_recovery() THEN pg_current_wal_lsn() END, replay_lsn))
        FROM pg_stat_replication) AS standby_lag_bytes,
    (SELECT 1000 * extract(epoch FROM max(replay_lag)) FROM pg_stat_replication) AS standby_lag_ms
FROM pg_stat_activity
WHERE backend_type = 'client backend' AND datname = current_database() AND application_name <> %s

-- name: backends
SELECT count(*) FROM pg_stat_activity
WHERE backend_type = 'client backend' AND datname = current_database() AND application_name <> %s

-- name: written
-- A table of another schema, as a trial's may be, is named with its schema.
SELECT CASE schemaname WHEN 'public' THEN relname ELSE schemaname || '.' || relname END,
    n_tup_ins + n_tup_upd + n_tup_del
FROM pg_stat_user_tables

-- name: limits
-- PostgreSQL has `reserved_connections` since version 16.
SELECT current_setting('max_connections')::int AS most,
    current_setting('superuser_reserved_connections')::int
        + coalesce(current_setting('reserved_connections', true), '0')::int AS reserved,
    pg_has_role('pg_read_all_stats', 'USAGE') AS sees,
    (SELECT coalesce(sum(numbackends), 0) FROM pg_stat_database) AS backends

-- name: sessions
SELECT application_name AS name, client_port AS port FROM pg_stat_activity WHERE backend_type = 'client backend'

-- name: copies
-- A row for each number, with the documents in turn.
INSERT INTO {table} ({column}payload) SELECT {key}document
FROM generate_series(%s::bigint, %s::bigint) AS number
JOIN unnest(%s::jsonb[]) WITH ORDINALITY AS kept (document, place) ON place = 1 + number %% %s

-- name: end_others
SELECT count(pg_terminate_backend(pid))
FROM pg_stat_activity WHERE backend_type = 'client backend' AND datname = current_database()
    AND application_name <> current_setting('application_name')

-- name: still
-- Others' connections, and places that are free or taken by a client that is logging in.
SELECT (
    SELECT count(*)
    FROM pg_stat_activity WHERE backend_type = 'client backend' AND datname = current_database()
        AND application_name <> current_setting('application_name')
), current_setting('max_connections')::int - count(*)
FROM pg_stat_activity WHERE backend_type = 'client backend' AND datname IS NOT NULL

-- name: refuse
-- Makes every write to a table fail.
CREATE FUNCTION {name}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING MESSAGE = {said};
END $$;
CREATE TRIGGER refuse BEFORE INSERT OR UPDATE OR DELETE ON public.{name}
FOR EACH STATEMENT EXECUTE FUNCTION {name}.refuse()

-- name: discard
-- Discards what is written to a table. COPY calls triggers, too. Indexes and constraints are checked after them, and so
-- never.
CREATE FUNCTION {name}.discard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RETURN NULL;
END $$;
CREATE TRIGGER discard BEFORE INSERT ON public.{name} FOR EACH ROW EXECUTE FUNCTION {name}.discard()

-- name: settings
-- As in a connection that sets nothing itself.
SELECT name, CASE name WHEN 'synchronous_commit' THEN reset_val ELSE current_setting(name) END
FROM pg_settings WHERE name = ANY(%s)

-- name: unlogged
-- The table, or one of its partitions.
SELECT FROM pg_class WHERE relpersistence = 'u' AND (oid = to_regclass(quote_ident(%s))
    OR oid IN (SELECT relid FROM pg_partition_tree(to_regclass(quote_ident(%s)))))

-- name: session
-- A user's own schema would come first, and hide what a connector writes to. Creating and dropping waits for no
-- standby, which may be the one that is down.
SET search_path TO public;
SELECT set_config('synchronous_commit', 'local', false)
WHERE current_setting('synchronous_commit') IN ('on', 'remote_write', 'remote_apply')

-- name: of_database
SELECT unnest(setconfig) FROM pg_db_role_setting JOIN pg_database ON pg_database.oid = setdatabase
WHERE datname = current_database() AND setrole = 0

-- name: standbys
SELECT pg_is_in_recovery() AS follows, current_setting('synchronous_standby_names') AS names, pid,
    application_name AS name, state, sync_state
FROM (VALUES (1)) AS here LEFT JOIN pg_stat_replication ON true

-- name: leftovers
SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
    AND starts_with(relname, %s) AND obj_description(oid, 'pg_class') = %s
UNION SELECT nspname FROM pg_namespace WHERE starts_with(nspname, %s) AND obj_description(oid, 'pg_namespace') = %s

-- name: table
SELECT pg_class.oid::bigint, relkind IN ('r', 'p'),
    EXISTS (SELECT FROM pg_attribute WHERE attrelid = pg_class.oid AND attidentity <> '')
FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = %s AND relname = %s

-- name: functions
-- Functions that use their caller's path, except procedures: with settings of their own these could not commit.
SELECT pg_proc.oid::regprocedure::text FROM pg_proc JOIN pg_namespace ON pg_namespace.oid = pronamespace
WHERE nspname = %s AND prokind = 'f' AND NOT coalesce(array_to_string(proconfig, ' '), '') LIKE '%%search_path=%%'

-- name: belonging
-- What ALTER TABLE moves to another schema with a table.
SELECT relname FROM pg_class WHERE relkind IN ('i', 'I', 'S') AND oid IN (
    SELECT indexrelid FROM pg_index WHERE indrelid = %(table)s::oid
    UNION ALL SELECT objid FROM pg_depend WHERE classid = 'pg_class'::regclass AND deptype IN ('a', 'i')
        AND refclassid = 'pg_class'::regclass AND refobjid = %(table)s::oid)

-- name: elsewhere
-- All objects of the database outside of a schema, but those that belong to another one (types of rows and arrays).
-- PostgreSQL's own objects have lower OIDs, and the names of its own schemas begin with pg_.
SELECT found.type, object.oid, found.identity
FROM (
    SELECT 'pg_class'::regclass, oid FROM pg_class
    UNION ALL SELECT 'pg_proc'::regclass, oid FROM pg_proc
    UNION ALL SELECT 'pg_type'::regclass, oid FROM pg_type
    UNION ALL SELECT 'pg_operator'::regclass, oid FROM pg_operator
    UNION ALL SELECT 'pg_collation'::regclass, oid FROM pg_collation
    UNION ALL SELECT 'pg_namespace'::regclass, oid FROM pg_namespace
    UNION ALL SELECT 'pg_extension'::regclass, oid FROM pg_extension
    UNION ALL SELECT 'pg_event_trigger'::regclass, oid FROM pg_event_trigger
    UNION ALL SELECT 'pg_publication'::regclass, oid FROM pg_publication
    UNION ALL SELECT 'pg_foreign_server'::regclass, oid FROM pg_foreign_server
    UNION ALL SELECT 'pg_authid'::regclass, oid FROM pg_roles
) AS object (class, oid),
    pg_identify_object(class, object.oid, 0) AS found
WHERE object.oid >= 16384 AND NOT starts_with(coalesce(found.schema, found.name, ''), 'pg_')
    AND coalesce(found.schema, CASE found.type WHEN 'schema' THEN found.name END, '') <> quote_ident(%(schema)s)
    AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = class AND objid = object.oid AND deptype = 'i')
