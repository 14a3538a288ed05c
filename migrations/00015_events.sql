-- +goose Up
-- Events: what happened that somebody wants to know. Each is inserted by the transaction of what it tells. Webhooks: who is told.

SET LOCAL lock_timeout = '3s';

-- The percentages of an allowance at which its use is told; NULL: 80 and 100. {}: never.
ALTER TABLE plan_allowances ADD COLUMN IF NOT EXISTS alert_at smallint[];

-- Partitions are made and dropped with those of the journal: see internal/ledger/journal.
CREATE TABLE events (
    tenant_id text COLLATE "C" NOT NULL,                   -- '' = not about one tenant
    event_key uuid        NOT NULL DEFAULT gen_random_uuid(),
    month     date        NOT NULL,                        -- first day of at's month, UTC
    type      text        NOT NULL,
    at        timestamptz NOT NULL,
    meter     text COLLATE "C" NOT NULL DEFAULT '',        -- '' = not about one meter
    subject   text COLLATE "C" NOT NULL DEFAULT '',        -- '' = the tenant itself
    data      jsonb       NOT NULL,
    position  bigint,                                      -- its place in the list, from which its id is made; NULL: not listed yet
    PRIMARY KEY (tenant_id, event_key, month)
) PARTITION BY RANGE (month);
-- The list, that of a tenant, that of a type, and what is not listed yet. Positions are given in the order in which commits become visible, so that a reader who
-- goes on after the newest one misses nothing.
CREATE INDEX events_listed ON events (position) WHERE position IS NOT NULL;
CREATE INDEX events_of_tenant ON events (tenant_id, position) WHERE position IS NOT NULL;
CREATE INDEX events_of_type ON events (type, position) WHERE position IS NOT NULL;
CREATE INDEX events_unlisted ON events (at) WHERE position IS NULL;

-- What was told once and is not told again: a threshold of a period. Removed some time after ends_at.
CREATE TABLE event_marks (
    tenant_id    text COLLATE "C" NOT NULL,
    meter        text COLLATE "C" NOT NULL,
    subject      text COLLATE "C" NOT NULL,
    period_start timestamptz NOT NULL,
    mark         text COLLATE "C" NOT NULL,                -- such as threshold:80
    ends_at      timestamptz NOT NULL,                     -- end of the period
    PRIMARY KEY (tenant_id, meter, subject, period_start, mark)
);
CREATE INDEX event_marks_ends ON event_marks (ends_at);

-- Grants that end and whose end was not announced yet. Written with the grant.
CREATE TABLE grant_reminders (
    tenant_id text COLLATE "C" NOT NULL,
    meter     text COLLATE "C" NOT NULL,
    subject   text COLLATE "C" NOT NULL,
    grant_id  text COLLATE "C" NOT NULL,
    due_at    timestamptz NOT NULL,                        -- when it is announced
    PRIMARY KEY (tenant_id, meter, subject, grant_id)
);
CREATE INDEX grant_reminders_due ON grant_reminders (due_at);

-- The grants that were issued by earlier versions.
INSERT INTO grant_reminders (tenant_id, meter, subject, grant_id, due_at)
SELECT g.tenant_id, g.meter, g.subject, g.grant_id, g.expires_at - interval '7 days'
FROM grants g
WHERE g.status IN ('pending', 'active') AND g.source IN ('topup', 'promo', 'adjustment', 'refund')
  AND g.expires_at < '9999-12-31T00:00:00Z' AND g.expires_at > clock_timestamp();

CREATE TABLE webhooks (
    webhook_id text COLLATE "C" PRIMARY KEY,
    url        text        NOT NULL,
    types      text[]      NOT NULL CHECK (cardinality(types) >= 1),
    tenant_id  text COLLATE "C" NOT NULL DEFAULT '',       -- '' = events of all tenants, and those about none
    status     text        NOT NULL CHECK (status IN ('active', 'paused')),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Keys with which deliveries are signed: one of a webhook, or two while a rotated one still works. A signature needs the key itself, so that this table
-- can be read by the service alone, like signing_keys.
CREATE TABLE webhook_secrets (
    webhook_id text COLLATE "C" NOT NULL,
    secret     bytea       NOT NULL CHECK (octet_length(secret) BETWEEN 24 AND 64),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ends_at    timestamptz,                                -- end of the overlap after a rotation; NULL: the newest one
    PRIMARY KEY (webhook_id, secret)
);

-- One row per event and webhook that is told. The month is that of the event's position.
CREATE TABLE webhook_deliveries (
    webhook_id   text COLLATE "C" NOT NULL,
    position     bigint      NOT NULL,                     -- of the event
    month        date        NOT NULL,
    type         text        NOT NULL,
    tenant_id    text COLLATE "C" NOT NULL,
    status       text        NOT NULL CHECK (status IN ('pending', 'delivered', 'dead', 'skipped')),
    attempts     integer     NOT NULL DEFAULT 0,           -- of the newest round: a replay begins a new one
    queued_at    timestamptz NOT NULL,                     -- when the newest round began
    next_at      timestamptz,                              -- when the next attempt is due; NULL: there is none
    attempted_at timestamptz,                              -- the newest attempt
    status_code  integer,                                  -- its answer; NULL: there was none
    latency_ms   integer,
    error        text        NOT NULL DEFAULT '',          -- why it failed; '' = it did not
    PRIMARY KEY (webhook_id, position, month)
) PARTITION BY RANGE (month);
CREATE INDEX webhook_deliveries_open ON webhook_deliveries (queued_at) WHERE status = 'pending';
CREATE INDEX webhook_deliveries_by_status ON webhook_deliveries (webhook_id, status, position);

-- Makes the partitions from last month to a year ahead.
-- +goose StatementBegin
DO $$
DECLARE
    mon  date;
    of   text;
    name text;
BEGIN
    FOREACH of IN ARRAY ARRAY['events', 'webhook_deliveries'] LOOP
        FOR i IN -1..12 LOOP
            mon := date_trunc('month', clock_timestamp() AT TIME ZONE 'UTC')::date + make_interval(months => i);
            name := of || to_char(mon, '"_"YYYY_MM');
            EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', name, of);
            EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', of, name, mon, (mon + interval '1 month')::date);
        END LOOP;
    END LOOP;
END
$$;
-- +goose StatementEnd

-- +goose Down
ALTER TABLE plan_allowances DROP COLUMN alert_at;
DROP TABLE webhook_deliveries;
DROP TABLE webhook_secrets;
DROP TABLE webhooks;
DROP TABLE grant_reminders;
DROP TABLE event_marks;
DROP TABLE events;
