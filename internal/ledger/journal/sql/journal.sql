-- The partitions of entries, events and deliveries. Statements that make, detach and drop them contain names, so they are in the code.

-- name: Partitions
-- Returns the partitions of the table $1 in the order of their months: name, first and last day, whether a detachment was begun and not finished, the
-- planner's estimate of the rows, and the bytes with indexes. A DEFAULT partition has no months and is left out. So is one that is dropped meanwhile:
-- its expression and its size become NULL from one moment to the next, so each is computed once.
WITH p AS MATERIALIZED (
    SELECT c.relname, i.inhdetachpending AS pending, greatest(c.reltuples, 0)::bigint AS estimate, pg_total_relation_size(c.oid) AS bytes,
           substring(pg_get_expr(c.relpartbound, c.oid) FROM 'FROM \(''(\d{4}-\d{2}-\d{2})''\)')::date AS lower,
           substring(pg_get_expr(c.relpartbound, c.oid) FROM 'TO \(''(\d{4}-\d{2}-\d{2})''\)')::date AS upper
    FROM pg_inherits i
    JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = $1::text::regclass
)
SELECT p.relname::text, p.lower, p.upper, p.pending, p.estimate, p.bytes
FROM p
WHERE p.lower IS NOT NULL AND p.upper IS NOT NULL AND p.bytes IS NOT NULL
ORDER BY p.lower;

-- name: PartitionLock
-- Takes the lock for making partitions, and waits for it as long as for any lock. The end of the transaction releases it.
SELECT pg_advisory_xact_lock(7162931504);

-- name: TableExists
-- Reports whether a table $1 exists, and whether it is a partition.
SELECT EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = to_regclass($1::text)),
       EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = to_regclass($1::text) AND c.relispartition);

-- name: OnCitus
-- Reports whether the database has Citus.
SELECT EXISTS (SELECT 1 FROM pg_extension x WHERE x.extname = 'citus');

-- name: MonthArchived
-- Reports whether the month $1, or a later one, was archived.
SELECT EXISTS (SELECT 1 FROM archives a WHERE a.month >= $1::date);

-- name: MissingIndexes
-- Returns the indexes of entries that a partition does not have: the parent's index, the partition, the definition, the name that the partition's own
-- gets, and whether an index of this name is there, not attached. The newest partition comes first: it is asked the most.
SELECT i.indexrelid::regclass::text, p.inhrelid::regclass::text, pg_get_indexdef(i.indexrelid), c.relname || substr(x.relname, length('entries') + 1),
       to_regclass(c.relname || substr(x.relname, length('entries') + 1)) IS NOT NULL
FROM pg_index i
JOIN pg_class x ON x.oid = i.indexrelid
JOIN pg_inherits p ON p.inhparent = i.indrelid AND NOT p.inhdetachpending
JOIN pg_class c ON c.oid = p.inhrelid
WHERE i.indrelid = 'entries'::regclass AND NOT i.indisunique
  AND NOT EXISTS (SELECT 1 FROM pg_inherits a JOIN pg_index o ON o.indexrelid = a.inhrelid WHERE a.inhparent = i.indexrelid AND o.indrelid = p.inhrelid)
ORDER BY c.relname DESC, x.relname;
