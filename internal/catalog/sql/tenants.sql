-- name: SelectTenants
-- Tenants after $1 whose ids begin with $3, at most $2, in order. No id has a character above z, after which comes {.
SELECT t.tenant_id, t.plan, t.anchor, t.timezone, t.status, t.metadata, t.overrides, t.features, t.version, t.created_at, t.updated_at
FROM tenants t
WHERE t.tenant_id > $1 AND t.tenant_id >= $3 AND t.tenant_id < $3 || '{'
ORDER BY t.tenant_id
LIMIT $2;

-- name: SelectTenantPlans
-- Plan and time zone of those of the tenants $1 that exist. LATERAL as in NamedTenants.
SELECT t.tenant_id, t.plan, t.timezone
FROM unnest($1::text[]) AS k (tenant_id)
CROSS JOIN LATERAL (SELECT * FROM tenants n WHERE n.tenant_id = k.tenant_id OFFSET 0) AS t -- plain
-- citus: JOIN tenants t ON t.tenant_id = k.tenant_id AND t.tenant_id = ANY ($1::text[])
;

-- name: NamedTenants
-- The same for those of the tenants $1 that exist and come after $2. LATERAL looks each of them up: a condition on a list let the planner
-- walk through the whole table, for lists of hundreds and in generic plans.
SELECT t.tenant_id, t.plan, t.anchor, t.timezone, t.status, t.metadata, t.overrides, t.features, t.version, t.created_at, t.updated_at
FROM unnest($1::text[]) AS k (tenant_id)
CROSS JOIN LATERAL (SELECT * FROM tenants n WHERE n.tenant_id = k.tenant_id OFFSET 0) AS t -- plain
-- citus: JOIN tenants t ON t.tenant_id = k.tenant_id AND t.tenant_id = ANY ($1::text[])
WHERE t.tenant_id > $2
ORDER BY t.tenant_id;

-- name: Standings
-- What requests need of those of the tenants $1 that exist. The columns before the last say whether limits are overridden for the tenant, and for
-- subjects of it. OFFSET makes PostgreSQL look them up: for many tenants it read the overrides of all into a hash table.
SELECT t.tenant_id, t.plan, t.timezone, t.status = 'suspended', t.created_at, t.updated_at,
       EXISTS (SELECT 1 FROM limit_overrides o WHERE o.tenant_id = t.tenant_id AND o.subject = '' OFFSET 0), -- plain
       EXISTS (SELECT 1 FROM limit_overrides o WHERE o.tenant_id = t.tenant_id AND o.subject > '' OFFSET 0), -- plain
-- citus: EXISTS (SELECT 1 FROM limit_overrides o WHERE o.tenant_id = t.tenant_id AND o.subject = ''),
-- citus: EXISTS (SELECT 1 FROM limit_overrides o WHERE o.tenant_id = t.tenant_id AND o.subject > ''),
       t.features
FROM unnest($1::text[]) AS k (tenant_id)
CROSS JOIN LATERAL (SELECT * FROM tenants n WHERE n.tenant_id = k.tenant_id OFFSET 0) AS t -- plain
-- citus: JOIN tenants t ON t.tenant_id = k.tenant_id AND t.tenant_id = ANY ($1::text[])
;

-- name: SelectTenantIDs
-- For the report of what a file does not name: tenants that are not among $1, at most $2, in order.
SELECT tenant_id
FROM tenants
WHERE tenant_id <> ALL ($1::text[])
ORDER BY tenant_id
LIMIT $2;

-- name: LockTenants
-- Locks those of the tenants $1 that exist, in order, against other changes; the ledger reads on. The last column says whether
-- the stored metadata equals $2 (parallel to $1; null: not asked) in the eyes of jsonb. On Citus it is asked for one tenant at a time.
SELECT t.tenant_id, t.plan, t.anchor, t.timezone, t.status, t.metadata, t.overrides, t.features, t.version, t.created_at, t.updated_at,
       coalesce(t.metadata = k.metadata::jsonb, false)
FROM unnest($1::text[], $2::text[]) AS k (tenant_id, metadata)
JOIN tenants t ON t.tenant_id = k.tenant_id
-- citus: AND t.tenant_id = ANY ($1::text[])
ORDER BY t.tenant_id
FOR NO KEY UPDATE OF t;

-- name: InsertTenant
-- A tenant, created at $8, and its first terms, which carry the tenant's created_at. A null anchor is created_at too. No row if it
-- exists.
WITH made AS (
    INSERT INTO tenants (tenant_id, plan, anchor, timezone, status, metadata, overrides, created_at, updated_at, features)
    SELECT $1, $2, coalesce($3, $8::timestamptz), $4, $5, $6, $7, $8::timestamptz, $8::timestamptz, $9
    ON CONFLICT DO NOTHING
    RETURNING tenant_id, plan, anchor, timezone, metadata, overrides, version, created_at
), terms AS (
    INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone, overrides, initial)
    SELECT tenant_id, created_at, plan, anchor, timezone, overrides, true FROM made
)
SELECT anchor, metadata, version, created_at FROM made;

-- name: UpdateTenant
-- The row is locked. The ledger's time is $9 microseconds ahead of the clock.
UPDATE tenants
SET plan = $2, anchor = $3, timezone = $4, status = $5, metadata = $6, overrides = $7, features = $8, version = version + 1,
    updated_at = statement_timestamp() + $9::bigint * interval '1 microsecond'
WHERE tenant_id = $1
RETURNING metadata, version, updated_at;

-- name: InsertTerms
-- New terms of a locked tenant, effective at $10, which is now, and after the terms before, however the clocks were set.
-- $6: they apply at once.
INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone, overrides, initial, immediate, prorate, reason, usage)
SELECT $1, greatest($10::timestamptz,
                    (SELECT max(t.effective_at) + interval '1 microsecond' FROM tenant_terms t WHERE t.tenant_id = $1)),
       $2, $3, $4, $5, false, $6, $7, $8, $9;

-- name: SelectTerms
-- The terms of tenant $1 after the instant $2 (from the first if it is null), at most $3, in order.
SELECT effective_at, plan, anchor, timezone, overrides, initial OR immediate, prorate, usage, coalesce(reason, '')
FROM tenant_terms
WHERE tenant_id = $1 AND ($2::timestamptz IS NULL OR effective_at > $2)
ORDER BY effective_at
LIMIT $3;

-- name: TermsWait
-- Whether the newest terms of the locked tenant $1 were to wait for the next periods, or a newer version of their plan does.
SELECT NOT t.immediate AND NOT t.initial
       OR EXISTS (SELECT 1 FROM plans p WHERE p.plan = t.plan AND p.created_at > t.effective_at)
FROM tenant_terms t
WHERE t.tenant_id = $1
ORDER BY t.effective_at DESC
LIMIT 1;

-- name: CountTenantsOfPlan
-- How many tenants are on plan $1, at most $2; where $4, only those without an amount of their own of meter $3. An index has the plan.
SELECT count(*)
FROM (SELECT t.tenant_id FROM tenants t WHERE t.plan = $1::text AND NOT ($4::boolean AND jsonb_exists(t.overrides, $3::text)) LIMIT $2) AS few;

-- name: CountTenantsOfPlanWithoutFeature
-- How many tenants are on plan $1 without a value of their own of feature $3, at most $2. An index has the plan.
SELECT count(*)
FROM (SELECT t.tenant_id FROM tenants t WHERE t.plan = $1::text AND NOT jsonb_exists(t.features, $3::text) LIMIT $2) AS few;

-- name: MissingTenants
-- Those of the ids $1 that name no tenant.
-- citus: SELECT k.tenant_id FROM unnest($1::text[]) AS k (tenant_id)
-- citus: WHERE k.tenant_id NOT IN (SELECT t.tenant_id FROM tenants t WHERE t.tenant_id = ANY ($1::text[]))
SELECT k.tenant_id FROM unnest($1::text[]) AS k (tenant_id) -- plain
WHERE NOT EXISTS (SELECT 1 FROM tenants t WHERE t.tenant_id = k.tenant_id) -- plain
;
