-- Partitions of entries.

-- name: PartitionLock
-- One instance at a time makes partitions. Released with the transaction.
SELECT pg_try_advisory_xact_lock(7162931504);

-- name: PartitionNames
SELECT c.relname
FROM pg_inherits i
JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = 'entries'::regclass;

-- name: DefaultPartitionRows
-- Rows that found no monthly partition; counted up to a thousand, which is already far too many.
SELECT count(*) FROM (SELECT 1 FROM entries_default LIMIT 1000) AS late;

-- name: LastRoll
-- Until when the newest finished roll has worked off what was due, in seconds since 1970; 0: there was none.
SELECT coalesce(extract(epoch FROM max(as_of)), 0)::bigint FROM rolls WHERE status = 'done';
