-- Rolls process the due events of idle balances. LockDueBalances is in batch.sql.

-- name: CountDue
-- Returns the number of balances with an event due at or before $1.
SELECT count(*) FROM balances WHERE next_event_at <= $1;

-- name: InsertRoll
-- Records the start of a roll.
INSERT INTO rolls (roll_id, as_of, status, total, started_at, heartbeat_at)
VALUES ($1, $2, 'running', $3, clock_timestamp(), clock_timestamp())
RETURNING started_at;

-- name: UpdateRoll
-- Records the progress or the end of a roll.
UPDATE rolls
SET status = $2, processed = $3, error = $4, heartbeat_at = clock_timestamp(),
    finished_at = CASE WHEN $2 = 'running' THEN NULL ELSE clock_timestamp() END
WHERE roll_id = $1;

-- name: RollByID
-- Returns a roll. The last column is true if it is running but its last heartbeat is over a minute old.
SELECT roll_id, as_of, status, total, processed, error, started_at, finished_at,
       status = 'running' AND heartbeat_at < clock_timestamp() - interval '1 minute'
FROM rolls
WHERE roll_id = $1;
