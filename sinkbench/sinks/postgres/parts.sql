-- The table or its partitions, and their indexes. Partitioned tables and indexes have no pages.
WITH RECURSIVE parts(oid) AS (
    SELECT to_regclass(quote_ident(%s))::oid UNION SELECT inhrelid FROM pg_inherits JOIN parts ON inhparent = oid
)
SELECT CASE relkind WHEN 'i' THEN 'INDEX' ELSE 'TABLE' END, oid::regclass::text FROM pg_class
WHERE relkind IN ('r', 'i') AND oid IN (
    SELECT oid FROM parts UNION SELECT indexrelid FROM pg_index JOIN parts ON indrelid = parts.oid
)
