-- name: SelectBlocks
-- At most $4 blocks that are in force at $6, after (kind $1, tenant $2, value $3), in order. If $5 is not empty, the
-- query selects only the blocks of tenant $5 and of its subjects.
SELECT kind, tenant_id, value, action, expires_at, reason, created_at, updated_at
FROM blocks
WHERE (kind, tenant_id, value) > ($1, $2, $3) AND (expires_at IS NULL OR expires_at > $6::timestamptz)
  AND ($5::text = '' OR kind = 'tenant' AND value = $5 OR kind = 'subject' AND tenant_id = $5)
ORDER BY kind, tenant_id, value
LIMIT $4;

-- name: SelectBlock
-- The block of kind $1, tenant $2 and value $3 that is in force at $4. If $2 is null, the tenant of a subject is not
-- known. Then the query selects the blocks of any tenant, at most two.
SELECT kind, tenant_id, value, action, expires_at, reason, created_at, updated_at
FROM blocks
WHERE kind = $1 AND ($2::text IS NULL OR tenant_id = $2) AND value = $3 AND (expires_at IS NULL OR expires_at > $4::timestamptz)
ORDER BY tenant_id
LIMIT 2;

-- name: CountBlocks
-- The number of blocks in force at $1.
SELECT count(*) FROM blocks WHERE expires_at IS NULL OR expires_at > $1::timestamptz;

-- name: UpsertBlock
-- Stores a block, unless it has expired at $7, the present instant. Returns no row if it has expired.
INSERT INTO blocks (kind, tenant_id, value, action, expires_at, reason, created_at, updated_at)
SELECT $1, $2, $3, $4, $5, $6, $7::timestamptz, $7::timestamptz
WHERE $5::timestamptz IS NULL OR $5 > $7::timestamptz
ON CONFLICT (kind, tenant_id, value) DO UPDATE
SET action = excluded.action, expires_at = excluded.expires_at, reason = excluded.reason, updated_at = excluded.updated_at,
    created_at = CASE WHEN blocks.expires_at <= excluded.updated_at THEN excluded.created_at ELSE blocks.created_at END
RETURNING created_at, updated_at;

-- name: DeleteBlock
-- Deletes a block, even if it has expired. The caller has checked that it is in force.
DELETE FROM blocks WHERE kind = $1 AND tenant_id = $2 AND value = $3;

-- name: ForgetBlocks
-- Deletes at most $1 blocks that have expired at $2. Each write of a block runs this statement, so no job has to
-- delete expired blocks.
DELETE FROM blocks
WHERE ctid IN (SELECT b.ctid FROM blocks b WHERE b.expires_at <= $2::timestamptz ORDER BY b.expires_at LIMIT $1);
