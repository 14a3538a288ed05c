-- name: SelectLimits
-- At most $3 of the limits $1 (of all limits if $1 is null), after the name $2, in order of names.
SELECT rule, spec, created_at, updated_at
FROM limits
WHERE ($1::text[] IS NULL OR rule = ANY ($1)) AND rule > $2
ORDER BY rule
LIMIT $3;

-- name: SelectLimitsIn
-- The limits whose groups in SelectSums have the places $1.
SELECT rule, spec, created_at, updated_at
FROM limits
WHERE ascii(right(rule, 1)) * 1024 + ascii(right(rule, 2)) * 8 + length(rule) % 8 = ANY ($1::integer[]);

-- name: InsertLimit
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS at
)
INSERT INTO limits (rule, spec, created_at, updated_at)
SELECT $1, $2, clock.at, clock.at FROM clock
RETURNING created_at, updated_at;

-- name: UpdateLimit
UPDATE limits
SET spec = $2, updated_at = clock_timestamp()
WHERE rule = $1
RETURNING created_at, updated_at;

-- name: DeleteLimit
DELETE FROM limits WHERE rule = $1;

-- name: DeleteOrphans
-- Deletes the overrides of those rules in $1 that do not exist. A rule exists if a general limit, or a limit of a version
-- of a plan that may be in force at $2, has its name. A version may be in force if it is the newest, or if only versions
-- that wait were made after it, the next one less than a longest billing period ago.
WITH gone AS (
    SELECT k.rule FROM unnest($1::text[]) AS k (rule)
    WHERE EXISTS (SELECT 1 FROM limit_overrides o WHERE o.rule = k.rule) AND -- plain
    -- citus: WHERE
          NOT EXISTS (SELECT 1 FROM limits l WHERE l.rule = k.rule)
      AND NOT EXISTS (SELECT 1 FROM plans p LEFT JOIN plans n ON n.plan = p.plan AND n.version = p.version + 1
                      WHERE p.limits @> jsonb_build_array(jsonb_build_object('rule', k.rule))
                        AND (n.version IS NULL OR n.created_at > $2::timestamptz - interval '400 days'
                             AND NOT EXISTS (SELECT 1 FROM plans i WHERE i.plan = p.plan AND i.version > p.version
                                             AND i.apply IS DISTINCT FROM 'next_period')))
)
DELETE FROM limit_overrides o USING gone WHERE o.rule = gone.rule;
