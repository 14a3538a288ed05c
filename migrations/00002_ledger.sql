-- +goose Up
-- The ledger. Amounts are bigint in the meter's smallest unit. tenant_id comes first in every key.
-- The CHECKs are a backstop: decisions are made in the service, and a violated CHECK means a bug, never a denial.

-- One row per (tenant, meter, subject): the open period's aggregate, and the only rows the ledger locks.
--   remaining = opening + granted + refunded - used - expired + adjusted - held
-- used is what was drawn from grants; overage is use beyond them. Units of the head grant are counted here, in
-- head_remaining, so that a debit updates this one row; all other grants carry their remainder in their own row.
CREATE TABLE balances (
    tenant_id       text COLLATE "C" NOT NULL,
    meter           text COLLATE "C" NOT NULL,
    subject         text COLLATE "C" NOT NULL DEFAULT '',  -- '' is the tenant itself
    seq             bigint      NOT NULL DEFAULT 0,        -- number of the newest entry of this balance
    plan            text COLLATE "C" NOT NULL DEFAULT '',  -- terms of the open period; '' = the plan has no such meter
    plan_version    integer     NOT NULL DEFAULT 0,
    allowance       bigint      NOT NULL DEFAULT 0,        -- what the open period was opened with
    renews          boolean     NOT NULL DEFAULT false,    -- the period's end brings a new allowance
    period_start    timestamptz NOT NULL DEFAULT 'epoch',  -- 'epoch' = no period was opened yet
    period_end      timestamptz NOT NULL DEFAULT 'epoch',
    opening         bigint      NOT NULL DEFAULT 0,
    granted         bigint      NOT NULL DEFAULT 0,
    refunded        bigint      NOT NULL DEFAULT 0,
    used            bigint      NOT NULL DEFAULT 0,
    expired         bigint      NOT NULL DEFAULT 0,
    adjusted        bigint      NOT NULL DEFAULT 0,
    held            bigint      NOT NULL DEFAULT 0,
    overage         bigint      NOT NULL DEFAULT 0,
    owed            bigint      NOT NULL DEFAULT 0,        -- part of overage that earlier periods left
    settled         bigint      NOT NULL DEFAULT 0,        -- overage of earlier periods that this period's allowance has paid
    forgiven_seq    bigint      NOT NULL DEFAULT 0,        -- entry at which overage was last forgiven
    head_grant      text COLLATE "C" NOT NULL DEFAULT '',  -- '' = no open grant
    head_source     text        NOT NULL DEFAULT '',
    head_remaining  bigint      NOT NULL DEFAULT 0,
    next_event_at   timestamptz NOT NULL DEFAULT 'epoch',  -- no event is due before this instant
    updated_at      timestamptz NOT NULL DEFAULT 'epoch',  -- instant of the newest entry; never runs backwards
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

-- Finds what is due. A debit leaves next_event_at as it is, so its update stays heap-only.
CREATE INDEX balances_due ON balances (next_event_at);

-- Closed periods. Every row foots.
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
    closed_at    timestamptz NOT NULL,                     -- when the close was written, at or after period_end
    PRIMARY KEY (tenant_id, meter, subject, period_start),
    CONSTRAINT periods_foot CHECK (opening + granted + refunded - used - expired + adjusted = closing)
);

-- Facts of a grant never change; remaining and closed_at do, and remaining is stale while the grant is a balance's head.
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
-- Finds the balance of a grant that is named alone.
CREATE INDEX grants_by_id ON grants (tenant_id, grant_id);

-- A hold's facts and fate. What it reserves of which grant is in hold_lines, which belong to their balance: they are read and
-- written under its lock. A hold that ran out is told by its expires_at; its status stays as it was.
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
    meter        text COLLATE "C" NOT NULL,                -- of the balance: the item's, or its overflow meter
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

-- How much of which line of a debit or capture was refunded; read and written under the lock of the line's balance.
CREATE TABLE refunds (
    tenant_id    text COLLATE "C" NOT NULL,
    operation_id text COLLATE "C" NOT NULL,
    line         integer NOT NULL,
    refunded     bigint  NOT NULL CHECK (refunded >= 1),
    PRIMARY KEY (tenant_id, operation_id, line)
);

-- The journal and the memory of idempotency keys in one table: append-only, line 1 of an operation carries the
-- fingerprint of the request. The primary key is in this order on purpose: the dedupe look-up is by (tenant_id,
-- operation_id) in the months that may hold it.
CREATE TABLE entries (
    tenant_id       text COLLATE "C" NOT NULL,
    operation_id    text COLLATE "C" NOT NULL,             -- the client's Idempotency-Key, or '§...' for the system's own
    line            integer     NOT NULL,
    month           date        NOT NULL,                  -- first day of created_at's month, UTC
    seq             bigint      NOT NULL,                  -- per balance, gapless from 1
    kind            text        NOT NULL,
    meter           text COLLATE "C" NOT NULL,
    subject         text COLLATE "C" NOT NULL,             -- of the balance
    period_start    timestamptz NOT NULL,                  -- of the period the line counts in
    grant_id        text COLLATE "C" NOT NULL,
    source          text        NOT NULL,
    amount          bigint      NOT NULL CHECK (amount >= 0),
    remaining_after bigint      NOT NULL CHECK (remaining_after >= 0),
    item            integer     NOT NULL,                  -- which item of the operation, from 0
    requested       bigint,                                -- on the first line of an item
    fingerprint     bytea,                                 -- on line 1
    created_at      timestamptz NOT NULL,
    effective_at    timestamptz,                           -- when a system line was due; NULL = created_at
    op_subject      text COLLATE "C",                      -- the subject the client named
    detail          jsonb,                                 -- facts of rare kinds
    metadata        jsonb,                                 -- the client's own
    PRIMARY KEY (tenant_id, operation_id, line, month)
) PARTITION BY RANGE (month);
-- Every seq is above 0. The condition keeps the planner from reading the look-up of keys through this index, which it
-- did on tables without statistics; what reads the history says seq > 0 itself.
CREATE INDEX entries_history ON entries (tenant_id, meter, subject, seq) WHERE seq > 0;
-- The net under the monthly partitions the service makes ahead of time.
CREATE TABLE entries_default PARTITION OF entries DEFAULT;

CREATE TABLE rolls (
    roll_id      text COLLATE "C" PRIMARY KEY,
    as_of        timestamptz NOT NULL,
    status       text        NOT NULL CHECK (status IN ('running', 'done', 'failed')),
    total        bigint      NOT NULL DEFAULT 0,           -- due when it began
    processed    bigint      NOT NULL DEFAULT 0,
    error        text        NOT NULL DEFAULT '',
    started_at   timestamptz NOT NULL,
    heartbeat_at timestamptz NOT NULL,
    finished_at  timestamptz
);

CREATE TABLE verifications (
    verification_id text COLLATE "C" PRIMARY KEY,
    tenant_id       text COLLATE "C" NOT NULL,             -- '' = all
    status          text        NOT NULL CHECK (status IN ('running', 'clean', 'drift', 'failed')),
    report          jsonb       NOT NULL DEFAULT '{}',     -- so far, or in the end
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
