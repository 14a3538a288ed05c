-- The statements that write the table rollups.

-- name: NextRollup
-- With $5 = 0 it writes the next row of balance ($1..$3), if at least $4 entries follow the newest row and another
-- operation follows these entries. The row covers the entries up to an end of a half hour. This is the first end
-- after at least $6 entries, or otherwise the last end. If no half hour ends among the entries, the same rule applies
-- to quarters of an hour. If no quarter ends either, the row covers all of the entries. In every time zone, hours and
-- days begin at an end of a quarter of an hour. With $5 > 0 it writes the row of entry $5 instead, which must be the
-- last entry of its operation. It returns the row's seq, or no row if there was nothing to write. Concurrent writers
-- write the same row.
WITH base AS MATERIALIZED (
    SELECT r.seq, r.operations, r.kinds, r.sources, r.amounts, r.counts
    FROM rollups r
    WHERE r.tenant_id = $1::text AND r.meter = $2::text AND r.subject = $3::text AND ($5::bigint = 0 OR r.seq <= $5::bigint)
    ORDER BY r.seq DESC LIMIT 1
), border AS MATERIALIZED (
    SELECT e.seq, e.operation_id
    FROM entries e
    WHERE e.tenant_id = $1::text AND e.meter = $2::text AND e.subject = $3::text AND e.seq > 0
      AND e.seq = coalesce((SELECT b.seq FROM base b), 0) + $4::bigint AND $5::bigint = 0
), full_row AS MATERIALIZED (
    SELECT n.seq - 1 AS seq
    FROM border b
    CROSS JOIN LATERAL (
        SELECT e.seq
        FROM entries e
        WHERE e.tenant_id = $1::text AND e.meter = $2::text AND e.subject = $3::text AND e.seq > 0 AND e.seq > b.seq AND e.operation_id <> b.operation_id
        ORDER BY e.seq LIMIT 1
    ) AS n
), border_in_time AS MATERIALIZED (
    SELECT w.seq
    FROM (
        SELECT e.seq, e.seq - coalesce((SELECT b.seq FROM base b), 0) >= $6::bigint AS enough, e.operation_id, lead(e.operation_id) OVER o AS next_operation,
               date_bin('15 minutes', e.created_at, 'epoch') AS quarter, lead(date_bin('15 minutes', e.created_at, 'epoch')) OVER o AS next_quarter
        FROM entries e
        WHERE e.tenant_id = $1::text AND e.meter = $2::text AND e.subject = $3::text AND e.seq > 0
          AND e.seq > coalesce((SELECT b.seq FROM base b), 0) AND e.seq <= (SELECT f.seq + 1 FROM full_row f)
        WINDOW o AS (ORDER BY e.seq)
    ) AS w
    WHERE w.quarter < w.next_quarter AND w.operation_id <> w.next_operation
    ORDER BY date_bin('30 minutes', w.quarter, 'epoch') < date_bin('30 minutes', w.next_quarter, 'epoch') DESC, w.enough DESC,
             CASE WHEN w.enough THEN w.seq ELSE -w.seq END
    LIMIT 1
), last AS MATERIALIZED (
    SELECT coalesce((SELECT t.seq FROM border_in_time t), f.seq) AS seq FROM full_row f
    UNION ALL
    SELECT $5::bigint WHERE $5::bigint > coalesce((SELECT b.seq FROM base b), 0)
), step AS MATERIALIZED (
    SELECT e.operation_id, e.kind, e.source, e.amount
    FROM entries e
    WHERE e.tenant_id = $1::text AND e.meter = $2::text AND e.subject = $3::text AND e.seq > 0
      AND e.seq > coalesce((SELECT b.seq FROM base b), 0) AND e.seq <= (SELECT l.seq FROM last l)
), sums AS (
    SELECT p.kind, p.source, sum(p.amount) AS amount, sum(p.entries)::bigint AS entries
    FROM (
        SELECT u.kind, u.source, u.amount, u.entries FROM base b, unnest(b.kinds, b.sources, b.amounts, b.counts) AS u (kind, source, amount, entries)
        UNION ALL
        SELECT s.kind, s.source, sum(s.amount), count(*) FROM step s GROUP BY s.kind, s.source
    ) AS p
    GROUP BY p.kind, p.source
)
INSERT INTO rollups (tenant_id, meter, subject, seq, created_at, operations, kinds, sources, amounts, counts)
SELECT $1::text, $2::text, $3::text, l.seq, e.created_at,
       coalesce((SELECT b.operations FROM base b), 0) + (SELECT count(DISTINCT s.operation_id) FROM step s
           WHERE s.kind IN ('debit', 'capture', 'overage', 'refund', 'unsettle', 'unoverage', 'unowe', 'closed_refund')),
       a.kinds, a.sources, a.amounts, a.counts
FROM last l
JOIN entries e ON e.tenant_id = $1::text AND e.meter = $2::text AND e.subject = $3::text AND e.seq > 0 AND e.seq = l.seq
CROSS JOIN (
    SELECT array_agg(s.kind ORDER BY s.kind, s.source) AS kinds, array_agg(s.source ORDER BY s.kind, s.source) AS sources,
           array_agg(s.amount ORDER BY s.kind, s.source) AS amounts, array_agg(s.entries ORDER BY s.kind, s.source) AS counts
    FROM sums s
) AS a
ON CONFLICT (tenant_id, meter, subject, seq) DO NOTHING
RETURNING seq;

-- name: LargeBalances
-- Returns the next $4 balances after ($1..$3), and whether at least $5 entries of each follow its newest row of
-- rollups.
SELECT b.tenant_id, b.meter, b.subject,
       b.seq >= $5::bigint AND b.seq >= $5::bigint + coalesce((SELECT r.seq FROM rollups r
           WHERE b.seq >= $5::bigint AND r.tenant_id = b.tenant_id AND r.meter = b.meter AND r.subject = b.subject ORDER BY r.seq DESC LIMIT 1), 0)
-- citus: FROM balances b WHERE (b.tenant_id, b.meter, b.subject) > ($1::text, $2::text, $3::text)
FROM ( -- plain
    SELECT a.tenant_id, a.meter, a.subject, a.seq -- plain
    FROM balances a -- plain
    WHERE (a.tenant_id, a.meter, a.subject) > ($1::text, $2::text, $3::text) -- plain
    ORDER BY a.tenant_id, a.meter, a.subject -- plain
    LIMIT $4::integer -- plain
) AS b -- plain
ORDER BY b.tenant_id, b.meter, b.subject
-- citus: LIMIT $4::integer
;

-- name: RollupBefore
-- Returns the seq of the newest row of balance ($1..$3) up to entry $4. It returns no row if there is none.
SELECT r.seq FROM rollups r WHERE r.tenant_id = $1 AND r.meter = $2 AND r.subject = $3 AND r.seq <= $4 ORDER BY r.seq DESC LIMIT 1;
