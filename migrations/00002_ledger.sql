-- +goose Up
-- The ledger. Amounts are bigint in the meter's smallest unit. tenant_id comes first in every key.
-- The service makes all decisions. The CHECKs are a backstop: a violated CHECK is a bug, never a denial.

-- One row per (tenant, meter, subject): the sums of the open period. These are the only rows that the ledger locks.
--   remaining = opening + granted + refunded - used - expired + adjusted - held
-- used counts units drawn from grants; overage counts use beyond them. head_remaining is the remainder of the head grant, so
-- a debit updates only this row. All other grants have their remainder in their own row.
CREATE TABLE balances (
    tenant_id       text COLLATE "C" NOT NULL,
    meter           text COLLATE "C" NOT NULL,
    subject         text COLLATE "C" NOT NULL DEFAULT '',  -- '' is the tenant itself
    seq             bigint      NOT NULL DEFAULT 0,        -- number of the newest entry of this balance
    plan            text COLLATE "C" NOT NULL DEFAULT '',  -- terms of the open period; '' = the plan has no such meter
    plan_version    integer     NOT NULL DEFAULT 0,
    allowance       bigint      NOT NULL DEFAULT 0,        -- the allowance with which the open period began
    renews          boolean     NOT NULL DEFAULT false,    -- the period's end brings a new allowance
    period_start    timestamptz NOT NULL DEFAULT 'epoch',  -- 'epoch' = no period has opened yet
    period_end      timestamptz NOT NULL DEFAULT 'epoch',
    opening         bigint      NOT NULL DEFAULT 0,
    granted         bigint      NOT NULL DEFAULT 0,
    refunded        bigint      NOT NULL DEFAULT 0,
    used            bigint      NOT NULL DEFAULT 0,
    expired         bigint      NOT NULL DEFAULT 0,
    adjusted        bigint      NOT NULL DEFAULT 0,
    held            bigint      NOT NULL DEFAULT 0,
    overage         bigint      NOT NULL DEFAULT 0,
    owed            bigint      NOT NULL DEFAULT 0,        -- the part of overage that is left from earlier periods
    settled         bigint      NOT NULL DEFAULT 0,        -- earlier overage that this period's allowance has paid
    forgiven_seq    bigint      NOT NULL DEFAULT 0,        -- seq of the entry that last forgave overage
    head_grant      text COLLATE "C" NOT NULL DEFAULT '',  -- '' = no open grant
    head_source     text        NOT NULL DEFAULT '',
    head_remaining  bigint      NOT NULL DEFAULT 0,
    next_event_at   timestamptz NOT NULL DEFAULT 'epoch',  -- no event is due before this instant
    updated_at      timestamptz NOT NULL DEFAULT 'epoch',  -- instant of the newest entry; never decreases
    PRIMARY KEY (tenant_id, meter, subject),
    CONSTRAINT balances_remaining_not_negative
        CHECK (opening + granted + refunded - used - expired + adjusted - held >= 0),
    CONSTRAINT balances_head_within_remaining
        CHECK (head_remaining >= 0 AND head_remaining <= opening + granted + refunded - used - expired + adjusted - held),
    CONSTRAINT balances_parts_not_negative
        CHECK (seq >= 0 AND opening >= 0 AND granted >= 0 AND refunded >= 0 AND used >= 0 AND expired >= 0 AND held >= 0 AND overage >= 0),
    CONSTRAINT balances_owed_is_overage CHECK (owed BETWEEN 0 AND overage AND settled BETWEEN 0 AND used AND forgiven_seq BETWEEN 0 AND seq),
    CONSTRAINT balances_period_ordered CHECK (period_start <= period_end)
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 1);

-- Finds due balances. A debit does not change next_event_at, so its update stays heap-only.
CREATE INDEX balances_due ON balances (next_event_at);

-- Closed periods. The sums of every row add up to closing.
CREATE TABLE periods (
    tenant_id    text COLLATE "C" NOT NULL,
    meter        text COLLATE "C" NOT NULL,
    subject      text COLLATE "C" NOT NULL DEFAULT '',
    period_start timestamptz NOT NULL,
    period_end   timestamptz NOT NULL,
    plan         text COLLATE "C" NOT NULL,
    plan_version integer     NOT NULL,
    opening      bigint      NOT NULL,
    granted      bigint      NOT NULL,
    refunded     bigint      NOT NULL,
    used         bigint      NOT NULL,
    expired      bigint      NOT NULL,
    adjusted     bigint      NOT NULL,
    overage      bigint      NOT NULL,
    held         bigint      NOT NULL,                     -- still held when the period closed; part of closing
    closing      bigint      NOT NULL,
    last_seq     bigint      NOT NULL,                     -- the newest entry that belongs to this period
    closed_at    timestamptz NOT NULL,                     -- when this row was written, at or after period_end
    PRIMARY KEY (tenant_id, meter, subject, period_start),
    CONSTRAINT periods_foot CHECK (opening + granted + refunded - used - expired + adjusted = closing)
);

-- The facts of a grant never change. remaining, held and status do. remaining is out of date while the grant is the head of
-- its balance: the balance row has the right number.
CREATE TABLE grants (
    tenant_id    text COLLATE "C" NOT NULL,
    meter        text COLLATE "C" NOT NULL,
    subject      text COLLATE "C" NOT NULL DEFAULT '',
    grant_id     text COLLATE "C" NOT NULL,
    source       text        NOT NULL CHECK (source IN ('allowance', 'topup', 'promo', 'rollover', 'refund', 'adjustment')),
    amount       bigint      NOT NULL CHECK (amount BETWEEN 1 AND 9007199254740991),
    priority     integer     NOT NULL CHECK (priority BETWEEN 0 AND 1000),
    effective_at timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL,                     -- 9999-12-31T23:59:59Z = never
    cost_basis   text,
    reason       text,
    operation_id text COLLATE "C" NOT NULL,
    created_at   timestamptz NOT NULL,
    remaining    bigint      NOT NULL CHECK (remaining >= 0),
    held         bigint      NOT NULL DEFAULT 0 CHECK (held >= 0),
    status       text        NOT NULL CHECK (status IN ('pending', 'active', 'exhausted', 'expired', 'voided')),
    PRIMARY KEY (tenant_id, meter, subject, grant_id),
    CHECK (remaining + held <= amount),
    CHECK (effective_at < expires_at)
);
CREATE INDEX grants_open ON grants (tenant_id, meter, subject) WHERE status IN ('pending', 'active') OR held > 0;
-- Finds the balance of a grant by the grant's id alone.
CREATE INDEX grants_by_id ON grants (tenant_id, grant_id);

-- One row per hold. Its hold_lines say how much it reserves on which grant; the lock of a line's balance protects the line.
-- A hold ends at expires_at even if its status was not updated.
CREATE TABLE holds (
    tenant_id    text COLLATE "C" NOT NULL,
    hold_id      text COLLATE "C" NOT NULL,
    subject      text COLLATE "C" NOT NULL DEFAULT '',
    status       text        NOT NULL CHECK (status IN ('active', 'captured', 'released', 'expired')),
    items        jsonb       NOT NULL,                     -- per item: meter, amount reserved, amount captured
    created_at   timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, hold_id)
);

CREATE TABLE hold_lines (
    tenant_id    text COLLATE "C" NOT NULL,
    hold_id      text COLLATE "C" NOT NULL,
    line         integer     NOT NULL,
    item         integer     NOT NULL,
    meter        text COLLATE "C" NOT NULL,                -- the balance's meter: the item's or its overflow meter
    subject      text COLLATE "C" NOT NULL,
    grant_id     text COLLATE "C" NOT NULL,
    source       text        NOT NULL,
    price        bigint      NOT NULL CHECK (price >= 1),  -- units of this line for one unit of the item's meter
    amount       bigint      NOT NULL CHECK (amount >= 1),
    captured     bigint      NOT NULL DEFAULT 0 CHECK (captured >= 0),
    returned     bigint      NOT NULL DEFAULT 0 CHECK (returned >= 0),
    expires_at   timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, hold_id, line),
    CHECK (captured + returned <= amount)
);
CREATE INDEX hold_lines_open ON hold_lines (tenant_id, meter, subject) WHERE captured + returned < amount;

-- The amount refunded per line of a debit or capture. The lock of the line's balance protects the row.
CREATE TABLE refunds (
    tenant_id    text COLLATE "C" NOT NULL,
    operation_id text COLLATE "C" NOT NULL,
    line         integer NOT NULL,
    refunded     bigint  NOT NULL CHECK (refunded >= 1),
    PRIMARY KEY (tenant_id, operation_id, line)
);

-- The journal and the memory of idempotency keys. The table is append-only. Line 1 of an operation has the fingerprint of the
-- request. The primary key has this order on purpose: the look-up of a key uses (tenant_id, operation_id) in the months that
-- may contain it.
CREATE TABLE entries (
    tenant_id       text COLLATE "C" NOT NULL,
    operation_id    text COLLATE "C" NOT NULL,             -- the client's Idempotency-Key; '§...' = made by the system
    line            integer     NOT NULL,
    month           date        NOT NULL,                  -- first day of created_at's month, UTC
    seq             bigint      NOT NULL,                  -- number within the balance, from 1, without gaps
    kind            text        NOT NULL,
    meter           text COLLATE "C" NOT NULL,
    subject         text COLLATE "C" NOT NULL,             -- the balance's subject
    period_start    timestamptz NOT NULL,                  -- start of the period in which the line counts
    grant_id        text COLLATE "C" NOT NULL,
    source          text        NOT NULL,
    amount          bigint      NOT NULL CHECK (amount >= 0),
    remaining_after bigint      NOT NULL CHECK (remaining_after >= 0),
    item            integer     NOT NULL,                  -- index of the item in the operation, from 0
    requested       bigint,                                -- only on the first line of an item
    fingerprint     bytea,                                 -- only on line 1
    created_at      timestamptz NOT NULL,
    effective_at    timestamptz,                           -- when a system line was due; NULL = created_at
    op_subject      text COLLATE "C",                      -- the subject the client named
    detail          jsonb,                                 -- facts of rare kinds
    metadata        jsonb,                                 -- the client's metadata
    PRIMARY KEY (tenant_id, operation_id, line, month)
) PARTITION BY RANGE (month);
-- Every seq is above 0. Without the condition, on tables without statistics, the planner used this index for the look-up of
-- keys. Queries that read the history contain seq > 0 themselves.
CREATE INDEX entries_history ON entries (tenant_id, meter, subject, seq) WHERE seq > 0;
-- Takes rows whose monthly partition is missing. The service makes the monthly partitions ahead of time.
CREATE TABLE entries_default PARTITION OF entries DEFAULT;

CREATE TABLE rolls (
    roll_id      text COLLATE "C" PRIMARY KEY,
    as_of        timestamptz NOT NULL,
    status       text        NOT NULL CHECK (status IN ('running', 'done', 'failed')),
    total        bigint      NOT NULL DEFAULT 0,           -- balances that were due when the roll began
    processed    bigint      NOT NULL DEFAULT 0,
    error        text        NOT NULL DEFAULT '',
    started_at   timestamptz NOT NULL,
    heartbeat_at timestamptz NOT NULL,
    finished_at  timestamptz
);

CREATE TABLE verifications (
    verification_id text COLLATE "C" PRIMARY KEY,
    tenant_id       text COLLATE "C" NOT NULL,             -- '' = all tenants
    status          text        NOT NULL CHECK (status IN ('running', 'clean', 'drift', 'failed')),
    report          jsonb       NOT NULL DEFAULT '{}',     -- intermediate or final report
    error           text        NOT NULL DEFAULT '',
    started_at      timestamptz NOT NULL,
    heartbeat_at    timestamptz NOT NULL,
    finished_at     timestamptz
);

-- +goose Down
DROP TABLE verifications;
DROP TABLE rolls;
DROP TABLE entries;
DROP TABLE refunds;
DROP TABLE hold_lines;
DROP TABLE holds;
DROP TABLE grants;
DROP TABLE periods;
DROP TABLE balances;
