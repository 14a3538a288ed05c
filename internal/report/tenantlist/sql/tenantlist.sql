-- Lists of tenants. Filters are the plan, the status ('' = any), and names and values of metadata. The sums of a
-- balance are at most 2^53. 100 times a sum still fits into bigint.

-- name: ScanTenants
-- Reads the next $2 tenants after $1. Returns the ids of the matching tenants (status $3, metadata $4 = $5). It also
-- returns the last tenant that was read, and the number of tenants that were read.
SELECT coalesce(array_agg(s.tenant_id ORDER BY s.tenant_id) FILTER (WHERE ($3::text = '' OR s.status = $3::text) AND NOT EXISTS (
           SELECT 1 FROM unnest($4::text[], $5::text[]) AS m (name, value) WHERE s.metadata ->> m.name IS DISTINCT FROM m.value)), '{}'),
       coalesce(max(s.tenant_id), ''), count(*)
FROM (SELECT t.tenant_id, t.status, t.metadata FROM tenants t WHERE t.tenant_id > $1::text ORDER BY t.tenant_id LIMIT $2::integer) AS s;

-- name: ScanTenantsOfPlan
-- Like ScanTenants, for the tenants whose plan at the instant $7 is $6. A change may be due that is not yet in the tenant's
-- row: these few tenants are looked up by the instant of the change.
SELECT coalesce(array_agg(s.tenant_id ORDER BY s.tenant_id) FILTER (WHERE ($3::text = '' OR s.status = $3::text) AND NOT EXISTS (
           SELECT 1 FROM unnest($4::text[], $5::text[]) AS m (name, value) WHERE s.metadata ->> m.name IS DISTINCT FROM m.value)), '{}'),
       coalesce(max(s.tenant_id), ''), count(*)
FROM (SELECT u.tenant_id, u.status, u.metadata
      FROM (
          (SELECT t.tenant_id, t.status, t.metadata FROM tenants t
           WHERE t.plan = $6::text AND t.tenant_id > $1::text AND (t.pending_at IS NULL OR t.pending_at > $7::timestamptz)
           ORDER BY t.plan, t.tenant_id LIMIT $2::integer)
          UNION ALL
          (SELECT t.tenant_id, t.status, t.metadata FROM tenants t
           JOIN tenant_terms n ON n.tenant_id = t.tenant_id AND n.effective_at = t.pending_at
           WHERE t.pending_at <= $7::timestamptz AND n.plan = $6::text AND t.tenant_id > $1::text
           ORDER BY t.tenant_id LIMIT $2::integer)
      ) AS u
      ORDER BY u.tenant_id LIMIT $2::integer) AS s;

-- name: ScanBalances
-- Reads the next $4 balances after ($1..$3). Returns the tenants and meters of the candidates, the last balance that
-- was read, and the number of balances that were read. A candidate is a tenant's own balance of meter $5 ('' = all).
-- Its period has not ended at $6. At least $7 percent of it are used, or it has a due change. Its tenant matches
-- (status $8, metadata $9 = $10, plan $11).
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
    WHERE ($8::text = '' OR t.status = $8::text) AND ($11::text = '' OR CASE WHEN t.pending_at <= $6::timestamptz THEN
               (SELECT n.plan FROM tenant_terms n WHERE n.tenant_id = t.tenant_id AND n.effective_at = t.pending_at) ELSE t.plan END = $11::text)
      AND NOT EXISTS (SELECT 1 FROM unnest($9::text[], $10::text[]) AS m (name, value) WHERE t.metadata ->> m.name IS DISTINCT FROM m.value)
), last AS (
    SELECT s.tenant_id, s.meter, s.subject FROM s ORDER BY s.tenant_id DESC, s.meter DESC, s.subject DESC LIMIT 1
)
SELECT coalesce(array_agg(c.tenant_id ORDER BY c.tenant_id, c.meter), '{}'), coalesce(array_agg(c.meter ORDER BY c.tenant_id, c.meter), '{}'),
       coalesce((SELECT l.tenant_id FROM last l), ''), coalesce((SELECT l.meter FROM last l), ''), coalesce((SELECT l.subject FROM last l), ''),
       (SELECT count(*) FROM s)
FROM candidates c;

-- name: LeastRemainingOfFew
-- Returns the next $3 tenants after ($1 remaining, $2 tenant), in the order of the remaining units of meter $4. If $4
-- is '', the meter with the fewest units of each tenant counts. The units are computed from the stored rows. The
-- columns are tenants, meters, remaining, and the number of matching tenants. If more than $11 tenants match, it
-- returns no tenants and the number $11 + 1. The conditions are the same as in ScanBalances: $5 instant, $6 percent,
-- $7 status, $8 = $9 metadata, $10 plan. It reads tenants until $11 + 1 match, and the balances of the matching
-- tenants.
WITH few AS MATERIALIZED (
    SELECT t.tenant_id
    FROM tenants t
    WHERE ($7::text = '' OR t.status = $7::text) AND ($10::text = '' OR CASE WHEN t.pending_at <= $5::timestamptz THEN
               (SELECT n.plan FROM tenant_terms n WHERE n.tenant_id = t.tenant_id AND n.effective_at = t.pending_at) ELSE t.plan END = $10::text)
      AND NOT EXISTS (SELECT 1 FROM unnest($8::text[], $9::text[]) AS m (name, value) WHERE t.metadata ->> m.name IS DISTINCT FROM m.value)
    LIMIT $11::integer + 1
), matching AS MATERIALIZED (
    SELECT f.tenant_id FROM few f WHERE (SELECT count(*) FROM few) <= $11::integer
), least AS MATERIALIZED (
    SELECT DISTINCT ON (s.tenant_id) s.tenant_id, s.meter, s.remaining
    FROM (
        SELECT b.tenant_id, b.meter, b.next_event_at, greatest(b.used - b.refunded, 0) AS used,
               b.opening + b.granted + b.refunded - b.used - b.expired + b.adjusted - b.held AS remaining
        FROM matching c
        JOIN balances b ON b.tenant_id = c.tenant_id
        WHERE b.subject = '' AND ($4::text = '' OR b.meter = $4::text) AND b.period_end > $5::timestamptz
    ) AS s
    WHERE s.next_event_at <= $5::timestamptz OR s.used + s.remaining > 0 AND s.used * 100 >= $6::integer * (s.used + s.remaining)
    ORDER BY s.tenant_id, s.remaining, s.meter
), page AS (
    SELECT l.tenant_id, l.meter, l.remaining FROM least l WHERE (l.remaining, l.tenant_id) > ($1::bigint, $2::text) ORDER BY l.remaining, l.tenant_id LIMIT $3::integer
)
SELECT coalesce(array_agg(p.tenant_id ORDER BY p.remaining, p.tenant_id), '{}'), coalesce(array_agg(p.meter ORDER BY p.remaining, p.tenant_id), '{}'),
       coalesce(array_agg(p.remaining ORDER BY p.remaining, p.tenant_id), '{}'), (SELECT count(*) FROM few)
FROM page p;

-- name: LeastRemaining
-- Walks the next $3 balances after ($1 remaining, $2 tenant), in the order of remaining units. It reads all balances
-- and keeps $3 of them. The conditions $4 to $10 are the same as in LeastRemainingOfFew. It returns tenants, meters
-- and remaining units of the first $11 matching tenants in the walk. It omits a tenant whose balance with the fewest
-- units came before the start of the walk. The next columns are the remaining units and the tenant at which the next
-- walk begins. If $11 tenants match, they are from the last of these tenants, else from the last balance of the walk.
-- The last columns are the number of balances in the walk and the number of matching tenants.
WITH walked AS MATERIALIZED (
    SELECT s.tenant_id, s.remaining
    FROM (
        SELECT b.tenant_id, b.meter, b.next_event_at, greatest(b.used - b.refunded, 0) AS used,
               b.opening + b.granted + b.refunded - b.used - b.expired + b.adjusted - b.held AS remaining
        FROM balances b
        WHERE b.subject = '' AND ($4::text = '' OR b.meter = $4::text) AND b.period_end > $5::timestamptz
    ) AS s
    WHERE (s.next_event_at <= $5::timestamptz OR s.used + s.remaining > 0 AND s.used * 100 >= $6::integer * (s.used + s.remaining))
      AND (s.remaining, s.tenant_id) > ($1::bigint, $2::text)
    ORDER BY s.remaining, s.tenant_id, s.meter
    LIMIT $3::integer
), matching AS MATERIALIZED (
    SELECT c.tenant_id, c.remaining
    FROM (SELECT w.tenant_id, min(w.remaining) AS remaining FROM walked w GROUP BY w.tenant_id) AS c
    JOIN tenants t ON t.tenant_id = c.tenant_id
    WHERE ($7::text = '' OR t.status = $7::text) AND ($10::text = '' OR CASE WHEN t.pending_at <= $5::timestamptz THEN
               (SELECT n.plan FROM tenant_terms n WHERE n.tenant_id = t.tenant_id AND n.effective_at = t.pending_at) ELSE t.plan END = $10::text)
      AND NOT EXISTS (SELECT 1 FROM unnest($8::text[], $9::text[]) AS m (name, value) WHERE t.metadata ->> m.name IS DISTINCT FROM m.value)
    ORDER BY c.remaining, c.tenant_id
    LIMIT $11::integer
), least AS MATERIALIZED (
    SELECT DISTINCT ON (s.tenant_id) s.tenant_id, s.meter, s.remaining
    FROM (
        SELECT b.tenant_id, b.meter, b.next_event_at, greatest(b.used - b.refunded, 0) AS used,
               b.opening + b.granted + b.refunded - b.used - b.expired + b.adjusted - b.held AS remaining
        FROM matching c
        JOIN balances b ON b.tenant_id = c.tenant_id
        WHERE b.subject = '' AND ($4::text = '' OR b.meter = $4::text) AND b.period_end > $5::timestamptz
    ) AS s
    WHERE s.next_event_at <= $5::timestamptz OR s.used + s.remaining > 0 AND s.used * 100 >= $6::integer * (s.used + s.remaining)
    ORDER BY s.tenant_id, s.remaining, s.meter
), last AS (
    (SELECT m.remaining, m.tenant_id FROM matching m WHERE (SELECT count(*) FROM matching) = $11::integer ORDER BY m.remaining DESC, m.tenant_id DESC LIMIT 1)
    UNION ALL
    (SELECT w.remaining, w.tenant_id FROM walked w WHERE (SELECT count(*) FROM matching) < $11::integer ORDER BY w.remaining DESC, w.tenant_id DESC LIMIT 1)
)
SELECT coalesce(array_agg(l.tenant_id ORDER BY l.remaining, l.tenant_id), '{}'), coalesce(array_agg(l.meter ORDER BY l.remaining, l.tenant_id), '{}'),
       coalesce(array_agg(l.remaining ORDER BY l.remaining, l.tenant_id), '{}'),
       coalesce((SELECT w.remaining FROM last w), 0), coalesce((SELECT w.tenant_id FROM last w), ''), (SELECT count(*) FROM walked), (SELECT count(*) FROM matching)
FROM least l
WHERE (l.remaining, l.tenant_id) > ($1::bigint, $2::text);

-- name: BalancesAbout
-- Returns the approximate number of balances, or 0 on a Citus cluster.
SELECT greatest(c.reltuples, 0)::bigint FROM pg_class c WHERE c.oid = 'balances'::regclass;
