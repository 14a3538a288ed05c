-- Webhooks, their secrets, and deliveries.

-- name: CountWebhooks
-- Returns the number of webhooks. Two callers that create a webhook at the same time may exceed the bound by one.
SELECT count(*) FROM webhooks;

-- name: WebhooksOfTenant
-- The webhooks of tenant $1.
SELECT webhook_id, '', created_at FROM webhooks WHERE tenant_id = $1;

-- name: InsertWebhook
-- Creates the webhook $1.
INSERT INTO webhooks (webhook_id, url, types, tenant_id, status, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $6);

-- name: SelectWebhooks
-- Returns the webhook $1. If $1 is NULL, it returns up to $4 webhooks after the id $3, in the order of their ids. All
-- returned webhooks are of tenant $2 (NULL: any tenant).
SELECT webhook_id, url, types, tenant_id, status, created_at, updated_at
FROM webhooks
WHERE ($1::text IS NULL OR webhook_id = $1) AND ($2::text IS NULL OR tenant_id = $2) AND webhook_id > $3
ORDER BY webhook_id
LIMIT $4;

-- name: LockWebhook
-- Locks the webhook $1 until the transaction ends. A missing row means that there is no such webhook.
SELECT webhook_id, url, types, tenant_id, status, created_at, updated_at FROM webhooks WHERE webhook_id = $1 FOR UPDATE;

-- name: UpdateWebhook
-- Changes the webhook $1.
UPDATE webhooks SET url = $2, types = $3, status = $4, updated_at = $5 WHERE webhook_id = $1;

-- name: DeleteWebhook
DELETE FROM webhooks WHERE webhook_id = $1;

-- name: DeleteSecrets
DELETE FROM webhook_secrets WHERE webhook_id = $1;

-- name: InsertSecret
INSERT INTO webhook_secrets (webhook_id, secret) VALUES ($1, $2);

-- name: EndSecrets
-- Sets the end of the secrets of webhook $1 to $2 seconds from now, unless they end sooner, and removes secrets that
-- have ended. If $2 is 0, it removes all secrets.
WITH ended AS (DELETE FROM webhook_secrets WHERE webhook_id = $1 AND (ends_at <= clock_timestamp() OR $2::float8 <= 0))
UPDATE webhook_secrets SET ends_at = least(ends_at, clock_timestamp() + make_interval(secs => $2::float8)) WHERE webhook_id = $1 AND $2::float8 > 0;

-- name: Secrets
-- Returns the secrets of webhook $1 that are valid now, the newest first.
SELECT secret FROM webhook_secrets WHERE webhook_id = $1 AND (ends_at IS NULL OR ends_at > clock_timestamp())
ORDER BY ends_at IS NULL DESC, created_at DESC;

-- name: WebhookIDs
SELECT webhook_id FROM webhooks ORDER BY webhook_id;

-- name: ActiveWebhooks
-- Returns the active webhooks, and locks them against changes until the transaction ends. So a transaction that
-- deletes or pauses a webhook finds all of its deliveries.
SELECT webhook_id, types, tenant_id FROM webhooks WHERE status = 'active' ORDER BY webhook_id FOR SHARE;

-- name: InsertDeliveries
-- Inserts deliveries to the webhooks $1 of the events at the positions $2 with types $3 and tenants $4. Returns the
-- deliveries that did not exist.
INSERT INTO webhook_deliveries (webhook_id, position, month, type, tenant_id, status, queued_at, next_at)
SELECT d.webhook_id, d.position, date_trunc('month', to_timestamp(d.position / 1000000.0) AT TIME ZONE 'UTC')::date, d.type, d.tenant_id, 'pending',
       clock_timestamp(), clock_timestamp()
FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[]) AS d (webhook_id, position, type, tenant_id)
ON CONFLICT (webhook_id, position, month) DO NOTHING
RETURNING webhook_id, position;

-- name: ReplayDeliveries
-- Is like InsertDeliveries, for a replay: deliveries that were delivered, dead or skipped become pending again.
-- Pending deliveries do not change.
INSERT INTO webhook_deliveries AS o (webhook_id, position, month, type, tenant_id, status, queued_at, next_at)
SELECT d.webhook_id, d.position, date_trunc('month', to_timestamp(d.position / 1000000.0) AT TIME ZONE 'UTC')::date, d.type, d.tenant_id, 'pending',
       clock_timestamp(), clock_timestamp()
FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[]) AS d (webhook_id, position, type, tenant_id)
ON CONFLICT (webhook_id, position, month) DO UPDATE
SET status = 'pending', attempts = 0, queued_at = excluded.queued_at, next_at = excluded.next_at, error = ''
WHERE o.status <> 'pending'
RETURNING webhook_id, position;

-- name: EventsOf
-- Returns up to $5 events from $1 to before $2. They have one of the types $3, belong to tenant $4 (NULL: any) and have
-- positions after $6. They are in the order of their positions.
SELECT e.tenant_id, e.type, e.at, e.meter, e.subject, e.data, e.position
FROM events e
WHERE e.month >= date_trunc('month', $1::timestamptz AT TIME ZONE 'UTC')::date AND e.at >= $1::timestamptz AND e.at < $2::timestamptz
  AND e.type = ANY ($3::text[]) AND ($4::text IS NULL OR e.tenant_id = $4) AND e.position > $6::bigint
ORDER BY e.position
LIMIT $5::integer;

-- name: EventAt
-- Returns the event of tenant $1 at position $2. No row: the event was dropped, or it is not visible yet.
SELECT e.tenant_id, e.type, e.at, e.meter, e.subject, e.data, e.position
FROM events e
WHERE e.tenant_id = $1 AND e.position = $2;

-- name: SelectDelivery
-- Returns the data for an attempt to deliver the event at $2 to webhook $1. The first columns are the state of the
-- delivery, the number of attempts and the tenant. The next column says whether the delivery was queued more than $3
-- seconds ago. The last columns are the webhook's URL and state (NULL: there is no such webhook). No row: there is no
-- such delivery.
SELECT d.status, d.attempts, d.tenant_id, d.queued_at < clock_timestamp() - make_interval(secs => $3::float8), w.url, w.status
FROM webhook_deliveries d
LEFT JOIN webhooks w ON w.webhook_id = d.webhook_id
WHERE d.webhook_id = $1 AND d.position = $2 AND d.month = date_trunc('month', to_timestamp($2::bigint / 1000000.0) AT TIME ZONE 'UTC')::date;

-- name: RecordAttempt
-- Records an attempt of the pending delivery of the event at $2 to webhook $1. It stores the state $3, the status of
-- the answer $4, the latency $5 in milliseconds and the error $6. The next attempt is due in $7 seconds (NULL: there
-- is no further attempt).
UPDATE webhook_deliveries
SET status = $3, attempts = attempts + 1, attempted_at = clock_timestamp(), status_code = nullif($4::integer, 0), latency_ms = $5, error = $6,
    next_at = clock_timestamp() + make_interval(secs => $7::float8)
WHERE webhook_id = $1 AND position = $2 AND month = date_trunc('month', to_timestamp($2::bigint / 1000000.0) AT TIME ZONE 'UTC')::date
  AND status = 'pending';

-- name: EndDelivery
-- Ends the pending delivery of the event at $2 to webhook $1 without an attempt, with state $3 and the reason $4.
UPDATE webhook_deliveries
SET status = $3, error = $4, next_at = NULL
WHERE webhook_id = $1 AND position = $2 AND month = date_trunc('month', to_timestamp($2::bigint / 1000000.0) AT TIME ZONE 'UTC')::date
  AND status = 'pending';

-- name: SkipDeliveries
-- Ends the pending deliveries of webhook $1 without an attempt, for the reason $2.
UPDATE webhook_deliveries SET status = 'skipped', error = $2, next_at = NULL WHERE webhook_id = $1 AND status = 'pending';

-- name: DeleteJobs
-- Removes the jobs of webhook $1. Running jobs end by themselves.
DELETE FROM river_job WHERE queue = $1 AND state <> 'running';

-- name: QueuesOfNobody
-- Returns the queues with jobs of kind $1 whose webhook no longer exists. A job is created after its webhook, and ids
-- are never used again. The service then removes the jobs with DeleteJobs: Citus cannot delete rows of a local table
-- in a statement that joins a reference table.
SELECT DISTINCT j.queue
FROM river_job j
WHERE j.kind = $1 AND j.state <> 'running' AND NOT EXISTS (SELECT FROM webhooks w WHERE w.webhook_id = j.queue);

-- name: SelectDeliveries
-- Returns up to $4 deliveries of webhook $1 with the state $2 (NULL: any) before the position $3, the newest event
-- first.
SELECT d.position, d.type, d.tenant_id, d.status, d.attempts, d.queued_at, d.next_at, d.attempted_at, coalesce(d.status_code, 0), coalesce(d.latency_ms, -1), d.error
FROM webhook_deliveries d
WHERE d.webhook_id = $1 AND ($2::text IS NULL OR d.status = $2) AND d.position < $3
ORDER BY d.position DESC
LIMIT $4;

-- name: CountPending
-- Returns the number of pending deliveries, at most $1, and the age of the oldest of these in seconds.
SELECT count(*), coalesce(extract(epoch FROM clock_timestamp() - min(p.queued_at)), 0)::float8
FROM (SELECT d.queued_at FROM webhook_deliveries d WHERE d.status = 'pending' ORDER BY d.queued_at LIMIT $1::integer) AS p;
