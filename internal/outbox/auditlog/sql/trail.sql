-- The audit log.

-- name: InsertLines
-- Inserts lines. Each array has one element per line. Locks nothing.
INSERT INTO audit (actor_key, actor_name, action, object_kind, object_id, tenant_id, reason, request_id, ip, before, after)
SELECT l.actor_key, l.actor_name, l.action, l.object_kind, l.object_id, l.tenant_id, l.reason, l.request_id, l.ip, l.before::jsonb, l.after::jsonb
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[])
     AS l (actor_key, actor_name, action, object_kind, object_id, tenant_id, reason, request_id, ip, before, after);

-- name: SelectLines
-- Reads lines of tenant $1, actor $2 and action $3 (NULL: any), from $4 to before $5 (NULL: no bound), the newest
-- first. The page before ended with the line that has the time $6 and the id $7 (NULL: this is the first page). No row:
-- no such lines exist.
SELECT audit_id, at, actor_key, actor_name, action, object_kind, object_id, tenant_id, before, after, reason, request_id, ip
FROM audit
WHERE ($1::text IS NULL OR tenant_id = $1)
  AND ($2::text IS NULL OR actor_key = $2)
  AND ($3::text IS NULL OR action = $3)
  AND ($4::timestamptz IS NULL OR at >= $4)
  AND ($5::timestamptz IS NULL OR at < $5)
  AND ($6::timestamptz IS NULL OR (at, audit_id) < ($6, $7::bigint))
ORDER BY at DESC, audit_id DESC
LIMIT $8;

-- name: LockShare
-- Lets transactions run one after another if keys of one tenant create objects of one kind in them. $1 names both.
SELECT pg_advisory_xact_lock(hashtextextended('share ' || $1::text, 0));

-- name: CountCreated
-- Counts those of the objects of kind $2 about tenant $1, with the ids $3 and the subjects $4, that the actor $6 or a
-- stored key of the tenant has created. The newest creation of an object counts. No object is older than $5.
SELECT count(*)
FROM (
    SELECT DISTINCT ON (a.object_id, coalesce(a.after->>'subject', '')) a.actor_key
    FROM audit a JOIN unnest($3::text[], $4::text[]) AS o (id, subject)
        ON a.object_id = o.id AND coalesce(a.after->>'subject', '') = o.subject
    WHERE a.tenant_id = $1 AND a.tenant_id <> '' AND a.at >= $5 AND a.object_kind = $2 AND a.before IS NULL AND a.after IS NOT NULL
    ORDER BY a.object_id, coalesce(a.after->>'subject', ''), a.audit_id DESC
) AS newest
WHERE actor_key = $6 OR actor_key IN (SELECT key_id FROM keys WHERE tenant_id = $1);
