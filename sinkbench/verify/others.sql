-- Rows and keys beyond the faults; {by_position}: whether k1 and k2 are partition and offset.
SELECT * FROM (SELECT count(*) AS rows FROM target),
(SELECT count(*) FILTER (records > 1 AND found = records) AS several FROM judged),
(SELECT count(*) FILTER (different > 0 AND gone) AS undeleted, coalesce(sum(missing) FILTER (
    pos > coalesce(reached, -1)), 0)::BIGINT AS behind FROM faults
    LEFT JOIN (SELECT part, max(pos) AS reached FROM judged WHERE found > 0 GROUP BY part) USING (part)),
(SELECT coalesce(sum(copies) FILTER (old), 0)::BIGINT AS expired,
    coalesce(sum(copies) FILTER (NOT old), 0)::BIGINT AS unknown FROM (
    SELECT copies, coalesce({by_position} AND k2 < start, false) AS old
    FROM held ANTI JOIN topic USING (k1, k2) LEFT JOIN parts ON part = k1))
