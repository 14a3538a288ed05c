-- The statements of reads. A read of several statements runs in one REPEATABLE READ transaction, so that all its
-- statements see the same instant.

-- name: SelectBalances
-- Returns the stored rows of the balances $1..$3 without locking them.
SELECT b.tenant_id, b.meter, b.subject, b.seq, b.plan, b.plan_version, b.allowance, b.renews, b.period_start, b.period_end,
       b.opening, b.granted, b.refunded, b.used, b.expired, b.adjusted, b.held, b.overage,
       b.owed, b.settled, b.carried, b.amended, b.entitled, b.short, b.overage_before, b.carried_from, b.allowance_at, b.terms_at,
       b.forgiven_seq, b.head_grant, b.head_source, b.head_remaining,
       b.next_event_at, b.updated_at, coalesce(b.roll_at, b.next_event_at), b.chain
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (tenant_id, meter, subject)
JOIN balances b ON b.tenant_id = k.tenant_id AND b.meter = k.meter AND b.subject = k.subject
-- citus: AND b.tenant_id = ANY ($1::text[])
;

-- name: OpenOverflows
-- Returns how many units of the balances $1..$3 other meters have paid for, in the periods that are open by the stored
-- rows. Balances of subjects have none. 2^63-1 stands for any larger sum.
SELECT o.tenant_id, o.meter, o.period_start, least(sum(o.units), 9223372036854775807)::bigint
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (tenant_id, meter, subject)
JOIN balances b ON b.tenant_id = k.tenant_id AND b.meter = k.meter AND b.subject = k.subject AND k.subject = ''
JOIN overflows o ON o.tenant_id = k.tenant_id AND o.meter = k.meter AND o.period_start = b.period_start AND o.quarter = 'epoch'
-- citus: AND b.tenant_id = ANY ($1::text[]) AND o.tenant_id = ANY ($1::text[])
GROUP BY o.tenant_id, o.meter, o.period_start;

-- name: MetersOf
-- Returns the meters of tenant $1 and subject $2: the meters with a balance and the meters of the plan at the instant
-- $3, of all versions that may be in force. A version that waits does so for at most a year. For a subject, only the
-- meters of the plan that have a cap per subject count.
SELECT b.meter
FROM balances b
WHERE b.tenant_id = $1::text AND b.subject = $2::text
UNION
SELECT a.meter
FROM (SELECT coalesce(n.plan, t.plan) AS plan
      FROM tenants t
      LEFT JOIN tenant_terms n ON n.tenant_id = t.tenant_id AND n.effective_at = t.pending_at AND t.pending_at <= $3::timestamptz
      -- citus: AND n.tenant_id = $1::text
      WHERE t.tenant_id = $1::text) AS s
JOIN plan_allowances a ON a.plan = s.plan AND a.version >= (
    SELECT max(p.version) FROM plans p
    WHERE p.plan = s.plan AND (p.version = 1 OR p.apply IS DISTINCT FROM 'next_period' OR p.created_at < $3::timestamptz - interval '400 days'))
WHERE NOT a.gauge AND ($2::text = '' OR a.per_subject IS NOT NULL)
ORDER BY 1;

-- name: TenantExists
SELECT EXISTS (SELECT 1 FROM tenants t WHERE t.tenant_id = $1);

-- name: KeysOfTenant
-- Returns the operation ids of tenant $1 from month $2 on, each once, at most $3.
SELECT e.operation_id FROM entries e WHERE e.tenant_id = $1 AND e.month >= $2 AND e.line = 1 LIMIT $3::integer;

-- name: GrantsPage
-- Returns a page of a tenant's grants after ($2 meter, $3 subject, $4 grant). $5: meter or '' for all; $6: stored
-- states, NULL for all. The remainder of the head grant is in the balance row.
SELECT g.tenant_id, g.meter, g.subject, g.grant_id, g.source, g.amount,
       CASE WHEN b.head_grant = g.grant_id THEN b.head_remaining ELSE g.remaining END,
       g.held, g.priority, g.effective_at, g.expires_at, coalesce(g.cost_basis, ''), coalesce(g.reason, ''), g.status,
       g.operation_id, g.created_at
FROM grants g
JOIN balances b ON b.tenant_id = g.tenant_id AND b.meter = g.meter AND b.subject = g.subject
WHERE g.tenant_id = $1::text AND (g.meter, g.subject, g.grant_id) > ($2::text, $3::text, $4::text)
  AND ($5::text = '' OR g.meter = $5::text) AND ($6::text[] IS NULL OR g.status = ANY ($6::text[]))
ORDER BY g.meter, g.subject, g.grant_id
LIMIT $7::integer;

-- name: BalancesBetween
-- Returns at most $7 balances of tenant $1, from ($2 meter, $3 subject) up to ($4, $5). If $4 is '', there is no
-- upper end. It includes the balances without a row of the meters that the plan has at the instant $9. $6: meter or ''
-- for all. If $8 is true, ($2, $3) is left out.
SELECT k.meter, k.subject
FROM (
    SELECT b.meter, b.subject FROM balances b WHERE b.tenant_id = $1::text AND (b.meter, b.subject) >= ($2::text, $3::text)
    UNION
    SELECT a.meter, ''
    FROM (SELECT coalesce(n.plan, t.plan) AS plan
          FROM tenants t
          LEFT JOIN tenant_terms n ON n.tenant_id = t.tenant_id AND n.effective_at = t.pending_at AND t.pending_at <= $9::timestamptz
          -- citus: AND n.tenant_id = $1::text
          WHERE t.tenant_id = $1::text) AS s
    JOIN plan_allowances a ON a.plan = s.plan AND a.version >= (
        SELECT max(p.version) FROM plans p
        WHERE p.plan = s.plan AND (p.version = 1 OR p.apply IS DISTINCT FROM 'next_period' OR p.created_at < $9::timestamptz - interval '400 days'))
    WHERE NOT a.gauge AND (a.meter, '') >= ($2::text, $3::text)
) AS k
WHERE ($4::text = '' OR (k.meter, k.subject) <= ($4::text, $5::text)) AND ($6::text = '' OR k.meter = $6::text)
  AND NOT ($8::boolean AND k.meter = $2::text AND k.subject = $3::text)
ORDER BY k.meter, k.subject
LIMIT $7::integer;

-- name: HoldsPage
-- Returns a page of a tenant's holds after $2, with the amounts that each hold still reserves. An amount is per item,
-- in units of the item's meter. At a price that is not a whole number the lines do not have this amount. It is then
-- the part that was not captured. $3: status or '' for all; $4: id of one hold or '' for all. $6 is the present
-- instant. A hold whose expires_at is not later counts as expired, even if its units were not returned yet.
SELECT h.hold_id, h.subject, h.status, h.items, h.created_at, h.expires_at, coalesce(r.items, '{}'), coalesce(r.held, '{}')
FROM (
    SELECT o.tenant_id, o.hold_id, o.subject, o.items, o.created_at, o.expires_at,
           CASE WHEN o.status = 'active' AND o.expires_at <= $6::timestamptz THEN 'expired' ELSE o.status END AS status
    FROM holds o
    WHERE o.tenant_id = $1::text AND o.hold_id > $2::text AND ($4::text = '' OR o.hold_id = $4::text)
) AS h
LEFT JOIN LATERAL (
    SELECT array_agg(s.item) AS items, array_agg(s.held) AS held
    FROM (
        SELECT l.item, CASE WHEN bool_or(l.per > 1 AND l.captured + l.returned < l.amount)
                            THEN greatest(0, (h.items -> l.item ->> 'amount')::bigint - (h.items -> l.item ->> 'captured')::bigint)
                            ELSE sum((l.amount - l.captured - l.returned) / l.price)::bigint END AS held
        FROM hold_lines l
        WHERE l.tenant_id = h.tenant_id AND l.hold_id = h.hold_id AND l.subject = ''
        -- citus: AND l.tenant_id = $1::text
        GROUP BY l.item
    ) AS s
) AS r ON h.status = 'active'
WHERE $3::text = '' OR h.status = $3::text
ORDER BY h.hold_id
LIMIT $5::integer;

-- name: OldestInstant
-- Returns the first instant after the archived months, if anything of tenant $1 was archived.
SELECT (max(a.month) + interval '1 month') AT TIME ZONE 'UTC'
FROM archives a
WHERE EXISTS (SELECT 1 FROM checkpoints c WHERE c.tenant_id = $1::text AND c.archived)
HAVING max(a.month) IS NOT NULL;
