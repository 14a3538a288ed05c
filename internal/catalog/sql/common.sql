-- name: LockCatalog
-- Lets writers of meters, plans, limits and files run one after another. The number is the lock's name: "quotasvc" as ASCII,
-- one letter a byte.
SELECT pg_advisory_xact_lock(x'71756f7461737663'::bigint);

-- name: Announce
-- Tells every instance what changed, when this transaction commits.
SELECT pg_notify('quotasvc_catalog', n.change) FROM unnest($1::text[]) AS n (change);

-- name: Listen
LISTEN quotasvc_catalog;
