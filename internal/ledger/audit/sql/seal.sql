-- The statements for seals and their log.

-- name: SealLock
-- Tries to take the lock that allows one sealing run at a time. The connection holds it until it is closed.
SELECT pg_try_advisory_lock(hashtextextended('quotasvc seal', 0));

-- name: SealUnlock
-- Releases the lock of SealLock.
SELECT pg_advisory_unlock(hashtextextended('quotasvc seal', 0));

-- name: SealState
-- Returns the time, the id of the database, and the first day that is not archived.
SELECT clock_timestamp(), i.database_id::text, coalesce((SELECT (max(a.month) + interval '1 month')::date FROM archives a), '0001-01-01')
FROM database_identity i;

-- name: Seals
-- Returns the log up to position $1, oldest first.
SELECT s.position, s.day, s.heads, s.root, s.checkpoint, s.sealed_at FROM seals s WHERE s.position <= $1::bigint ORDER BY s.position;

-- name: SealsPage
-- Returns the newest $2 seals before position $1.
SELECT s.position, s.day, s.heads, s.root, s.checkpoint, s.sealed_at FROM seals s WHERE s.position < $1::bigint ORDER BY s.position DESC LIMIT $2::integer;

-- name: SealOfDay
-- Returns the position of the first seal of day $1 or later, and its day.
SELECT s.position, s.day FROM seals s WHERE s.day >= $1::date ORDER BY s.day LIMIT 1;

-- name: SealInsert
-- Writes a seal.
INSERT INTO seals (position, day, heads, root, checkpoint, sealed_at) VALUES ($1, $2, $3, $4, $5, $6);

-- name: SealBalances
-- Returns the next $4 balances after ($1, $2, $3) in key order. Each row also has the balance's chain, its newest
-- sealed head with the day of that head, and its newest archived checkpoint.
SELECT b.tenant_id, b.meter, b.subject, b.seq, b.chain, h.day, h.chain, c.seq, c.chain
-- citus: FROM balances b
FROM ( -- plain
    SELECT o.tenant_id, o.meter, o.subject, o.seq, o.chain FROM balances o -- plain
    WHERE (o.tenant_id, o.meter, o.subject) > ($1::text, $2::text, $3::text) -- plain
    ORDER BY o.tenant_id, o.meter, o.subject -- plain
    LIMIT $4::integer -- plain
) AS b -- plain
LEFT JOIN LATERAL (
    SELECT s.day, s.chain FROM sealed_heads s
    WHERE s.tenant_id = b.tenant_id AND s.meter = b.meter AND s.subject = b.subject
    ORDER BY s.day DESC
    LIMIT 1
) AS h ON true
LEFT JOIN LATERAL (
    SELECT p.seq, p.chain FROM checkpoints p
    WHERE p.tenant_id = b.tenant_id AND p.meter = b.meter AND p.subject = b.subject AND p.archived
    ORDER BY p.seq DESC
    LIMIT 1
) AS c ON true
-- citus: WHERE (b.tenant_id, b.meter, b.subject) > ($1::text, $2::text, $3::text)
ORDER BY b.tenant_id, b.meter, b.subject
-- citus: LIMIT $4::integer
;

-- name: SealedHeadsInsert
-- Writes the heads $5 of the balances ($1..$3) for day $4.
INSERT INTO sealed_heads (tenant_id, meter, subject, day, chain)
SELECT k.tenant_id, k.meter, k.subject, $4::date, k.chain FROM unnest($1::text[], $2::text[], $3::text[], $5::bytea[]) AS k (tenant_id, meter, subject, chain);

-- name: DropUnsealedHeads
-- Removes heads of days after the newest seal, except the heads of day $1.
DELETE FROM sealed_heads s WHERE s.day > (SELECT coalesce(max(o.day), '-infinity') FROM seals o) AND s.day <> $1::date;

-- name: SealedHeadsOfDay
-- Returns the heads of day $1 in key order.
SELECT s.tenant_id, s.meter, s.subject, s.chain FROM sealed_heads s WHERE s.day = $1::date ORDER BY s.tenant_id, s.meter, s.subject;

-- name: SealedHeads
-- Returns the next $5 heads after ($1, $2, $3, $4) until day $6, in the order of balances and days. Each row also has
-- the newest archived checkpoint of the balance.
SELECT h.tenant_id, h.meter, h.subject, h.day, h.chain, c.seq, c.chain
-- citus: FROM sealed_heads h
FROM ( -- plain
    SELECT s.tenant_id, s.meter, s.subject, s.day, s.chain FROM sealed_heads s -- plain
    WHERE (s.tenant_id, s.meter, s.subject, s.day) > ($1::text, $2::text, $3::text, $4::date) AND s.day <= $6::date -- plain
    ORDER BY s.tenant_id, s.meter, s.subject, s.day -- plain
    LIMIT $5::integer -- plain
) AS h -- plain
LEFT JOIN LATERAL (
    SELECT p.seq, p.chain FROM checkpoints p
    WHERE p.tenant_id = h.tenant_id AND p.meter = h.meter AND p.subject = h.subject AND p.archived
    ORDER BY p.seq DESC
    LIMIT 1
) AS c ON true
-- citus: WHERE (h.tenant_id, h.meter, h.subject, h.day) > ($1::text, $2::text, $3::text, $4::date) AND h.day <= $6::date
ORDER BY h.tenant_id, h.meter, h.subject, h.day
-- citus: LIMIT $5::integer
;
