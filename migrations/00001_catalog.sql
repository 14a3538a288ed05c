-- +goose Up
-- The catalogue: what can be counted (meters), what a plan grants (plans, plan_allowances), who is billed (tenants), the
-- history of each tenant's terms (tenant_terms), and the rate limits. The tables are small; administrators change them.
-- COLLATE "C" compares ids bytewise. So the order of keys, and with it the lock order, is the same on every server.

CREATE TABLE meters (
    meter         text COLLATE "C" PRIMARY KEY,
    unit          text        NOT NULL,
    description   text        NOT NULL DEFAULT '',
    -- true: a denial is stored and replayed for its Idempotency-Key, like a success.
    denial_replay boolean     NOT NULL DEFAULT false,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- One row per version. Rows are never updated. At any instant the newest version created at or before it is in force.
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
    ordinal        integer NOT NULL,                       -- position in the plan, as the client sent it
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
    expires_in_days integer CHECK (expires_in_days IS NULL OR expires_in_days >= 1 AND every = 'once'),  -- length of a trial
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
    version    bigint      NOT NULL DEFAULT 1,             -- every change of the row adds 1
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The terms of a tenant from effective_at on. A period that opens late opens under the terms that were in force when it was
-- due, so the ledger reads this history and not the tenants row. The first row of a tenant has the tenant's created_at.
CREATE TABLE tenant_terms (
    tenant_id    text COLLATE "C" NOT NULL REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    effective_at timestamptz NOT NULL,
    plan         text COLLATE "C" NOT NULL,
    anchor       timestamptz NOT NULL,
    timezone     text        NOT NULL,
    initial      boolean     NOT NULL DEFAULT false,       -- the tenant's first row; no balance is older
    immediate    boolean     NOT NULL DEFAULT false,       -- open periods end at effective_at instead of running out
    prorate      boolean     NOT NULL DEFAULT false,       -- the period that opens then gets a share of the allowance
    overrides    jsonb       NOT NULL DEFAULT '{}',        -- meter -> amount that replaces the plan's amount
    reason       text,                                     -- why the terms changed, if the client gave a reason
    PRIMARY KEY (tenant_id, effective_at)
);
-- Serves one query per ledger batch: when did the terms of a tenant with balances last change?
CREATE INDEX tenant_terms_changed ON tenant_terms (effective_at) WHERE NOT initial;

CREATE TABLE limits (
    rule       text COLLATE "C" PRIMARY KEY,
    spec       jsonb       NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Who is refused, or exempt from rate limits, until expires_at. An expired row has no effect.
CREATE TABLE blocks (
    kind       text        NOT NULL CHECK (kind IN ('tenant', 'subject', 'ip')),
    tenant_id  text COLLATE "C" NOT NULL,                  -- the subject's tenant; '' for the other kinds
    value      text COLLATE "C" NOT NULL,                  -- an id, or an address or prefix in canonical form
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
