-- Rolls write the due events of balances that nobody uses. LockDueBalances is in batch.sql.

-- name: CountDue
-- Returns the number of balances for which a roll has something to write at $1. The constant instant is the condition
-- of the index.
SELECT count(*) FROM balances
WHERE coalesce(roll_at, next_event_at) < '9999-12-31T00:00:00Z' AND coalesce(roll_at, next_event_at) <= $1::timestamptz;

-- name: FirstDue
-- Returns the key of the balance that LockDueBalances takes first, if that row cannot be read. It finds balances that
-- are due at $1, without the balances $2..$4, from the position $5, $6 on.
SELECT b.tenant_id, b.meter, b.subject
FROM balances b
WHERE coalesce(b.roll_at, b.next_event_at) < '9999-12-31T00:00:00Z' AND coalesce(b.roll_at, b.next_event_at) <= $1::timestamptz
  AND (coalesce(b.roll_at, b.next_event_at), b.tenant_id) >= ($5::timestamptz, $6::text)
  AND (b.tenant_id, b.meter, b.subject) NOT IN (SELECT * FROM unnest($2::text[], $3::text[], $4::text[]))
ORDER BY coalesce(b.roll_at, b.next_event_at), b.tenant_id
LIMIT 1;

-- name: DueBalances
-- Returns up to $2 balances for which a roll has something to write at $1, without the balances $3..$5. They are in
-- the order of positions, from the position $6, $7 on. It locks no rows, because on Citus one statement cannot lock
-- rows of several shards. LockDueOf locks them.
SELECT b.tenant_id, b.meter, b.subject, coalesce(b.roll_at, b.next_event_at)
FROM balances b
WHERE coalesce(b.roll_at, b.next_event_at) < '9999-12-31T00:00:00Z' AND coalesce(b.roll_at, b.next_event_at) <= $1::timestamptz
  AND (coalesce(b.roll_at, b.next_event_at), b.tenant_id) >= ($6::timestamptz, $7::text)
  AND (b.tenant_id, b.meter, b.subject) NOT IN (SELECT * FROM unnest($3::text[], $4::text[], $5::text[]))
ORDER BY coalesce(b.roll_at, b.next_event_at), b.tenant_id
LIMIT $2::integer;

-- name: InsertRoll
-- Records the start of a roll.
INSERT INTO rolls (roll_id, as_of, status, total, started_at, heartbeat_at)
VALUES ($1, $2, 'running', $3, clock_timestamp(), clock_timestamp())
RETURNING started_at;

-- name: UpdateRoll
-- Records the progress or the end of a roll.
UPDATE rolls
SET status = $2, processed = $3, error = $4, set_aside = $5, heartbeat_at = clock_timestamp(),
    finished_at = CASE WHEN $2 = 'running' THEN NULL ELSE clock_timestamp() END
WHERE roll_id = $1;

-- name: TakeRollSlot
-- Takes or keeps the slot for $1 until $3 from now, and returns a row if $1 has it. A roll ($2 = true) always gets
-- the slot, and a sweep gets it if it is free. A slot that ends later than $3 from now counts as free, because the
-- clock was set back.
UPDATE roll_turn
SET holder = $1, until = clock_timestamp() + $3::interval
WHERE holder = $1 OR $2::boolean OR until NOT BETWEEN clock_timestamp() AND clock_timestamp() + $3::interval
RETURNING true;

-- name: Commits
-- Returns how many transactions were committed in this database, as far as its sessions have reported.
SELECT coalesce(sum(xact_commit), 0)::bigint FROM pg_stat_database WHERE datname = current_database();

-- name: RollByID
-- Returns a roll. The last column is true if it is running but its last heartbeat is over a minute old.
SELECT roll_id, as_of, status, total, processed, set_aside, error, started_at, finished_at,
       status = 'running' AND heartbeat_at < clock_timestamp() - interval '1 minute'
FROM rolls
WHERE roll_id = $1;
