-- name: SelectBlocks
-- The blocks that are in force after $1, $2, $3 (kind, tenant, value), at most $4, in order.
SELECT kind, tenant_id, value, action, expires_at, reason, created_at, updated_at
FROM blocks
WHERE (kind, tenant_id, value) > ($1, $2, $3) AND (expires_at IS NULL OR expires_at > clock_timestamp())
ORDER BY kind, tenant_id, value
LIMIT $4;

-- name: SelectBlock
-- The block of kind $1 and value $3 that is in force; of a subject whose tenant is not known ($2 is null), all of them.
SELECT kind, tenant_id, value, action, expires_at, reason, created_at, updated_at
FROM blocks
WHERE kind = $1 AND ($2::text IS NULL OR tenant_id = $2) AND value = $3 AND (expires_at IS NULL OR expires_at > clock_timestamp())
ORDER BY tenant_id
LIMIT 2;

-- name: CountBlocks
SELECT count(*) FROM blocks WHERE expires_at IS NULL OR expires_at > clock_timestamp();

-- name: UpsertBlock
-- A block that is not yet over. No row if it would be.
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS at
)
INSERT INTO blocks (kind, tenant_id, value, action, expires_at, reason, created_at, updated_at)
SELECT $1, $2, $3, $4, $5, $6, clock.at, clock.at FROM clock
WHERE $5::timestamptz IS NULL OR $5 > clock.at
ON CONFLICT (kind, tenant_id, value) DO UPDATE
SET action = excluded.action, expires_at = excluded.expires_at, reason = excluded.reason, updated_at = excluded.updated_at,
    created_at = CASE WHEN blocks.expires_at <= excluded.updated_at THEN excluded.created_at ELSE blocks.created_at END
RETURNING created_at, updated_at;

-- name: DeleteBlock
-- One row if it was in force; whether it had expired is for the caller to know.
DELETE FROM blocks WHERE kind = $1 AND tenant_id = $2 AND value = $3;

-- name: ForgetBlocks
-- At most $1 of those that are over. Whoever writes a block does some of this, so that nothing else has to.
DELETE FROM blocks
WHERE ctid IN (SELECT b.ctid FROM blocks b WHERE b.expires_at <= clock_timestamp() ORDER BY b.expires_at LIMIT $1);
