-- What tenants have agreed to: their terms, and the versions of their plans.

-- name: TenantTerms
-- Returns the history of terms of the tenants $1, oldest first.
SELECT t.tenant_id, t.effective_at, t.plan, t.anchor, t.timezone, t.immediate OR t.at_once, t.prorate, t.usage = 'reset', t.usage = 'add', t.overrides
FROM unnest($1::text[]) AS k (tenant_id) -- plain
CROSS JOIN LATERAL (SELECT * FROM tenant_terms o WHERE o.tenant_id = k.tenant_id OFFSET 0) AS t -- plain
-- citus: FROM tenant_terms t WHERE t.tenant_id = ANY ($1::text[])
ORDER BY t.tenant_id, t.effective_at;

-- name: PlanVersions
-- Returns every version of the plans that the tenants $1 have or had. If a version has an allowance of one of the
-- meters $2, the row contains it; otherwise the meter is ''.
SELECT p.plan, p.version, p.created_at, coalesce(p.apply, ''), coalesce(a.meter, ''), coalesce(a.amount, 0), coalesce(a.every, ''), coalesce(a.anchor, ''),
       a.rollover_min, a.rollover_max, coalesce(a.overage_policy = 'allow', false), a.overage_cap,
       coalesce(a.overflow_meter, a.ratio_meter, ''), coalesce(a.overflow_price, a.ratio_units, 0), coalesce(a.ratio_per, 1), a.per_subject,
       coalesce(a.expires_in_days, 0), coalesce(a.overage_at_period_end = 'preserve', false), a.alert_at
FROM (SELECT DISTINCT t.plan
      FROM unnest($1::text[]) AS k (tenant_id) -- plain
      CROSS JOIN LATERAL (SELECT * FROM tenant_terms o WHERE o.tenant_id = k.tenant_id OFFSET 0) AS t -- plain
      -- citus: FROM tenant_terms t WHERE t.tenant_id = ANY ($1::text[])
) AS named
JOIN plans p ON p.plan = named.plan
LEFT JOIN plan_allowances a ON a.plan = p.plan AND a.version = p.version AND a.meter = ANY ($2::text[])
    AND NOT a.gauge
ORDER BY p.plan, p.version;

-- name: PlanRenewals
-- Returns the intervals and anchors of all allowances that renew, with their meters, of every version of the plans that
-- the tenants $1 have or had. It returns nothing if no version of these plans waits for the ends of billing periods. A
-- billing period may have begun under an earlier plan, so one such plan is enough.
WITH named AS (
    SELECT DISTINCT t.plan
    FROM unnest($1::text[]) AS k (tenant_id) -- plain
    CROSS JOIN LATERAL (SELECT * FROM tenant_terms o WHERE o.tenant_id = k.tenant_id OFFSET 0) AS t -- plain
    -- citus: FROM tenant_terms t WHERE t.tenant_id = ANY ($1::text[])
)
SELECT p.plan, p.version, a.every, a.anchor, array_agg(a.meter)
FROM named
JOIN plans p ON p.plan = named.plan
JOIN plan_allowances a ON a.plan = p.plan AND a.version = p.version AND NOT a.gauge AND a.every <> 'once'
WHERE EXISTS (SELECT 1 FROM named n JOIN plans w ON w.plan = n.plan WHERE w.apply = 'next_period')
GROUP BY p.plan, p.version, a.every, a.anchor;

-- name: VersionsWait
-- Returns the tenants among $1 that may be without the newest version of their plan at $2, because it waits for the end
-- of their billing period. No billing period is longer than a year.
SELECT t.tenant_id
FROM unnest($1::text[]) AS k (tenant_id)
CROSS JOIN LATERAL (SELECT * FROM tenants o WHERE o.tenant_id = k.tenant_id OFFSET 0) AS t -- plain
-- citus: JOIN tenants t ON t.tenant_id = k.tenant_id AND t.tenant_id = ANY ($1::text[])
LEFT JOIN LATERAL (SELECT * FROM tenant_terms o WHERE o.tenant_id = t.tenant_id AND o.effective_at = t.pending_at OFFSET 0) AS n ON true -- plain
-- citus: LEFT JOIN tenant_terms n ON n.tenant_id = t.tenant_id AND n.effective_at = t.pending_at
WHERE EXISTS (SELECT 1 FROM plans v WHERE v.plan IN (t.plan, n.plan) AND v.apply = 'next_period'
              AND v.created_at > greatest(t.created_at, $2::timestamptz - interval '400 days'));
