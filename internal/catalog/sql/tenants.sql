-- In the statements that read tenants, n are the terms that wait until t.pending_at. All their columns are null if no
-- change waits. If that instant has come, the terms of n are in force: Tenant.advance and TenantFacts.at decide it.

-- name: SelectTenants
-- At most $2 tenants after $1 whose ids begin with $3, in order. No character of an id is greater than ~, and
-- chr(127) is the character after it.
SELECT t.tenant_id, t.plan, t.anchor, t.timezone, t.status, t.metadata, t.overrides, t.features, t.version, t.created_at, t.updated_at,
       n.effective_at, n.plan, n.anchor, n.timezone, n.overrides, n.features, n.apply, n.prorate, n.usage, n.reason, n.asked
FROM tenants t
LEFT JOIN LATERAL (SELECT * FROM tenant_terms o WHERE o.tenant_id = t.tenant_id AND o.effective_at = t.pending_at OFFSET 0) AS n ON true -- plain
-- citus: LEFT JOIN tenant_terms n ON n.tenant_id = t.tenant_id AND n.effective_at = t.pending_at
WHERE t.tenant_id > $1 AND t.tenant_id >= $3 AND t.tenant_id < $3 || chr(127)
ORDER BY t.tenant_id
LIMIT $2;

-- name: SelectTenantPlans
-- Plan and time zone at the instant $2 of those tenants in $1 that exist. LATERAL has the same reason as in NamedTenants.
SELECT t.tenant_id, coalesce(n.plan, t.plan), coalesce(n.timezone, t.timezone)
FROM unnest($1::text[]) AS k (tenant_id)
CROSS JOIN LATERAL (SELECT * FROM tenants o WHERE o.tenant_id = k.tenant_id OFFSET 0) AS t -- plain
-- citus: JOIN tenants t ON t.tenant_id = k.tenant_id AND t.tenant_id = ANY ($1::text[])
LEFT JOIN LATERAL (SELECT * FROM tenant_terms o WHERE o.tenant_id = t.tenant_id AND o.effective_at = t.pending_at AND t.pending_at <= $2 OFFSET 0) AS n ON true -- plain
-- citus: LEFT JOIN tenant_terms n ON n.tenant_id = t.tenant_id AND n.effective_at = t.pending_at AND t.pending_at <= $2::timestamptz
;

-- name: NamedTenants
-- The columns of SelectTenants for the tenants in $1 that exist and come after $2. LATERAL makes PostgreSQL look up
-- each tenant in the index. With a condition on a list, the planner chose to read the whole table, for lists of
-- hundreds of ids and in generic plans.
SELECT t.tenant_id, t.plan, t.anchor, t.timezone, t.status, t.metadata, t.overrides, t.features, t.version, t.created_at, t.updated_at,
       n.effective_at, n.plan, n.anchor, n.timezone, n.overrides, n.features, n.apply, n.prorate, n.usage, n.reason, n.asked
FROM unnest($1::text[]) AS k (tenant_id)
CROSS JOIN LATERAL (SELECT * FROM tenants o WHERE o.tenant_id = k.tenant_id OFFSET 0) AS t -- plain
-- citus: JOIN tenants t ON t.tenant_id = k.tenant_id AND t.tenant_id = ANY ($1::text[])
LEFT JOIN LATERAL (SELECT * FROM tenant_terms o WHERE o.tenant_id = t.tenant_id AND o.effective_at = t.pending_at OFFSET 0) AS n ON true -- plain
-- citus: LEFT JOIN tenant_terms n ON n.tenant_id = t.tenant_id AND n.effective_at = t.pending_at
WHERE t.tenant_id > $2
ORDER BY t.tenant_id;

-- name: Standings
-- The facts that requests need of the tenants in $1 that exist. The two EXISTS columns say whether limits are
-- overridden for the tenant, and for subjects of the tenant. The columns about plans are the newest version, the instant
-- at which the newest version was made, and whether a version may wait at $2: see VersionsWait. OFFSET makes PostgreSQL look up the overrides of each
-- tenant. Without OFFSET, for many tenants, PostgreSQL read all overrides into a hash table.
SELECT t.tenant_id, t.plan, t.timezone, t.status = 'suspended', t.created_at, t.updated_at,
       EXISTS (SELECT 1 FROM limit_overrides o WHERE o.tenant_id = t.tenant_id AND o.subject = '' OFFSET 0), -- plain
       EXISTS (SELECT 1 FROM limit_overrides o WHERE o.tenant_id = t.tenant_id AND o.subject > '' OFFSET 0), -- plain
-- citus: EXISTS (SELECT 1 FROM limit_overrides o WHERE o.tenant_id = t.tenant_id AND o.subject = ''),
-- citus: EXISTS (SELECT 1 FROM limit_overrides o WHERE o.tenant_id = t.tenant_id AND o.subject > ''),
       t.features, coalesce((SELECT max(v.version) FROM plans v WHERE v.plan = t.plan), 0),
       coalesce((SELECT max(v.created_at) FROM plans v WHERE v.plan IN (t.plan, n.plan)), 'epoch'),
       EXISTS (SELECT 1 FROM plans v WHERE v.plan IN (t.plan, n.plan) AND v.apply = 'next_period'
               AND v.created_at > greatest(t.created_at, $2::timestamptz - interval '400 days')),
       n.effective_at, n.plan, n.timezone, n.features, coalesce((SELECT max(v.version) FROM plans v WHERE v.plan = n.plan), 0)
FROM unnest($1::text[]) AS k (tenant_id)
CROSS JOIN LATERAL (SELECT * FROM tenants o WHERE o.tenant_id = k.tenant_id OFFSET 0) AS t -- plain
-- citus: JOIN tenants t ON t.tenant_id = k.tenant_id AND t.tenant_id = ANY ($1::text[])
LEFT JOIN LATERAL (SELECT * FROM tenant_terms o WHERE o.tenant_id = t.tenant_id AND o.effective_at = t.pending_at OFFSET 0) AS n ON true -- plain
-- citus: LEFT JOIN tenant_terms n ON n.tenant_id = t.tenant_id AND n.effective_at = t.pending_at
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
       coalesce(t.metadata = k.metadata::jsonb, false), t.pending_at
FROM unnest($1::text[], $2::text[]) AS k (tenant_id, metadata)
JOIN tenants t ON t.tenant_id = k.tenant_id
-- citus: AND t.tenant_id = ANY ($1::text[])
ORDER BY t.tenant_id
FOR NO KEY UPDATE OF t;

-- name: PendingTerms
-- The terms that wait of the locked tenants $1. It runs after the locks: a statement that waits for a lock would join the
-- terms of before.
SELECT t.tenant_id, n.effective_at, n.plan, n.anchor, n.timezone, n.overrides, n.features, n.apply, n.prorate, n.usage, n.reason, n.asked
FROM tenants t
JOIN tenant_terms n ON n.tenant_id = t.tenant_id AND n.effective_at = t.pending_at
WHERE t.tenant_id = ANY ($1::text[]);

-- name: DueTenants
-- At most $2 tenants whose terms wait until $1 or earlier, those that wait longest first.
SELECT t.tenant_id FROM tenants t WHERE t.pending_at <= $1::timestamptz ORDER BY t.pending_at, t.tenant_id LIMIT $2;

-- name: AdvanceTenant
-- Puts the terms that wait of a locked tenant into force.
UPDATE tenants
SET plan = $2, anchor = $3, timezone = $4, overrides = $5, features = $6, version = $7, updated_at = $8, pending_at = NULL
WHERE tenant_id = $1;

-- name: DeleteTerms
-- Removes the terms of the tenant $1 that wait until $2.
DELETE FROM tenant_terms WHERE tenant_id = $1 AND effective_at = $2;

-- name: OpenPeriods
-- The latest end, by meter, of those periods of the meters $2 of the tenant $1 that are open at $3 and have an end.
SELECT b.meter, max(b.period_end)
FROM balances b
WHERE b.tenant_id = $1 AND b.meter = ANY ($2::text[]) AND b.period_start <= $3::timestamptz AND b.period_end > $3::timestamptz
  AND b.period_end < '9999-12-31'
GROUP BY b.meter;

-- name: StoredChange
-- The change of the locked tenant $1 that was made with the key $2.
SELECT c.fingerprint, c.answer FROM tenant_changes c WHERE c.tenant_id = $1 AND c.key = $2;

-- name: StoreChange
INSERT INTO tenant_changes (tenant_id, key, fingerprint, answer, created_at) VALUES ($1, $2, $3, $4, $5);

-- name: ForgetChanges
-- Removes the changes of the tenant $1 that were made before $2.
DELETE FROM tenant_changes WHERE tenant_id = $1 AND created_at < $2;

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
    pending_at = $10,
    updated_at = statement_timestamp() + $9::bigint * interval '1 microsecond'
WHERE tenant_id = $1
RETURNING metadata, version, updated_at;

-- name: InsertTerms
-- Stores new terms of a locked tenant, which take effect at $10, the present instant. If $10 is not later than the
-- previous terms, because a clock was set back, they take effect a microsecond after the previous terms. Terms that
-- wait until $11 (null: none) are not previous ones.
INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone, overrides, initial, at_once, prorate, reason, usage, apply)
SELECT $1, greatest($10::timestamptz,
                    (SELECT max(t.effective_at) + interval '1 microsecond' FROM tenant_terms t
                     WHERE t.tenant_id = $1 AND ($11::timestamptz IS NULL OR t.effective_at < $11::timestamptz))),
       $2, $3, $4, $5, false, true, $6, $7, $8, $9
RETURNING effective_at;

-- name: InsertPending
-- Stores terms of a locked tenant that wait until $2.
INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone, overrides, initial, at_once, prorate, reason, usage, apply, features, asked)
VALUES ($1, $2, $3, $4, $5, $6, false, true, $7, $8, $9, $10, $11, $12);

-- name: SelectTerms
-- At most $3 terms of tenant $1 that are effective after the instant $2, in order. If $2 is null, the list begins
-- with the first terms. Terms that wait are the last ones.
SELECT effective_at, plan, anchor, timezone, overrides,
       coalesce(apply, CASE WHEN initial OR immediate OR at_once THEN 'now' ELSE 'next_period' END), prorate, usage, coalesce(reason, '')
FROM tenant_terms
WHERE tenant_id = $1 AND ($2::timestamptz IS NULL OR effective_at > $2)
ORDER BY effective_at
LIMIT $3;

-- name: TermsWait
-- Reports whether periods of the locked tenant $1 may be open under other terms than those in force. This is so if its
-- newest terms do not apply at once (programs before version 1.2 stored such terms), or if their plan has a newer
-- version. Terms that wait until $2 (null: none) do not count.
SELECT NOT (t.immediate OR t.at_once OR t.initial)
       OR EXISTS (SELECT 1 FROM plans p WHERE p.plan = t.plan AND p.created_at > t.effective_at)
FROM tenant_terms t
WHERE t.tenant_id = $1 AND ($2::timestamptz IS NULL OR t.effective_at < $2::timestamptz)
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

-- name: TermsAfter
-- The terms of the tenant $1 that take effect after $2 (null: all), and those that take effect at $3, oldest first. The
-- document is what the chain of the terms covers. Instants are microseconds since 1970.
SELECT effective_at,
       jsonb_build_object(
           'tenant', tenant_id, 'from', (extract(epoch FROM effective_at) * 1000000)::bigint, 'plan', plan,
           'anchor', (extract(epoch FROM anchor) * 1000000)::bigint, 'timezone', timezone, 'initial', initial,
           'immediate', immediate, 'at_once', at_once, 'prorate', prorate, 'usage', usage, 'overrides', overrides,
           'features', features, 'apply', apply, 'asked', asked, 'reason', reason)::text
FROM tenant_terms
WHERE tenant_id = $1 AND ($2::timestamptz IS NULL OR effective_at > $2::timestamptz OR effective_at = $3::timestamptz)
ORDER BY effective_at;

-- name: TermsChain
-- The chain of the terms of the tenant $1 (plan $2 is ''), or of the versions of the plan $2 (tenant $1 is ''). The lock
-- of the tenant, or of the catalogue, keeps two changes from extending it at once.
SELECT chain FROM terms_chains WHERE tenant_id = $1 AND plan = $2;

-- name: TermsChainStart
-- The instant before which the version before may have written rows outside a chain.
SELECT greatest('0001-01-01', least(terms_at, '9999-12-31')) FROM chain_start;

-- name: StoreTermsChain
INSERT INTO terms_chains (tenant_id, plan, chain) VALUES ($1, $2, $3)
ON CONFLICT (tenant_id, plan) DO UPDATE SET chain = excluded.chain;
