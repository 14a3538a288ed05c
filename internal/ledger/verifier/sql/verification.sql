-- Verifications that run in the background of an instance, and how far they are.

-- name: InsertVerification
-- Records the start of a verification.
INSERT INTO verifications (verification_id, tenant_id, status, started_at, heartbeat_at)
VALUES ($1, $2, 'running', clock_timestamp(), clock_timestamp())
RETURNING started_at;

-- name: UpdateVerification
-- Records the progress or the end of a verification, and returns when.
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

-- name: TenantExists
-- Reports whether there is a tenant $1.
SELECT EXISTS (SELECT 1 FROM tenants t WHERE t.tenant_id = $1);

-- name: Now
-- Returns PostgreSQL's clock.
SELECT clock_timestamp();
