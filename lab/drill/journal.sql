-- Sums the journal under each client's key: one row per operation and kind. Operations of the system begin with a
-- section sign; they are left out.
SELECT tenant_id, operation_id, kind, sum(amount)::bigint
FROM entries
WHERE left(operation_id, 1) <> '§'
GROUP BY tenant_id, operation_id, kind
