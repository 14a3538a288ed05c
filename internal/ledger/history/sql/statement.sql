-- The statements that read closed periods. The seqs of a period define which entries belong to it. The column adjusted
-- includes amended.

-- name: PeriodAt
-- Returns the closed period, or the run of idle periods, of balance ($1..$3) that contains $4. It also returns the
-- last seq of the period before, and the units that were held at the end of that period.
SELECT p.period_start, p.period_end, p.plan, p.plan_version, p.opening, p.granted, p.amended, p.refunded, p.used, p.expired, p.adjusted - p.amended,
       p.overage, p.held, p.closing, p.last_seq, p.closed_at, p.idle, coalesce(p.terms_at, 'epoch'), p.rolled_over, p.rollover, p.owing,
       coalesce(o.last_seq, 0), coalesce(o.held, 0)
FROM periods p
LEFT JOIN LATERAL (
    SELECT b.last_seq, b.held
    FROM periods b
    WHERE b.tenant_id = $1 AND b.meter = $2 AND b.subject = $3 AND b.period_start < p.period_start
    ORDER BY b.period_start DESC LIMIT 1
) AS o ON true
WHERE p.tenant_id = $1 AND p.meter = $2 AND p.subject = $3 AND p.period_end > $4
  AND p.period_start = (SELECT max(c.period_start) FROM periods c
      WHERE c.tenant_id = $1 AND c.meter = $2 AND c.subject = $3 AND c.period_start <= $4);

-- name: BeforePeriod
-- Returns the seq of the newest entry in the periods of balance ($1..$3) that start before $4, and the units that
-- were held after it. The entries of the period that starts at $4 come after this seq. The answer is the same if that
-- period was closed in the meantime. It returns no row if there is no such period.
SELECT p.last_seq, p.held
FROM periods p
WHERE p.tenant_id = $1 AND p.meter = $2 AND p.subject = $3 AND p.period_start < $4
ORDER BY p.period_start DESC LIMIT 1;

-- name: PeriodsUntil
-- Returns the newest $5 closed periods, or runs of idle periods, of balance ($1..$3) that start at or before $4, the
-- newest first.
SELECT p.period_start, p.period_end, p.plan, p.plan_version, p.opening, p.granted, p.amended, p.refunded, p.used, p.expired, p.adjusted - p.amended,
       p.overage, p.held, p.closing, p.last_seq, p.closed_at, p.idle, coalesce(p.terms_at, 'epoch'), p.rolled_over, p.rollover, p.owing
FROM periods p
WHERE p.tenant_id = $1 AND p.meter = $2 AND p.subject = $3 AND p.period_start <= $4
ORDER BY p.period_start DESC
LIMIT $5::integer;
