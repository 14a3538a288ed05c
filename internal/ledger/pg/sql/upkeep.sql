-- How far rolls are.

-- name: LastRoll
-- Returns the instant up to which finished rolls have processed due events, in Unix seconds. 0 means that no roll has
-- finished.
SELECT coalesce(extract(epoch FROM max(as_of)), 0)::bigint FROM rolls WHERE status = 'done';
