-- {wanted}: rows that a key must have. {excused}: rows of which more are no fault.

-- The last record of each key against its rows. By value, there are as many rows as records. A topic has fewer than a
-- million partitions. Content 0 is a tombstone's, 1 is not compared.
CREATE OR REPLACE TEMP TABLE held AS
SELECT k1, k2, count(*) AS copies, min(content) AS low FROM target GROUP BY k1, k2;
CREATE OR REPLACE TEMP TABLE judged AS
SELECT k1, k2, place % 1000000 AS part, place // 1000000 AS pos, hour, records, content = 0 AS gone,
    {wanted} AS wanted, coalesce(copies, 0) AS found, found - wanted AS doubled,
    CASE WHEN gone THEN 0 ELSE greatest(wanted - found, 0) END AS missing,
    coalesce(content <> 1 AND low <> 1 AND content <> low, false) AS different
FROM (
    SELECT k1, k2, max(pos * 1000000 + part) AS place, arg_max(hour, pos * 1000000 + part) AS hour,
        arg_max(content, pos * 1000000 + part) AS content, count(*) AS records
    FROM topic JOIN parts USING (part) WHERE pos < due GROUP BY k1, k2
) LEFT JOIN held USING (k1, k2);

-- What else may be stored of a key with a fault: its last record in any partition, and any later one.
CREATE OR REPLACE TEMP TABLE odd AS SELECT * FROM judged WHERE missing > 0 OR doubled > 0 OR different;
CREATE OR REPLACE TEMP TABLE also AS
SELECT k1, k2, content, 1 AS later FROM topic SEMI JOIN odd USING (k1, k2) JOIN parts USING (part) WHERE pos >= due
UNION ALL
SELECT k1, k2, arg_max(content, pos), 0 FROM topic SEMI JOIN odd USING (k1, k2) JOIN parts USING (part)
WHERE pos < due GROUP BY k1, k2, part;
CREATE OR REPLACE TEMP TABLE faults AS
SELECT part, pos, hour, gone, CASE WHEN bare THEN 0 ELSE missing END AS missing,
    greatest(doubled - {excused}, 0) AS doubled, (different AND same IS NULL)::INTEGER AS different
FROM odd
JOIN (SELECT k1, k2, bool_or(content = 0) AS bare, sum(later) AS later FROM also GROUP BY k1, k2) USING (k1, k2)
LEFT JOIN (SELECT DISTINCT k1, k2, true AS same FROM also JOIN target USING (k1, k2, content)) USING (k1, k2);
