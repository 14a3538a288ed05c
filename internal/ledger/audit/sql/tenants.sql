-- The statements with which the auditor compares refunds, holds and gauges of whole tenants. A refund or a hold may
-- involve several balances. Each statement sees one state of the database.

-- name: WithRefundsOrHolds
-- Returns the tenants among $1 that have refunds or holds in the tables.
-- citus: SELECT r.tenant_id FROM refunds r WHERE r.tenant_id = ANY ($1::text[]) UNION SELECT h.tenant_id FROM holds h WHERE h.tenant_id = ANY ($1::text[])
-- citus: UNION SELECT l.tenant_id FROM hold_lines l WHERE l.tenant_id = ANY ($1::text[])
SELECT k.tenant_id -- plain
FROM unnest($1::text[]) AS k (tenant_id) -- plain
WHERE EXISTS (SELECT 1 FROM refunds r WHERE r.tenant_id = k.tenant_id) OR EXISTS (SELECT 1 FROM holds h WHERE h.tenant_id = k.tenant_id) -- plain
   OR EXISTS (SELECT 1 FROM hold_lines l WHERE l.tenant_id = k.tenant_id) -- plain
;

-- name: VerifyRefunds
-- Compares the refunds of tenant $1 with the entries that made them. It returns at most 100 rows that differ. Each
-- result has operation, month of the operation, line, the sum of the entries, the amount in the row, then the units
-- of the entries and of the row. Entries of earlier versions may lack the month, and the first entry of a refund may
-- lack the line. Such operations are compared as a whole. If $2 is true, older entries are archived, and a row may be
-- larger than the sum of the remaining entries. Units are those of an item for which an overflow meter has paid at a
-- price that is not a whole number.
WITH entered AS (
    SELECT e.detail ->> 'refund_of' AS operation_id, e.detail ->> 'refund_month' AS month, (e.detail ->> 'refund_line')::integer AS line,
           sum(e.amount) AS amount, sum(coalesce((e.detail ->> 'refund_units')::bigint, 0)) AS units
    FROM entries e
    WHERE e.tenant_id = $1::text AND e.seq > 0 AND e.kind IN ('refund', 'unoverage', 'unowe', 'unsettle', 'closed_refund')
    GROUP BY 1, 2, 3
), vague AS (
    SELECT DISTINCT v.operation_id FROM entered v WHERE v.month IS NULL OR coalesce(v.line, 0) = 0
), journal AS (
    SELECT n.operation_id, CASE WHEN v.operation_id IS NULL THEN n.month ELSE '' END AS month,
           CASE WHEN v.operation_id IS NULL THEN n.line ELSE 0 END AS line, sum(n.amount) AS amount, sum(n.units) AS units
    FROM entered n LEFT JOIN vague v ON v.operation_id = n.operation_id
    GROUP BY 1, 2, 3
), rows AS (
    SELECT r.operation_id, CASE WHEN v.operation_id IS NULL THEN to_char(r.month, 'YYYY-MM') ELSE '' END AS month,
           CASE WHEN v.operation_id IS NULL THEN r.line ELSE 0 END AS line, sum(r.refunded) AS amount, sum(r.units) AS units
    FROM refunds r LEFT JOIN vague v ON v.operation_id = r.operation_id
    WHERE r.tenant_id = $1::text
    GROUP BY 1, 2, 3
)
SELECT coalesce(j.operation_id, s.operation_id, ''), coalesce(j.month, s.month, ''), coalesce(j.line, s.line, 0), coalesce(j.amount, 0)::text,
       coalesce(s.amount, 0)::text, coalesce(j.units, 0)::text, coalesce(s.units, 0)::text
FROM journal j
FULL JOIN rows s ON s.operation_id = j.operation_id AND s.month = j.month AND s.line = j.line
WHERE (coalesce(j.amount, 0) <> coalesce(s.amount, 0) OR coalesce(j.units, 0) <> coalesce(s.units, 0))
  AND NOT ($2::boolean AND coalesce(s.amount, 0) >= coalesce(j.amount, 0) AND coalesce(s.units, 0) >= coalesce(j.units, 0))
ORDER BY 1, 2, 3
LIMIT 100;

-- name: VerifyHoldLines
-- Compares the hold lines of tenant $1 with the entries that made them, by balance, hold and item. It returns at most
-- 100 items that differ. Each result has meter, subject, hold and item, then the reserved, captured and returned
-- units of the entries, then the same units of the rows. $2 is as in VerifyRefunds.
WITH journal AS (
    SELECT e.meter, e.subject, e.detail ->> 'hold' AS hold_id, e.item,
           coalesce(sum(e.amount) FILTER (WHERE e.kind = 'hold'), 0) AS amount,
           coalesce(sum(e.amount) FILTER (WHERE e.kind = 'capture'), 0) AS captured,
           coalesce(sum(e.amount) FILTER (WHERE e.kind = 'release'), 0) AS returned
    FROM entries e
    WHERE e.tenant_id = $1::text AND e.seq > 0 AND e.kind IN ('hold', 'capture', 'release')
    GROUP BY 1, 2, 3, 4
), rows AS (
    SELECT l.meter, l.subject, l.hold_id, l.item, sum(l.amount) AS amount, sum(l.captured) AS captured, sum(l.returned) AS returned
    FROM hold_lines l
    WHERE l.tenant_id = $1::text
    GROUP BY 1, 2, 3, 4
)
SELECT coalesce(j.meter, s.meter), coalesce(j.subject, s.subject), coalesce(j.hold_id, s.hold_id, ''), coalesce(j.item, s.item),
       coalesce(j.amount, 0)::text, coalesce(j.captured, 0)::text, coalesce(j.returned, 0)::text,
       coalesce(s.amount, 0)::text, coalesce(s.captured, 0)::text, coalesce(s.returned, 0)::text
FROM journal j
FULL JOIN rows s ON s.meter = j.meter AND s.subject = j.subject AND s.hold_id = j.hold_id AND s.item = j.item
WHERE (coalesce(j.amount, 0) <> coalesce(s.amount, 0) OR coalesce(j.captured, 0) <> coalesce(s.captured, 0)
       OR coalesce(j.returned, 0) <> coalesce(s.returned, 0))
  AND NOT ($2::boolean AND (s.meter IS NULL OR coalesce(s.amount, 0) > coalesce(j.amount, 0)))
ORDER BY 3, 4
LIMIT 100;

-- name: VerifyHoldGrants
-- Compares the grants in the hold lines of tenant $1 with the grants in the entries. It returns at most 100 grants
-- that differ: meter, subject, hold, item, grant, the amount of the entries, the amount of the rows. $2 is as in
-- VerifyRefunds.
WITH journal AS (
    SELECT e.meter, e.subject, e.detail ->> 'hold' AS hold_id, e.item, e.grant_id, e.source, sum(e.amount) AS amount
    FROM entries e
    WHERE e.tenant_id = $1::text AND e.seq > 0 AND e.kind = 'hold'
    GROUP BY 1, 2, 3, 4, 5, 6
), rows AS (
    SELECT l.meter, l.subject, l.hold_id, l.item, l.grant_id, l.source, sum(l.amount) AS amount
    FROM hold_lines l
    WHERE l.tenant_id = $1::text
    GROUP BY 1, 2, 3, 4, 5, 6
)
SELECT coalesce(j.meter, s.meter), coalesce(j.subject, s.subject), coalesce(j.hold_id, s.hold_id, ''), coalesce(j.item, s.item),
       coalesce(j.grant_id, s.grant_id), coalesce(j.amount, 0)::text, coalesce(s.amount, 0)::text
FROM journal j
FULL JOIN rows s ON s.meter = j.meter AND s.subject = j.subject AND s.hold_id = j.hold_id AND s.item = j.item AND s.grant_id = j.grant_id
    AND s.source = j.source
WHERE coalesce(j.amount, 0) <> coalesce(s.amount, 0) AND NOT $2::boolean
ORDER BY 3, 4
LIMIT 100;

-- name: VerifyPayments
-- Compares how the hold lines of tenant $1 pay for items with the items and the captures. It returns at most 100
-- differences: meter, subject, hold, line, name of the value, the expected value, the line's value. If $2 is true,
-- older entries are archived, and nothing that needs captures or refunds is compared. Lines of one hold, item, meter
-- and price are a payment: its first line has `paid` and `beyond`. Only the payment with the hold's first lines has paid
-- units. Lines without pays_for at a price that is not a whole number are of a version that did not count the rest.
WITH captures AS (
    SELECT e.meter, e.detail ->> 'hold' AS hold_id, e.item, (e.detail #>> '{overflow,price}')::numeric AS price,
           coalesce((e.detail #>> '{overflow,per}')::numeric, 1) AS per, sum(coalesce((e.detail #>> '{overflow,units}')::numeric, 0)) AS units,
           sum(coalesce(r.refunded, 0)) AS refunded, sum(coalesce(r.units, 0)) AS refunded_units
    FROM entries e
    LEFT JOIN refunds r ON r.tenant_id = $1::text AND r.operation_id = e.operation_id AND r.month = e.month AND r.line = e.line
    WHERE e.tenant_id = $1::text AND e.seq > 0 AND e.kind = 'capture' AND e.detail ? 'overflow'
    GROUP BY 1, 2, 3, 4, 5
), lines AS (
    SELECT l.*, h.items -> l.item ->> 'meter' AS of_meter, (h.items -> l.item ->> 'amount')::numeric AS of_amount,
           (h.items -> l.item ->> 'captured')::numeric AS of_captured,
           row_number() OVER (PARTITION BY l.hold_id ORDER BY l.line) AS number
    FROM hold_lines l JOIN holds h ON h.tenant_id = $1::text AND h.hold_id = l.hold_id
    WHERE l.tenant_id = $1::text
), bought AS (
    SELECT n.*, n.of_amount - coalesce(sum(n.amount) FILTER (WHERE n.meter = n.of_meter AND n.subject = '') OVER i, 0) AS units,
           n.meter <> n.of_meter AS overflows, min(n.line) FILTER (WHERE n.meter <> n.of_meter) OVER i = first_value(n.line) OVER p AS reserves,
           first_value(n.line) OVER p = n.line AS leads, first_value(n.paid) OVER p AS leading,
           sum(n.amount) OVER p AS total, sum(n.captured - n.refunded) OVER p AS taken, sum(n.refunded) OVER p AS given_back,
           sum(n.deferred) OVER p AS all_deferred, sum(n.beyond) OVER p AS all_beyond, sum(n.amount - n.captured - n.returned) OVER p AS open
    FROM lines n
    WINDOW i AS (PARTITION BY n.hold_id, n.item),
           p AS (PARTITION BY n.hold_id, n.item, n.meter, n.subject, n.price, n.per ORDER BY n.line ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
), known AS (
    SELECT b.*, c.hold_id IS NOT NULL AS captured_at_price, coalesce(c.refunded, 0) AS all_refunded,
           coalesce(c.units, 0) - greatest(0, least(b.of_amount, b.of_captured) - (b.of_amount - b.leading)) AS more,
           coalesce(c.refunded_units, 0) AS refunded_units,
           greatest(0, greatest(0, least(b.of_amount, b.of_captured) - (b.of_amount - b.leading)) + b.all_beyond) AS used,
           EXISTS (SELECT 1 FROM captures o WHERE o.hold_id = b.hold_id AND o.item = b.item AND o.meter = b.meter) AS captured_at_all
    FROM bought b
    LEFT JOIN captures c ON c.hold_id = b.hold_id AND c.item = b.item AND c.meter = b.meter AND c.price = b.price AND c.per = b.per
)
SELECT k.meter, k.subject, k.hold_id, k.line, d.what, d.want::text, d.got::text
FROM known k
CROSS JOIN LATERAL (VALUES
    ('number', k.number::text, k.line::text, true),
    ('price', '1 for 1', k.price || ' for ' || k.per, NOT k.overflows),
    ('price', 'that of a capture', k.price || ' for ' || k.per, k.overflows AND k.captured > 0 AND NOT k.captured_at_price AND NOT $2::boolean),
    ('price', k.total::text, ceil(k.units * k.price / k.per)::text, k.overflows AND NOT k.captured_at_all AND NOT $2::boolean),
    ('paid units', CASE WHEN k.reserves AND k.per <> 1 THEN k.units ELSE 0 END::text, k.paid::text, k.leads OR k.paid <> 0),
    ('meter paid for', CASE WHEN k.overflows AND k.per <> 1 THEN k.of_meter ELSE '' END, k.pays_for, k.pays_for <> '' OR k.deferred + k.refunded <> 0 OR k.beyond <> 0),
    ('refunded units', 'at most ' || k.all_refunded, k.given_back::text, k.given_back > k.all_refunded AND NOT $2::boolean),
    ('refunded units', 'at most ' || k.captured, k.refunded::text, k.refunded > k.captured),
    ('units beyond the hold', '0', k.beyond::text, NOT k.leads),
    ('units beyond the hold', (k.more - k.refunded_units)::text, k.beyond::text, k.leads AND k.pays_for <> '' AND NOT $2::boolean
        AND k.more >= 0 AND (k.refunded_units = 0 OR k.beyond < k.more - k.refunded_units)),
    ('deferred units', CASE WHEN k.open > 0 THEN least(1, greatest(0, ceil(k.used * k.price / k.per) - k.taken)) ELSE 0 END::text, k.all_deferred::text,
        k.leads AND k.pays_for <> ''),
    ('deferred units', '0', k.deferred::text, k.deferred <> 0 AND k.amount = k.captured + k.returned)
) AS d (what, want, got, applies)
WHERE d.applies AND d.want IS DISTINCT FROM d.got
ORDER BY 3, 4
LIMIT 100;

-- name: VerifyHolds
-- Compares the holds of tenant $1 with the newest answer about each hold in the journal. It returns at most 100
-- differences: hold, name of the value, the journal's value, the row's value. The row of a hold that ended by itself
-- may have status active or expired. $2 is as in VerifyRefunds.
WITH answers AS (
    SELECT DISTINCT ON (e.detail ->> 'hold') e.detail ->> 'hold' AS hold_id, e.detail -> 'answer' AS answer, coalesce(e.op_subject, '') AS subject
    FROM entries e
    WHERE e.tenant_id = $1::text AND e.seq > 0 AND e.kind IN ('hold', 'capture', 'release', 'extend', 'debit', 'overage') AND e.detail ? 'answer' AND e.detail ? 'hold'
    ORDER BY e.detail ->> 'hold', e.created_at DESC, e.seq DESC
), begun AS (
    SELECT e.detail ->> 'hold' AS hold_id, min(e.created_at) AS at
    FROM entries e
    WHERE e.tenant_id = $1::text AND e.seq > 0 AND e.kind = 'hold'
    GROUP BY 1
), compared AS (
    SELECT coalesce(a.hold_id, h.hold_id) AS hold_id, a.hold_id IS NULL AS unknown, h.hold_id IS NULL AS missing, a.answer ->> 'status' AS status,
           h.status AS stored_status, a.subject, h.subject AS stored_subject, (a.answer ->> 'expires_at')::timestamptz AS expires_at,
           h.expires_at AS stored_expires_at, b.at AS begun, h.created_at AS stored_begun,
           (SELECT jsonb_agg(jsonb_build_array(i -> 'meter', i -> 'amount', i -> 'captured')) FROM jsonb_array_elements(a.answer -> 'items') AS i) AS items,
           (SELECT jsonb_agg(jsonb_build_array(i -> 'meter', i -> 'amount', i -> 'captured')) FROM jsonb_array_elements(h.items) AS i) AS stored_items,
           (SELECT min(l.expires_at) FROM hold_lines l
            WHERE l.tenant_id = $1::text AND l.hold_id = h.hold_id AND l.captured + l.returned < l.amount) AS line_ends,
           (SELECT max(l.expires_at) FROM hold_lines l
            WHERE l.tenant_id = $1::text AND l.hold_id = h.hold_id AND l.captured + l.returned < l.amount) AS line_ends_last
    FROM answers a
    FULL JOIN (SELECT * FROM holds o WHERE o.tenant_id = $1::text) AS h ON h.hold_id = a.hold_id
    LEFT JOIN begun b ON b.hold_id = h.hold_id
)
SELECT c.hold_id, d.what, coalesce(d.want, ''), coalesce(d.got, '')
FROM compared c
CROSS JOIN LATERAL (VALUES
    ('row', CASE WHEN c.unknown THEN 'none' ELSE 'a row' END, CASE WHEN c.missing THEN 'none' ELSE 'a row' END, NOT $2::boolean),
    ('status', c.status, c.stored_status, NOT c.unknown AND NOT c.missing AND NOT (c.status = 'active' AND c.stored_status = 'expired' AND c.line_ends IS NULL)),
    ('subject', c.subject, c.stored_subject, NOT c.unknown AND NOT c.missing),
    ('end', c.expires_at::text, c.stored_expires_at::text, NOT c.unknown AND NOT c.missing),
    ('end of a line', c.expires_at::text, c.line_ends::text, NOT c.unknown AND c.line_ends IS NOT NULL),
    ('end of a line', c.expires_at::text, c.line_ends_last::text, NOT c.unknown AND c.line_ends_last IS NOT NULL),
    ('beginning', c.begun::text, c.stored_begun::text, c.begun < c.stored_begun), -- sooner if the clock was behind
    ('items', c.items::text, c.stored_items::text, NOT c.unknown AND NOT c.missing)
) AS d (what, want, got, applies)
WHERE d.applies AND d.want IS DISTINCT FROM d.got
ORDER BY 1, 2
LIMIT 100;

-- name: VerifyGauges
-- Compares gauges with their entries. It returns at most 100 differences: tenant, meter, subject, name of the value,
-- the journal's value, the stored value. $1: tenant or '' for all. The number of an entry must be 1 more than the
-- number of the previous entry. The column before of an entry must equal the column after of the previous entry.
WITH lines AS (
    SELECT e.tenant_id, e.meter, e.subject, e.seq, e.before, e.after, e.allowed, e.created_at,
           lag(e.seq, 1, 0::bigint) OVER w AS seq_before, lag(e.after, 1, 0::bigint) OVER w AS value_before,
           lead(e.seq) OVER w IS NULL AS newest
    FROM gauge_entries e
    WHERE $1::text = '' OR e.tenant_id = $1::text
    WINDOW w AS (PARTITION BY e.tenant_id, e.meter, e.subject ORDER BY e.seq)
), stored AS (
    SELECT g.tenant_id, g.meter, g.subject, g.seq, g.value, g.updated_at FROM gauges g WHERE $1::text = '' OR g.tenant_id = $1::text
)
SELECT d.tenant_id, d.meter, d.subject, d.what, d.want::text, d.got::text
FROM (
    SELECT l.tenant_id, l.meter, l.subject, 'number of a gauge entry' AS what, l.seq_before + 1 AS want, l.seq AS got
    FROM lines l WHERE l.seq <> l.seq_before + 1
    UNION ALL
    SELECT l.tenant_id, l.meter, l.subject, 'gauge before entry ' || l.seq, l.value_before, l.before FROM lines l WHERE l.before <> l.value_before
    UNION ALL
    SELECT l.tenant_id, l.meter, l.subject, 'limit of gauge entry ' || l.seq, l.allowed, l.after FROM lines l WHERE l.after > l.allowed AND l.after > l.before
    UNION ALL
    SELECT coalesce(l.tenant_id, s.tenant_id), coalesce(l.meter, s.meter), coalesce(l.subject, s.subject), v.what, v.want, v.got
    FROM (SELECT * FROM lines n WHERE n.newest) AS l
    FULL JOIN stored s ON s.tenant_id = l.tenant_id AND s.meter = l.meter AND s.subject = l.subject
    CROSS JOIN LATERAL (VALUES ('newest number of a gauge', coalesce(l.seq, 0), coalesce(s.seq, 0)),
                               ('value of a gauge', coalesce(l.after, 0), coalesce(s.value, 0)),
                               ('instant of a gauge, in microseconds', (extract(epoch FROM coalesce(l.created_at, s.updated_at)) * 1000000)::bigint,
                                (extract(epoch FROM coalesce(s.updated_at, l.created_at)) * 1000000)::bigint)) AS v (what, want, got)
    WHERE v.want <> v.got
) AS d
ORDER BY 1, 2, 3, 4
LIMIT 100;
