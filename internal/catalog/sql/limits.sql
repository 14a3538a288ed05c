-- name: SelectLimits
-- Limits $1 (all if it is null) after $2, at most $3, in order.
SELECT rule, spec, created_at, updated_at
FROM limits
WHERE ($1::text[] IS NULL OR rule = ANY ($1)) AND rule > $2
ORDER BY rule
LIMIT $3;

-- name: SelectLimitsIn
-- The limits in the groups $1 of SelectSums.
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
