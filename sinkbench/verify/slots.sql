-- Sums of each partition, or of each hour.
SELECT {slot}, coalesce(sum(wanted), 0)::BIGINT AS records, coalesce(sum(missing), 0)::BIGINT AS missing,
    coalesce(sum(doubled), 0)::BIGINT AS doubled, coalesce(sum(different), 0)::BIGINT AS different
FROM (FROM judged SELECT part, hour, wanted UNION ALL BY NAME FROM faults) GROUP BY ALL ORDER BY ALL
