-- The columns of a table and what they hold. A domain has its base's category.
SELECT attname, CASE
    WHEN format_type(coalesce(nullif(typbasetype, 0), atttypid), NULL) IN ('json', 'jsonb') THEN 'document'
    WHEN typcategory = 'N' THEN 'number'
    WHEN typcategory IN ('S', 'E', 'B') OR typname = 'uuid' THEN 'text'
    ELSE 'other' END
FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum
