-- +goose Up
-- Gauges: meters whose value is set, not drawn down, as seats are.

-- These take short locks, of which the first waits at most this long: rerun the migration if it fails.
SET LOCAL lock_timeout = '3s';

-- Citus adds no column together with a check.
ALTER TABLE meters ADD COLUMN kind text NOT NULL DEFAULT 'counter';
ALTER TABLE meters ADD CONSTRAINT meters_kind_check CHECK (kind IN ('counter', 'gauge'));

-- The allowance of a gauge has no interval. Its every and anchor say once and calendar, for the version before.
ALTER TABLE plan_allowances ADD COLUMN gauge boolean NOT NULL DEFAULT false;

-- The present values. A gauge without a row is 0.
CREATE TABLE gauges (
    tenant_id  text COLLATE "C" NOT NULL,
    meter      text COLLATE "C" NOT NULL,
    subject    text COLLATE "C" NOT NULL,                  -- '' = the tenant's own
    value      bigint      NOT NULL CHECK (value BETWEEN 0 AND 9007199254740991),
    seq        bigint      NOT NULL CHECK (seq >= 0),      -- of its newest entry; 0: none
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, meter, subject)
);

-- Their journal, which is only appended to: each change with its key, which is remembered for ever, and what was allowed at that moment.
CREATE TABLE gauge_entries (
    tenant_id    text COLLATE "C" NOT NULL,
    meter        text COLLATE "C" NOT NULL,
    subject      text COLLATE "C" NOT NULL,
    seq          bigint      NOT NULL CHECK (seq >= 1),    -- number within the gauge, from 1, without gaps
    operation_id text COLLATE "C" NOT NULL,                -- the client's Idempotency-Key
    fingerprint  bytea       NOT NULL,
    before       bigint      NOT NULL CHECK (before >= 0),
    after        bigint      NOT NULL CHECK (after >= 0),
    allowed      bigint      NOT NULL CHECK (allowed >= 0), -- the amount of the plan or the override
    created_at   timestamptz NOT NULL,
    actor        text COLLATE "C",                         -- id of the key with which it was asked for
    PRIMARY KEY (tenant_id, meter, subject, seq),
    UNIQUE (tenant_id, operation_id)
);

-- +goose Down
ALTER TABLE plan_allowances DROP COLUMN gauge;
ALTER TABLE meters DROP COLUMN kind;
DROP TABLE gauge_entries;
DROP TABLE gauges;
