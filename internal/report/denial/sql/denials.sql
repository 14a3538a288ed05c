-- Denials: counts and explanations.

-- name: AddCounts
-- Adds to counts; one element of each array per count. Those of tenants that do not exist are left out. It locks the rows in their order, so that instances
-- do not wait for each other in a circle.
INSERT INTO denial_counts AS c (tenant_id, minute, code, meter, rule, n)
SELECT t.tenant_id, d.minute, d.code, d.meter, d.rule, d.n
FROM unnest($1::text[], $2::timestamptz[], $3::text[], $4::text[], $5::text[], $6::bigint[]) AS d (tenant_id, minute, code, meter, rule, n)
JOIN tenants t ON t.tenant_id = d.tenant_id AND t.tenant_id = ANY ($1::text[])
ORDER BY t.tenant_id, d.minute, d.code, d.meter, d.rule
ON CONFLICT (tenant_id, minute, code, meter, rule) DO UPDATE SET n = c.n + excluded.n;

-- name: AddRecent
-- Puts explanations before those that tenants have, and keeps the first 100 of each; one element of each array per tenant: its id, the instant of its newest
-- one, and a JSON array, newest first. Those of tenants that do not exist are left out. It locks the rows in the order of their ids.
INSERT INTO denials_recent AS r (tenant_id, newest_at, items)
SELECT t.tenant_id, d.newest_at, d.items::jsonb
FROM unnest($1::text[], $2::timestamptz[], $3::text[]) AS d (tenant_id, newest_at, items)
JOIN tenants t ON t.tenant_id = d.tenant_id AND t.tenant_id = ANY ($1::text[])
ORDER BY t.tenant_id
ON CONFLICT (tenant_id) DO UPDATE
SET newest_at = greatest(r.newest_at, excluded.newest_at), items = jsonb_path_query_array(excluded.items || r.items, '$[0 to 99]');

-- name: HighRules
-- Returns the limits that have refused at least $3 requests of a tenant in a minute, whatever code and meter: those of the tenants $1 in the minutes $2, of
-- which no pair comes twice. The condition that repeats the tenants is for Citus and costs nothing elsewhere.
SELECT c.tenant_id, c.minute, c.rule, sum(c.n)::bigint
FROM unnest($1::text[], $2::timestamptz[]) AS k (tenant_id, minute)
JOIN denial_counts c ON c.tenant_id = k.tenant_id AND c.minute = k.minute AND c.tenant_id = ANY ($1::text[])
WHERE c.rule NOT IN ('', '(other)')
GROUP BY c.tenant_id, c.minute, c.rule
HAVING sum(c.n) >= $3::bigint
ORDER BY c.tenant_id, c.minute, c.rule;

-- name: SelectCounts
-- Returns the counts of tenant $1 in minutes from $2 to before $3, newest first, at most $4. The order is that of the primary key, backwards.
SELECT c.minute, c.code, c.meter, c.rule, c.n
FROM denial_counts c
WHERE c.tenant_id = $1::text AND c.minute >= $2::timestamptz AND c.minute < $3::timestamptz
ORDER BY c.minute DESC, c.code DESC, c.meter DESC, c.rule DESC
LIMIT $4::integer;

-- name: SelectRecent
-- Returns the explanations of tenant $1; no row: it has none.
SELECT r.items FROM denials_recent r WHERE r.tenant_id = $1;

-- name: ForgetRecent
-- Deletes the explanations of tenants that have none since $1. Their table has few pages: the documents are out of line.
DELETE FROM denials_recent WHERE newest_at < $1;

-- name: Partitions
-- Returns name, start and end of each week with a partition in the table $1, oldest first.
SELECT p.relname, p.bounds[1]::timestamptz, p.bounds[2]::timestamptz
FROM (
    SELECT c.relname::text, regexp_match(pg_get_expr(c.relpartbound, c.oid), 'FROM \(''([^'']+)''\) TO \(''([^'']+)''\)') AS bounds
    FROM pg_inherits i
    JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = $1::text::regclass
) AS p
WHERE p.bounds IS NOT NULL
ORDER BY 2;

-- name: PartitionLock
-- Lets one transaction at a time make or drop partitions. The number is "denials" in ASCII.
SELECT pg_advisory_xact_lock(28259022559865971);
