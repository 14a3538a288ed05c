-- The statements for the hash chains of terms and of versions of plans.

-- name: AgreedState
-- Returns the instant since which chains cover all rows, and the present instant, in microseconds since 1970.
SELECT CASE WHEN isfinite(terms_at) THEN (extract(epoch FROM terms_at) * 1000000)::bigint
            WHEN terms_at < now() THEN -9223372036854775808 ELSE 9223372036854775807 END,
       (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
FROM chain_start;

-- name: AgreedTenants
-- Returns the next $2 tenants after $1 with the instant until which a change waits, 0 for none. $3: tenant or '' for all.
SELECT t.tenant_id, coalesce((extract(epoch FROM t.pending_at) * 1000000)::bigint, 0)
FROM tenants t
WHERE t.tenant_id > $1::text AND ($3::text = '' OR t.tenant_id = $3::text)
ORDER BY t.tenant_id
LIMIT $2::integer;

-- name: AgreedPlans
-- Returns the plans.
SELECT DISTINCT p.plan FROM plans p;

-- name: AgreedChains
-- Returns the chains of the tenants $1. The chains of plans have the tenant ''.
SELECT c.tenant_id, c.plan, c.chain FROM terms_chains c WHERE c.tenant_id = ANY ($1::text[]);

-- name: AgreedOrphans
-- Returns the chains of tenants that do not exist.
SELECT c.tenant_id, c.plan, c.chain
FROM terms_chains c
WHERE c.tenant_id <> '' AND (c.plan <> '' OR NOT EXISTS (SELECT 1 FROM tenants t WHERE t.tenant_id = c.tenant_id));

-- name: AgreedHeads
-- Returns the newest sealed heads of the chains of tenants $1 and plans $2, each with its day.
SELECT DISTINCT ON (s.tenant_id, s.meter) s.tenant_id, s.meter, s.day, s.chain
FROM sealed_heads s
WHERE s.tenant_id = ANY ($1::text[]) AND s.meter = ANY ($2::text[]) AND s.subject = ''
ORDER BY s.tenant_id, s.meter, s.day DESC;

-- name: AgreedTerms
-- Returns the terms of the tenants $1, oldest first: the instant from which they are in force, and the hashed document.
SELECT t.tenant_id, '', (extract(epoch FROM t.effective_at) * 1000000)::bigint, jsonb_build_object(
    'at_once', t.at_once, 'immediate', t.immediate, 'initial', t.initial, 'prorate', t.prorate,
    'anchor', (extract(epoch FROM t.anchor) * 1000000)::bigint, 'from', (extract(epoch FROM t.effective_at) * 1000000)::bigint,
    'apply', t.apply, 'plan', t.plan, 'reason', t.reason, 'tenant', t.tenant_id, 'timezone', t.timezone, 'usage', t.usage,
    'asked', t.asked, 'features', t.features, 'overrides', t.overrides)::text
FROM tenant_terms t
WHERE t.tenant_id = ANY ($1::text[])
ORDER BY t.tenant_id, t.effective_at;

-- name: AgreedVersions
-- Returns the versions of the plans $1 in the same form, with their allowances.
SELECT '', v.plan, (extract(epoch FROM v.created_at) * 1000000)::bigint, jsonb_build_object(
    'plan', v.plan, 'version', v.version, 'from', (extract(epoch FROM v.created_at) * 1000000)::bigint,
    'apply', v.apply, 'features', v.features, 'limits', v.limits,
    'allowances', (SELECT jsonb_agg(jsonb_build_object(
        'meter', a.meter, 'ordinal', a.ordinal, 'gauge', a.gauge, 'per_subject', a.per_subject, 'alert_at', a.alert_at,
        'amount', a.amount, 'every', a.every, 'anchor', a.anchor, 'expires_in_days', a.expires_in_days,
        'rollover_max', a.rollover_max, 'rollover_min', a.rollover_min,
        'overage_policy', a.overage_policy, 'overage_cap', a.overage_cap, 'overage_at_period_end', a.overage_at_period_end,
        'overflow_meter', a.overflow_meter, 'overflow_price', a.overflow_price,
        'ratio_meter', a.ratio_meter, 'ratio_units', a.ratio_units, 'ratio_per', a.ratio_per) ORDER BY a.meter)
        FROM plan_allowances a WHERE a.plan = v.plan AND a.version = v.version))::text
FROM plans v
WHERE v.plan = ANY ($1::text[])
ORDER BY v.plan, v.created_at;

-- name: WriteTermsChain
-- Writes the chain of a tenant's terms or of a plan, unless it is no longer $4 (null: there was none).
INSERT INTO terms_chains (tenant_id, plan, chain) VALUES ($1, $2, $3)
ON CONFLICT (tenant_id, plan) DO UPDATE SET chain = excluded.chain WHERE terms_chains.chain IS NOT DISTINCT FROM $4::bytea;
