-- Creates $TENANTS tenants (t-000000, ...) and t-hot, with one monthly allowance that no run uses up. Creates up to
-- $TOLD tenants told-t-000000, ..., whose use causes an event at ten percentages, and as many tenants
-- untold-t-000000, ... without percentages. No run reaches the lowest percentage.
INSERT INTO meters (meter, unit) VALUES ('api_calls', 'call');
INSERT INTO plans (plan, version) VALUES ('bench', 1);
INSERT INTO plan_allowances (plan, version, meter, ordinal, amount, every, anchor)
VALUES ('bench', 1, 'api_calls', 0, 1000000000000, 'month', 'calendar');
INSERT INTO plans (plan, version) VALUES ('told', 1), ('untold', 1);
INSERT INTO plan_allowances (plan, version, meter, ordinal, amount, every, anchor)
VALUES ('told', 1, 'api_calls', 0, 1000000000000, 'month', 'calendar'), ('untold', 1, 'api_calls', 0, 1000000000000, 'month', 'calendar');
DO $$
BEGIN -- the schema of older binaries, which have no events, lacks the column alert_at
    IF EXISTS (SELECT FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = 'plan_allowances' AND column_name = 'alert_at') THEN
        UPDATE plan_allowances SET alert_at = CASE plan WHEN 'told' THEN '{10,20,30,40,50,60,70,80,90,100}' ELSE '{}' END::smallint[] WHERE plan IN ('told', 'untold');
    END IF;
END
$$;
INSERT INTO tenants (tenant_id, plan, anchor)
SELECT 't-' || lpad(i::text, 6, '0'), 'bench', clock_timestamp() FROM generate_series(0, $TENANTS - 1) AS i
UNION ALL SELECT 't-hot', 'bench', clock_timestamp()
UNION ALL SELECT p.plan || '-t-' || lpad(i::text, 6, '0'), p.plan, clock_timestamp()
FROM plans p, generate_series(0, least($TENANTS, $TOLD) - 1) AS i WHERE p.plan IN ('told', 'untold');
INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone, initial)
SELECT tenant_id, created_at, plan, anchor, timezone, true FROM tenants;
INSERT INTO bench_baseline.balances (tenant_id, meter, remaining) SELECT tenant_id, 'api_calls', 1000000000000 FROM tenants;
