-- The statements with which the auditor reads. The auditor shares no code with the ledger on purpose. The statements
-- that compare rows run in one REPEATABLE READ transaction.

-- name: ChainStart
-- Returns the instant before which entries may be outside the hash chain, in microseconds since 1970.
SELECT CASE WHEN isfinite(at) THEN (extract(epoch FROM at) * 1000000)::bigint
            WHEN at < now() THEN -9223372036854775808 ELSE 9223372036854775807 END
FROM chain_start;

-- name: VerifyBalances
-- Returns the next $4 balances after ($1, $2, $3) in key order, each with a digest of its row and with the checkpoint
-- to begin at. This is the newest checkpoint, or the newest archived checkpoint if $6 is true. $5: tenant or '' for
-- all.
SELECT b.tenant_id, b.meter, b.subject, b.seq, b.digest, b.chain, c.seq, (extract(epoch FROM c.created_at) * 1000000)::bigint, c.remaining,
       c.chain, c.state, c.archived
-- citus: FROM (SELECT o.*, md5(o::text) AS digest FROM balances o) AS b
FROM ( -- plain
    SELECT o.tenant_id, o.meter, o.subject, o.seq, o.chain, md5(o::text) AS digest -- plain
    FROM balances o -- plain
    WHERE (o.tenant_id, o.meter, o.subject) > ($1::text, $2::text, $3::text) AND ($5::text = '' OR o.tenant_id = $5::text) -- plain
    ORDER BY o.tenant_id, o.meter, o.subject -- plain
    LIMIT $4::integer -- plain
) AS b -- plain
LEFT JOIN LATERAL (
    SELECT * FROM checkpoints p
    WHERE p.tenant_id = b.tenant_id AND p.meter = b.meter AND p.subject = b.subject AND (p.archived OR NOT $6::boolean)
    ORDER BY p.seq DESC
    LIMIT 1
) AS c ON true
-- citus: WHERE (b.tenant_id, b.meter, b.subject) > ($1::text, $2::text, $3::text) AND ($5::text = '' OR b.tenant_id = $5::text)
ORDER BY b.tenant_id, b.meter, b.subject
-- citus: LIMIT $4::integer
;

-- name: VerifyEntries
-- Returns the entries of the balances ($1..$3) with a seq in ($4, $5], older than $6, in the order of the balances
-- and of seq. The first column is the position of the balance, from 1. The balances come in order because the array
-- is read once, in order. An ORDER BY over all balances would sort all rows, on disk. The Go code checks the order.
SELECT k.position, e.seq, e.operation_id, e.line, e.month, e.kind, e.period_start, e.grant_id, e.source, e.amount, e.remaining_after,
       e.item, e.requested, e.fingerprint, e.created_at, e.effective_at, e.op_subject, e.detail::text, e.metadata::text, e.actor
FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[]) WITH ORDINALITY AS k (tenant_id, meter, subject, after, until, position)
CROSS JOIN LATERAL (
    SELECT * FROM entries o
    WHERE o.tenant_id = k.tenant_id AND o.meter = k.meter AND o.subject = k.subject AND o.seq > 0 AND o.seq > k.after AND o.seq <= k.until
      AND o.created_at < $6::timestamptz
    ORDER BY o.seq
) AS e
-- citus: ORDER BY k.position, e.seq
;

-- name: VerifyStored
-- Returns the rows of the balances ($1..$3).
SELECT b.tenant_id, b.meter, b.subject, b.seq, b.period_start, b.period_end, b.opening, b.granted, b.refunded, b.used, b.expired,
       b.adjusted, b.held, b.overage, b.owed, b.settled, b.forgiven_seq, b.head_grant, b.head_source, b.head_remaining, b.next_event_at,
       b.updated_at, b.chain, md5(b::text), b.plan, b.plan_version, b.allowance, b.renews,
       coalesce(b.roll_at, b.next_event_at), b.amended, b.allowance_at,
       b.entitled, b.short, b.carried, b.overage_before, b.carried_from, b.terms_at
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (tenant_id, meter, subject)
JOIN balances b ON b.tenant_id = k.tenant_id AND b.meter = k.meter AND b.subject = k.subject;

-- name: VerifyHeld
-- Returns the amount that holds reserve on each grant of the balances ($1..$3), and the earliest end of these holds.
-- A larger sum than 2^63-1 is returned as 2^63-1, which no grant can have.
SELECT h.tenant_id, h.meter, h.subject, h.grant_id, least(sum(h.amount - h.captured - h.returned), 9223372036854775807)::bigint, min(h.expires_at)
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (tenant_id, meter, subject)
JOIN hold_lines h ON h.tenant_id = k.tenant_id AND h.meter = k.meter AND h.subject = k.subject
    AND h.captured + h.returned < h.amount
GROUP BY h.tenant_id, h.meter, h.subject, h.grant_id;

-- name: VerifyOverflows
-- Returns the units that the balances ($1..$3) have paid for, by the meter, its period, and the quarter of an hour. The
-- row of a whole period has the quarter 'epoch'.
SELECT o.tenant_id, o.paid_by, o.meter, o.period_start, o.quarter, o.units
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (tenant_id, meter, subject)
JOIN overflows o ON o.tenant_id = k.tenant_id AND o.paid_by = k.meter AND k.subject = '';

-- name: VerifyPeriods
-- Returns the closed periods of the balances ($1..$3), oldest first.
SELECT p.tenant_id, p.meter, p.subject, p.period_start, p.period_end, p.opening, p.granted, p.refunded, p.used, p.expired, p.adjusted,
       p.overage, p.held, p.closing, p.last_seq, p.closed_at, p.idle, p.rolled_over, p.rollover, p.owing,
       p.plan, p.plan_version, p.terms_at, p.amended
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (tenant_id, meter, subject)
JOIN periods p ON p.tenant_id = k.tenant_id AND p.meter = k.meter AND p.subject = k.subject
ORDER BY p.tenant_id, p.meter, p.subject, p.period_start;

-- name: VerifyGrants
-- Returns the stored rows of all grants of the balances ($1..$3).
SELECT g.tenant_id, g.meter, g.subject, g.grant_id, g.source, g.amount, g.remaining, g.held, g.priority, g.effective_at, g.expires_at,
       coalesce(g.cost_basis, ''), coalesce(g.reason, ''), g.operation_id, g.created_at, g.status
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (tenant_id, meter, subject)
JOIN grants g ON g.tenant_id = k.tenant_id AND g.meter = k.meter AND g.subject = k.subject;

-- name: VerifyPastOverage
-- Returns the overage since $4 of the balance ($1..$3) whose open period began at $5 with a change of the interval. The
-- first column is the overage since $4 that is older than the open period. The second is what was paid of this overage
-- before the open period, and the third what was refunded of it before. The fourth is what was refunded of it in the open
-- period, if it had been forgiven. $6 is the seq of the entry that last forgave overage. A sum above 2^63-1 is returned
-- as 2^63-1.
SELECT least(coalesce((
           SELECT sum(e.amount) FROM entries e
           WHERE e.tenant_id = $1::text AND e.meter = $2::text AND e.subject = $3::text AND e.seq > 0
             AND e.kind = 'overage' AND e.kind <> 'debit' AND e.created_at >= $4::timestamptz AND e.period_start < $5::timestamptz
             AND e.month >= date_trunc('month', $4::timestamptz AT TIME ZONE 'UTC')::date), 0), 9223372036854775807)::bigint,
       least(coalesce((
           SELECT sum(CASE e.kind WHEN 'settle' THEN e.amount ELSE -e.amount END) FROM entries e
           WHERE e.tenant_id = $1::text AND e.meter = $2::text AND e.subject = $3::text AND e.seq > 0
             AND e.kind IN ('settle', 'unsettle') AND e.kind <> 'debit' AND e.period_start < $5::timestamptz
             AND coalesce(e.effective_at, e.created_at) >= $4::timestamptz
             AND e.month >= date_trunc('month', $4::timestamptz AT TIME ZONE 'UTC')::date), 0), 9223372036854775807)::bigint,
       least(back.before, 9223372036854775807)::bigint, least(back.after, 9223372036854775807)::bigint
FROM (
    SELECT coalesce(sum(e.amount) FILTER (WHERE e.period_start < $5::timestamptz), 0) AS before,
           coalesce(sum(e.amount) FILTER (WHERE e.period_start >= $5::timestamptz AND e.kind = 'closed_refund' AND o.seq <= $6::bigint), 0) AS after
    FROM entries e
    JOIN entries o ON o.tenant_id = $1::text AND o.operation_id = e.detail ->> 'refund_of' AND o.line = (e.detail ->> 'refund_line')::integer
        AND o.month = (e.detail ->> 'refund_month' || '-01')::date
    WHERE e.tenant_id = $1::text AND e.meter = $2::text AND e.subject = $3::text AND e.seq > 0
      AND e.kind IN ('refund', 'unoverage', 'closed_refund', 'unowe', 'unsettle') AND e.kind <> 'debit'
      AND e.month >= date_trunc('month', $4::timestamptz AT TIME ZONE 'UTC')::date
      AND o.kind = 'overage' AND o.created_at >= $4::timestamptz
) AS back;

-- name: VerifyCopied
-- Returns the balances ($1..$3) as they are stored now, to compare them with cached copies that were read before.
SELECT b.tenant_id, b.meter, b.subject, b.seq, b.period_start, b.period_end, b.opening, b.granted, b.refunded, b.used, b.expired,
       b.adjusted, b.held, b.overage, b.owed, b.settled, b.forgiven_seq, b.head_grant, b.head_source, b.head_remaining, b.next_event_at,
       b.updated_at, b.chain, '', b.plan, b.plan_version, b.allowance, b.renews,
       coalesce(b.roll_at, b.next_event_at), b.amended, b.allowance_at,
       b.entitled, b.short, b.carried, b.overage_before, b.carried_from, b.terms_at
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (tenant_id, meter, subject)
JOIN balances b ON b.tenant_id = k.tenant_id AND b.meter = k.meter AND b.subject = k.subject;

-- name: VerifyOrphans
-- Returns balances that have entries but no row, at most 100. $1: tenant or '' for all.
SELECT DISTINCT e.tenant_id, e.meter, e.subject
FROM entries e
LEFT JOIN balances b ON b.tenant_id = e.tenant_id AND b.meter = e.meter AND b.subject = e.subject
WHERE b.tenant_id IS NULL AND ($1::text = '' OR e.tenant_id = $1::text)
LIMIT 100;

-- name: VerifyLost
-- Returns at most 100 checkpoints, grants, closed periods, hold lines and overflow of balances that have no row. $1:
-- tenant or '' for all.
SELECT f.what, f.tenant_id, f.meter, f.subject
FROM (
    SELECT DISTINCT 'a verified journal' AS what, c.tenant_id, c.meter, c.subject FROM checkpoints c WHERE $1::text = '' OR c.tenant_id = $1::text
    UNION ALL
    SELECT DISTINCT 'grants', g.tenant_id, g.meter, g.subject FROM grants g WHERE $1::text = '' OR g.tenant_id = $1::text
    UNION ALL
    SELECT DISTINCT 'closed periods', p.tenant_id, p.meter, p.subject FROM periods p WHERE $1::text = '' OR p.tenant_id = $1::text
    UNION ALL
    SELECT DISTINCT 'hold lines', h.tenant_id, h.meter, h.subject FROM hold_lines h WHERE $1::text = '' OR h.tenant_id = $1::text
    UNION ALL
    SELECT DISTINCT 'overflow', o.tenant_id, m.meter, '' FROM overflows o CROSS JOIN LATERAL (VALUES (o.meter), (o.paid_by)) AS m (meter)
    WHERE $1::text = '' OR o.tenant_id = $1::text
) AS f
LEFT JOIN balances b ON b.tenant_id = f.tenant_id AND b.meter = f.meter AND b.subject = f.subject
WHERE b.tenant_id IS NULL
LIMIT 100;

-- name: WriteCheckpoints
-- Writes checkpoints. An existing archived checkpoint is not changed.
INSERT INTO checkpoints (tenant_id, meter, subject, seq, created_at, remaining, chain, state, archived, made_at)
SELECT n.tenant_id, n.meter, n.subject, n.seq, n.created_at, n.remaining, n.chain, n.state, n.archived, clock_timestamp()
FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::timestamptz[], $6::bigint[], $7::bytea[], $8::jsonb[], $9::boolean[])
     AS n (tenant_id, meter, subject, seq, created_at, remaining, chain, state, archived)
ON CONFLICT (tenant_id, meter, subject, seq) DO UPDATE
SET state = excluded.state, chain = excluded.chain, remaining = excluded.remaining, created_at = excluded.created_at,
    archived = checkpoints.archived OR excluded.archived, made_at = excluded.made_at
WHERE NOT checkpoints.archived;

-- name: DropCheckpoints
-- Removes the checkpoints of the balances ($1..$3) before seq $4 that are not archived.
DELETE FROM checkpoints c
USING unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS k (tenant_id, meter, subject, seq)
WHERE c.tenant_id = k.tenant_id AND c.meter = k.meter AND c.subject = k.subject AND c.seq < k.seq AND NOT c.archived;
