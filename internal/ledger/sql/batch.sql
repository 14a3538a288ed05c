-- The batch transaction. BEGIN, LockBalances, Clock, StoredEntries and TakenGrants go out in one round trip; OpenGrants,
-- TenantTerms, PlanVersions and the other reads in another one only when a locked balance needs them (its head may not cover the demand, an
-- event is due, its terms may have changed); the Insert* and Update* statements in the last one, with COMMIT.

-- name: LockBalances
-- Locks the balances of a batch ($1 tenants, $2 meters, $3 subjects, each pair once) in key order, so that two batches never
-- wait for each other in a circle. A row that does not come back does not exist. Nothing else is ever locked.
SELECT b.tenant_id, b.meter, b.subject, b.seq, b.plan, b.plan_version, b.allowance, b.renews, b.period_start, b.period_end,
       b.opening, b.granted, b.refunded, b.used, b.expired, b.adjusted, b.held, b.overage,
       b.owed, b.settled, b.forgiven_seq, b.head_grant, b.head_source, b.head_remaining, b.next_event_at, b.updated_at
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (tenant_id, meter, subject)
JOIN balances b ON b.tenant_id = k.tenant_id AND b.meter = k.meter AND b.subject = k.subject
ORDER BY b.tenant_id, b.meter, b.subject
FOR NO KEY UPDATE OF b;

-- name: LockDueBalances
-- Locks up to $2 balances with an event due at or before $1 that nobody else is working on.
SELECT b.tenant_id, b.meter, b.subject, b.seq, b.plan, b.plan_version, b.allowance, b.renews, b.period_start, b.period_end,
       b.opening, b.granted, b.refunded, b.used, b.expired, b.adjusted, b.held, b.overage,
       b.owed, b.settled, b.forgiven_seq, b.head_grant, b.head_source, b.head_remaining, b.next_event_at, b.updated_at
FROM balances b
WHERE b.next_event_at <= $1::timestamptz
ORDER BY b.next_event_at
LIMIT $2::integer
FOR NO KEY UPDATE OF b SKIP LOCKED;

-- name: Clock
-- The instant of the batch, read after the locks: before, it could lie behind what another batch wrote meanwhile. With it,
-- when terms last changed for a tenant that may have balances already.
SELECT clock_timestamp(),
       coalesce((SELECT max(t.effective_at) FROM tenant_terms t WHERE NOT t.initial), 'epoch'),
       coalesce((SELECT max(p.created_at) FROM plans p WHERE p.version > 1), 'epoch');

-- name: StoredEntries
-- What the journal knows of the batch's keys ($1 tenants, $2 operation ids, each pair once), in the three months $3 (NULL = none).
-- It must be a statement of its own after LockBalances: a statement's snapshot is older than its wait for a lock, and would miss
-- what the lock's former holder wrote. One branch per month, because a list of months would not prune partitions; and LATERAL,
-- because a plan made while the tables were empty must be right when they are full.
SELECT e.tenant_id, e.operation_id, e.line, e.seq, e.kind, e.meter, e.subject, e.period_start, e.grant_id, e.source, e.amount,
       e.remaining_after, e.item, e.requested, e.fingerprint, e.created_at, e.effective_at, e.op_subject, e.detail, e.metadata
FROM unnest($1::text[], $2::text[]) AS k (tenant_id, operation_id)
CROSS JOIN LATERAL (
    SELECT * FROM entries j WHERE j.tenant_id = k.tenant_id AND j.operation_id = k.operation_id AND j.month = ($3::date[])[1]
    UNION ALL
    SELECT * FROM entries j WHERE j.tenant_id = k.tenant_id AND j.operation_id = k.operation_id AND j.month = ($3::date[])[2]
    UNION ALL
    SELECT * FROM entries j WHERE j.tenant_id = k.tenant_id AND j.operation_id = k.operation_id AND j.month = ($3::date[])[3]
) AS e;

-- name: OpenGrants
-- The open grants of the balances $1..$3, which are locked: those that can be drawn from, now or later, and those that ended
-- while units of them are held.
SELECT g.tenant_id, g.meter, g.subject, g.grant_id, g.source, g.amount, g.remaining, g.held, g.priority, g.effective_at,
       g.expires_at, coalesce(g.cost_basis, ''), coalesce(g.reason, ''), g.status, g.operation_id, g.created_at
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (tenant_id, meter, subject)
CROSS JOIN LATERAL (
    SELECT * FROM grants o
    WHERE o.tenant_id = k.tenant_id AND o.meter = k.meter AND o.subject = k.subject AND (o.status IN ('pending', 'active') OR o.held > 0)
    OFFSET 0
) AS g;

-- name: NamedGrants
-- The grants $4 of the balances $1..$3, which are locked, whatever their state.
SELECT g.tenant_id, g.meter, g.subject, g.grant_id, g.source, g.amount, g.remaining, g.held, g.priority, g.effective_at,
       g.expires_at, coalesce(g.cost_basis, ''), coalesce(g.reason, ''), g.status, g.operation_id, g.created_at
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS k (tenant_id, meter, subject, grant_id)
CROSS JOIN LATERAL (
    SELECT * FROM grants o
    WHERE o.tenant_id = k.tenant_id AND o.meter = k.meter AND o.subject = k.subject AND o.grant_id = k.grant_id
    OFFSET 0
) AS g;

-- name: OpenHoldLines
-- What holds reserve on the balances $1..$3, which are locked.
SELECT h.tenant_id, h.meter, h.subject, h.hold_id, h.line, h.item, h.grant_id, h.source, h.price, h.amount, h.captured, h.returned,
       h.expires_at
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (tenant_id, meter, subject)
CROSS JOIN LATERAL (
    SELECT * FROM hold_lines o
    WHERE o.tenant_id = k.tenant_id AND o.meter = k.meter AND o.subject = k.subject AND o.captured + o.returned < o.amount
    OFFSET 0
) AS h
ORDER BY h.tenant_id, h.hold_id, h.line;

-- name: Holds
-- The holds $1, $2. The balances of their lines are locked.
SELECT h.tenant_id, h.hold_id, h.subject, h.status, h.items, h.created_at, h.expires_at
FROM unnest($1::text[], $2::text[]) AS k (tenant_id, hold_id)
CROSS JOIN LATERAL (SELECT * FROM holds o WHERE o.tenant_id = k.tenant_id AND o.hold_id = k.hold_id OFFSET 0) AS h;

-- name: Refunds
-- What was refunded of the operations $1, $2. The balances of their lines are locked.
SELECT r.tenant_id, r.operation_id, r.line, r.refunded
FROM unnest($1::text[], $2::text[]) AS k (tenant_id, operation_id)
CROSS JOIN LATERAL (SELECT * FROM refunds o WHERE o.tenant_id = k.tenant_id AND o.operation_id = k.operation_id OFFSET 0) AS r;

-- name: HoldBalances
-- Before the locks: the balances of the holds $1, $2. They never change.
SELECT DISTINCT h.tenant_id, h.hold_id, h.meter, h.subject
FROM unnest($1::text[], $2::text[]) AS k (tenant_id, hold_id)
CROSS JOIN LATERAL (SELECT * FROM hold_lines o WHERE o.tenant_id = k.tenant_id AND o.hold_id = k.hold_id OFFSET 0) AS h;

-- name: GrantBalances
-- Before the locks: the balances that have a grant $1, $2. A grant never moves.
SELECT g.tenant_id, g.grant_id, g.meter, g.subject
FROM unnest($1::text[], $2::text[]) AS k (tenant_id, grant_id)
CROSS JOIN LATERAL (SELECT * FROM grants o WHERE o.tenant_id = k.tenant_id AND o.grant_id = k.grant_id OFFSET 0) AS g;

-- name: EntriesOfOperations
-- Before the locks: the entries of the operations $1, $2, of every month. They never change.
SELECT e.tenant_id, e.operation_id, e.line, e.seq, e.kind, e.meter, e.subject, e.period_start, e.grant_id, e.source, e.amount,
       e.remaining_after, e.item, e.requested, e.fingerprint, e.created_at, e.effective_at, e.op_subject, e.detail, e.metadata
FROM unnest($1::text[], $2::text[]) AS k (tenant_id, operation_id)
CROSS JOIN LATERAL (
    SELECT * FROM entries j WHERE j.tenant_id = k.tenant_id AND j.operation_id = k.operation_id OFFSET 0
) AS e;

-- name: TakenGrants
-- Which of the grant ids $4 exist already on the balances $1..$3.
SELECT g.tenant_id, g.meter, g.subject, g.grant_id
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS k (tenant_id, meter, subject, grant_id)
CROSS JOIN LATERAL (
    SELECT * FROM grants o
    WHERE o.tenant_id = k.tenant_id AND o.meter = k.meter AND o.subject = k.subject AND o.grant_id = k.grant_id
    OFFSET 0
) AS g;

-- name: TenantTerms
-- The history of terms of the tenants $1.
SELECT t.tenant_id, t.effective_at, t.plan, t.anchor, t.timezone, t.immediate, t.prorate, t.overrides
FROM unnest($1::text[]) AS k (tenant_id)
CROSS JOIN LATERAL (SELECT * FROM tenant_terms o WHERE o.tenant_id = k.tenant_id OFFSET 0) AS t
ORDER BY t.tenant_id, t.effective_at;

-- name: PlanVersions
-- Every version of the plans that the tenants $1 have or had, with what it says of the meters $2 where it has them.
SELECT p.plan, p.version, p.created_at, coalesce(a.meter, ''), coalesce(a.amount, 0), coalesce(a.every, ''), coalesce(a.anchor, ''),
       a.rollover_min, a.rollover_max, coalesce(a.overage_policy = 'allow', false), a.overage_cap,
       coalesce(a.overflow_meter, ''), coalesce(a.overflow_price, 0), a.per_subject,
       coalesce(a.expires_in_days, 0), coalesce(a.overage_at_period_end = 'preserve', false)
FROM (SELECT DISTINCT t.plan
      FROM unnest($1::text[]) AS k (tenant_id)
      CROSS JOIN LATERAL (SELECT * FROM tenant_terms o WHERE o.tenant_id = k.tenant_id OFFSET 0) AS t) AS named
JOIN plans p ON p.plan = named.plan
LEFT JOIN plan_allowances a ON a.plan = p.plan AND a.version = p.version AND a.meter = ANY ($2::text[])
ORDER BY p.plan, p.version;

-- name: InsertEntries
-- Appends the batch's lines. A unique violation means that a key is in flight elsewhere: the batch is decided again.
INSERT INTO entries (tenant_id, operation_id, line, month, seq, kind, meter, subject, period_start, grant_id, source, amount,
                     remaining_after, item, requested, fingerprint, created_at, effective_at, op_subject, detail, metadata)
SELECT l.tenant_id, l.operation_id, l.line, date_trunc('month', l.created_at AT TIME ZONE 'UTC')::date, l.seq, l.kind, l.meter, l.subject,
       l.period_start, l.grant_id, l.source, l.amount, l.remaining_after, l.item, l.requested, l.fingerprint, l.created_at,
       l.effective_at, l.op_subject, l.detail, l.metadata
FROM unnest($1::text[], $2::text[], $3::integer[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::timestamptz[], $9::text[],
            $10::text[], $11::bigint[], $12::bigint[], $13::integer[], $14::bigint[], $15::bytea[], $16::timestamptz[],
            $17::timestamptz[], $18::text[], $19::jsonb[], $20::jsonb[])
     AS l (tenant_id, operation_id, line, seq, kind, meter, subject, period_start, grant_id, source, amount, remaining_after, item,
           requested, fingerprint, created_at, effective_at, op_subject, detail, metadata);

-- name: InsertPlainDebits
-- The same for the normal case, a debit of one item paid by one grant: half the columns, a fifth less work.
INSERT INTO entries (tenant_id, operation_id, line, month, seq, kind, meter, subject, period_start, grant_id, source, amount,
                     remaining_after, item, requested, fingerprint, created_at)
SELECT l.tenant_id, l.operation_id, 1, date_trunc('month', l.created_at AT TIME ZONE 'UTC')::date, l.seq, 'debit', l.meter, '',
       l.period_start, l.grant_id, l.source, l.amount, l.remaining_after, 0, l.amount, l.fingerprint, l.created_at
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::timestamptz[], $6::text[], $7::text[], $8::bigint[], $9::bigint[],
            $10::bytea[], $11::timestamptz[])
     AS l (tenant_id, operation_id, seq, meter, period_start, grant_id, source, amount, remaining_after, fingerprint, created_at);

-- name: UpdateDrawnBalances
-- UpdateBalances for balances that debits have only drawn from. $9 as $27 there.
WITH written AS (
    UPDATE balances b
    SET seq = n.seq, used = n.used, overage = n.overage, head_remaining = n.head_remaining, updated_at = n.updated_at
    FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::timestamptz[])
         AS n (tenant_id, meter, subject, seq, used, overage, head_remaining, updated_at)
    WHERE b.tenant_id = n.tenant_id AND b.meter = n.meter AND b.subject = n.subject
    RETURNING 1
)
SELECT 1 / (CASE WHEN count(*) = $9::bigint THEN 1 ELSE 0 END) FROM written;

-- name: UpdateBalances
-- Writes the changed balances; all are locked. A count other than $27 fails the transaction by a division by zero: it would
-- mean that a locked row was not there.
WITH written AS (
    UPDATE balances b
    SET seq = n.seq, plan = n.plan, plan_version = n.plan_version, allowance = n.allowance, renews = n.renews,
        period_start = n.period_start, period_end = n.period_end, opening = n.opening, granted = n.granted,
        refunded = n.refunded, used = n.used, expired = n.expired, adjusted = n.adjusted, held = n.held, overage = n.overage,
        owed = n.owed, settled = n.settled, forgiven_seq = n.forgiven_seq, head_grant = n.head_grant, head_source = n.head_source,
        head_remaining = n.head_remaining, next_event_at = n.next_event_at, updated_at = n.updated_at
    FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::integer[], $7::bigint[], $8::boolean[],
                $9::timestamptz[], $10::timestamptz[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[],
                $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[], $20::bigint[], $21::bigint[], $22::text[], $23::text[],
                $24::bigint[], $25::timestamptz[], $26::timestamptz[])
         AS n (tenant_id, meter, subject, seq, plan, plan_version, allowance, renews, period_start, period_end, opening, granted,
               refunded, used, expired, adjusted, held, overage, owed, settled, forgiven_seq, head_grant, head_source,
               head_remaining, next_event_at, updated_at)
    WHERE b.tenant_id = n.tenant_id AND b.meter = n.meter AND b.subject = n.subject
    RETURNING 1
)
SELECT 1 / (CASE WHEN count(*) = $27::bigint THEN 1 ELSE 0 END) FROM written;

-- name: InsertGrants
INSERT INTO grants (tenant_id, meter, subject, grant_id, source, amount, priority, effective_at, expires_at, cost_basis, reason,
                    operation_id, created_at, remaining, held, status)
SELECT n.tenant_id, n.meter, n.subject, n.grant_id, n.source, n.amount, n.priority, n.effective_at, n.expires_at,
       nullif(n.cost_basis, ''), nullif(n.reason, ''), n.operation_id, n.created_at, n.remaining, n.held, n.status
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::integer[], $8::timestamptz[],
            $9::timestamptz[], $10::text[], $11::text[], $12::text[], $13::timestamptz[], $14::bigint[], $15::bigint[], $16::text[])
     AS n (tenant_id, meter, subject, grant_id, source, amount, priority, effective_at, expires_at, cost_basis, reason,
           operation_id, created_at, remaining, held, status);

-- name: UpdateGrants
-- Writes remainder and status of grants that are not their balance's head, or just stopped being it. $8 as in UpdateBalances.
WITH written AS (
    UPDATE grants g
    SET remaining = n.remaining, held = n.held, status = n.status
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::text[])
         AS n (tenant_id, meter, subject, grant_id, remaining, held, status)
    WHERE g.tenant_id = n.tenant_id AND g.meter = n.meter AND g.subject = n.subject AND g.grant_id = n.grant_id
    RETURNING 1
)
SELECT 1 / (CASE WHEN count(*) = $8::bigint THEN 1 ELSE 0 END) FROM written;

-- name: WriteHolds
-- New holds, and the fate of changed ones; the balances of their lines are locked.
INSERT INTO holds (tenant_id, hold_id, subject, status, items, created_at, expires_at)
SELECT n.tenant_id, n.hold_id, n.subject, n.status, n.items, n.created_at, n.expires_at
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::jsonb[], $6::timestamptz[], $7::timestamptz[])
     AS n (tenant_id, hold_id, subject, status, items, created_at, expires_at)
ON CONFLICT (tenant_id, hold_id) DO UPDATE
SET status = excluded.status, items = excluded.items, expires_at = excluded.expires_at
WHERE holds.created_at = excluded.created_at;

-- name: InsertHoldLines
INSERT INTO hold_lines (tenant_id, hold_id, line, item, meter, subject, grant_id, source, price, amount, captured, returned, expires_at)
SELECT n.tenant_id, n.hold_id, n.line, n.item, n.meter, n.subject, n.grant_id, n.source, n.price, n.amount, n.captured, n.returned,
       n.expires_at
FROM unnest($1::text[], $2::text[], $3::integer[], $4::integer[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[],
            $10::bigint[], $11::bigint[], $12::bigint[], $13::timestamptz[])
     AS n (tenant_id, hold_id, line, item, meter, subject, grant_id, source, price, amount, captured, returned, expires_at);

-- name: UpdateHoldLines
-- $7 as the last parameter of UpdateBalances.
WITH written AS (
    UPDATE hold_lines h
    SET captured = n.captured, returned = n.returned, expires_at = n.expires_at
    FROM unnest($1::text[], $2::text[], $3::integer[], $4::bigint[], $5::bigint[], $6::timestamptz[])
         AS n (tenant_id, hold_id, line, captured, returned, expires_at)
    WHERE h.tenant_id = n.tenant_id AND h.hold_id = n.hold_id AND h.line = n.line
    RETURNING 1
)
SELECT 1 / (CASE WHEN count(*) = $7::bigint THEN 1 ELSE 0 END) FROM written;

-- name: WriteRefunds
-- How much of each line is refunded by now.
INSERT INTO refunds (tenant_id, operation_id, line, refunded)
SELECT n.tenant_id, n.operation_id, n.line, n.refunded
FROM unnest($1::text[], $2::text[], $3::integer[], $4::bigint[]) AS n (tenant_id, operation_id, line, refunded)
ON CONFLICT (tenant_id, operation_id, line) DO UPDATE SET refunded = excluded.refunded;

-- name: InsertPeriods
INSERT INTO periods (tenant_id, meter, subject, period_start, period_end, plan, plan_version, opening, granted, refunded, used,
                     expired, adjusted, overage, held, closing, last_seq, closed_at)
SELECT n.tenant_id, n.meter, n.subject, n.period_start, n.period_end, n.plan, n.plan_version, n.opening, n.granted, n.refunded, n.used,
       n.expired, n.adjusted, n.overage, n.held, n.closing, n.last_seq, n.closed_at
FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::timestamptz[], $6::text[], $7::integer[], $8::bigint[],
            $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[],
            $17::bigint[], $18::timestamptz[])
     AS n (tenant_id, meter, subject, period_start, period_end, plan, plan_version, opening, granted, refunded, used, expired,
           adjusted, overage, held, closing, last_seq, closed_at);

-- name: CreateBalances
-- Makes the rows of balances $1..$3 that do not exist, for tenants and meters that do. It runs in a transaction of its own
-- before the batch, in key order, and keeps tenant and meter from being deleted meanwhile.
INSERT INTO balances (tenant_id, meter, subject)
SELECT k.tenant_id, k.meter, k.subject
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (tenant_id, meter, subject)
JOIN tenants t ON t.tenant_id = k.tenant_id
JOIN meters m ON m.meter = k.meter
ORDER BY k.tenant_id, k.meter, k.subject
FOR KEY SHARE OF t, m
ON CONFLICT DO NOTHING;

-- name: WhyAbsent
-- For each of the keys $1, $2: whether tenant and meter exist.
SELECT k.tenant_id, k.meter, t.tenant_id IS NOT NULL, m.meter IS NOT NULL
FROM unnest($1::text[], $2::text[]) AS k (tenant_id, meter)
LEFT JOIN tenants t ON t.tenant_id = k.tenant_id
LEFT JOIN meters m ON m.meter = k.meter;
