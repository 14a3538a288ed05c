-- Links to the customers' pages.

-- name: InsertLink
-- Adds a link that ends in $6 seconds. If the key $4 is stored, the link also ends when the key ends.
INSERT INTO portal_sessions (session_id, secret_hash, tenant_id, key_id, return_url, expires_at)
VALUES ($1, $2, $3, (SELECT key_id FROM keys WHERE key_id = $4), $5, clock_timestamp() + make_interval(secs => $6))
RETURNING expires_at;

-- name: LinksOfTenant
-- The links of tenant $1 that have not ended.
SELECT session_id, '', created_at FROM portal_sessions WHERE tenant_id = $1 AND expires_at > clock_timestamp();

-- name: DeleteEnded
-- Deletes at most $1 links whose time has ended, and the links of tenant $2 whose key has ended. It skips links that
-- another transaction has locked.
WITH late AS (
    SELECT session_id FROM portal_sessions WHERE expires_at <= clock_timestamp() ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
), orphaned AS (
    SELECT l.session_id FROM portal_sessions l JOIN keys k USING (key_id)
    WHERE l.tenant_id = $2 AND (k.revoked_at IS NOT NULL OR k.expires_at <= clock_timestamp())
    FOR UPDATE OF l SKIP LOCKED
)
DELETE FROM portal_sessions WHERE session_id IN (SELECT session_id FROM late UNION SELECT session_id FROM orphaned);

-- name: DeleteOldest
-- Deletes all links of tenant $1 that others than its own keys have created, except for the $2 newest. It skips links
-- that another transaction has locked.
DELETE FROM portal_sessions WHERE session_id IN (
    SELECT l.session_id FROM portal_sessions l
    WHERE l.tenant_id = $1 AND NOT EXISTS (SELECT FROM keys k WHERE k.key_id = l.key_id AND k.tenant_id = l.tenant_id)
    ORDER BY l.created_at DESC, l.session_id OFFSET $2 FOR UPDATE OF l SKIP LOCKED
);

-- name: SelectLink
-- Reads a link. No row: the link does not exist, it has ended, or its key has ended.
SELECT l.secret_hash, l.tenant_id, l.return_url, l.expires_at
FROM portal_sessions l
WHERE l.session_id = $1 AND l.expires_at > clock_timestamp()
    AND (l.key_id IS NULL OR EXISTS (
        SELECT FROM keys k WHERE k.key_id = l.key_id AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > clock_timestamp())
    ));

-- name: DeleteLinks
-- Deletes the links of a tenant.
DELETE FROM portal_sessions WHERE tenant_id = $1;
