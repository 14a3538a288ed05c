-- What tenants have agreed to: their terms, and the versions of their plans.

-- name: TenantTerms
-- Returns the history of terms of the tenants $1, oldest first.
SELECT t.tenant_id, t.effective_at, t.plan, t.anchor, t.timezone, t.immediate OR t.at_once, t.prorate, t.usage = 'reset', t.usage = 'add', t.overrides
FROM unnest($1::text[]) AS k (tenant_id)
CROSS JOIN LATERAL (SELECT * FROM tenant_terms o WHERE o.tenant_id = k.tenant_id
    -- citus: AND o.tenant_id = ANY ($1::text[])
    OFFSET 0) AS t
ORDER BY t.tenant_id, t.effective_at;

-- name: PlanVersions
-- Returns every version of the plans that the tenants $1 have or had. If a version has an allowance of one of the
-- meters $2, the row contains it; otherwise the meter is ''.
SELECT p.plan, p.version, p.created_at, coalesce(a.meter, ''), coalesce(a.amount, 0), coalesce(a.every, ''), coalesce(a.anchor, ''),
       a.rollover_min, a.rollover_max, coalesce(a.overage_policy = 'allow', false), a.overage_cap,
       coalesce(a.overflow_meter, a.ratio_meter, ''), coalesce(a.overflow_price, a.ratio_units, 0), coalesce(a.ratio_per, 1), a.per_subject,
       coalesce(a.expires_in_days, 0), coalesce(a.overage_at_period_end = 'preserve', false), a.alert_at
FROM (SELECT DISTINCT t.plan
      FROM unnest($1::text[]) AS k (tenant_id)
      CROSS JOIN LATERAL (SELECT * FROM tenant_terms o WHERE o.tenant_id = k.tenant_id
    -- citus: AND o.tenant_id = ANY ($1::text[])
    OFFSET 0) AS t) AS named
JOIN plans p ON p.plan = named.plan
LEFT JOIN plan_allowances a ON a.plan = p.plan AND a.version = p.version AND a.meter = ANY ($2::text[])
    AND NOT a.gauge
ORDER BY p.plan, p.version;
