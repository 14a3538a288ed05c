-- The statements that sum entries of one balance by seq, and find seqs by instant. Within a balance, created_at never
-- decreases when seq increases. The rows of rollups are optional: without them the answers are the same and take
-- longer. The last parameter is the last month that may have entries: partitions are created a year ahead, and a
-- statement need not read empty partitions.

-- Units of the balance that other meters paid for are in the entries of those meters. Three parallel arrays name, for each
-- such meter, the meter and the range of its entries: those with seq in (after, last]. OFFSET 0 makes the planner read
-- each range by its seqs.

-- name: SeqAt
-- Returns the seq of the newest entry of balance ($1..$3) in ($5, $6] with created_at <= $4; $5 if there is none. It
-- uses binary search, which begins between two rows of rollups. A missing entry counts as older, because its
-- partition was archived.
WITH RECURSIVE search (low, high) AS (
    SELECT greatest($5::bigint, coalesce((SELECT r.seq FROM rollups r
               WHERE r.tenant_id = $1::text AND r.meter = $2::text AND r.subject = $3::text AND r.created_at <= $4::timestamptz
               ORDER BY r.created_at DESC, r.seq DESC LIMIT 1), 0)),
           least($6::bigint + 1, coalesce((SELECT r.seq FROM rollups r
               WHERE r.tenant_id = $1::text AND r.meter = $2::text AND r.subject = $3::text AND r.created_at > $4::timestamptz
               ORDER BY r.created_at, r.seq LIMIT 1), $6::bigint + 1))
    UNION ALL
    SELECT CASE WHEN m.later THEN s.low ELSE (s.low + s.high) / 2 END, CASE WHEN m.later THEN (s.low + s.high) / 2 ELSE s.high END
    FROM search s
    CROSS JOIN LATERAL (
        SELECT coalesce((SELECT e.created_at > $4::timestamptz FROM entries e
            WHERE e.tenant_id = $1::text AND e.meter = $2::text AND e.subject = $3::text AND e.seq > 0 AND e.seq = (s.low + s.high) / 2
              AND e.month <= $7::date), false) AS later
    ) AS m
    WHERE s.high - s.low > 1
)
SELECT least(max(s.low), $6::bigint) FROM search s;

-- name: SumsBetween
-- Returns sums and numbers of the entries of balance ($1..$3) with seq in ($4, $5], by kind and source. The sums are
-- text, because they may exceed 64 bits. It takes the difference between the first row of rollups from $4 on and the
-- last row up to $5. It adds the entries before the first row and after the last row.
WITH low AS MATERIALIZED (
    SELECT 0::bigint AS seq, '{}'::text[] AS kinds, '{}'::text[] AS sources, '{}'::numeric[] AS amounts, '{}'::bigint[] AS counts
    WHERE $4::bigint = 0
    UNION ALL
    (SELECT r.seq, r.kinds, r.sources, r.amounts, r.counts
     FROM rollups r
     WHERE r.tenant_id = $1::text AND r.meter = $2::text AND r.subject = $3::text AND r.seq >= $4::bigint AND $4::bigint > 0
     ORDER BY r.seq LIMIT 1)
), high AS MATERIALIZED (
    SELECT r.seq, r.kinds, r.sources, r.amounts, r.counts
    FROM rollups r
    WHERE r.tenant_id = $1::text AND r.meter = $2::text AND r.subject = $3::text AND r.seq <= $5::bigint
    ORDER BY r.seq DESC LIMIT 1
), cut AS MATERIALIZED (
    SELECT low.seq AS low, high.seq AS high FROM low, high WHERE low.seq < high.seq
), parts AS (
    SELECT u.kind, u.source, -u.amount AS amount, -u.entries AS entries
    FROM cut, low, unnest(low.kinds, low.sources, low.amounts, low.counts) AS u (kind, source, amount, entries)
    UNION ALL
    SELECT u.kind, u.source, u.amount, u.entries
    FROM cut, high, unnest(high.kinds, high.sources, high.amounts, high.counts) AS u (kind, source, amount, entries)
    UNION ALL
    SELECT e.kind, e.source, sum(e.amount), count(*)
    FROM entries e
    WHERE e.tenant_id = $1::text AND e.meter = $2::text AND e.subject = $3::text AND e.seq > 0
      AND e.seq > $4::bigint AND e.seq <= coalesce((SELECT cut.low FROM cut), $5::bigint) AND e.month <= $6::date
    GROUP BY e.kind, e.source
    UNION ALL
    SELECT e.kind, e.source, sum(e.amount), count(*)
    FROM entries e
    WHERE e.tenant_id = $1::text AND e.meter = $2::text AND e.subject = $3::text AND e.seq > 0
      AND e.seq > (SELECT cut.high FROM cut) AND e.seq <= $5::bigint AND e.month <= $6::date
    GROUP BY e.kind, e.source
)
SELECT p.kind, p.source, sum(p.amount)::text, sum(p.entries)::bigint
FROM parts p
GROUP BY p.kind, p.source
HAVING sum(p.entries) > 0
ORDER BY p.kind, p.source;

-- name: LateSums
-- Returns sums like SumsBetween for the entries right after $4, up to $5, that were due at or before $6 but were
-- written after $6. The ledger writes due entries first, in the order in which they were due. So these entries end
-- before the first entry that was not due at $6.
SELECT e.kind, e.source, sum(e.amount)::text, count(*)
FROM entries e
WHERE e.tenant_id = $1::text AND e.meter = $2::text AND e.subject = $3::text AND e.seq > 0 AND e.seq > $4::bigint AND e.seq <= $5::bigint
  AND e.seq < coalesce((SELECT o.seq FROM entries o
      WHERE o.tenant_id = $1::text AND o.meter = $2::text AND o.subject = $3::text AND o.seq > 0 AND o.seq > $4::bigint AND o.seq <= $5::bigint
        AND (o.effective_at IS NULL OR o.effective_at > $6::timestamptz) AND o.month <= $7::date
      ORDER BY o.seq LIMIT 1), $5::bigint + 1)
  AND e.month <= $7::date
GROUP BY e.kind, e.source
ORDER BY e.kind, e.source;

-- name: UsageBetween
-- Returns the use of balance ($1..$3) from $8 to before $9, per step of $6 ('hour', 'day' or 'month') in time zone $7.
-- $4 is the seq before the first entry of that time, and $5 the seq of its last entry. Its first month is $10, its last
-- month is $11. Meters that paid have the rows of overflows from $15 to before $16, and the entries $12..$14 before and
-- after that time. A refund may return drawn units or overage: net use = used + overage - refunded. 2^63-1 stands for
-- any larger sum.
--
-- It looks up the first and the last row of rollups of each step, all in order. The use between two neighbouring rows
-- is their difference if the first entry after the earlier row belongs to the step of the later row. Otherwise the
-- entries between them are read. If a step has no row, more entries are read.
WITH steps AS MATERIALIZED (
    SELECT greatest(s.step, $8::timestamptz) AS start, least(lead(s.step) OVER (ORDER BY s.step), $9::timestamptz) AS until
    FROM (
        SELECT date_trunc($6::text, g, $7::text) AS step
        FROM generate_series($8::timestamptz, $9::timestamptz,
            CASE $6::text WHEN 'hour' THEN interval '15 minutes' WHEN 'day' THEN interval '6 hours' ELSE interval '7 days' END) AS g
        UNION
        SELECT date_trunc($6::text, $9::timestamptz - interval '1 microsecond', $7::text)
    ) AS s
), marks AS MATERIALIZED (
    SELECT DISTINCT o.seq, o.created_at
    FROM steps s
    CROSS JOIN LATERAL (
        (SELECT r.seq, r.created_at FROM rollups r
         WHERE r.tenant_id = $1::text AND r.meter = $2::text AND r.subject = $3::text AND r.created_at >= s.start
         ORDER BY r.created_at, r.seq LIMIT 1)
        UNION ALL
        (SELECT r.seq, r.created_at FROM rollups r
         WHERE r.tenant_id = $1::text AND r.meter = $2::text AND r.subject = $3::text AND r.created_at < s.until AND r.seq <= $5::bigint
         ORDER BY r.created_at DESC, r.seq DESC LIMIT 1)
    ) AS o
    WHERE o.seq >= $4::bigint AND o.seq <= $5::bigint
), pairs AS (
    SELECT lag(u.seq) OVER o AS after, lag(u.step) OVER o AS after_step, u.seq AS last, u.step, u.used - lag(u.used) OVER o AS used,
           u.overage - lag(u.overage) OVER o AS overage, u.refunded - lag(u.refunded) OVER o AS refunded, u.operations - lag(u.operations) OVER o AS operations
    FROM marks m
    CROSS JOIN LATERAL (
        SELECT r.seq, date_trunc($6::text, r.created_at, $7::text) AS step, r.operations,
               coalesce(sum(k.amount) FILTER (WHERE k.kind IN ('debit', 'capture')), 0) AS used,
               coalesce(sum(k.amount) FILTER (WHERE k.kind = 'overage'), 0) AS overage,
               coalesce(sum(k.amount) FILTER (WHERE k.kind IN ('refund', 'unsettle', 'unoverage', 'unowe', 'closed_refund')), 0) AS refunded
        FROM rollups r
        CROSS JOIN LATERAL unnest(r.kinds, r.amounts) AS k (kind, amount)
        WHERE r.tenant_id = $1::text AND r.meter = $2::text AND r.subject = $3::text AND r.seq = m.seq AND r.created_at = m.created_at
        GROUP BY r.seq, r.created_at, r.operations
    ) AS u
    WINDOW o AS (ORDER BY u.seq)
), known AS MATERIALIZED (
    SELECT p.after, p.last, p.step, p.used, p.overage, p.refunded, p.operations,
           p.after_step = p.step OR EXISTS (SELECT 1 FROM entries e
               WHERE e.tenant_id = $1::text AND e.meter = $2::text AND e.subject = $3::text AND e.seq > 0 AND e.seq = p.after + 1
                 AND e.month BETWEEN $10::date AND $11::date AND date_trunc($6::text, e.created_at, $7::text) = p.step) AS whole
    FROM pairs p
), gaps AS (
    SELECT coalesce(k.after, $4::bigint) AS after, k.last FROM known k WHERE k.whole IS NOT TRUE
    UNION ALL
    SELECT coalesce((SELECT max(k.last) FROM known k), $4::bigint), $5::bigint
), parts AS (
    SELECT k.step, k.used, k.overage, 0 AS overflow, k.refunded, k.operations FROM known k WHERE k.whole
    UNION ALL
    SELECT e.step, e.used, e.overage, 0, e.refunded, e.operations
    FROM gaps g
    CROSS JOIN LATERAL (
        SELECT date_trunc($6::text, o.created_at, $7::text) AS step,
               coalesce(sum(o.amount) FILTER (WHERE o.kind IN ('debit', 'capture')), 0) AS used,
               coalesce(sum(o.amount) FILTER (WHERE o.kind = 'overage'), 0) AS overage,
               coalesce(sum(o.amount) FILTER (WHERE o.kind IN ('refund', 'unsettle', 'unoverage', 'unowe', 'closed_refund')), 0) AS refunded,
               count(DISTINCT o.operation_id) AS operations
        FROM entries o
        WHERE o.tenant_id = $1::text AND o.meter = $2::text AND o.subject = $3::text AND o.seq > 0 AND o.seq > g.after AND o.seq <= g.last
          AND o.month BETWEEN $10::date AND $11::date
          AND o.kind IN ('debit', 'capture', 'overage', 'refund', 'unsettle', 'unoverage', 'unowe', 'closed_refund')
        GROUP BY 1
    ) AS e
    UNION ALL
    SELECT date_trunc($6::text, o.quarter, $7::text), 0, 0, o.units, 0, o.operations
    FROM overflows o
    WHERE o.tenant_id = $1::text AND o.meter = $2::text AND o.quarter >= $15::timestamptz AND o.quarter < $16::timestamptz
      AND o.paid_by = ANY ($12::text[])
    UNION ALL
    SELECT date_trunc($6::text, y.created_at, $7::text), 0, 0, sum(y.units), 0, count(DISTINCT y.operation_id) FILTER (WHERE NOT EXISTS (
               SELECT 1 FROM entries o
               WHERE o.tenant_id = $1::text AND o.operation_id = y.operation_id AND o.month = y.month AND o.meter = $2::text AND o.subject = $3::text
                 AND o.kind IN ('debit', 'capture', 'overage')))
    FROM unnest($12::text[], $13::bigint[], $14::bigint[]) AS k (meter, after, last)
    CROSS JOIN LATERAL (
        SELECT e.created_at, e.month, e.operation_id, coalesce(e.detail #>> '{overflow,units}', e.detail ->> 'units')::bigint AS units
        FROM entries e
        WHERE e.tenant_id = $1::text AND e.meter = k.meter AND e.subject = '' AND e.seq > 0 AND e.seq > k.after AND e.seq <= k.last
          AND e.month BETWEEN $10::date AND $11::date AND e.kind IN ('debit', 'capture')
          AND coalesce(e.detail #>> '{overflow,for}', e.detail ->> 'for') = $2::text
          AND coalesce(e.detail #>> '{overflow,period}', e.detail ->> 'period') IS NOT NULL
        OFFSET 0
    ) AS y
    WHERE y.units > 0
    GROUP BY 1
)
SELECT p.step, least(sum(p.used), 9223372036854775807)::bigint, least(sum(p.overage), 9223372036854775807)::bigint,
       least(sum(p.overflow), 9223372036854775807)::bigint, least(sum(p.refunded), 9223372036854775807)::bigint, sum(p.operations)::bigint
FROM parts p
GROUP BY p.step
HAVING sum(p.operations) > 0 OR sum(p.overflow) > 0
ORDER BY p.step;

-- name: UsageBySubject
-- Returns the use of balance ($1..$3) by the entries with seq in ($4, $5], by the subject that the requests named.
-- Steps are $6 ('hour', 'day' or 'month') in time zone $7. It returns at most $9 rows. A refund names no subject.
-- $10..$12 are the entries of meters that paid. 2^63-1 stands for any larger sum.
SELECT date_trunc($6::text, e.created_at, $7::text), coalesce(e.op_subject, ''),
       least(coalesce(sum(e.amount) FILTER (WHERE e.kind IN ('debit', 'capture')), 0), 9223372036854775807)::bigint,
       least(coalesce(sum(e.amount) FILTER (WHERE e.kind = 'overage'), 0), 9223372036854775807)::bigint,
       least(coalesce(sum(e.amount) FILTER (WHERE e.kind = 'overflow'), 0), 9223372036854775807)::bigint,
       least(coalesce(sum(e.amount) FILTER (WHERE e.kind IN ('refund', 'unsettle', 'unoverage', 'unowe', 'closed_refund')), 0), 9223372036854775807)::bigint,
       count(DISTINCT e.operation_id)
FROM (
    SELECT o.created_at, o.kind, o.amount, o.op_subject, o.operation_id
    FROM entries o
    WHERE o.tenant_id = $1::text AND o.meter = $2::text AND o.subject = $3::text AND o.seq > 0 AND o.seq > $4::bigint AND o.seq <= $5::bigint
      AND o.month <= $8::date
      AND o.kind IN ('debit', 'capture', 'overage', 'refund', 'unsettle', 'unoverage', 'unowe', 'closed_refund')
    UNION ALL
    SELECT y.created_at, 'overflow', y.units, y.op_subject, y.operation_id
    FROM unnest($10::text[], $11::bigint[], $12::bigint[]) AS k (meter, after, last)
    CROSS JOIN LATERAL (
        SELECT o.created_at, o.op_subject, o.operation_id, coalesce(o.detail #>> '{overflow,units}', o.detail ->> 'units')::bigint AS units
        FROM entries o
        WHERE o.tenant_id = $1::text AND o.meter = k.meter AND o.subject = '' AND o.seq > 0 AND o.seq > k.after AND o.seq <= k.last
          AND o.month <= $8::date AND o.kind IN ('debit', 'capture')
          AND coalesce(o.detail #>> '{overflow,for}', o.detail ->> 'for') = $2::text
          AND coalesce(o.detail #>> '{overflow,period}', o.detail ->> 'period') IS NOT NULL
        OFFSET 0
    ) AS y
    WHERE y.units > 0
) AS e
GROUP BY 1, 2
ORDER BY 1, 2
LIMIT $9::integer;

-- name: UsageOfSubject
-- Returns the use of balance ($1..$3) by the entries with seq in ($4, $5], of requests that named subject $10. Steps
-- are $6 ('hour', 'day' or 'month') in time zone $7. It returns at most $9 rows. A refund names no subject. $11..$13
-- are the entries of meters that paid. 2^63-1 stands for any larger sum.
SELECT date_trunc($6::text, e.created_at, $7::text), coalesce(e.op_subject, ''),
       least(coalesce(sum(e.amount) FILTER (WHERE e.kind IN ('debit', 'capture')), 0), 9223372036854775807)::bigint,
       least(coalesce(sum(e.amount) FILTER (WHERE e.kind = 'overage'), 0), 9223372036854775807)::bigint,
       least(coalesce(sum(e.amount) FILTER (WHERE e.kind = 'overflow'), 0), 9223372036854775807)::bigint,
       least(coalesce(sum(e.amount) FILTER (WHERE e.kind IN ('refund', 'unsettle', 'unoverage', 'unowe', 'closed_refund')), 0), 9223372036854775807)::bigint,
       count(DISTINCT e.operation_id)
FROM (
    SELECT o.created_at, o.kind, o.amount, o.op_subject, o.operation_id
    FROM entries o
    WHERE o.tenant_id = $1::text AND o.meter = $2::text AND o.subject = $3::text AND o.seq > 0 AND o.seq > $4::bigint AND o.seq <= $5::bigint
      AND o.month <= $8::date
      AND o.op_subject = $10::text AND o.op_subject IS NOT NULL
      AND o.kind IN ('debit', 'capture', 'overage', 'refund', 'unsettle', 'unoverage', 'unowe', 'closed_refund')
    UNION ALL
    SELECT y.created_at, 'overflow', y.units, y.op_subject, y.operation_id
    FROM unnest($11::text[], $12::bigint[], $13::bigint[]) AS k (meter, after, last)
    CROSS JOIN LATERAL (
        SELECT o.created_at, o.op_subject, o.operation_id, coalesce(o.detail #>> '{overflow,units}', o.detail ->> 'units')::bigint AS units
        FROM entries o
        WHERE o.tenant_id = $1::text AND o.meter = k.meter AND o.subject = '' AND o.seq > 0 AND o.seq > k.after AND o.seq <= k.last
          AND o.month <= $8::date AND o.op_subject = $10::text AND o.op_subject IS NOT NULL AND o.kind IN ('debit', 'capture')
          AND coalesce(o.detail #>> '{overflow,for}', o.detail ->> 'for') = $2::text
          AND coalesce(o.detail #>> '{overflow,period}', o.detail ->> 'period') IS NOT NULL
        OFFSET 0
    ) AS y
    WHERE y.units > 0
) AS e
GROUP BY 1, 2
ORDER BY 1, 2
LIMIT $9::integer;

-- name: UsageByDimension
-- Returns the use of balance ($1..$3) by the entries with seq in ($4, $5], by the value of member $10 of the
-- requests' metadata. Steps are $6 ('hour', 'day' or 'month') in time zone $7. $11: only of requests that named this
-- subject; '' = all. It returns at most $9 rows. $8 is the last month that may have entries, and $12 is the first
-- month that may have a hold whose capture counts. The $13 values with the most use are named; all other values
-- become (other). Requests without the member, and refunds, have the empty value. A capture has the value of its
-- hold. $14..$16 are the entries of meters that paid. The sum over the values equals the result of UsageBetween. 2^63-1
-- stands for any larger sum.
WITH lines AS MATERIALIZED (
    SELECT e.created_at, e.kind, e.amount, e.operation_id,
           CASE WHEN jsonb_typeof(e.metadata -> $10::text) IN ('string', 'number', 'boolean') THEN left(e.metadata ->> $10::text, 128) END AS value
    FROM entries e
    WHERE e.tenant_id = $1::text AND e.meter = $2::text AND e.subject = $3::text AND e.seq > 0 AND e.seq > $4::bigint AND e.seq <= $5::bigint
      AND e.month <= $8::date AND ($11::text = '' OR e.op_subject = $11::text)
      AND e.kind IN ('debit', 'capture', 'overage', 'refund', 'unsettle', 'unoverage', 'unowe', 'closed_refund')
      AND e.detail -> 'hold' IS NULL
    UNION ALL
    SELECT c.created_at, c.kind, c.amount, c.operation_id, c.value
    FROM (
        SELECT e.seq, e.created_at, e.kind, e.amount, e.operation_id,
               max(CASE WHEN jsonb_typeof(e.metadata -> $10::text) IN ('string', 'number', 'boolean') THEN left(e.metadata ->> $10::text, 128) END)
                   OVER (PARTITION BY e.detail ->> 'hold') AS value
        FROM entries e
        WHERE e.tenant_id = $1::text AND e.meter = $2::text AND e.subject = $3::text AND e.seq > 0 AND e.seq <= $5::bigint
          AND e.month BETWEEN $12::date AND $8::date AND ($11::text = '' OR e.op_subject = $11::text)
          AND e.kind <> 'debit' AND e.kind IN ('hold', 'capture', 'overage') AND e.detail -> 'hold' IS NOT NULL
    ) AS c
    WHERE c.seq > $4::bigint AND c.kind <> 'hold'
    UNION ALL
    SELECT y.created_at, 'overflow', y.units, y.operation_id, y.value
    FROM unnest($14::text[], $15::bigint[], $16::bigint[]) AS k (meter, after, last)
    CROSS JOIN LATERAL (
        SELECT e.created_at, e.operation_id, (e.detail ->> 'units')::bigint AS units,
               CASE WHEN jsonb_typeof(e.metadata -> $10::text) IN ('string', 'number', 'boolean') THEN left(e.metadata ->> $10::text, 128) END AS value
        FROM entries e
        WHERE e.tenant_id = $1::text AND e.meter = k.meter AND e.subject = '' AND e.seq > 0 AND e.seq > k.after AND e.seq <= k.last
          AND e.month <= $8::date AND ($11::text = '' OR e.op_subject = $11::text) AND e.kind = 'debit' AND e.detail ->> 'for' = $2::text
          AND e.detail ->> 'period' IS NOT NULL
        UNION ALL
        SELECT c.created_at, c.operation_id, CASE WHEN c.seq > k.after AND c.pays_for = $2::text AND c.counted THEN c.units END, c.value
        FROM (
            SELECT e.seq, e.created_at, e.operation_id, e.detail #>> '{overflow,for}' AS pays_for, (e.detail #>> '{overflow,units}')::bigint AS units,
                   e.detail #> '{overflow,period}' IS NOT NULL AS counted,
                   max(CASE WHEN jsonb_typeof(e.metadata -> $10::text) IN ('string', 'number', 'boolean') THEN left(e.metadata ->> $10::text, 128) END)
                       OVER (PARTITION BY e.detail ->> 'hold') AS value
            FROM entries e
            WHERE e.tenant_id = $1::text AND e.meter = k.meter AND e.subject = '' AND e.seq > 0 AND e.seq <= k.last
              AND e.month BETWEEN $12::date AND $8::date AND ($11::text = '' OR e.op_subject = $11::text)
              AND e.kind <> 'debit' AND e.kind IN ('hold', 'capture') AND e.detail -> 'hold' IS NOT NULL
        ) AS c
        OFFSET 0
    ) AS y
    WHERE y.units > 0
), used AS MATERIALIZED (
    SELECT date_trunc($6::text, l.created_at, $7::text) AS step, coalesce(l.value, '') AS value,
           coalesce(sum(l.amount) FILTER (WHERE l.kind IN ('debit', 'capture')), 0) AS used,
           coalesce(sum(l.amount) FILTER (WHERE l.kind = 'overage'), 0) AS overage,
           coalesce(sum(l.amount) FILTER (WHERE l.kind = 'overflow'), 0) AS overflow,
           coalesce(sum(l.amount) FILTER (WHERE l.kind IN ('refund', 'unsettle', 'unoverage', 'unowe', 'closed_refund')), 0) AS refunded,
           count(DISTINCT l.operation_id) AS operations
    FROM lines l
    GROUP BY 1, 2
), named AS MATERIALIZED (
    SELECT array_agg(n.value) AS all_values
    FROM (SELECT u.value FROM used u WHERE u.value <> '' GROUP BY u.value ORDER BY sum(u.used + u.overage + u.overflow) DESC, u.value LIMIT $13::integer) AS n
)
SELECT u.step, CASE WHEN u.value = '' OR u.value = ANY ((SELECT n.all_values FROM named n)::text[]) THEN u.value ELSE '(other)' END,
       least(sum(u.used), 9223372036854775807)::bigint, least(sum(u.overage), 9223372036854775807)::bigint,
       least(sum(u.overflow), 9223372036854775807)::bigint, least(sum(u.refunded), 9223372036854775807)::bigint, sum(u.operations)::bigint
FROM used u
GROUP BY 1, 2
ORDER BY 1, 2
LIMIT $9::integer;

-- name: NewestSeq
-- Returns the seq of the newest entry of balance ($1..$3). It returns no row if the balance does not exist.
SELECT b.seq FROM balances b WHERE b.tenant_id = $1 AND b.meter = $2 AND b.subject = $3;

-- name: Overflows
-- Returns how many units of tenant $1's meters $2 other meters have paid for, by the meter and by its period, for
-- periods that start from $3 to $4. 2^63-1 stands for any larger sum.
SELECT o.meter, o.period_start, least(sum(o.units), 9223372036854775807)::bigint
FROM overflows o
WHERE o.tenant_id = $1::text AND o.meter = ANY ($2::text[]) AND o.period_start BETWEEN $3::timestamptz AND $4::timestamptz AND o.quarter = 'epoch'
GROUP BY o.meter, o.period_start;

-- name: PaidBy
-- Returns the meters that paid for units of tenant $1's meter $2 in periods from the one that contains $3 to the last one
-- that starts before $4.
SELECT DISTINCT o.paid_by
FROM overflows o
WHERE o.tenant_id = $1::text AND o.meter = $2::text AND o.period_start < $4::timestamptz AND o.quarter = 'epoch'
  AND o.period_start >= coalesce((SELECT max(c.period_start) FROM overflows c
      WHERE c.tenant_id = $1::text AND c.meter = $2::text AND c.period_start <= $3::timestamptz AND c.quarter = 'epoch'), $3::timestamptz);

-- name: OverflowAsOf
-- Returns how many units of tenant $1's meter $2 other meters had paid for, in the period that starts at $3. These are
-- the rows of overflows before the quarter of an hour $4, and the entries $5..$7 of the meters that paid. A clock that was
-- behind may have put a row before the period. $8 is the last month that may have entries. 2^63-1 stands for any larger
-- sum.
SELECT least(coalesce((SELECT sum(o.units) FROM overflows o
           WHERE o.tenant_id = $1::text AND o.meter = $2::text AND o.period_start = $3::timestamptz AND o.quarter < $4::timestamptz
             AND o.quarter >= $3::timestamptz - interval '1 day'), 0)
       + coalesce(sum(coalesce(e.detail #>> '{overflow,units}', e.detail ->> 'units')::bigint), 0), 9223372036854775807)::bigint
FROM unnest($5::text[], $6::bigint[], $7::bigint[]) AS k (meter, after, last)
CROSS JOIN LATERAL (
    SELECT o.detail
    FROM entries o
    WHERE o.tenant_id = $1::text AND o.meter = k.meter AND o.subject = '' AND o.seq > 0 AND o.seq > k.after AND o.seq <= k.last AND o.month <= $8::date
      AND o.kind IN ('debit', 'capture') AND coalesce(o.detail #>> '{overflow,for}', o.detail ->> 'for') = $2::text
      AND coalesce(o.detail #>> '{overflow,period}', o.detail ->> 'period')::timestamptz = $3::timestamptz
    OFFSET 0
) AS e;
