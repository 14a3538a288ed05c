-- Creates $TENANTS tenants (t-000000, ...) that exist since $ANCHOR. From then on, they have an allowance for each
-- $EVERY.
INSERT INTO plans (plan, version, created_at) VALUES ('bench', 1, '$ANCHOR');
INSERT INTO plan_allowances (plan, version, meter, ordinal, amount, every, anchor) VALUES ('bench', 1, 'api_calls', 0, 1000000000000, '$EVERY', 'tenant');
INSERT INTO tenants (tenant_id, plan, anchor, created_at)
SELECT 't-' || lpad(i::text, 6, '0'), 'bench', '$ANCHOR', '$ANCHOR' FROM generate_series(0, $TENANTS - 1) AS i;
INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone, initial) SELECT tenant_id, created_at, plan, anchor, timezone, true FROM tenants;
