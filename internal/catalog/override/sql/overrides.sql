-- name: LockRule
-- If the limit $1 exists, no other transaction can delete it until this transaction ends.
SELECT 1 FROM limits WHERE rule = $1 FOR KEY SHARE;

-- name: SelectOverride
-- The override of rule $1 for tenant $2 and subject $3 that is in force at $4.
SELECT rule, tenant_id, subject, rate, burst, expires_at, created_at, updated_at
FROM limit_overrides
WHERE rule = $1 AND tenant_id = $2 AND subject = $3 AND (expires_at IS NULL OR expires_at > $4::timestamptz);

-- name: ListOverrides
-- At most $4 overrides of rule $1 that are in force at $5, after (tenant $2, subject $3), in order. If $6 is not
-- empty, the query selects only the overrides of tenant $6.
SELECT rule, tenant_id, subject, rate, burst, expires_at, created_at, updated_at
FROM limit_overrides
WHERE rule = $1 AND (tenant_id, subject) > ($2, $3) AND (expires_at IS NULL OR expires_at > $5::timestamptz) AND ($6::text = '' OR tenant_id = $6)
ORDER BY tenant_id, subject
LIMIT $4;

-- name: CountOverrides
-- The number of rules that are overridden for tenant $1 and subject $2, or $3 if the number is larger.
SELECT count(*) FROM (SELECT 1 FROM limit_overrides WHERE tenant_id = $1 AND subject = $2 LIMIT $3) AS rules;

-- name: OverridesOfTenant
-- The overrides of tenant $1 and of its subjects that are in force at $2.
SELECT rule, subject, created_at FROM limit_overrides WHERE tenant_id = $1 AND (expires_at IS NULL OR expires_at > $2);

-- name: UpsertOverride
INSERT INTO limit_overrides (rule, tenant_id, subject, rate, burst, expires_at, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $7)
ON CONFLICT (tenant_id, subject, rule) DO UPDATE
SET rate = excluded.rate, burst = excluded.burst, expires_at = excluded.expires_at, updated_at = excluded.updated_at,
    created_at = CASE WHEN limit_overrides.expires_at <= excluded.updated_at THEN excluded.created_at ELSE limit_overrides.created_at END
RETURNING created_at, updated_at;

-- name: DeleteOverride
DELETE FROM limit_overrides WHERE rule = $1 AND tenant_id = $2 AND subject = $3;

-- name: ForgetOverrides
-- Deletes at most $1 overrides that have expired at $2. Each write of an override runs this statement, so no job has
-- to delete expired overrides.
-- citus: DELETE FROM limit_overrides d WHERE d.expires_at <= $2::timestamptz AND (d.tenant_id, d.subject, d.rule) IN (
-- citus: SELECT o.tenant_id, o.subject, o.rule FROM limit_overrides o WHERE o.expires_at <= $2::timestamptz ORDER BY o.expires_at LIMIT $1)
DELETE FROM limit_overrides -- plain
WHERE ctid IN (SELECT o.ctid FROM limit_overrides o WHERE o.expires_at <= $2::timestamptz ORDER BY o.expires_at LIMIT $1 FOR UPDATE SKIP LOCKED) -- plain
;

-- name: SelectOverridesOf
-- The overrides of the tenants $1 and subjects $2 (parallel arrays), including expired overrides.
SELECT o.rule, o.tenant_id, o.subject, o.rate, o.burst, o.expires_at, o.created_at, o.updated_at
FROM unnest($1::text[], $2::text[]) AS k (tenant_id, subject)
JOIN limit_overrides o ON o.tenant_id = k.tenant_id AND o.subject = k.subject;
