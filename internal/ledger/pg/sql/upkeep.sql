-- The partitions of entries, and the last roll.

-- name: PartitionLock
-- Tries to take the lock for making partitions; one instance holds it at a time. The end of the transaction releases it.
SELECT pg_try_advisory_xact_lock(7162931504);

-- name: PartitionNames
-- Returns the names of the partitions of entries.
SELECT c.relname
FROM pg_inherits i
JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = 'entries'::regclass;

-- name: DefaultPartitionRows
-- Returns the number of rows in the default partition, which means that their monthly partition was missing. It counts up to
-- 1000; any number above 0 needs an operator.
SELECT count(*) FROM (SELECT 1 FROM entries_default LIMIT 1000) AS late;

-- name: LastRoll
-- Returns the instant up to which finished rolls have processed due events, in Unix seconds. 0 means that no roll has
-- finished.
SELECT coalesce(extract(epoch FROM max(as_of)), 0)::bigint FROM rolls WHERE status = 'done';
