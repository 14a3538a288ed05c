-- The statements that list journal entries. A list in the other order is the same statement with DESC for every
-- /*DESC*/ and < for every >/*<*/.

-- name: EntriesOfMeter
-- Returns entries of one meter, after ($3 subject, $4 seq). $5: kind or '' for all; $6: last month that may have
-- entries.
SELECT e.tenant_id, e.operation_id, e.line, e.seq, e.kind, e.meter, e.subject, e.period_start, e.grant_id, e.source, e.amount,
       e.remaining_after, e.item, coalesce(e.requested, 0), NULL::bytea, e.created_at, coalesce(e.effective_at, 'epoch'), coalesce(e.op_subject, ''),
       e.detail, e.metadata, coalesce(e.actor, '')
FROM entries e
WHERE e.tenant_id = $1::text AND e.meter = $2::text AND e.seq > 0 AND (e.subject, e.seq) >/*<*/ ($3::text, $4::bigint)
  AND ($5::text = '' OR e.kind = $5::text) AND e.month <= $6::date
ORDER BY e.subject/*DESC*/, e.seq/*DESC*/
LIMIT $7::integer;

-- name: EntriesOfTenant
-- Returns the same as EntriesOfMeter, over all meters, after ($2 meter, $3 subject, $4 seq).
SELECT e.tenant_id, e.operation_id, e.line, e.seq, e.kind, e.meter, e.subject, e.period_start, e.grant_id, e.source, e.amount,
       e.remaining_after, e.item, coalesce(e.requested, 0), NULL::bytea, e.created_at, coalesce(e.effective_at, 'epoch'), coalesce(e.op_subject, ''),
       e.detail, e.metadata, coalesce(e.actor, '')
FROM entries e
WHERE e.tenant_id = $1::text AND e.seq > 0 AND (e.meter, e.subject, e.seq) >/*<*/ ($2::text, $3::text, $4::bigint)
  AND ($5::text = '' OR e.kind = $5::text) AND e.month <= $6::date
ORDER BY e.meter/*DESC*/, e.subject/*DESC*/, e.seq/*DESC*/
LIMIT $7::integer;

-- name: EntriesOfKind
-- Returns entries of kind $5, which is not debit, after ($2 meter, $3 subject, $4 seq). $6: meter or '' for all; $7,
-- $8: first and last month; $9, $10: instants [from, to).
SELECT e.tenant_id, e.operation_id, e.line, e.seq, e.kind, e.meter, e.subject, e.period_start, e.grant_id, e.source, e.amount,
       e.remaining_after, e.item, coalesce(e.requested, 0), NULL::bytea, e.created_at, coalesce(e.effective_at, 'epoch'), coalesce(e.op_subject, ''),
       e.detail, e.metadata, coalesce(e.actor, '')
FROM entries e
WHERE e.tenant_id = $1::text AND e.kind = $5::text AND e.kind <> 'debit' AND (e.meter, e.subject, e.seq) >/*<*/ ($2::text, $3::text, $4::bigint)
  AND ($6::text = '' OR e.meter = $6::text) AND e.month BETWEEN $7::date AND $8::date AND e.created_at >= $9::timestamptz AND e.created_at < $10::timestamptz
ORDER BY e.meter/*DESC*/, e.subject/*DESC*/, e.seq/*DESC*/
LIMIT $11::integer;

-- name: BalancesInOrder
-- Returns the next balances of tenant $1 from ($2 meter, $3 subject) on, with their newest seq. It leaves out
-- balances whose newest entry is older than $4. $5: meter or '' for all. $6: '' for all, else a subject: only its
-- balances and the tenant's own.
SELECT b.meter, b.subject, b.seq
FROM balances b
WHERE b.tenant_id = $1::text AND (b.meter, b.subject) >=/*<=*/ ($2::text, $3::text) AND b.updated_at >= $4::timestamptz AND b.seq > 0
  AND ($5::text = '' OR b.meter = $5::text) AND ($6::text = '' OR b.subject IN ('', $6::text))
ORDER BY b.meter/*DESC*/, b.subject/*DESC*/
LIMIT $7::integer;

-- name: EntriesOfBalance
-- Returns entries of balance ($1..$3) with seq in ($4, $5]. $6: kind or '' for all; $7: last month that may have
-- entries.
SELECT e.tenant_id, e.operation_id, e.line, e.seq, e.kind, e.meter, e.subject, e.period_start, e.grant_id, e.source, e.amount,
       e.remaining_after, e.item, coalesce(e.requested, 0), NULL::bytea, e.created_at, coalesce(e.effective_at, 'epoch'), coalesce(e.op_subject, ''),
       e.detail, e.metadata, coalesce(e.actor, '')
FROM entries e
WHERE e.tenant_id = $1::text AND e.meter = $2::text AND e.subject = $3::text AND e.seq > 0 AND e.seq > $4::bigint AND e.seq <= $5::bigint
  AND ($6::text = '' OR e.kind = $6::text) AND e.month <= $7::date
ORDER BY e.seq/*DESC*/
LIMIT $8::integer;

-- name: EntriesOfBalanceAndKind
-- Returns the same as EntriesOfBalance for kind $6, which is not debit.
SELECT e.tenant_id, e.operation_id, e.line, e.seq, e.kind, e.meter, e.subject, e.period_start, e.grant_id, e.source, e.amount,
       e.remaining_after, e.item, coalesce(e.requested, 0), NULL::bytea, e.created_at, coalesce(e.effective_at, 'epoch'), coalesce(e.op_subject, ''),
       e.detail, e.metadata, coalesce(e.actor, '')
FROM entries e
WHERE e.tenant_id = $1::text AND e.kind = $6::text AND e.kind <> 'debit' AND e.meter = $2::text AND e.subject = $3::text
  AND e.seq > $4::bigint AND e.seq <= $5::bigint AND e.month <= $7::date
ORDER BY e.seq/*DESC*/
LIMIT $8::integer;

-- name: EntriesOfBalanceNaming
-- Returns entries of balance ($1..$3) with seq in ($4, $5] by requests that named subject $9.
SELECT e.tenant_id, e.operation_id, e.line, e.seq, e.kind, e.meter, e.subject, e.period_start, e.grant_id, e.source, e.amount,
       e.remaining_after, e.item, coalesce(e.requested, 0), NULL::bytea, e.created_at, coalesce(e.effective_at, 'epoch'), coalesce(e.op_subject, ''),
       e.detail, e.metadata, coalesce(e.actor, '')
FROM entries e
WHERE e.tenant_id = $1::text AND e.op_subject = $9::text AND e.op_subject IS NOT NULL AND e.meter = $2::text AND e.subject = $3::text
  AND e.seq > $4::bigint AND e.seq <= $5::bigint AND ($6::text = '' OR e.kind = $6::text) AND e.month <= $7::date
ORDER BY e.seq/*DESC*/
LIMIT $8::integer;

-- name: EntriesOfOperation
-- Returns the entries of all operations of tenant $1 with the id $2.
SELECT e.tenant_id, e.operation_id, e.line, e.seq, e.kind, e.meter, e.subject, e.period_start, e.grant_id, e.source, e.amount,
       e.remaining_after, e.item, coalesce(e.requested, 0), NULL::bytea, e.created_at, coalesce(e.effective_at, 'epoch'), coalesce(e.op_subject, ''),
       e.detail, e.metadata, coalesce(e.actor, '')
FROM entries e
WHERE e.tenant_id = $1 AND e.operation_id = $2;
