-- The statements about partitions of entries, events and deliveries. The statements that create, detach and drop
-- partitions contain table names, so they are in the Go code.

-- name: Partitions
-- Returns the partitions of the table $1 in the order of their months. The columns are: name, first and last day,
-- whether a detachment was begun and not finished, the planner's estimate of the rows, and the bytes with indexes. A
-- DEFAULT partition has no months and is left out. A partition that is dropped at the same time is left out as well.
-- Its expression and its size can become NULL at any moment, so each of these values is computed only once.
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
-- Takes the lock for the creation of partitions. It waits at most lock_timeout. The end of the transaction releases
-- it.
SELECT pg_advisory_xact_lock(7162931504);

-- name: TableExists
-- Reports whether a table $1 exists, and whether it is a partition.
SELECT EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = to_regclass($1::text)),
       EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = to_regclass($1::text) AND c.relispartition);

-- name: OnCitus
-- Reports whether the database has Citus.
SELECT EXISTS (SELECT 1 FROM pg_extension x WHERE x.extname = 'citus');

-- name: MonthArchived
-- Reports whether the month $1 or a later month was archived.
SELECT EXISTS (SELECT 1 FROM archives a WHERE a.month >= $1::date);

-- name: MissingIndexes
-- Returns the indexes of entries that a partition does not have. The columns are: the parent's index, the partition,
-- the definition, the name of the partition's own index, and whether an index of this name exists without being
-- attached. The newest partition comes first, because it is read the most.
SELECT i.indexrelid::regclass::text, p.inhrelid::regclass::text, pg_get_indexdef(i.indexrelid), c.relname || substr(x.relname, length('entries') + 1),
       to_regclass(c.relname || substr(x.relname, length('entries') + 1)) IS NOT NULL
FROM pg_index i
JOIN pg_class x ON x.oid = i.indexrelid
JOIN pg_inherits p ON p.inhparent = i.indrelid AND NOT p.inhdetachpending
JOIN pg_class c ON c.oid = p.inhrelid
WHERE i.indrelid = 'entries'::regclass AND NOT i.indisunique
  AND NOT EXISTS (SELECT 1 FROM pg_inherits a JOIN pg_index o ON o.indexrelid = a.inhrelid WHERE a.inhparent = i.indexrelid AND o.indrelid = p.inhrelid)
ORDER BY c.relname DESC, x.relname;
