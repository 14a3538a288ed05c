-- Lists of journal entries.

-- name: EntriesOfMeter
-- Returns a page of one meter's entries in journal order, after ($3 subject, $4 seq). $5, $6: first and last month;
-- $7, $8: instants [from, to); $9: kind or '' for all; $10: subject or '' for all.
SELECT e.tenant_id, e.operation_id, e.line, e.seq, e.kind, e.meter, e.subject, e.period_start, e.grant_id, e.source, e.amount,
       e.remaining_after, e.item, e.requested, NULL::bytea, e.created_at, e.effective_at, e.op_subject, e.detail, e.metadata
FROM entries e
WHERE e.tenant_id = $1::text AND e.meter = $2::text AND e.seq > 0 AND (e.subject, e.seq) > ($3::text, $4::bigint)
  AND e.month BETWEEN $5::date AND $6::date AND e.created_at >= $7::timestamptz AND e.created_at < $8::timestamptz
  AND ($9::text = '' OR e.kind = $9::text) AND ($10::text = '' OR e.subject = $10::text OR e.op_subject = $10::text)
ORDER BY e.subject, e.seq
LIMIT $11::integer;

-- name: EntriesOfTenant
-- Returns the same over all meters, after ($2 meter, $3 subject, $4 seq).
SELECT e.tenant_id, e.operation_id, e.line, e.seq, e.kind, e.meter, e.subject, e.period_start, e.grant_id, e.source, e.amount,
       e.remaining_after, e.item, e.requested, NULL::bytea, e.created_at, e.effective_at, e.op_subject, e.detail, e.metadata
FROM entries e
WHERE e.tenant_id = $1::text AND e.seq > 0 AND (e.meter, e.subject, e.seq) > ($2::text, $3::text, $4::bigint)
  AND e.month BETWEEN $5::date AND $6::date AND e.created_at >= $7::timestamptz AND e.created_at < $8::timestamptz
  AND ($9::text = '' OR e.kind = $9::text) AND ($10::text = '' OR e.subject = $10::text OR e.op_subject = $10::text)
ORDER BY e.meter, e.subject, e.seq
LIMIT $11::integer;

-- name: EntriesOfOperation
-- Returns the entries of all operations with one id.
SELECT e.tenant_id, e.operation_id, e.line, e.seq, e.kind, e.meter, e.subject, e.period_start, e.grant_id, e.source, e.amount,
       e.remaining_after, e.item, e.requested, NULL::bytea, e.created_at, e.effective_at, e.op_subject, e.detail, e.metadata
FROM entries e
WHERE e.tenant_id = $1 AND e.operation_id = $2;
