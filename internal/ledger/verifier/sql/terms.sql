-- The terms of tenants, from which the auditor's caller derives what no entry says.

-- name: TermsHistory
-- Returns the history of terms of the tenants $1, oldest first.
SELECT t.tenant_id, t.effective_at, t.plan, t.anchor, t.timezone, t.overrides
FROM tenant_terms t
WHERE t.tenant_id = ANY ($1::text[])
ORDER BY t.tenant_id, t.effective_at;

-- name: PlansOfTerms
-- Returns every version of the plans $1, with its allowance of each of the meters $2; the meter is '' if it has none of
-- them. Only what changes the amounts and the ends of periods is returned.
SELECT p.plan, p.version, p.created_at, coalesce(a.meter, ''), coalesce(a.amount, 0), coalesce(a.every, ''), coalesce(a.anchor, ''),
       a.rollover_min, a.rollover_max, a.per_subject, coalesce(a.expires_in_days, 0), coalesce(a.overage_at_period_end = 'preserve', false)
FROM plans p
LEFT JOIN plan_allowances a ON a.plan = p.plan AND a.version = p.version AND a.meter = ANY ($2::text[]) AND NOT a.gauge
WHERE p.plan = ANY ($1::text[])
ORDER BY p.plan, p.version;
