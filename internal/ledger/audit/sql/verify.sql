-- Sums over the journal, which the auditor compares with what the ledger has written. They share no code with the ledger on
-- purpose. All statements of a chunk run in one REPEATABLE READ transaction.

-- name: VerifyBalances
-- Returns the next $4 balances after ($1, $2, $3) in key order. $5: tenant or '' for all.
SELECT b.tenant_id, b.meter, b.subject, b.seq, b.period_start, b.period_end, b.opening, b.granted, b.refunded, b.used, b.expired,
       b.adjusted, b.held, b.overage, b.owed, b.settled, b.forgiven_seq, b.head_grant, b.head_remaining
FROM balances b
WHERE (b.tenant_id, b.meter, b.subject) > ($1::text, $2::text, $3::text) AND ($5::text = '' OR b.tenant_id = $5::text)
ORDER BY b.tenant_id, b.meter, b.subject
LIMIT $4::integer;

-- name: VerifyChain
-- Returns per balance of ($1..$3): the number of entries, the first and last seq, the first seq after a gap, the first seq whose
-- remaining_after does not follow from the entry before, the first seq with a created_at before the previous one, and the
-- remainder after the last entry.
SELECT e.tenant_id, e.meter, e.subject, count(*), min(e.seq), max(e.seq),
       coalesce(min(e.seq) FILTER (WHERE e.seq <> e.prev_seq + 1), 0),
       coalesce(min(e.seq) FILTER (WHERE e.remaining_after <> e.prev_remaining + e.delta), 0),
       coalesce(min(e.seq) FILTER (WHERE e.created_at < e.prev_at), 0),
       coalesce(max(e.remaining_after) FILTER (WHERE e.next_seq IS NULL), 0)
FROM (
    SELECT n.tenant_id, n.meter, n.subject, n.seq, n.created_at, n.remaining_after,
           CASE WHEN n.kind IN ('grant', 'refund', 'unsettle', 'adjust_up', 'release') THEN n.amount
                WHEN n.kind IN ('debit', 'settle', 'expire', 'void', 'adjust_down', 'hold') THEN -n.amount
                ELSE 0 END AS delta,
           lag(n.seq) OVER w AS prev_seq, lead(n.seq) OVER w AS next_seq, lag(n.created_at) OVER w AS prev_at,
           CASE WHEN n.seq = 1 THEN 0 ELSE lag(n.remaining_after) OVER w END AS prev_remaining
    FROM unnest($1::text[], $2::text[], $3::text[]) AS k (tenant_id, meter, subject)
    JOIN entries n ON n.tenant_id = k.tenant_id AND n.meter = k.meter AND n.subject = k.subject AND n.seq > 0
    WINDOW w AS (PARTITION BY n.tenant_id, n.meter, n.subject ORDER BY n.seq)
) AS e
GROUP BY e.tenant_id, e.meter, e.subject;

-- name: VerifySums
-- Returns the sums of the journal per period and grant of the balances ($1..$3): the sums of the period, and for the grant the
-- issued, remaining and held amounts.
SELECT e.tenant_id, e.meter, e.subject, e.period_start, e.grant_id, max(e.seq),
       coalesce(sum(e.amount) FILTER (WHERE e.kind = 'grant'), 0)::bigint,
       coalesce(sum(e.amount) FILTER (WHERE e.kind IN ('refund', 'unsettle')), 0)::bigint,
       coalesce(sum(e.amount) FILTER (WHERE e.kind IN ('debit', 'capture', 'settle')), 0)::bigint,
       coalesce(sum(e.amount) FILTER (WHERE e.kind = 'expire'), 0)::bigint,
       coalesce(sum(CASE e.kind WHEN 'adjust_up' THEN e.amount ELSE -e.amount END)
                FILTER (WHERE e.kind IN ('adjust_up', 'adjust_down', 'void')), 0)::bigint,
       coalesce(sum(CASE WHEN e.kind IN ('overage', 'owe') THEN e.amount ELSE -e.amount END)
                FILTER (WHERE e.kind IN ('overage', 'owe', 'unoverage', 'settle', 'unowe')), 0)::bigint,
       coalesce(sum(e.amount) FILTER (WHERE e.kind = 'owe'), 0)::bigint,
       coalesce(sum(e.amount) FILTER (WHERE e.kind = 'forgive'), 0)::bigint,
       coalesce(max(e.seq) FILTER (WHERE e.kind = 'forgive'), 0),
       coalesce(sum(CASE e.kind WHEN 'owe' THEN e.amount ELSE -e.amount END) FILTER (WHERE e.kind IN ('owe', 'settle', 'unowe')), 0)::bigint,
       coalesce(sum(CASE e.kind WHEN 'settle' THEN e.amount ELSE -e.amount END) FILTER (WHERE e.kind IN ('settle', 'unsettle')), 0)::bigint,
       coalesce(sum(CASE e.kind WHEN 'hold' THEN e.amount ELSE -e.amount END)
                FILTER (WHERE e.kind IN ('hold', 'capture', 'release')), 0)::bigint,
       coalesce(sum(e.amount) FILTER (WHERE e.kind IN ('grant', 'adjust_up', 'rollover_in')), 0)::bigint,
       coalesce(sum(CASE WHEN e.kind IN ('grant', 'refund', 'unsettle', 'adjust_up', 'release', 'rollover_in') THEN e.amount
                         WHEN e.kind IN ('debit', 'settle', 'expire', 'void', 'adjust_down', 'hold', 'rollover_out') THEN -e.amount
                         ELSE 0 END), 0)::bigint,
       count(*) FILTER (WHERE e.kind NOT IN ('grant', 'debit', 'overage', 'refund', 'unoverage', 'closed_refund', 'expire', 'void',
                                             'adjust_up', 'adjust_down', 'hold', 'capture', 'release', 'rollover_out', 'rollover_in',
                                             'schedule', 'extend', 'denial', 'forgive', 'owe', 'settle', 'unowe', 'unsettle'))
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (tenant_id, meter, subject)
JOIN entries e ON e.tenant_id = k.tenant_id AND e.meter = k.meter AND e.subject = k.subject AND e.seq > 0
GROUP BY e.tenant_id, e.meter, e.subject, e.period_start, e.grant_id;

-- name: VerifyHolds
-- Returns the amount that holds reserve on each grant of the balances ($1..$3).
SELECT h.tenant_id, h.meter, h.subject, h.grant_id, sum(h.amount - h.captured - h.returned)::bigint
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (tenant_id, meter, subject)
JOIN hold_lines h ON h.tenant_id = k.tenant_id AND h.meter = k.meter AND h.subject = k.subject
    AND h.captured + h.returned < h.amount
GROUP BY h.tenant_id, h.meter, h.subject, h.grant_id;

-- name: VerifyPeriods
-- Returns the closed periods of the balances ($1..$3), oldest first.
SELECT p.tenant_id, p.meter, p.subject, p.period_start, p.period_end, p.opening, p.granted, p.refunded, p.used, p.expired, p.adjusted,
       p.overage, p.closing, p.last_seq
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (tenant_id, meter, subject)
JOIN periods p ON p.tenant_id = k.tenant_id AND p.meter = k.meter AND p.subject = k.subject
ORDER BY p.tenant_id, p.meter, p.subject, p.period_start;

-- name: VerifyGrants
-- Returns the stored rows of all grants of the balances ($1..$3).
SELECT g.tenant_id, g.meter, g.subject, g.grant_id, g.source, g.amount, g.remaining, g.held, g.priority, g.effective_at, g.expires_at,
       g.status
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (tenant_id, meter, subject)
JOIN grants g ON g.tenant_id = k.tenant_id AND g.meter = k.meter AND g.subject = k.subject;

-- name: VerifyCopied
-- Returns the balances ($1..$3) as they are stored now, to compare them with cached copies that were read before.
SELECT b.tenant_id, b.meter, b.subject, b.seq, b.period_start, b.period_end, b.opening, b.granted, b.refunded, b.used, b.expired,
       b.adjusted, b.held, b.overage, b.owed, b.settled, b.forgiven_seq, b.head_grant, b.head_remaining
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (tenant_id, meter, subject)
JOIN balances b ON b.tenant_id = k.tenant_id AND b.meter = k.meter AND b.subject = k.subject;

-- name: VerifyOrphans
-- Returns balances that have entries but no row, at most 100. $1: tenant or '' for all.
SELECT DISTINCT e.tenant_id, e.meter, e.subject
FROM entries e
LEFT JOIN balances b ON b.tenant_id = e.tenant_id AND b.meter = e.meter AND b.subject = e.subject
WHERE b.tenant_id IS NULL AND ($1::text = '' OR e.tenant_id = $1::text)
LIMIT 100;
