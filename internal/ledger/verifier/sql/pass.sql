-- The statements for the beginning of a verification, and for the position of a full pass.

-- name: JournalIsLarge
-- Reports whether the balances of tenant $1 ('' for all tenants) have had more than $2 entries. The sum is not a
-- bigint, because a sum of wrong numbers may exceed bigint.
SELECT coalesce(sum(b.seq), 0) > $2::bigint FROM balances b WHERE $1::text = '' OR b.tenant_id = $1::text;

-- name: SavedPosition
-- Returns the position of an unfinished full pass, if it was saved in the last seven days.
SELECT f.position FROM full_pass f WHERE f.saved_at > clock_timestamp() - interval '7 days';

-- name: SavePosition
-- Records the position of a full pass.
INSERT INTO full_pass (position, saved_at) VALUES ($1, clock_timestamp())
ON CONFLICT (only_row) DO UPDATE SET position = excluded.position, saved_at = excluded.saved_at;

-- name: ForgetPosition
-- Removes the position of a full pass that was finished.
DELETE FROM full_pass;
