-- The state of the service. Each statement reads only a few rows: by an index on time, or the last row of a small
-- table.

-- name: RefusalsByMinute
-- Returns the number of requests that were refused in each minute from $1 to before $2, oldest first. A minute
-- without refusals has no row.
SELECT c.minute, sum(c.n)::bigint
FROM denial_counts c
WHERE c.minute >= $1::timestamptz AND c.minute < $2::timestamptz
GROUP BY c.minute
ORDER BY c.minute;

-- name: MostRefused
-- Returns the $3 tenants with the most refused requests from minute $1 to before $2, the largest number first.
SELECT c.tenant_id, sum(c.n)::bigint
FROM denial_counts c
WHERE c.minute >= $1::timestamptz AND c.minute < $2::timestamptz
GROUP BY c.tenant_id
ORDER BY sum(c.n) DESC, c.tenant_id
LIMIT $3::integer;

-- name: RefusedBy
-- Returns the number of refused requests from minute $1 to before $2, for each of the tenants $3 and each code. The
-- largest number is first.
SELECT c.tenant_id, c.code, sum(c.n)::bigint
FROM denial_counts c
WHERE c.tenant_id = ANY ($3::text[]) AND c.minute >= $1::timestamptz AND c.minute < $2::timestamptz
GROUP BY c.tenant_id, c.code
ORDER BY sum(c.n) DESC, c.code;

-- name: LastVerification
-- Returns the verification that was started last, or no row if there is none. The last column is true if the
-- verification is abandoned: it is still running but has stored no heartbeat for a minute.
SELECT v.verification_id, v.tenant_id, v.status, v.started_at, v.finished_at, v.status = 'running' AND v.heartbeat_at < clock_timestamp() - interval '1 minute'
FROM verifications v
ORDER BY v.started_at DESC
LIMIT 1;

-- name: LastRoll
-- Returns the roll that was started last, with the same last column as LastVerification.
SELECT r.roll_id, r.as_of, r.status, r.total, r.processed, r.started_at, r.finished_at, r.status = 'running' AND r.heartbeat_at < clock_timestamp() - interval '1 minute'
FROM rolls r
ORDER BY r.started_at DESC
LIMIT 1;

-- name: LastSeal
-- Returns the newest sealed day, or no row if there is none.
SELECT s.day, s.position, s.heads, s.sealed_at FROM seals s ORDER BY s.position DESC LIMIT 1;

-- name: LastArchive
-- Returns the newest month that was archived, or no row if there is none.
SELECT a.month, a.archived_at, a.removed_at FROM archives a ORDER BY a.month DESC LIMIT 1;
