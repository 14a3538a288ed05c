-- name: SelectTenants
-- At most $2 tenants after $1 whose ids begin with $3, in order. No character of an id is greater than ~, and
-- chr(127) is the character after it.
SELECT t.tenant_id, t.plan, t.anchor, t.timezone, t.status, t.metadata, t.overrides, t.features, t.version, t.created_at, t.updated_at
FROM tenants t
WHERE t.tenant_id > $1 AND t.tenant_id >= $3 AND t.tenant_id < $3 || chr(127)
ORDER BY t.tenant_id
LIMIT $2;

-- name: SelectTenantPlans
-- Plan and time zone of those tenants in $1 that exist. LATERAL has the same reason as in NamedTenants.
SELECT t.tenant_id, t.plan, t.timezone
FROM unnest($1::text[]) AS k (tenant_id)
CROSS JOIN LATERAL (SELECT * FROM tenants n WHERE n.tenant_id = k.tenant_id OFFSET 0) AS t -- plain
-- citus: JOIN tenants t ON t.tenant_id = k.tenant_id AND t.tenant_id = ANY ($1::text[])
;

-- name: NamedTenants
-- The columns of SelectTenants for the tenants in $1 that exist and come after $2. LATERAL makes PostgreSQL look up
-- each tenant in the index. With a condition on a list, the planner chose to read the whole table, for lists of
-- hundreds of ids and in generic plans.
SELECT t.tenant_id, t.plan, t.anchor, t.timezone, t.status, t.metadata, t.overrides, t.features, t.version, t.created_at, t.updated_at
FROM unnest($1::text[]) AS k (tenant_id)
CROSS JOIN LATERAL (SELECT * FROM tenants n WHERE n.tenant_id = k.tenant_id OFFSET 0) AS t -- plain
-- citus: JOIN tenants t ON t.tenant_id = k.tenant_id AND t.tenant_id = ANY ($1::text[])
WHERE t.tenant_id > $2
ORDER BY t.tenant_id;

-- name: Standings
-- The facts that requests need of the tenants in $1 that exist. The two EXISTS columns say whether limits are
-- overridden for the tenant, and for subjects of the tenant. OFFSET makes PostgreSQL look up the overrides of each
-- tenant. Without OFFSET, for many tenants, PostgreSQL read all overrides into a hash table.
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
-- At most $2 ids of tenants that are not in $1, in order. Apply reports these tenants because the file does not name
-- them.
SELECT tenant_id
FROM tenants
WHERE tenant_id <> ALL ($1::text[])
ORDER BY tenant_id
LIMIT $2;

-- name: LockTenants
-- Locks the tenants in $1 that exist, in order, against other changes. The ledger can still read these tenants. $2 is
-- a parallel array of new metadata; null: not compared. The last column says whether the stored and the new metadata
-- are equal as jsonb. On Citus the statement is run for one tenant at a time.
SELECT t.tenant_id, t.plan, t.anchor, t.timezone, t.status, t.metadata, t.overrides, t.features, t.version, t.created_at, t.updated_at,
       coalesce(t.metadata = k.metadata::jsonb, false)
FROM unnest($1::text[], $2::text[]) AS k (tenant_id, metadata)
JOIN tenants t ON t.tenant_id = k.tenant_id
-- citus: AND t.tenant_id = ANY ($1::text[])
ORDER BY t.tenant_id
FOR NO KEY UPDATE OF t;

-- name: InsertTenant
-- Creates a tenant at the instant $8, and its first terms, whose effective_at is the tenant's created_at. A null
-- anchor becomes created_at. Returns no row if the tenant exists.
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
-- The transaction has locked the row. The ledger's clock is $9 microseconds ahead of PostgreSQL's clock.
UPDATE tenants
SET plan = $2, anchor = $3, timezone = $4, status = $5, metadata = $6, overrides = $7, features = $8, version = version + 1,
    updated_at = statement_timestamp() + $9::bigint * interval '1 microsecond'
WHERE tenant_id = $1
RETURNING metadata, version, updated_at;

-- name: InsertTerms
-- Stores new terms of a locked tenant. They are effective at $10, the present instant. If $10 is not later than the
-- previous terms, because a clock was set back, they are effective a microsecond after the previous terms. If $6 is
-- true, the terms apply at once.
INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone, overrides, initial, at_once, prorate, reason, usage)
SELECT $1, greatest($10::timestamptz,
                    (SELECT max(t.effective_at) + interval '1 microsecond' FROM tenant_terms t WHERE t.tenant_id = $1)),
       $2, $3, $4, $5, false, $6, $7, $8, $9;

-- name: SelectTerms
-- At most $3 terms of tenant $1 that are effective after the instant $2, in order. If $2 is null, the list begins
-- with the first terms.
SELECT effective_at, plan, anchor, timezone, overrides, initial OR immediate OR at_once, prorate, usage, coalesce(reason, '')
FROM tenant_terms
WHERE tenant_id = $1 AND ($2::timestamptz IS NULL OR effective_at > $2)
ORDER BY effective_at
LIMIT $3;

-- name: TermsWait
-- Reports whether a change of the locked tenant $1 waits for its next periods. This is so if its newest terms do not
-- apply at once, or if their plan has a newer version.
SELECT NOT (t.immediate OR t.at_once OR t.initial)
       OR EXISTS (SELECT 1 FROM plans p WHERE p.plan = t.plan AND p.created_at > t.effective_at)
FROM tenant_terms t
WHERE t.tenant_id = $1
ORDER BY t.effective_at DESC
LIMIT 1;

-- name: CountTenantsOfPlan
-- The number of tenants on plan $1, at most $2. If $4 is true, it excludes tenants that override the amount of meter
-- $3. The query uses an index on the plan.
SELECT count(*)
FROM (SELECT t.tenant_id FROM tenants t WHERE t.plan = $1::text AND NOT ($4::boolean AND jsonb_exists(t.overrides, $3::text)) LIMIT $2) AS few;

-- name: CountTenantsOfPlanWithoutFeature
-- The number of tenants on plan $1 that do not override feature $3, at most $2. The query uses an index on the plan.
SELECT count(*)
FROM (SELECT t.tenant_id FROM tenants t WHERE t.plan = $1::text AND NOT jsonb_exists(t.features, $3::text) LIMIT $2) AS few;

-- name: MissingTenants
-- The ids in $1 for which no tenant exists.
-- citus: SELECT k.tenant_id FROM unnest($1::text[]) AS k (tenant_id)
-- citus: WHERE k.tenant_id NOT IN (SELECT t.tenant_id FROM tenants t WHERE t.tenant_id = ANY ($1::text[]))
SELECT k.tenant_id FROM unnest($1::text[]) AS k (tenant_id) -- plain
WHERE NOT EXISTS (SELECT 1 FROM tenants t WHERE t.tenant_id = k.tenant_id) -- plain
;
