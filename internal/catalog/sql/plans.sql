-- name: SelectPlans
-- The newest versions of at most $3 of the plans $1 (of all plans if $1 is null), after the id $2, in order of ids.
SELECT DISTINCT ON (plan) plan, version, limits, features, CASE apply WHEN 'now' THEN apply ELSE '' END, created_at
FROM plans
WHERE ($1::text[] IS NULL OR plan = ANY ($1)) AND plan > $2
ORDER BY plan, version DESC
LIMIT $3;

-- name: SelectPlanVersion
SELECT plan, version, limits, features, CASE apply WHEN 'now' THEN apply ELSE '' END, created_at
FROM plans
WHERE plan = $1 AND version = $2;

-- name: SelectOlderPlans
-- The versions that may be in force for some tenants at $1 although their plans have newer ones: those after which only
-- versions that wait were made, the next one less than a longest billing period ago.
SELECT p.plan, p.version, p.limits, p.features, CASE p.apply WHEN 'now' THEN p.apply ELSE '' END, p.created_at
FROM plans n
JOIN plans p ON p.plan = n.plan AND p.version = n.version - 1
WHERE n.version > 1 AND n.apply = 'next_period'
  AND n.created_at > $1::timestamptz - CASE WHEN EXISTS (SELECT 1 FROM plan_allowances a WHERE a.plan = p.plan AND a.every = 'year')
                                            THEN interval '400 days' ELSE interval '40 days' END
  AND NOT EXISTS (SELECT 1 FROM plans i WHERE i.plan = p.plan AND i.version > p.version AND i.apply IS DISTINCT FROM 'next_period')
ORDER BY p.plan, p.version;

-- name: SelectAllowances
-- The allowances of the plan versions $1, $2 (parallel arrays). The allowances of a plan are in the order of the
-- request that wrote them.
SELECT a.plan, a.meter, a.amount, a.every, a.anchor, a.rollover_min, a.rollover_max, a.overage_policy, a.overage_cap,
       a.overflow_meter, a.overflow_price, a.ratio_meter, a.ratio_units, a.ratio_per, a.per_subject, a.expires_in_days, a.overage_at_period_end,
       array_to_json(a.alert_at)::text, a.gauge
FROM unnest($1::text[], $2::integer[]) AS k (plan, version)
JOIN plan_allowances a ON a.plan = k.plan AND a.version = k.version
ORDER BY a.plan, a.ordinal;

-- name: NextPlanVersion
-- The earliest possible created_at of a new version of plan $1. It is $2, the present instant. If $2 is not later
-- than the newest version of any plan, because a clock was set back, it is a microsecond after that version. So a ledger
-- that has read the versions up to an instant misses none. First versions do not count: no tenant has the plan yet.
SELECT greatest($2::timestamptz, (SELECT max(p.created_at) FROM plans p WHERE p.plan = $1) + interval '1 microsecond',
                (SELECT max(p.created_at) FROM plans p WHERE p.version > 1) + interval '1 microsecond');

-- name: InsertPlan
-- Version $2 of plan $1, created at $4.
INSERT INTO plans (plan, version, limits, created_at, features, apply) VALUES ($1, $2, $3, $4, $5, $6);

-- name: InsertAllowances
INSERT INTO plan_allowances (plan, version, meter, ordinal, amount, every, anchor, rollover_min, rollover_max, overage_policy,
                             overage_cap, overflow_meter, overflow_price, per_subject, expires_in_days, overage_at_period_end,
                             ratio_meter, ratio_units, ratio_per, gauge, alert_at)
SELECT $1, $2, n.meter, n.ordinal, n.amount, n.every, n.anchor, n.rollover_min, n.rollover_max, n.overage_policy, n.overage_cap, n.overflow_meter,
       n.overflow_price, n.per_subject, n.expires_in_days, n.overage_at_period_end, n.ratio_meter, n.ratio_units, n.ratio_per, n.gauge,
       translate(n.alert_at, '[]', '{}')::smallint[]
FROM unnest($3::text[], $4::integer[], $5::bigint[], $6::text[], $7::text[], $8::bigint[], $9::bigint[], $10::text[],
            $11::bigint[], $12::text[], $13::bigint[], $14::bigint[], $15::integer[], $16::text[], $17::text[], $18::bigint[],
            $19::bigint[], $20::boolean[], $21::text[])
     AS n (meter, ordinal, amount, every, anchor, rollover_min, rollover_max, overage_policy, overage_cap, overflow_meter, overflow_price, per_subject,
           expires_in_days, overage_at_period_end, ratio_meter, ratio_units, ratio_per, gauge, alert_at);

-- name: NewestVersions
-- The newest versions of those plans in $1 that exist.
SELECT p.plan, max(p.version) FROM plans p WHERE p.plan = ANY ($1::text[]) GROUP BY p.plan;

-- name: MissingPlans
-- The ids in $1 for which no plan exists.
SELECT k.plan FROM unnest($1::text[]) AS k (plan) WHERE NOT EXISTS (SELECT 1 FROM plans p WHERE p.plan = k.plan);

-- name: MissingAllowances
-- $1 and $2 are parallel arrays of plans and meters. The query returns the positions of those pairs whose plan lacks
-- the meter in its newest version. Positions begin with 1 and are in order.
SELECT k.place
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (plan, meter, place)
WHERE NOT EXISTS (
    SELECT 1 FROM plan_allowances a
    WHERE a.plan = k.plan AND a.meter = k.meter AND a.version = (SELECT max(p.version) FROM plans p WHERE p.plan = k.plan)
)
ORDER BY k.place;

-- name: RulesOfPlan
-- The names of the limits of all versions of plan $1. Versions that were in force until now may have limits that the
-- version before the newest does not have.
SELECT DISTINCT l.value ->> 'rule'
FROM plans p
CROSS JOIN LATERAL jsonb_array_elements(p.limits) AS l (value)
WHERE p.plan = $1;

-- name: VersionsAfter
-- The versions of the plan $1 that were made after $2 (null: all), and those made at $3, oldest first: see TermsAfter.
SELECT p.created_at,
       jsonb_build_object(
           'plan', p.plan, 'version', p.version, 'from', (extract(epoch FROM p.created_at) * 1000000)::bigint, 'apply', p.apply,
           'limits', p.limits, 'features', p.features, 'allowances', (
               SELECT jsonb_agg(jsonb_build_object(
                   'meter', a.meter, 'ordinal', a.ordinal, 'amount', a.amount, 'every', a.every, 'anchor', a.anchor, 'gauge', a.gauge,
                   'rollover_min', a.rollover_min, 'rollover_max', a.rollover_max, 'overage_policy', a.overage_policy,
                   'overage_cap', a.overage_cap, 'overage_at_period_end', a.overage_at_period_end,
                   'overflow_meter', a.overflow_meter, 'overflow_price', a.overflow_price, 'ratio_meter', a.ratio_meter,
                   'ratio_units', a.ratio_units, 'ratio_per', a.ratio_per, 'per_subject', a.per_subject,
                   'expires_in_days', a.expires_in_days, 'alert_at', a.alert_at) ORDER BY a.meter)
               FROM plan_allowances a WHERE a.plan = p.plan AND a.version = p.version))::text
FROM plans p
WHERE p.plan = $1 AND ($2::timestamptz IS NULL OR p.created_at > $2::timestamptz OR p.created_at = $3::timestamptz)
ORDER BY p.created_at;
