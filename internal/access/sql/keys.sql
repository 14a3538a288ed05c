-- Keys and their secrets. Writers lock the row of the key.

-- name: InsertKey
-- Adds a key. No row: the expiry $5 is not in the future.
INSERT INTO keys (key_id, name, scopes, tenant_id, expires_at)
SELECT $1, $2, $3, $4, $5::timestamptz
WHERE $5::timestamptz IS NULL OR $5::timestamptz > clock_timestamp()
RETURNING created_at;

-- name: InsertSecret
-- Adds a secret to a key.
INSERT INTO key_secrets (hash, key_id, prefix) VALUES ($1, $2, $3);

-- name: CountKeys
-- Counts the valid keys.
SELECT count(*) FROM keys WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp());

-- name: KeysOfTenant
-- The valid keys of tenant $1.
SELECT key_id, '', created_at FROM keys
WHERE tenant_id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp());

-- name: LockKey
-- Locks a key and returns it. No row: the key does not exist.
SELECT k.key_id, k.name, k.scopes, k.tenant_id, coalesce(s.prefix, ''), k.created_at, k.expires_at, k.revoked_at, k.last_used_at,
       CASE WHEN k.revoked_at IS NOT NULL THEN 'revoked' WHEN k.expires_at <= clock_timestamp() THEN 'expired' ELSE 'active' END
FROM keys k LEFT JOIN key_secrets s ON s.key_id = k.key_id AND s.ends_at IS NULL
WHERE k.key_id = $1
FOR UPDATE OF k;

-- name: SelectKeys
-- Reads at most $4 keys in the order of their ids. It reads the key $1 (NULL: all) of tenant $2 (NULL: any), with ids
-- after $3.
SELECT k.key_id, k.name, k.scopes, k.tenant_id, coalesce(s.prefix, ''), k.created_at, k.expires_at, k.revoked_at, k.last_used_at,
       CASE WHEN k.revoked_at IS NOT NULL THEN 'revoked' WHEN k.expires_at <= clock_timestamp() THEN 'expired' ELSE 'active' END
FROM keys k LEFT JOIN key_secrets s ON s.key_id = k.key_id AND s.ends_at IS NULL
WHERE ($1::text IS NULL OR k.key_id = $1) AND ($2::text IS NULL OR k.tenant_id = $2) AND k.key_id > $3
ORDER BY k.key_id
LIMIT $4;

-- name: EndSecrets
-- Sets the end of the secrets of a locked key to $2 seconds from now, unless they end sooner. Deletes the secrets
-- that have already ended.
WITH gone AS (DELETE FROM key_secrets WHERE key_id = $1 AND ends_at <= clock_timestamp())
UPDATE key_secrets SET ends_at = least(ends_at, clock_timestamp() + make_interval(secs => $2))
WHERE key_id = $1 AND (ends_at IS NULL OR ends_at > clock_timestamp());

-- name: RevokeKey
-- Revokes a locked key.
UPDATE keys SET revoked_at = clock_timestamp() WHERE key_id = $1 RETURNING revoked_at;

-- name: SelectSecrets
-- Reads all valid secrets with their keys.
SELECT s.hash, s.ends_at, k.key_id, k.name, k.scopes, k.tenant_id, k.expires_at
FROM key_secrets s JOIN keys k USING (key_id)
WHERE k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > clock_timestamp())
  AND (s.ends_at IS NULL OR s.ends_at > clock_timestamp());

-- name: NoteUse
-- Stores the latest uses of keys, unless later uses are stored. Each array has one element per key. Locks the keys in
-- the order of their ids.
WITH locked AS MATERIALIZED (
    SELECT key_id FROM keys WHERE key_id = ANY ($1::text[]) ORDER BY key_id FOR NO KEY UPDATE
)
UPDATE keys k SET last_used_at = u.at
FROM unnest($1::text[], $2::timestamptz[]) AS u (key_id, at) JOIN locked USING (key_id)
WHERE k.key_id = u.key_id AND (k.last_used_at IS NULL OR k.last_used_at < u.at);

-- name: SelectIDKey
-- Reads the key that signs the ids of leases and charges.
SELECT secret, unsigned_until FROM signing_keys WHERE name = 'ids';
