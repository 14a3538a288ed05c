-- Counts of requests about which limits in shadow mode decided.

-- name: AddShadows
-- Adds the given numbers to the counts. Each array has one element for each count. Counts of tenants that do not
-- exist are omitted. The statement locks the rows in the order of their key, so that instances cannot deadlock.
INSERT INTO shadow_counts AS c (rule, every, since, tenant_id, refused_by, denies, passes)
SELECT d.rule, d.every, d.since, t.tenant_id, d.refused_by, d.denies, d.passes
FROM unnest($1::text[], $2::text[], $3::smallint[], $4::timestamptz[], $5::text[], $6::bigint[], $7::bigint[])
    AS d (tenant_id, rule, every, since, refused_by, denies, passes)
JOIN tenants t ON t.tenant_id = d.tenant_id AND t.tenant_id = ANY ($1::text[])
ORDER BY d.rule, d.every, d.since, t.tenant_id, d.refused_by
ON CONFLICT (rule, every, since, tenant_id, refused_by) DO UPDATE SET denies = c.denies + excluded.denies, passes = c.passes + excluded.passes;

-- name: ShadowSums
-- Returns the outcomes of the requests about which limit $1 decided from minute $2 to before $4. A row has an outcome
-- and the number of tenants. It also has the number of requests with this outcome that the limit would have denied,
-- and the number that it would have let pass. There are at most $5 rows. The first rows are granted requests and
-- refusals without a limit. Then the refusing limits follow, the limit with the most requests first. $3 is the first
-- hour that starts at $2 or later. The query reads rows of minutes before $3, and rows of hours from $3 on.
SELECT p.refused_by, sum(p.denies)::bigint, sum(p.passes)::bigint, count(*)
FROM (
    SELECT c.tenant_id, c.refused_by, sum(c.denies) AS denies, sum(c.passes) AS passes
    FROM shadow_counts c
    WHERE c.rule = $1::text AND (c.every = 1 AND c.since >= $2::timestamptz AND c.since < $3::timestamptz
        OR c.every = 60 AND c.since >= $3::timestamptz AND c.since < $4::timestamptz)
    GROUP BY c.tenant_id, c.refused_by
) AS p
GROUP BY p.refused_by
ORDER BY p.refused_by NOT IN ('', '(other)'), sum(p.denies + p.passes) DESC, p.refused_by
LIMIT $5::integer;

-- name: ShadowTop
-- Returns the $5 tenants with the most granted requests that limit $1 would have denied, from minute $2 to before $4.
-- $3 is as in ShadowSums.
SELECT c.tenant_id, sum(c.denies)::bigint
FROM shadow_counts c
WHERE c.rule = $1::text AND c.refused_by = '' AND (c.every = 1 AND c.since >= $2::timestamptz AND c.since < $3::timestamptz
    OR c.every = 60 AND c.since >= $3::timestamptz AND c.since < $4::timestamptz)
GROUP BY c.tenant_id
ORDER BY sum(c.denies) DESC, c.tenant_id
LIMIT $5::integer;
