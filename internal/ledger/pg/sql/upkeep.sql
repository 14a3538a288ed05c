-- The statement that reads the progress of rolls.

-- name: LastRoll
-- Returns the instant up to which finished rolls have processed due events, in Unix seconds. 0 means that no roll has
-- finished. It also returns how many balances the newest finished roll has set aside.
SELECT coalesce(extract(epoch FROM max(as_of)), 0)::bigint,
       coalesce((SELECT r.set_aside FROM rolls r WHERE r.status = 'done' ORDER BY r.started_at DESC LIMIT 1), 0)
FROM rolls WHERE status = 'done';
