-- The batch transaction has up to four round trips. A plain debit needs only the second and the last.
--   1. HoldBalances, GrantBalances, EntriesOfOperations: only for operations that name a hold, a grant or an operation.
--   2. BEGIN, LockBalances, Clock, StoredEntries; TakenGrants, Holds and Refunds for operations that need them.
--   3. OpenGrants, NamedGrants, HoldLines, TenantTerms, PlanVersions: only if a locked balance needs these rows.
--      Its head grant may be too small for the demand, an event is due, or its terms may have changed.
--   4. The Insert*, Update* and Write* statements and COMMIT.

-- name: LockBalances
-- Locks the balances of a batch ($1 tenants, $2 meters, $3 subjects; each key once). It locks in key order, so two
-- batches cannot deadlock. A missing row means that the balance does not exist. Except for the share locks of
-- KeepHomes and CreateBalances, the ledger locks no other rows. FOR NO KEY UPDATE also gives the transaction an xid,
-- and writes WAL. So the COMMIT of a replay, which stores nothing, waits for the synchronous standby as well. Without
-- that, a replay could confirm rows that an earlier COMMIT wrote while no standby answered. After a cancelled wait
-- PostgreSQL shows such rows, but a failover would lose them.
SELECT b.tenant_id, b.meter, b.subject, b.seq, b.plan, b.plan_version, b.allowance, b.renews, b.period_start, b.period_end,
       b.opening, b.granted, b.refunded, b.used, b.expired, b.adjusted, b.held, b.overage,
       b.owed, b.settled, b.carried, b.amended, b.entitled, b.short, b.overage_before, b.carried_from, b.allowance_at, b.terms_at,
       b.forgiven_seq, b.head_grant, b.head_source, b.head_remaining,
       b.next_event_at, b.updated_at, coalesce(b.roll_at, b.next_event_at), b.chain
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (tenant_id, meter, subject)
JOIN balances b ON b.tenant_id = k.tenant_id AND b.meter = k.meter AND b.subject = k.subject
-- citus: AND b.tenant_id = ANY ($1::text[])
ORDER BY b.tenant_id, b.meter, b.subject
FOR NO KEY UPDATE OF b;

-- name: LockFreeBalances
-- Does the same as LockBalances but waits for no row: it leaves out the balances that another transaction has locked.
SELECT b.tenant_id, b.meter, b.subject, b.seq, b.plan, b.plan_version, b.allowance, b.renews, b.period_start, b.period_end,
       b.opening, b.granted, b.refunded, b.used, b.expired, b.adjusted, b.held, b.overage,
       b.owed, b.settled, b.carried, b.amended, b.entitled, b.short, b.overage_before, b.carried_from, b.allowance_at, b.terms_at,
       b.forgiven_seq, b.head_grant, b.head_source, b.head_remaining,
       b.next_event_at, b.updated_at, coalesce(b.roll_at, b.next_event_at), b.chain
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (tenant_id, meter, subject)
JOIN balances b ON b.tenant_id = k.tenant_id AND b.meter = k.meter AND b.subject = k.subject
-- citus: AND b.tenant_id = ANY ($1::text[])
ORDER BY b.tenant_id, b.meter, b.subject
FOR NO KEY UPDATE OF b SKIP LOCKED;

-- name: ExistingBalances
-- Returns the balances among $1..$3 that exist. An existing balance that LockFreeBalances left out is locked by
-- another transaction.
SELECT b.tenant_id, b.meter, b.subject
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (tenant_id, meter, subject)
JOIN balances b ON b.tenant_id = k.tenant_id AND b.meter = k.meter AND b.subject = k.subject
-- citus: AND b.tenant_id = ANY ($1::text[])
;

-- name: LockDueBalances
-- Locks up to $2 balances for which a roll has something to write at $1, from the position $6, $7 on. It skips rows
-- that another transaction has locked, and the balances $3..$5, which this roll has set aside. The constant is the
-- condition of the index: an event at a later instant is never due.
SELECT b.tenant_id, b.meter, b.subject, b.seq, b.plan, b.plan_version, b.allowance, b.renews, b.period_start, b.period_end,
       b.opening, b.granted, b.refunded, b.used, b.expired, b.adjusted, b.held, b.overage,
       b.owed, b.settled, b.carried, b.amended, b.entitled, b.short, b.overage_before, b.carried_from, b.allowance_at, b.terms_at,
       b.forgiven_seq, b.head_grant, b.head_source, b.head_remaining,
       b.next_event_at, b.updated_at, coalesce(b.roll_at, b.next_event_at), b.chain
FROM balances b
WHERE coalesce(b.roll_at, b.next_event_at) < '9999-12-31T00:00:00Z' AND coalesce(b.roll_at, b.next_event_at) <= $1::timestamptz
  AND (coalesce(b.roll_at, b.next_event_at), b.tenant_id) >= ($6::timestamptz, $7::text)
  AND (b.tenant_id, b.meter, b.subject) NOT IN (SELECT * FROM unnest($3::text[], $4::text[], $5::text[]))
ORDER BY coalesce(b.roll_at, b.next_event_at), b.tenant_id
LIMIT $2::integer
FOR NO KEY UPDATE OF b SKIP LOCKED;

-- name: LockDueOf
-- Does the same as LockDueBalances on Citus, for the balances among $1..$3 that are due at $4. DueBalances has found
-- these balances, which belong to one shard group.
SELECT b.tenant_id, b.meter, b.subject, b.seq, b.plan, b.plan_version, b.allowance, b.renews, b.period_start, b.period_end,
       b.opening, b.granted, b.refunded, b.used, b.expired, b.adjusted, b.held, b.overage,
       b.owed, b.settled, b.carried, b.amended, b.entitled, b.short, b.overage_before, b.carried_from, b.allowance_at, b.terms_at,
       b.forgiven_seq, b.head_grant, b.head_source, b.head_remaining,
       b.next_event_at, b.updated_at, coalesce(b.roll_at, b.next_event_at), b.chain
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (tenant_id, meter, subject)
JOIN balances b ON b.tenant_id = k.tenant_id AND b.meter = k.meter AND b.subject = k.subject
-- citus: AND b.tenant_id = ANY ($1::text[])
WHERE coalesce(b.roll_at, b.next_event_at) <= $4::timestamptz
ORDER BY b.tenant_id, b.meter, b.subject
FOR NO KEY UPDATE OF b SKIP LOCKED;

-- name: Clock
-- Returns the instant of the batch. It runs after the locks: an earlier instant could be older than entries that
-- another batch wrote while this batch waited. It also returns when tenant terms last changed, when plan versions
-- last changed, and the latest month that holds entries. For each tenant among $1 with terms that apply at once, it
-- returns when the newest of these terms take effect. Terms more than a second away do not count. The subqueries for the
-- time are computed once, so an index skips the terms of all tenants that wait. Because the statement runs after the
-- locks, it sees all terms that were committed before them.
SELECT clock_timestamp(),
       coalesce((SELECT max(t.effective_at) FROM tenant_terms t WHERE NOT t.initial
                 AND t.effective_at < (SELECT clock_timestamp() + interval '1 second') -- plain
                 -- citus: AND t.effective_at < clock_timestamp() + interval '1 second' AND t.tenant_id = ANY ($1::text[])
                ), 'epoch'),
       coalesce((SELECT max(p.created_at) FROM plans p WHERE p.version > 1), 'epoch'),
       coalesce((SELECT max(m.month) FROM journal_months m), 'epoch'),
       n.tenants, n.made
FROM (SELECT array_agg(t.tenant_id) AS tenants, array_agg(t.effective_at) AS made
      FROM unnest($1::text[]) AS k (tenant_id)
      CROSS JOIN LATERAL (
          SELECT o.tenant_id, o.effective_at FROM tenant_terms o
          WHERE o.tenant_id = k.tenant_id AND (o.immediate OR o.at_once)
          AND o.effective_at < (SELECT clock_timestamp() + interval '1 second') -- plain
          -- citus: AND o.effective_at < clock_timestamp() + interval '1 second' AND o.tenant_id = ANY ($1::text[])
          ORDER BY o.effective_at DESC
          LIMIT 1
      ) AS t) AS n;

-- name: StoredEntries
-- Returns the stored entries of the batch's keys ($1 tenants, $2 operation ids; each pair once) in the three months
-- $3 (NULL = none). If a clock was ahead, EntriesOfOperations replaces this statement. It must be separate and run
-- after LockBalances. The snapshot of a statement is taken before the statement waits for a lock. So one statement
-- for both would miss the rows that the previous lock holder wrote. There is one branch per month because a list of
-- months does not prune partitions. With LATERAL, a plan that was made on empty tables is also right on full tables.
SELECT e.tenant_id, e.operation_id, e.line, e.seq, e.kind, e.meter, e.subject, e.period_start, e.grant_id, e.source, e.amount,
       e.remaining_after, e.item, coalesce(e.requested, 0), e.fingerprint, e.created_at, coalesce(e.effective_at, 'epoch'), coalesce(e.op_subject, ''),
       e.detail, e.metadata, coalesce(e.actor, '')
FROM unnest($1::text[], $2::text[]) AS k (tenant_id, operation_id)
CROSS JOIN LATERAL (
    SELECT * FROM entries j WHERE j.tenant_id = k.tenant_id AND j.operation_id = k.operation_id AND j.month = ($3::date[])[1]
    -- citus: AND j.tenant_id = ANY ($1::text[])
    UNION ALL
    SELECT * FROM entries j WHERE j.tenant_id = k.tenant_id AND j.operation_id = k.operation_id AND j.month = ($3::date[])[2]
    -- citus: AND j.tenant_id = ANY ($1::text[])
    UNION ALL
    SELECT * FROM entries j WHERE j.tenant_id = k.tenant_id AND j.operation_id = k.operation_id AND j.month = ($3::date[])[3]
    -- citus: AND j.tenant_id = ANY ($1::text[])
) AS e;

-- name: OpenGrants
-- Returns the open grants of the locked balances $1..$3: grants that can be drawn from, now or later, and ended grants
-- with held units.
SELECT g.tenant_id, g.meter, g.subject, g.grant_id, g.source, g.amount, g.remaining, g.held, g.priority, g.effective_at,
       g.expires_at, coalesce(g.cost_basis, ''), coalesce(g.reason, ''), g.status, g.operation_id, g.created_at
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (tenant_id, meter, subject)
CROSS JOIN LATERAL (
    SELECT * FROM grants o
    WHERE o.tenant_id = k.tenant_id AND o.meter = k.meter AND o.subject = k.subject AND (o.status IN ('pending', 'active') OR o.held > 0)
    -- citus: AND o.tenant_id = ANY ($1::text[])
    OFFSET 0
) AS g;

-- name: NamedGrants
-- Returns the grants $4 of the locked balances $1..$3, in any state.
SELECT g.tenant_id, g.meter, g.subject, g.grant_id, g.source, g.amount, g.remaining, g.held, g.priority, g.effective_at,
       g.expires_at, coalesce(g.cost_basis, ''), coalesce(g.reason, ''), g.status, g.operation_id, g.created_at
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS k (tenant_id, meter, subject, grant_id)
CROSS JOIN LATERAL (
    SELECT * FROM grants o
    WHERE o.tenant_id = k.tenant_id AND o.meter = k.meter AND o.subject = k.subject AND o.grant_id = k.grant_id
    -- citus: AND o.tenant_id = ANY ($1::text[])
    OFFSET 0
) AS g;

-- name: HoldLines
-- Returns the hold lines that still reserve units on the locked balances $1..$3, and the other lines of the holds
-- ($4 tenants, $5 hold ids).
SELECT h.tenant_id, h.meter, h.subject, h.hold_id, h.line, h.item, h.grant_id, h.source, h.price, h.per, h.paid,
       h.amount, h.captured, h.returned, h.expires_at, h.pays_for, h.deferred, h.refunded, h.beyond
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (tenant_id, meter, subject)
CROSS JOIN LATERAL (
    SELECT * FROM hold_lines o
    WHERE o.tenant_id = k.tenant_id AND o.meter = k.meter AND o.subject = k.subject AND o.captured + o.returned < o.amount
    -- citus: AND o.tenant_id = ANY ($1::text[])
    OFFSET 0
) AS h
UNION ALL
SELECT h.tenant_id, h.meter, h.subject, h.hold_id, h.line, h.item, h.grant_id, h.source, h.price, h.per, h.paid,
       h.amount, h.captured, h.returned, h.expires_at, h.pays_for, h.deferred, h.refunded, h.beyond
FROM unnest($4::text[], $5::text[]) AS k (tenant_id, hold_id)
CROSS JOIN LATERAL (
    SELECT * FROM hold_lines o
    WHERE o.tenant_id = k.tenant_id AND o.hold_id = k.hold_id AND o.captured + o.returned >= o.amount
    -- citus: AND o.tenant_id = ANY ($1::text[])
    OFFSET 0
) AS h
ORDER BY tenant_id, hold_id, line;

-- name: PayingGrants
-- Returns the grants of the holds' lines ($1 tenants, $2 hold ids) that pay at a price that is not a whole number. The
-- balances of these lines are locked.
SELECT g.tenant_id, g.meter, g.subject, g.grant_id, g.source, g.amount, g.remaining, g.held, g.priority, g.effective_at,
       g.expires_at, coalesce(g.cost_basis, ''), coalesce(g.reason, ''), g.status, g.operation_id, g.created_at
FROM unnest($1::text[], $2::text[]) AS k (tenant_id, hold_id)
CROSS JOIN LATERAL (
    SELECT DISTINCT o.meter, o.grant_id FROM hold_lines o
    WHERE o.tenant_id = k.tenant_id AND o.hold_id = k.hold_id AND o.pays_for <> ''
    -- citus: AND o.tenant_id = ANY ($1::text[])
    OFFSET 0
) AS h
CROSS JOIN LATERAL (
    SELECT * FROM grants o
    WHERE o.tenant_id = k.tenant_id AND o.meter = h.meter AND o.subject = '' AND o.grant_id = h.grant_id
    -- citus: AND o.tenant_id = ANY ($1::text[])
    OFFSET 0
) AS g;

-- name: PastUse
-- Returns what balance ($1..$3) has used of allowances since $4, up to seq $5, and its overage of that time that was not
-- paid. Refunds of this use are taken off. Two kinds of allowances do not count: once-only ones, and those that took
-- effect in the times from $6 until $7. The sum is the difference between the first row of rollups since $4 and the last
-- row, with the entries before and after. Entries other than debits have an index.
WITH low AS MATERIALIZED (
    SELECT coalesce((SELECT r.seq FROM rollups r
        WHERE r.tenant_id = $1::text AND r.meter = $2::text AND r.subject = $3::text AND r.created_at < $4::timestamptz AND r.seq <= $5::bigint
        ORDER BY r.created_at DESC, r.seq DESC LIMIT 1), 0) AS seq
), first AS MATERIALIZED (
    SELECT r.seq, r.kinds, r.sources, r.amounts FROM rollups r
    WHERE r.tenant_id = $1::text AND r.meter = $2::text AND r.subject = $3::text AND r.created_at >= $4::timestamptz AND r.seq <= $5::bigint
    ORDER BY r.created_at, r.seq LIMIT 1
), last AS MATERIALIZED (
    SELECT r.seq, r.kinds, r.sources, r.amounts FROM rollups r
    WHERE r.tenant_id = $1::text AND r.meter = $2::text AND r.subject = $3::text AND r.seq <= $5::bigint AND r.seq >= (SELECT f.seq FROM first f)
    ORDER BY r.seq DESC LIMIT 1
), aside AS MATERIALIZED (
    SELECT g.grant_id FROM grants g
    WHERE g.tenant_id = $1::text AND g.meter = $2::text AND g.subject = $3::text AND g.source = 'allowance'
      AND (g.expires_at >= '9999-12-31T00:00:00Z' OR g.operation_id LIKE '§once/%'
           OR EXISTS (SELECT 1 FROM unnest($6::timestamptz[], $7::timestamptz[]) AS o (since, until)
               WHERE g.effective_at >= o.since AND g.effective_at < o.until))
), parts AS (
    SELECT u.kind, u.source, -u.amount AS amount FROM first f, unnest(f.kinds, f.sources, f.amounts) AS u (kind, source, amount)
    UNION ALL
    SELECT u.kind, u.source, u.amount FROM last l, unnest(l.kinds, l.sources, l.amounts) AS u (kind, source, amount)
    UNION ALL
    SELECT e.kind, e.source, e.amount FROM entries e
    WHERE e.tenant_id = $1::text AND e.meter = $2::text AND e.subject = $3::text AND e.seq > 0 AND e.created_at >= $4::timestamptz
      AND e.month >= date_trunc('month', $4::timestamptz AT TIME ZONE 'UTC')::date
      AND e.seq > (SELECT low.seq FROM low) AND e.seq <= coalesce((SELECT f.seq FROM first f), $5::bigint)
    UNION ALL
    SELECT e.kind, e.source, e.amount FROM entries e
    WHERE e.tenant_id = $1::text AND e.meter = $2::text AND e.subject = $3::text AND e.seq > 0
      AND e.month >= date_trunc('month', $4::timestamptz AT TIME ZONE 'UTC')::date
      AND e.seq > (SELECT l.seq FROM last l) AND e.seq <= $5::bigint
), sums AS (
    SELECT coalesce(sum(p.amount) FILTER (WHERE p.source = 'allowance' AND p.kind IN ('debit', 'capture')), 0) AS drawn,
           coalesce(sum(p.amount) FILTER (WHERE p.kind = 'overage'), 0) AS overage
    FROM parts p
), paid AS (
    SELECT coalesce(sum(CASE e.kind WHEN 'settle' THEN e.amount ELSE -e.amount END)
               FILTER (WHERE e.source = 'allowance' AND NOT EXISTS (SELECT 1 FROM aside a WHERE a.grant_id = e.grant_id)), 0) AS drawn,
           coalesce(sum(CASE e.kind WHEN 'settle' THEN e.amount ELSE -e.amount END), 0) AS overage
    FROM entries e
    WHERE e.tenant_id = $1::text AND e.meter = $2::text AND e.subject = $3::text AND e.kind IN ('settle', 'unsettle') AND e.kind <> 'debit' AND e.seq > 0
      AND e.month >= date_trunc('month', $4::timestamptz AT TIME ZONE 'UTC')::date
      AND e.seq > (SELECT low.seq FROM low) AND e.seq <= $5::bigint AND coalesce(e.effective_at, e.created_at) >= $4::timestamptz
), back AS (
    SELECT coalesce(sum(e.amount) FILTER (WHERE e.kind = 'closed_refund' AND e.detail ->> 'paid' = 'true'
               OR e.kind = 'refund' AND (o.kind = 'overage' OR g.source = 'allowance' AND g.grant_id NOT IN (SELECT aside.grant_id FROM aside))), 0) AS drawn,
           coalesce(sum(e.amount) FILTER (WHERE o.kind = 'overage'), 0) AS overage
    FROM entries e
    JOIN entries o ON o.tenant_id = $1::text AND o.operation_id = e.detail ->> 'refund_of' AND o.line = (e.detail ->> 'refund_line')::integer
        AND o.month = (e.detail ->> 'refund_month' || '-01')::date
    LEFT JOIN grants g ON g.tenant_id = $1::text AND g.meter = $2::text AND g.subject = $3::text
        AND g.grant_id = coalesce(e.detail ->> 'from', e.grant_id)
    WHERE e.tenant_id = $1::text AND e.meter = $2::text AND e.subject = $3::text AND e.kind IN ('refund', 'unoverage', 'closed_refund', 'unowe', 'unsettle') AND e.kind <> 'debit'
      AND e.seq > 0 AND e.seq > (SELECT low.seq FROM low) AND e.seq <= $5::bigint AND o.created_at >= $4::timestamptz
      AND e.month >= date_trunc('month', $4::timestamptz AT TIME ZONE 'UTC')::date
), apart AS (
    SELECT coalesce(sum(e.amount), 0) AS drawn
    FROM entries e
    WHERE EXISTS (SELECT 1 FROM aside) AND e.tenant_id = $1::text AND e.meter = $2::text AND e.subject = $3::text AND e.seq > 0
      AND e.seq > (SELECT low.seq FROM low) AND e.seq <= $5::bigint AND e.created_at >= $4::timestamptz
      AND e.month >= date_trunc('month', $4::timestamptz AT TIME ZONE 'UTC')::date
      AND e.kind IN ('debit', 'capture') AND e.grant_id IN (SELECT aside.grant_id FROM aside)
)
SELECT least(greatest(sums.drawn + paid.drawn - back.drawn - apart.drawn, 0), 9007199254740991)::bigint,
       least(greatest(sums.overage - back.overage - paid.overage, 0), 9007199254740991)::bigint
FROM sums, paid, back, apart;

-- name: Holds
-- Returns the holds ($1 tenants, $2 hold ids). The balances of their lines are locked.
SELECT h.tenant_id, h.hold_id, h.subject, h.status, h.items, h.created_at, h.expires_at
FROM unnest($1::text[], $2::text[]) AS k (tenant_id, hold_id)
CROSS JOIN LATERAL (SELECT * FROM holds o WHERE o.tenant_id = k.tenant_id AND o.hold_id = k.hold_id
    -- citus: AND o.tenant_id = ANY ($1::text[])
    OFFSET 0) AS h;

-- name: Refunds
-- Returns the amounts refunded so far per line of the operations ($1 tenants, $2 operation ids). The balances of their
-- lines are locked.
SELECT r.tenant_id, r.operation_id, r.month, r.line, r.refunded, r.units
FROM unnest($1::text[], $2::text[]) AS k (tenant_id, operation_id)
CROSS JOIN LATERAL (SELECT * FROM refunds o WHERE o.tenant_id = k.tenant_id AND o.operation_id = k.operation_id
    -- citus: AND o.tenant_id = ANY ($1::text[])
    OFFSET 0) AS r;

-- name: HoldBalances
-- Returns the balances of the holds ($1 tenants, $2 hold ids). It runs before the locks, because the balances of a
-- hold never change.
SELECT DISTINCT h.tenant_id, h.hold_id, h.meter, h.subject
FROM unnest($1::text[], $2::text[]) AS k (tenant_id, hold_id)
CROSS JOIN LATERAL (SELECT * FROM hold_lines o WHERE o.tenant_id = k.tenant_id AND o.hold_id = k.hold_id
    -- citus: AND o.tenant_id = ANY ($1::text[])
    OFFSET 0) AS h;

-- name: GrantBalances
-- Returns the balances of the grants ($1 tenants, $2 grant ids). It runs before the locks, because a grant never
-- changes its balance.
SELECT g.tenant_id, g.grant_id, g.meter, g.subject
FROM unnest($1::text[], $2::text[]) AS k (tenant_id, grant_id)
CROSS JOIN LATERAL (SELECT * FROM grants o WHERE o.tenant_id = k.tenant_id AND o.grant_id = k.grant_id
    -- citus: AND o.tenant_id = ANY ($1::text[])
    OFFSET 0) AS g;

-- name: EntriesOfOperations
-- Returns the entries of the operations ($1 tenants, $2 operation ids) in all months. For refunds it runs before the
-- locks, because entries never change. For keys it runs after the locks, if a clock was ahead.
SELECT e.tenant_id, e.operation_id, e.line, e.seq, e.kind, e.meter, e.subject, e.period_start, e.grant_id, e.source, e.amount,
       e.remaining_after, e.item, coalesce(e.requested, 0), e.fingerprint, e.created_at, coalesce(e.effective_at, 'epoch'), coalesce(e.op_subject, ''),
       e.detail, e.metadata, coalesce(e.actor, '')
FROM unnest($1::text[], $2::text[]) AS k (tenant_id, operation_id)
CROSS JOIN LATERAL (
    SELECT * FROM entries j WHERE j.tenant_id = k.tenant_id AND j.operation_id = k.operation_id
    -- citus: AND j.tenant_id = ANY ($1::text[])
    OFFSET 0
) AS e;

-- name: TakenGrants
-- Returns the grants with the ids $4 that already exist on the balances $1..$3.
SELECT g.tenant_id, g.meter, g.subject, g.grant_id
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS k (tenant_id, meter, subject, grant_id)
CROSS JOIN LATERAL (
    SELECT * FROM grants o
    WHERE o.tenant_id = k.tenant_id AND o.meter = k.meter AND o.subject = k.subject AND o.grant_id = k.grant_id
    -- citus: AND o.tenant_id = ANY ($1::text[])
    OFFSET 0
) AS g;

-- name: InsertEntries
-- Appends the entries of the batch. A unique violation means that another instance has just written an entry with one
-- of the keys: the batch is decided again. On Citus the join with the balances, which exist, lets one node run the
-- statement. Without the join Citus copies the rows, and commits in two phases.
INSERT INTO entries (tenant_id, operation_id, line, month, seq, kind, meter, subject, period_start, grant_id, source, amount,
                     remaining_after, item, requested, fingerprint, created_at, effective_at, op_subject, detail, metadata, actor)
-- citus: SELECT b.tenant_id,
SELECT l.tenant_id, -- plain
       l.operation_id, l.line, date_trunc('month', l.created_at AT TIME ZONE 'UTC')::date, l.seq, l.kind, l.meter, l.subject,
       l.period_start, l.grant_id, l.source, l.amount, l.remaining_after, l.item, l.requested, l.fingerprint, l.created_at,
       l.effective_at, l.op_subject, l.detail, l.metadata, nullif(l.actor, '')
FROM unnest($1::text[], $2::text[], $3::integer[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::timestamptz[], $9::text[],
            $10::text[], $11::bigint[], $12::bigint[], $13::integer[], $14::bigint[], $15::bytea[], $16::timestamptz[],
            $17::timestamptz[], $18::text[], $19::jsonb[], $20::jsonb[], $21::text[])
     AS l (tenant_id, operation_id, line, seq, kind, meter, subject, period_start, grant_id, source, amount, remaining_after, item,
           requested, fingerprint, created_at, effective_at, op_subject, detail, metadata, actor)
-- citus: JOIN balances b ON b.tenant_id = l.tenant_id AND b.meter = l.meter AND b.subject = l.subject AND b.tenant_id = ANY ($1::text[])
;

-- name: InsertPlainDebits
-- Does the same as InsertEntries for the usual case: a debit of one item that one grant pays. It has half the columns
-- and takes a fifth less work.
INSERT INTO entries (tenant_id, operation_id, line, month, seq, kind, meter, subject, period_start, grant_id, source, amount,
                     remaining_after, item, requested, fingerprint, created_at, actor)
-- citus: SELECT b.tenant_id,
SELECT l.tenant_id, -- plain
       l.operation_id, 1, date_trunc('month', l.created_at AT TIME ZONE 'UTC')::date, l.seq, 'debit', l.meter, '',
       l.period_start, l.grant_id, l.source, l.amount, l.remaining_after, 0, l.amount, l.fingerprint, l.created_at,
       nullif(l.actor, '')
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::timestamptz[], $6::text[], $7::text[], $8::bigint[], $9::bigint[],
            $10::bytea[], $11::timestamptz[], $12::text[])
     AS l (tenant_id, operation_id, seq, meter, period_start, grant_id, source, amount, remaining_after, fingerprint, created_at, actor)
-- citus: JOIN balances b ON b.tenant_id = l.tenant_id AND b.meter = l.meter AND b.subject = '' AND b.tenant_id = ANY ($1::text[])
;

-- name: UpdateDrawnBalances
-- Does the same as UpdateBalances for balances that only debits changed. $10 is the expected count, like $37 there.
WITH written AS (
    UPDATE balances b
    SET seq = n.seq, used = n.used, overage = n.overage, head_remaining = n.head_remaining, updated_at = n.updated_at,
        chain = n.chain
    FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::timestamptz[], $9::bytea[])
         AS n (tenant_id, meter, subject, seq, used, overage, head_remaining, updated_at, chain)
    WHERE b.tenant_id = n.tenant_id AND b.meter = n.meter AND b.subject = n.subject
    -- citus: AND b.tenant_id = ANY ($1::text[])
    RETURNING 1
)
SELECT 1 / (CASE WHEN count(*) = $10::bigint THEN 1 ELSE 0 END) FROM written;

-- name: UpdateBalances
-- Writes the changed balances, which are all locked. $37 is the expected number of updated rows. Any other number
-- means that a locked row is missing. A division by zero then fails the transaction.
WITH written AS (
    UPDATE balances b
    SET seq = n.seq, plan = n.plan, plan_version = n.plan_version, allowance = n.allowance, renews = n.renews,
        period_start = n.period_start, period_end = n.period_end, opening = n.opening, granted = n.granted,
        refunded = n.refunded, used = n.used, expired = n.expired, adjusted = n.adjusted + n.amended, held = n.held, overage = n.overage,
        owed = n.owed, settled = n.settled, forgiven_seq = n.forgiven_seq, head_grant = n.head_grant, head_source = n.head_source,
        head_remaining = n.head_remaining, next_event_at = n.next_event_at, updated_at = n.updated_at,
        roll_at = n.roll_at, chain = n.chain, carried = n.carried, amended = n.amended, entitled = n.entitled, short = n.short,
        overage_before = n.overage_before, carried_from = n.carried_from, allowance_at = n.allowance_at, terms_at = n.terms_at
    FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::integer[], $7::bigint[], $8::boolean[],
                $9::timestamptz[], $10::timestamptz[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[],
                $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[], $20::bigint[], $21::bigint[], $22::text[], $23::text[],
                $24::bigint[], $25::timestamptz[], $26::timestamptz[], $27::timestamptz[], $28::bytea[],
                $29::bigint[], $30::bigint[], $31::bigint[], $32::bigint[], $33::bigint[], $34::timestamptz[], $35::timestamptz[], $36::timestamptz[])
         AS n (tenant_id, meter, subject, seq, plan, plan_version, allowance, renews, period_start, period_end, opening, granted,
               refunded, used, expired, adjusted, held, overage, owed, settled, forgiven_seq, head_grant, head_source,
               head_remaining, next_event_at, updated_at, roll_at, chain, carried, amended, entitled, short, overage_before, carried_from,
                      allowance_at, terms_at)
    WHERE b.tenant_id = n.tenant_id AND b.meter = n.meter AND b.subject = n.subject
    -- citus: AND b.tenant_id = ANY ($1::text[])
    RETURNING 1
)
SELECT 1 / (CASE WHEN count(*) = $37::bigint THEN 1 ELSE 0 END) FROM written;

-- name: InsertBalances
-- Inserts the rows of balances that the batch has changed and that had no row. A unique violation means that another
-- transaction has inserted one of the rows: the batch is decided again.
INSERT INTO balances (tenant_id, meter, subject, seq, plan, plan_version, allowance, renews, period_start, period_end, opening, granted,
                      refunded, used, expired, adjusted, held, overage, owed, settled, forgiven_seq, head_grant, head_source,
                      head_remaining, next_event_at, updated_at, roll_at, chain, carried, amended, entitled, short, overage_before, carried_from,
                      allowance_at, terms_at)
SELECT n.tenant_id, n.meter, n.subject, n.seq, n.plan, n.plan_version, n.allowance, n.renews, n.period_start, n.period_end, n.opening,
       n.granted, n.refunded, n.used, n.expired, n.adjusted + n.amended, n.held, n.overage, n.owed, n.settled, n.forgiven_seq, n.head_grant,
       n.head_source, n.head_remaining, n.next_event_at, n.updated_at, n.roll_at, n.chain, n.carried, n.amended,
       n.entitled, n.short, n.overage_before, n.carried_from, n.allowance_at, n.terms_at
FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::integer[], $7::bigint[], $8::boolean[],
            $9::timestamptz[], $10::timestamptz[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[],
            $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[], $20::bigint[], $21::bigint[], $22::text[], $23::text[],
            $24::bigint[], $25::timestamptz[], $26::timestamptz[], $27::timestamptz[], $28::bytea[],
            $29::bigint[], $30::bigint[], $31::bigint[], $32::bigint[], $33::bigint[], $34::timestamptz[], $35::timestamptz[], $36::timestamptz[])
     AS n (tenant_id, meter, subject, seq, plan, plan_version, allowance, renews, period_start, period_end, opening, granted,
           refunded, used, expired, adjusted, held, overage, owed, settled, forgiven_seq, head_grant, head_source,
           head_remaining, next_event_at, updated_at, roll_at, chain, carried, amended, entitled, short, overage_before, carried_from,
                      allowance_at, terms_at);

-- name: InsertGrants
-- Stores new grants.
INSERT INTO grants (tenant_id, meter, subject, grant_id, source, amount, priority, effective_at, expires_at, cost_basis, reason,
                    operation_id, created_at, remaining, held, status)
SELECT n.tenant_id, n.meter, n.subject, n.grant_id, n.source, n.amount, n.priority, n.effective_at, n.expires_at,
       nullif(n.cost_basis, ''), nullif(n.reason, ''), n.operation_id, n.created_at, n.remaining, n.held, n.status
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::integer[], $8::timestamptz[],
            $9::timestamptz[], $10::text[], $11::text[], $12::text[], $13::timestamptz[], $14::bigint[], $15::bigint[], $16::text[])
     AS n (tenant_id, meter, subject, grant_id, source, amount, priority, effective_at, expires_at, cost_basis, reason,
           operation_id, created_at, remaining, held, status);

-- name: UpdateGrants
-- Writes the remainder, held amount and status of grants that are not, or no longer, the head of their balance. $8 is
-- the expected count, like the last parameter of UpdateBalances.
WITH written AS (
    UPDATE grants g
    SET remaining = n.remaining, held = n.held, status = n.status
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::text[])
         AS n (tenant_id, meter, subject, grant_id, remaining, held, status)
    WHERE g.tenant_id = n.tenant_id AND g.meter = n.meter AND g.subject = n.subject AND g.grant_id = n.grant_id
    -- citus: AND g.tenant_id = ANY ($1::text[])
    RETURNING 1
)
SELECT 1 / (CASE WHEN count(*) = $8::bigint THEN 1 ELSE 0 END) FROM written;

-- name: ExtendGrants
-- Writes the later end of grants. $6 is the expected count, like the last parameter of UpdateBalances.
WITH written AS (
    UPDATE grants g
    SET expires_at = n.expires_at
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[])
         AS n (tenant_id, meter, subject, grant_id, expires_at)
    WHERE g.tenant_id = n.tenant_id AND g.meter = n.meter AND g.subject = n.subject AND g.grant_id = n.grant_id
    -- citus: AND g.tenant_id = ANY ($1::text[])
    RETURNING 1
)
SELECT 1 / (CASE WHEN count(*) = $6::bigint THEN 1 ELSE 0 END) FROM written;

-- name: WriteHolds
-- Inserts new holds and updates changed holds. The balances of their lines are locked.
INSERT INTO holds (tenant_id, hold_id, subject, status, items, created_at, expires_at)
SELECT n.tenant_id, n.hold_id, n.subject, n.status, n.items, n.created_at, n.expires_at
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::jsonb[], $6::timestamptz[], $7::timestamptz[])
     AS n (tenant_id, hold_id, subject, status, items, created_at, expires_at)
ON CONFLICT (tenant_id, hold_id) DO UPDATE
SET status = excluded.status, items = excluded.items, expires_at = excluded.expires_at
WHERE holds.created_at = excluded.created_at;

-- name: InsertHoldLines
-- Stores the lines of new holds.
INSERT INTO hold_lines (tenant_id, hold_id, line, item, meter, subject, grant_id, source, price, per, paid, amount, captured, returned,
                        expires_at, pays_for, deferred, refunded, beyond)
SELECT n.tenant_id, n.hold_id, n.line, n.item, n.meter, n.subject, n.grant_id, n.source, n.price, n.per, n.paid, n.amount, n.captured,
       n.returned, n.expires_at, n.pays_for, n.deferred, n.refunded, n.beyond
FROM unnest($1::text[], $2::text[], $3::integer[], $4::integer[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[],
            $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::timestamptz[], $16::text[], $17::bigint[],
            $18::bigint[], $19::bigint[])
     AS n (tenant_id, hold_id, line, item, meter, subject, grant_id, source, price, per, paid, amount, captured, returned, expires_at,
           pays_for, deferred, refunded, beyond);

-- name: UpdateHoldLines
-- Writes what may change in hold lines. $7 is the expected count, like the last parameter of UpdateBalances.
WITH written AS (
    UPDATE hold_lines h
    SET captured = n.captured, returned = n.returned, expires_at = n.expires_at, pays_for = n.pays_for, deferred = n.deferred,
        refunded = n.refunded, beyond = n.beyond
    FROM unnest($1::text[], $2::text[], $3::integer[], $4::bigint[], $5::bigint[], $6::timestamptz[], $8::text[], $9::bigint[],
                $10::bigint[], $11::bigint[])
         AS n (tenant_id, hold_id, line, captured, returned, expires_at, pays_for, deferred, refunded, beyond)
    WHERE h.tenant_id = n.tenant_id AND h.hold_id = n.hold_id AND h.line = n.line
    -- citus: AND h.tenant_id = ANY ($1::text[])
    RETURNING 1
)
SELECT 1 / (CASE WHEN count(*) = $7::bigint THEN 1 ELSE 0 END) FROM written;

-- name: WriteRefunds
-- Writes for each line the total of the refunded amounts. At a price that is not a whole number, it also writes the
-- total of the item's refunded units.
INSERT INTO refunds (tenant_id, operation_id, month, line, refunded, units)
SELECT n.tenant_id, n.operation_id, n.month, n.line, n.refunded, n.units
FROM unnest($1::text[], $2::text[], $3::date[], $4::integer[], $5::bigint[], $6::bigint[])
     AS n (tenant_id, operation_id, month, line, refunded, units)
ON CONFLICT (tenant_id, operation_id, month, line) DO UPDATE SET refunded = excluded.refunded, units = excluded.units;

-- name: AddOverflows
-- Adds units of meters that other meters paid for, and operations, to the sums of their quarters of an hour, and to
-- those of their periods. The batch has locked the balances of the meters $2.
INSERT INTO overflows (tenant_id, meter, period_start, paid_by, quarter, units, operations)
SELECT n.tenant_id, n.meter, n.period_start, n.paid_by, q.quarter, least(sum(n.units), 9223372036854775807)::bigint, sum(n.operations)::bigint
FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::text[], $5::timestamptz[], $6::bigint[], $7::bigint[])
     AS n (tenant_id, meter, period_start, paid_by, quarter, units, operations)
CROSS JOIN LATERAL (VALUES (n.quarter), ('epoch'::timestamptz)) AS q (quarter)
GROUP BY n.tenant_id, n.meter, n.period_start, n.paid_by, q.quarter
ON CONFLICT (tenant_id, meter, quarter, period_start, paid_by) DO UPDATE
SET units = least(overflows.units::numeric + excluded.units, 9223372036854775807)::bigint, operations = overflows.operations + excluded.operations;

-- name: InsertMonths
-- Notes that the months $1, in order, hold entries. Each instance runs it with its first batch of a month. Another
-- instance that runs it at the same time waits for that batch's COMMIT.
INSERT INTO journal_months (month)
SELECT unnest($1::date[])
ON CONFLICT DO NOTHING;

-- name: InsertPeriods
-- Stores closed periods, and runs of idle periods.
INSERT INTO periods (tenant_id, meter, subject, period_start, period_end, plan, plan_version, opening, granted, refunded, used,
                     expired, adjusted, overage, held, closing, last_seq, closed_at, idle, terms_at, rolled_over, rollover, owing, amended)
SELECT n.tenant_id, n.meter, n.subject, n.period_start, n.period_end, n.plan, n.plan_version, n.opening, n.granted, n.refunded, n.used,
       n.expired, n.adjusted + n.amended, n.overage, n.held, n.closing, n.last_seq, n.closed_at, n.idle, n.terms_at, n.rolled_over,
       n.rollover, n.owing, n.amended
FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::timestamptz[], $6::text[], $7::integer[], $8::bigint[],
            $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[],
            $17::bigint[], $18::timestamptz[], $19::bigint[], $20::timestamptz[], $21::bigint[], $22::bigint[], $23::bigint[],
            $24::bigint[])
     AS n (tenant_id, meter, subject, period_start, period_end, plan, plan_version, opening, granted, refunded, used, expired,
           adjusted, overage, held, closing, last_seq, closed_at, idle, terms_at, rolled_over, rollover, owing, amended);

-- name: KeepHomes
-- Returns how many of the tenants $1 exist, plus how many of the meters $2 are counters. $1 and $2 are in order,
-- without duplicates. It locks these rows against deletion until the batch ends. It locks each row only once, because
-- a second lock takes long if other transactions have locked the row as well. On Citus it locks this node's copy of a
-- meter, with a stronger lock, because a deletion first updates the copies of all nodes (LockMeter).
WITH t AS MATERIALIZED (
    SELECT o.tenant_id FROM unnest($1::text[]) AS k (tenant_id) JOIN tenants o ON o.tenant_id = k.tenant_id
    -- citus: AND o.tenant_id = ANY ($1::text[])
    FOR KEY SHARE OF o
), m AS MATERIALIZED (
    SELECT o.meter FROM unnest($2::text[]) AS k (meter) JOIN meters o ON o.meter = k.meter AND o.kind = 'counter'
    -- citus: FOR SHARE OF o
    FOR KEY SHARE OF o -- plain
)
SELECT (SELECT count(*) FROM t) + (SELECT count(*) FROM m);

-- name: CreateBalances
-- Inserts the missing rows of the balances $1..$3 if their tenant exists and their meter is a counter. It runs before
-- the batch in its own transaction, in key order. The share locks prevent a deletion of the tenant or the meter at the
-- same time: see KeepHomes.
-- citus: WITH t AS MATERIALIZED (SELECT o.tenant_id FROM tenants o WHERE o.tenant_id = ANY ($1::text[]) FOR KEY SHARE OF o),
-- citus: m AS MATERIALIZED (SELECT o.meter FROM meters o WHERE o.meter = ANY ($2::text[]) AND o.kind = 'counter' FOR SHARE OF o)
INSERT INTO balances (tenant_id, meter, subject)
SELECT k.tenant_id, k.meter, k.subject
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (tenant_id, meter, subject)
JOIN tenants t ON t.tenant_id = k.tenant_id -- plain
JOIN meters m ON m.meter = k.meter AND m.kind = 'counter' -- plain
-- citus: JOIN t ON t.tenant_id = k.tenant_id JOIN m ON m.meter = k.meter
ORDER BY k.tenant_id, k.meter, k.subject
FOR KEY SHARE OF t, m -- plain
ON CONFLICT DO NOTHING;

-- name: WhyAbsent
-- Reports for each pair ($1 tenants, $2 meters) whether the tenant exists, whether the meter exists, and whether it is
-- a gauge.
SELECT k.tenant_id, k.meter, t.tenant_id IS NOT NULL, m.meter IS NOT NULL, coalesce(m.kind = 'gauge', false)
FROM unnest($1::text[], $2::text[]) AS k (tenant_id, meter)
LEFT JOIN tenants t ON t.tenant_id = k.tenant_id
-- citus: AND t.tenant_id = ANY ($1::text[])
LEFT JOIN meters m ON m.meter = k.meter;
