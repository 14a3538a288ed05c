-- name: LockCatalog
-- Lets writers of meters, plans, limits, blocks and files run one after another. The number is the lock's name:
-- "quotasvc" as ASCII, one letter a byte.
SELECT pg_advisory_xact_lock(x'71756f7461737663'::bigint);

-- name: SelectSums
-- The number of rows and a checksum of each group of meters (1), plans (2) and limits (3). The number or the checksum
-- changes if rows were changed, even by a statement that somebody runs by hand. The checksum covers the ids of the
-- rows, the transactions that wrote the rows, and the times of the writes. The ids of a group end with the same two
-- letters. Of each plan, only the newest version and its allowances are in the checksum. The query reads whole
-- tables, and returns few rows.
SELECT 1::smallint, ascii(right(meter, 1)) * 1024 + ascii(right(meter, 2)) * 8 + length(meter) % 8 AS place, count(*),
       bit_xor(hashtextextended(meter, xmin::text::bigint) # (date_part('epoch', updated_at) * 1000000)::bigint)
FROM meters
GROUP BY place
UNION ALL
SELECT 2::smallint, ascii(right(p.plan, 1)) * 1024 + ascii(right(p.plan, 2)) * 8 + length(p.plan) % 8 AS place, count(*),
       bit_xor(hashtextextended(p.plan, p.mark::text::bigint) # (date_part('epoch', p.created_at) * 1000000)::bigint
               # (SELECT coalesce(bit_xor(hashtextextended(a.meter, a.xmin::text::bigint)), 0)
                  FROM plan_allowances a WHERE a.plan = p.plan AND a.version = p.version))
FROM (SELECT DISTINCT ON (plan) plan, version, created_at, xmin AS mark FROM plans ORDER BY plan, version DESC) AS p
GROUP BY place
UNION ALL
SELECT 3::smallint, ascii(right(rule, 1)) * 1024 + ascii(right(rule, 2)) * 8 + length(rule) % 8 AS place, count(*),
       bit_xor(hashtextextended(rule, xmin::text::bigint) # (date_part('epoch', updated_at) * 1000000)::bigint)
FROM limits
GROUP BY place;
