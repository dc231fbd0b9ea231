-- What ALTER TABLE moves to another schema with a table.
SELECT relname FROM pg_class WHERE relkind IN ('i', 'I', 'S') AND oid IN (
    SELECT indexrelid FROM pg_index WHERE indrelid = %(table)s::oid
    UNION ALL SELECT objid FROM pg_depend WHERE classid = 'pg_class'::regclass AND deptype IN ('a', 'i')
        AND refclassid = 'pg_class'::regclass AND refobjid = %(table)s::oid)
