-- Returns the sums of the journal under each client's key, with one row per operation and kind of entry. It leaves
-- out the operations of the system, whose ids begin with a section sign.
SELECT tenant_id, operation_id, kind, sum(amount)::bigint
FROM entries
WHERE left(operation_id, 1) <> '§'
GROUP BY tenant_id, operation_id, kind
