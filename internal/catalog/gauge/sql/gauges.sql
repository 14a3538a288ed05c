-- name: StoredKey
-- The entry that the operation with the key $2 of the tenant $1 made. An entry never changes.
SELECT e.meter, e.subject, e.fingerprint, e.before, e.after, e.allowed, e.created_at
FROM gauge_entries e
WHERE e.tenant_id = $1 AND e.operation_id = $2;

-- name: Standing
-- The limit of the gauge $2 of the tenant $1, or of one of its subjects if $3 is true, by the terms in force at $4 and
-- version $5 of the plan (0: the newest). It is
-- the largest value to which the gauge may be set. Also the kind of the meter. The limit is null if the tenant's plan has
-- no such gauge. There is no row if the tenant or the meter does not exist; TenantExists distinguishes these cases.
SELECT s.suspended, s.kind, s.plan,
       CASE WHEN $3 THEN a.per_subject WHEN a.meter IS NOT NULL THEN coalesce((s.overrides ->> s.meter)::bigint, a.amount) END
FROM (SELECT t.status = 'suspended' AS suspended, m.kind, m.meter, coalesce(n.plan, t.plan) AS plan, coalesce(n.overrides, t.overrides) AS overrides
      FROM tenants t
      JOIN meters m ON m.meter = $2::text
      LEFT JOIN tenant_terms n ON n.tenant_id = t.tenant_id AND n.effective_at = t.pending_at AND t.pending_at <= $4::timestamptz
      -- citus: AND n.tenant_id = $1::text
      WHERE t.tenant_id = $1::text) AS s
LEFT JOIN plan_allowances a ON a.plan = s.plan AND a.version = coalesce(nullif($5::integer, 0), (SELECT max(p.version) FROM plans p WHERE p.plan = s.plan))
    AND a.meter = s.meter AND a.gauge;

-- name: TenantExists
SELECT EXISTS (SELECT 1 FROM tenants t WHERE t.tenant_id = $1);

-- name: MakeGauge
-- Creates the row of a gauge, so that the row can be locked. Does nothing if the row exists.
INSERT INTO gauges (tenant_id, meter, subject, value, seq, updated_at) VALUES ($1, $2, $3, 0, 0, $4)
ON CONFLICT DO NOTHING;

-- name: LockGauge
SELECT g.value, g.seq FROM gauges g WHERE g.tenant_id = $1 AND g.meter = $2 AND g.subject = $3 FOR UPDATE;

-- name: ReadGauge
SELECT g.value, g.seq, g.updated_at FROM gauges g WHERE g.tenant_id = $1 AND g.meter = $2 AND g.subject = $3;

-- name: UpdateGauge
-- The transaction has locked the row.
UPDATE gauges g SET value = $4, seq = $5, updated_at = $6 WHERE g.tenant_id = $1 AND g.meter = $2 AND g.subject = $3;

-- name: InsertEntry
INSERT INTO gauge_entries (tenant_id, meter, subject, seq, operation_id, fingerprint, before, after, allowed, created_at, actor)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, nullif($11::text, ''));

-- name: Entries
-- At most $5 entries of a gauge whose numbers are below $4, newest first.
SELECT e.seq, e.operation_id, e.before, e.after, e.allowed, e.created_at, coalesce(e.actor, '')
FROM gauge_entries e
WHERE e.tenant_id = $1 AND e.meter = $2 AND e.subject = $3 AND e.seq < $4
ORDER BY e.seq DESC
LIMIT $5;

-- name: ListGauges
-- At most $5 gauges of the tenant $1 at the instant $6 under version $7 of its plan (0: the newest), from (meter $2,
-- subject $3) to meter $4. The columns are the key, the value,
-- the limit, and the time of the newest change. If the plan lacks the gauge, its limit is 0, and it is listed only
-- while its value is above 0. The query reads the plan's gauges and a part of the stored gauges. It skips stored
-- gauges with the value 0 and no limit.
WITH allowed AS (
    SELECT a.meter, coalesce((s.overrides ->> a.meter)::bigint, a.amount) AS amount, a.per_subject
    FROM (SELECT coalesce(n.plan, t.plan) AS plan, coalesce(n.overrides, t.overrides) AS overrides
          FROM tenants t
          LEFT JOIN tenant_terms n ON n.tenant_id = t.tenant_id AND n.effective_at = t.pending_at AND t.pending_at <= $6::timestamptz
          -- citus: AND n.tenant_id = $1::text
          WHERE t.tenant_id = $1::text) AS s
    JOIN plan_allowances a ON a.plan = s.plan AND a.version = coalesce(nullif($7::integer, 0), (SELECT max(p.version) FROM plans p WHERE p.plan = s.plan))
        AND a.gauge
), set AS (
    SELECT g.meter, g.subject, g.value, CASE WHEN g.subject = '' THEN a.amount ELSE a.per_subject END AS amount, g.updated_at
    FROM gauges g
    LEFT JOIN allowed a ON a.meter = g.meter
    WHERE g.tenant_id = $1::text AND (g.meter, g.subject) >= ($2::text, $3::text) AND g.meter <= $4::text
      AND (g.value > 0 OR CASE WHEN g.subject = '' THEN a.amount ELSE a.per_subject END IS NOT NULL)
    ORDER BY g.meter, g.subject
    LIMIT $5::integer
)
SELECT l.meter, l.subject, l.value, coalesce(l.amount, 0), coalesce(l.updated_at, '0001-01-01T00:00:00Z')
FROM (
    SELECT s.meter, s.subject, s.value, s.amount, s.updated_at FROM set s
    UNION ALL
    SELECT a.meter, '', 0, a.amount, NULL
    FROM allowed a
    WHERE (a.meter, '') >= ($2::text, $3::text) AND a.meter <= $4::text
      AND NOT EXISTS (SELECT 1 FROM gauges g WHERE g.tenant_id = $1::text AND g.meter = a.meter AND g.subject = '')
) AS l
ORDER BY l.meter, l.subject
LIMIT $5::integer;
