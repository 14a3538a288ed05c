-- Denials: counts and explanations.

-- name: AddCounts
-- Adds the given numbers to the counts. Each array has one element for each count. Counts of tenants that do not
-- exist are omitted. The statement locks the rows in the order of their key, so that instances cannot deadlock.
INSERT INTO denial_counts AS c (tenant_id, minute, code, meter, rule, n)
SELECT t.tenant_id, d.minute, d.code, d.meter, d.rule, d.n
FROM unnest($1::text[], $2::timestamptz[], $3::text[], $4::text[], $5::text[], $6::bigint[]) AS d (tenant_id, minute, code, meter, rule, n)
JOIN tenants t ON t.tenant_id = d.tenant_id AND t.tenant_id = ANY ($1::text[])
ORDER BY t.tenant_id, d.minute, d.code, d.meter, d.rule
ON CONFLICT (tenant_id, minute, code, meter, rule) DO UPDATE SET n = c.n + excluded.n;

-- name: AddRecent
-- Inserts explanations before the stored explanations of their tenants, and keeps the first 100 of each tenant. Each
-- array has one element for each tenant: its id, the instant of its newest explanation, and a JSON array of
-- explanations, newest first. Tenants that do not exist are omitted. The statement locks the rows in the order of the
-- tenants' ids.
INSERT INTO denials_recent AS r (tenant_id, newest_at, items)
SELECT t.tenant_id, d.newest_at, d.items::jsonb
FROM unnest($1::text[], $2::timestamptz[], $3::text[]) AS d (tenant_id, newest_at, items)
JOIN tenants t ON t.tenant_id = d.tenant_id AND t.tenant_id = ANY ($1::text[])
ORDER BY t.tenant_id
ON CONFLICT (tenant_id) DO UPDATE
SET newest_at = greatest(r.newest_at, excluded.newest_at), items = jsonb_path_query_array(excluded.items || r.items, '$[0 to 99]');

-- name: HighRules
-- Returns the limits that have refused at least $3 requests of a tenant in a minute. The number is the sum over codes
-- and meters. $1 and $2 are pairs of tenant and minute without duplicates. The second condition on tenants is for
-- Citus. It costs nothing elsewhere.
SELECT c.tenant_id, c.minute, c.rule, sum(c.n)::bigint
FROM unnest($1::text[], $2::timestamptz[]) AS k (tenant_id, minute)
JOIN denial_counts c ON c.tenant_id = k.tenant_id AND c.minute = k.minute AND c.tenant_id = ANY ($1::text[])
WHERE c.rule NOT IN ('', '(other)')
GROUP BY c.tenant_id, c.minute, c.rule
HAVING sum(c.n) >= $3::bigint
ORDER BY c.tenant_id, c.minute, c.rule;

-- name: SelectCounts
-- Returns the counts of tenant $1 in minutes from $2 to before $3, newest first, at most $4. The order is the reverse
-- of the primary key.
SELECT c.minute, c.code, c.meter, c.rule, c.n
FROM denial_counts c
WHERE c.tenant_id = $1::text AND c.minute >= $2::timestamptz AND c.minute < $3::timestamptz
ORDER BY c.minute DESC, c.code DESC, c.meter DESC, c.rule DESC
LIMIT $4::integer;

-- name: SelectRecent
-- Returns the explanations of tenant $1, or no row if there are none.
SELECT r.items FROM denials_recent r WHERE r.tenant_id = $1;

-- name: ForgetRecent
-- Deletes the explanations of tenants without a denial since $1. It scans the table, which has few pages, because
-- PostgreSQL stores the JSON documents in a separate TOAST table.
DELETE FROM denials_recent WHERE newest_at < $1;

-- name: Partitions
-- Returns the name, start and end of each weekly partition of the table $1, oldest first.
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
-- Lets transactions create or drop partitions one after another. The number is "denials" in ASCII.
SELECT pg_advisory_xact_lock(28259022559865971);
