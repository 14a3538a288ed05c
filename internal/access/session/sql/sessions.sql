-- Sessions of the console.

-- name: InsertSession
-- Adds a session that ends in $4 seconds.
INSERT INTO console_sessions (name, key_id, sealed, expires_at)
VALUES ($1, $2, $3, clock_timestamp() + make_interval(secs => $4))
RETURNING expires_at;

-- name: DeleteEnded
-- Deletes at most $1 sessions that have ended. It skips sessions that another transaction has locked.
DELETE FROM console_sessions WHERE name IN (
    SELECT name FROM console_sessions WHERE expires_at <= clock_timestamp() ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
);

-- name: DeleteOldest
-- Deletes all sessions of key $1 except for the $2 newest. It skips sessions that another transaction has locked.
DELETE FROM console_sessions WHERE name IN (
    SELECT name FROM console_sessions WHERE key_id = $1 ORDER BY created_at DESC, name OFFSET $2 FOR UPDATE SKIP LOCKED
);

-- name: SelectSession
-- Reads a session. No row: the session does not exist or has ended.
SELECT key_id, sealed, expires_at FROM console_sessions WHERE name = $1 AND expires_at > clock_timestamp();

-- name: DeleteSession
-- Deletes a session.
DELETE FROM console_sessions WHERE name = $1;
