-- +goose Up
-- Terms that have not acted on every open period move to the column at_once: see 00032. The other terms keep immediate, which both versions know.
UPDATE tenant_terms t SET at_once = true, immediate = false
WHERE t.immediate AND EXISTS (SELECT 1 FROM balances b WHERE b.tenant_id = t.tenant_id AND b.period_start < t.effective_at);

-- +goose Down
UPDATE tenant_terms SET immediate = true, at_once = false WHERE at_once;
