-- Statements and balances of the past: sums over the entries of one period. seq bounds come from the periods table, so that
-- only that period's entries are read.

-- name: PeriodAt
-- The closed period of balance ($1..$3) that contains $4, with the seq range of its entries.
SELECT p.period_start, p.period_end, p.plan, p.plan_version, p.opening, p.granted, p.refunded, p.used, p.expired, p.adjusted, p.overage,
       p.held, p.closing, p.last_seq, p.closed_at,
       coalesce((SELECT max(o.last_seq) FROM periods o
                 WHERE o.tenant_id = p.tenant_id AND o.meter = p.meter AND o.subject = p.subject AND o.period_start < p.period_start), 0)
FROM periods p
WHERE p.tenant_id = $1 AND p.meter = $2 AND p.subject = $3 AND p.period_start <= $4 AND p.period_end > $4;

-- name: SeqBeforePeriod
-- The newest entry of the balance's periods before the one that starts at $4, whose entries follow it. Whether that one was closed
-- since it was read does not matter.
SELECT coalesce(max(p.last_seq), 0) FROM periods p WHERE p.tenant_id = $1 AND p.meter = $2 AND p.subject = $3 AND p.period_start < $4;

-- name: SumsUntil
-- What entries of balance ($1..$3) with seq in ($4, $5] that were due at or before $6 have moved, by kind and source.
SELECT e.kind, e.source, sum(e.amount)::bigint, count(*)
FROM entries e
WHERE e.tenant_id = $1 AND e.meter = $2 AND e.subject = $3 AND e.seq > 0 AND e.seq > $4 AND e.seq <= $5
  AND coalesce(e.effective_at, e.created_at) <= $6
GROUP BY e.kind, e.source
ORDER BY e.kind, e.source;

-- name: UsageBetween
-- Use of balance ($1..$3) in [$4, $5) per bucket of $6 ('hour' or 'day') in zone $7. $8 bounds seq from below. What is refunded may
-- have been drawn or been overage, so that used + overage - refunded is the use that stands.
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
-- The newest entry of the periods of balance ($1..$3) that had ended at $4: no later use has a lower seq.
SELECT coalesce(max(p.last_seq), 0)
FROM periods p
WHERE p.tenant_id = $1 AND p.meter = $2 AND p.subject = $3 AND p.period_end <= $4;
