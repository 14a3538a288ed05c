-- Statements and past balances: sums over the entries of one period. The periods table gives the seq bounds, so only the
-- entries of that period are read.

-- name: PeriodAt
-- Returns the closed period of balance ($1..$3) that contains $4, and the last seq before it.
SELECT p.period_start, p.period_end, p.plan, p.plan_version, p.opening, p.granted, p.refunded, p.used, p.expired, p.adjusted, p.overage,
       p.held, p.closing, p.last_seq, p.closed_at,
       coalesce((SELECT max(o.last_seq) FROM periods o
                 WHERE o.tenant_id = p.tenant_id AND o.meter = p.meter AND o.subject = p.subject AND o.period_start < p.period_start), 0)
FROM periods p
WHERE p.tenant_id = $1 AND p.meter = $2 AND p.subject = $3 AND p.period_start <= $4 AND p.period_end > $4;

-- name: SeqBeforePeriod
-- Returns the seq of the newest entry in the periods of balance ($1..$3) that start before $4. The entries of the period that
-- starts at $4 follow it. The answer is the same if that period was closed in the meantime.
SELECT coalesce(max(p.last_seq), 0) FROM periods p WHERE p.tenant_id = $1 AND p.meter = $2 AND p.subject = $3 AND p.period_start < $4;

-- name: SumsUntil
-- Returns the sum and the number of entries by kind and source, for the entries of balance ($1..$3) with seq in ($4, $5] that
-- were due at or before $6.
SELECT e.kind, e.source, sum(e.amount)::bigint, count(*)
FROM entries e
WHERE e.tenant_id = $1 AND e.meter = $2 AND e.subject = $3 AND e.seq > 0 AND e.seq > $4 AND e.seq <= $5
  AND coalesce(e.effective_at, e.created_at) <= $6
GROUP BY e.kind, e.source
ORDER BY e.kind, e.source;

-- name: UsageBetween
-- Returns the use of balance ($1..$3) in [$4, $5) per $6 ('hour' or 'day') in time zone $7. Entries with seq <= $8 are left
-- out. A refund may return drawn units or overage: net use = used + overage - refunded.
SELECT date_trunc($6::text, e.created_at, $7::text), coalesce(sum(e.amount) FILTER (WHERE e.kind IN ('debit', 'capture')), 0)::bigint,
       coalesce(sum(e.amount) FILTER (WHERE e.kind = 'overage'), 0)::bigint,
       coalesce(sum(e.amount) FILTER (WHERE e.kind IN ('refund', 'unsettle', 'unoverage', 'unowe', 'closed_refund')), 0)::bigint, count(DISTINCT e.operation_id)
FROM entries e
WHERE e.tenant_id = $1::text AND e.meter = $2::text AND e.subject = $3::text AND e.seq > 0 AND e.seq > $8::bigint
  AND e.month BETWEEN date_trunc('month', $4::timestamptz AT TIME ZONE 'UTC')::date AND ($5::timestamptz AT TIME ZONE 'UTC')::date
  AND e.created_at >= $4::timestamptz AND e.created_at < $5::timestamptz
  AND e.kind IN ('debit', 'capture', 'overage', 'refund', 'unsettle', 'unoverage', 'unowe', 'closed_refund')
GROUP BY 1
ORDER BY 1;

-- name: SeqBefore
-- Returns the seq of the newest entry in the periods of balance ($1..$3) that had ended at $4. All later use has a higher seq.
SELECT coalesce(max(p.last_seq), 0)
FROM periods p
WHERE p.tenant_id = $1 AND p.meter = $2 AND p.subject = $3 AND p.period_end <= $4;
