-- Verifications that run in the background of an instance, and their progress.

-- name: InsertVerification
-- Records the start of a verification.
INSERT INTO verifications (verification_id, tenant_id, status, started_at, heartbeat_at)
VALUES ($1, $2, 'running', clock_timestamp(), clock_timestamp())
RETURNING started_at;

-- name: UpdateVerification
-- Records the progress or the end of a verification, and returns the instant of the record.
UPDATE verifications
SET status = $2, report = $3, error = $4, heartbeat_at = clock_timestamp(),
    finished_at = CASE WHEN $2 = 'running' THEN NULL ELSE clock_timestamp() END
WHERE verification_id = $1
RETURNING heartbeat_at;

-- name: VerificationByID
-- Returns a verification. The last column is true if it is running but its last heartbeat is over a minute old.
SELECT tenant_id, status, report, error, started_at, finished_at,
       status = 'running' AND heartbeat_at < clock_timestamp() - interval '1 minute'
FROM verifications
WHERE verification_id = $1;

-- name: VerificationsPage
-- Returns $3 verifications, the newest first, after the verification with start $1 and id $2. From the reports it
-- returns only numbers.
SELECT v.verification_id, v.tenant_id, v.status, coalesce((v.report->>'Balances')::bigint, 0), coalesce((v.report->>'Entries')::bigint, 0),
       coalesce((v.report->>'Unread')::bigint, 0), coalesce((v.report->>'Count')::bigint, 0), coalesce((v.report->>'Incremental')::boolean, false),
       v.error, v.started_at, v.finished_at, v.status = 'running' AND v.heartbeat_at < clock_timestamp() - interval '1 minute'
FROM verifications v
WHERE (v.started_at, v.verification_id) < ($1::timestamptz, $2::text)
ORDER BY v.started_at DESC, v.verification_id DESC
LIMIT $3::integer;

-- name: VerificationsOfTenant
-- Returns the same as VerificationsPage, of tenant $4 alone. It also orders by the tenant, which is always the same,
-- so that PostgreSQL cannot use the index of all verifications.
SELECT v.verification_id, v.tenant_id, v.status, coalesce((v.report->>'Balances')::bigint, 0), coalesce((v.report->>'Entries')::bigint, 0),
       coalesce((v.report->>'Unread')::bigint, 0), coalesce((v.report->>'Count')::bigint, 0), coalesce((v.report->>'Incremental')::boolean, false),
       v.error, v.started_at, v.finished_at, v.status = 'running' AND v.heartbeat_at < clock_timestamp() - interval '1 minute'
FROM verifications v
WHERE (v.tenant_id, v.started_at, v.verification_id) < ($4::text, $1::timestamptz, $2::text) AND v.tenant_id >= $4
ORDER BY v.tenant_id DESC, v.started_at DESC, v.verification_id DESC
LIMIT $3::integer;

-- name: TenantExists
-- Reports whether there is a tenant $1.
SELECT EXISTS (SELECT 1 FROM tenants t WHERE t.tenant_id = $1);

-- name: Now
-- Returns PostgreSQL's clock.
SELECT clock_timestamp();
