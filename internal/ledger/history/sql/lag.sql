-- name: Written
-- Returns the position up to which the primary has written WAL, in bytes.
SELECT (pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint;

-- name: Replayed
-- Returns the position up to which a standby has replayed, and when the last transaction that it replayed was
-- committed. NULL: the server is not a standby.
SELECT CASE WHEN pg_is_in_recovery() THEN (pg_last_wal_replay_lsn() - '0/0'::pg_lsn)::bigint END, pg_last_xact_replay_timestamp();
