-- name: SelectBlocks
-- The blocks that are in force at $6, after $1, $2, $3 (kind, tenant, value), at most $4, in order; of tenant $5 and its subjects unless it is
-- empty.
SELECT kind, tenant_id, value, action, expires_at, reason, created_at, updated_at
FROM blocks
WHERE (kind, tenant_id, value) > ($1, $2, $3) AND (expires_at IS NULL OR expires_at > $6::timestamptz)
  AND ($5::text = '' OR kind = 'tenant' AND value = $5 OR kind = 'subject' AND tenant_id = $5)
ORDER BY kind, tenant_id, value
LIMIT $4;

-- name: SelectBlock
-- The block of kind $1 and value $3 that is in force at $4; of a subject whose tenant is not known ($2 is null), all of them.
SELECT kind, tenant_id, value, action, expires_at, reason, created_at, updated_at
FROM blocks
WHERE kind = $1 AND ($2::text IS NULL OR tenant_id = $2) AND value = $3 AND (expires_at IS NULL OR expires_at > $4::timestamptz)
ORDER BY tenant_id
LIMIT 2;

-- name: CountBlocks
-- The number of blocks in force at $1.
SELECT count(*) FROM blocks WHERE expires_at IS NULL OR expires_at > $1::timestamptz;

-- name: UpsertBlock
-- A block that is not yet over at $7, which is now. No row if it would be.
INSERT INTO blocks (kind, tenant_id, value, action, expires_at, reason, created_at, updated_at)
SELECT $1, $2, $3, $4, $5, $6, $7::timestamptz, $7::timestamptz
WHERE $5::timestamptz IS NULL OR $5 > $7::timestamptz
ON CONFLICT (kind, tenant_id, value) DO UPDATE
SET action = excluded.action, expires_at = excluded.expires_at, reason = excluded.reason, updated_at = excluded.updated_at,
    created_at = CASE WHEN blocks.expires_at <= excluded.updated_at THEN excluded.created_at ELSE blocks.created_at END
RETURNING created_at, updated_at;

-- name: DeleteBlock
-- One row if it was in force; whether it had expired is for the caller to know.
DELETE FROM blocks WHERE kind = $1 AND tenant_id = $2 AND value = $3;

-- name: ForgetBlocks
-- At most $1 of those that are over at $2. Whoever writes a block does some of this, so that nothing else has to.
DELETE FROM blocks
WHERE ctid IN (SELECT b.ctid FROM blocks b WHERE b.expires_at <= $2::timestamptz ORDER BY b.expires_at LIMIT $1);
