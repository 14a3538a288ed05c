-- +goose Up
-- The catalogue: what can be counted (meters), what a plan grants (plans, plan_allowances), who is billed (tenants) and
-- under which terms since when (tenant_terms), and the rate limits. Small tables, read mostly, changed by administrators.
-- Ids are compared bytewise: COLLATE "C" makes the order of keys (and so the lock order) the same on every server.

CREATE TABLE meters (
    meter         text COLLATE "C" PRIMARY KEY,
    unit          text        NOT NULL,
    description   text        NOT NULL DEFAULT '',
    -- true: a denial is stored and replayed for its Idempotency-Key, like a success.
    denial_replay boolean     NOT NULL DEFAULT false,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- One row per version; rows are never updated. The version in force at an instant is the newest created at or before it.
CREATE TABLE plans (
    plan       text COLLATE "C" NOT NULL,
    version    integer     NOT NULL CHECK (version >= 1),
    limits     jsonb       NOT NULL DEFAULT '[]',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (plan, version)
);
CREATE INDEX plans_changed ON plans (created_at) WHERE version > 1;

CREATE TABLE plan_allowances (
    plan           text COLLATE "C" NOT NULL,
    version        integer NOT NULL,
    meter          text COLLATE "C" NOT NULL REFERENCES meters (meter),
    ordinal        integer NOT NULL,                       -- position in the plan as it was written
    amount         bigint  NOT NULL CHECK (amount BETWEEN 0 AND 9007199254740991),
    every          text    NOT NULL CHECK (every IN ('hour', 'day', 'week', 'month', 'year', 'once')),
    anchor         text    NOT NULL CHECK (anchor IN ('calendar', 'tenant')),
    rollover_min   bigint  CHECK (rollover_min >= 0),
    rollover_max   bigint  CHECK (rollover_max >= 0),
    overage_policy text    CHECK (overage_policy IN ('deny', 'allow')),
    overage_cap    bigint  CHECK (overage_cap >= 0),
    overage_at_period_end text CHECK (overage_at_period_end IN ('forgive', 'preserve')),
    overflow_meter text COLLATE "C" REFERENCES meters (meter),
    overflow_price bigint  CHECK (overflow_price >= 1),    -- units of overflow_meter for one unit of meter
    per_subject    bigint  CHECK (per_subject >= 0),
    expires_in_days integer CHECK (expires_in_days IS NULL OR expires_in_days >= 1 AND every = 'once'),  -- of a trial
    PRIMARY KEY (plan, version, meter),
    FOREIGN KEY (plan, version) REFERENCES plans (plan, version)
);

CREATE TABLE tenants (
    tenant_id  text COLLATE "C" PRIMARY KEY,
    plan       text COLLATE "C" NOT NULL,
    anchor     timestamptz NOT NULL,
    timezone   text        NOT NULL DEFAULT 'UTC',
    status     text        NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'suspended')),
    metadata   jsonb       NOT NULL DEFAULT '{}',
    overrides  jsonb       NOT NULL DEFAULT '{}',
    version    bigint      NOT NULL DEFAULT 1,             -- rises by 1 with every change of the row
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The terms of a tenant since effective_at. A period that is opened late is opened under the terms in force when it was
-- due, so this history, not the tenants row, is what the ledger reads. The first row of a tenant carries its created_at.
CREATE TABLE tenant_terms (
    tenant_id    text COLLATE "C" NOT NULL REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    effective_at timestamptz NOT NULL,
    plan         text COLLATE "C" NOT NULL,
    anchor       timestamptz NOT NULL,
    timezone     text        NOT NULL,
    initial      boolean     NOT NULL DEFAULT false,       -- the tenant's first row: no balance can be older
    immediate    boolean     NOT NULL DEFAULT false,       -- open periods end at effective_at instead of running out
    prorate      boolean     NOT NULL DEFAULT false,       -- the period opened then gets its share of the allowance
    overrides    jsonb       NOT NULL DEFAULT '{}',        -- meter: amount instead of the plan's
    reason       text,                                     -- why they were changed, if somebody said so
    PRIMARY KEY (tenant_id, effective_at)
);
-- Answers "when did terms last change for a tenant that may have balances?" once per ledger batch.
CREATE INDEX tenant_terms_changed ON tenant_terms (effective_at) WHERE NOT initial;

CREATE TABLE limits (
    rule       text COLLATE "C" PRIMARY KEY,
    spec       jsonb       NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Who is refused, or exempt from rate limits, at once and until expires_at. An expired row means nothing.
CREATE TABLE blocks (
    kind       text        NOT NULL CHECK (kind IN ('tenant', 'subject', 'ip')),
    tenant_id  text COLLATE "C" NOT NULL,                  -- of a subject; '' for the other kinds
    value      text COLLATE "C" NOT NULL,                  -- an id, or an address or prefix in its one form
    action     text        NOT NULL CHECK (action IN ('block', 'allow')),
    expires_at timestamptz,
    reason     text        NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (kind, tenant_id, value)
);
CREATE INDEX blocks_expiry ON blocks (expires_at) WHERE expires_at IS NOT NULL;

-- +goose Down
DROP TABLE blocks;
DROP TABLE limits;
DROP TABLE tenant_terms;
DROP TABLE tenants;
DROP TABLE plan_allowances;
DROP TABLE plans;
DROP TABLE meters;
