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
