-- name: Announce
-- Sends the announcements to every instance when this transaction commits.
SELECT pg_notify('quotasvc_catalog', n.change) FROM unnest($1::text[]) AS n (change);

-- name: Listen
LISTEN quotasvc_catalog;

-- name: Clock
-- PostgreSQL's clock. Store.NowIn compares it with the instance's clock.
SELECT clock_timestamp();
