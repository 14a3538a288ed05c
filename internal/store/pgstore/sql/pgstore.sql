-- name: Announce
-- Tells every instance what changed, when this transaction commits.
SELECT pg_notify('quotasvc_catalog', n.change) FROM unnest($1::text[]) AS n (change);

-- name: Listen
LISTEN quotasvc_catalog;

-- name: Clock
-- PostgreSQL's clock. Store.NowIn compares it with the instance's.
SELECT clock_timestamp();
