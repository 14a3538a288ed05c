-- $TENANTS tenants t-000000.. and t-hot with one monthly allowance that no run uses up.
INSERT INTO meters (meter, unit) VALUES ('api_calls', 'call');
INSERT INTO plans (plan, version) VALUES ('bench', 1);
INSERT INTO plan_allowances (plan, version, meter, ordinal, amount, every, anchor)
VALUES ('bench', 1, 'api_calls', 0, 1000000000000, 'month', 'calendar');
INSERT INTO tenants (tenant_id, plan, anchor)
SELECT 't-' || lpad(i::text, 6, '0'), 'bench', clock_timestamp() FROM generate_series(0, $TENANTS - 1) AS i
UNION ALL SELECT 't-hot', 'bench', clock_timestamp();
INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone, initial)
SELECT tenant_id, created_at, plan, anchor, timezone, true FROM tenants;
INSERT INTO bench_baseline.balances (tenant_id, meter, remaining) SELECT tenant_id, 'api_calls', 1000000000000 FROM tenants;
