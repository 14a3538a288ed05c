-- Lists of tenants. Filters: plan, status ('' = any), and names and values of metadata. Sums of a balance are at most 2^53: a hundred times as much fits bigint.

-- name: ScanTenants
-- Reads the next $2 tenants after $1. Returns the ids of those that match (status $3, metadata $4 = $5), the last one read, and how many were read.
SELECT coalesce(array_agg(s.tenant_id ORDER BY s.tenant_id) FILTER (WHERE ($3::text = '' OR s.status = $3::text) AND NOT EXISTS (
           SELECT 1 FROM unnest($4::text[], $5::text[]) AS m (name, value) WHERE s.metadata ->> m.name IS DISTINCT FROM m.value)), '{}'),
       coalesce(max(s.tenant_id), ''), count(*)
FROM (SELECT t.tenant_id, t.status, t.metadata FROM tenants t WHERE t.tenant_id > $1::text ORDER BY t.tenant_id LIMIT $2::integer) AS s;

-- name: ScanTenantsOfPlan
-- Does the same for the tenants of plan $6.
SELECT coalesce(array_agg(s.tenant_id ORDER BY s.tenant_id) FILTER (WHERE ($3::text = '' OR s.status = $3::text) AND NOT EXISTS (
           SELECT 1 FROM unnest($4::text[], $5::text[]) AS m (name, value) WHERE s.metadata ->> m.name IS DISTINCT FROM m.value)), '{}'),
       coalesce(max(s.tenant_id), ''), count(*)
FROM (SELECT t.tenant_id, t.status, t.metadata FROM tenants t WHERE t.plan = $6::text AND t.tenant_id > $1::text ORDER BY t.plan, t.tenant_id LIMIT $2::integer) AS s;

-- name: ScanBalances
-- Reads the next $4 balances after ($1..$3). Returns tenants and meters of the candidates: tenants' own balances of meter $5 ('' = all) whose period has not ended at
-- $6, and of which $7 percent are used or something is due; their tenants match (status $8, metadata $9 = $10, plan $11). Also the last one read, and how many were.
WITH s AS MATERIALIZED (
    SELECT b.tenant_id, b.meter, b.subject, b.period_end, b.next_event_at, greatest(b.used - b.refunded, 0) AS used,
           b.opening + b.granted + b.refunded - b.used - b.expired + b.adjusted - b.held AS remaining
    FROM balances b
    WHERE (b.tenant_id, b.meter, b.subject) > ($1::text, $2::text, $3::text)
    ORDER BY b.tenant_id, b.meter, b.subject
    LIMIT $4::integer
), candidates AS (
    SELECT n.tenant_id, n.meter
    FROM (SELECT s.tenant_id, s.meter FROM s
          WHERE s.subject = '' AND ($5::text = '' OR s.meter = $5::text) AND s.period_end > $6::timestamptz
            AND (s.next_event_at <= $6::timestamptz OR s.used + s.remaining > 0 AND s.used * 100 >= $7::integer * (s.used + s.remaining)) OFFSET 0) AS n
    JOIN tenants t ON t.tenant_id = n.tenant_id
    WHERE ($8::text = '' OR t.status = $8::text) AND ($11::text = '' OR t.plan = $11::text)
      AND NOT EXISTS (SELECT 1 FROM unnest($9::text[], $10::text[]) AS m (name, value) WHERE t.metadata ->> m.name IS DISTINCT FROM m.value)
), last AS (
    SELECT s.tenant_id, s.meter, s.subject FROM s ORDER BY s.tenant_id DESC, s.meter DESC, s.subject DESC LIMIT 1
)
SELECT coalesce(array_agg(c.tenant_id ORDER BY c.tenant_id, c.meter), '{}'), coalesce(array_agg(c.meter ORDER BY c.tenant_id, c.meter), '{}'),
       coalesce((SELECT l.tenant_id FROM last l), ''), coalesce((SELECT l.meter FROM last l), ''), coalesce((SELECT l.subject FROM last l), ''),
       (SELECT count(*) FROM s)
FROM candidates c;

-- name: LeastRemaining
-- Returns the next $3 tenants after ($1 remaining, $2 tenant) in the order of what remains of meter $4 ('' = of the meter of which least remains), with what remains by
-- the stored rows. Conditions: as those of ScanBalances, $5 the instant, $6 percent, $7 status, $8 = $9 metadata, $10 plan. It reads all balances.
SELECT c.tenant_id, c.meter, c.remaining
FROM (
    SELECT DISTINCT ON (s.tenant_id) s.tenant_id, s.meter, s.remaining
    FROM (
        SELECT b.tenant_id, b.meter, b.next_event_at, greatest(b.used - b.refunded, 0) AS used,
               b.opening + b.granted + b.refunded - b.used - b.expired + b.adjusted - b.held AS remaining
        FROM balances b
        WHERE b.subject = '' AND ($4::text = '' OR b.meter = $4::text) AND b.period_end > $5::timestamptz
    ) AS s
    WHERE s.next_event_at <= $5::timestamptz OR s.used + s.remaining > 0 AND s.used * 100 >= $6::integer * (s.used + s.remaining)
    ORDER BY s.tenant_id, s.remaining, s.meter
) AS c
JOIN tenants t ON t.tenant_id = c.tenant_id
WHERE (c.remaining, c.tenant_id) > ($1::bigint, $2::text)
  AND ($7::text = '' OR t.status = $7::text) AND ($10::text = '' OR t.plan = $10::text)
  AND NOT EXISTS (SELECT 1 FROM unnest($8::text[], $9::text[]) AS m (name, value) WHERE t.metadata ->> m.name IS DISTINCT FROM m.value)
ORDER BY c.remaining, c.tenant_id
LIMIT $3::integer;

-- name: LeastRemainingOfMeter
-- Does the same for meter $4 and all tenants.
SELECT s.tenant_id, s.meter, s.remaining
FROM (
    SELECT b.tenant_id, b.meter, b.next_event_at, greatest(b.used - b.refunded, 0) AS used,
           b.opening + b.granted + b.refunded - b.used - b.expired + b.adjusted - b.held AS remaining
    FROM balances b
    WHERE b.subject = '' AND b.meter = $4::text AND b.period_end > $5::timestamptz
) AS s
WHERE (s.next_event_at <= $5::timestamptz OR s.used + s.remaining > 0 AND s.used * 100 >= $6::integer * (s.used + s.remaining))
  AND (s.remaining, s.tenant_id) > ($1::bigint, $2::text)
ORDER BY s.remaining, s.tenant_id
LIMIT $3::integer;
