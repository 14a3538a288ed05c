-- Creates $TENANTS further tenants, from number $FIRST on, which have the same plan and no balance.
INSERT INTO tenants (tenant_id, plan, anchor)
SELECT 't-' || lpad(i::text, 6, '0'), 'bench', clock_timestamp() FROM generate_series($FIRST, $FIRST + $TENANTS - 1) AS i;
INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone, initial)
SELECT tenant_id, created_at, plan, anchor, timezone, true FROM tenants AS t
WHERE NOT EXISTS (SELECT FROM tenant_terms AS u WHERE u.tenant_id = t.tenant_id);
