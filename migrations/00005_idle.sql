-- +goose NO TRANSACTION
-- +goose Up
-- Periods in which nothing happened are derived from the terms, so a balance is due for a roll only where there is something to write.

-- When a roll has something to write for the balance: a period that was used ends, a hold ends, or a client's grant begins or ends. '9999-12-31' =
-- never. NULL = written before this column existed: next_event_at says when. Both columns are added without rewriting the table.
SET lock_timeout = '5s';
ALTER TABLE balances ADD COLUMN IF NOT EXISTS roll_at timestamptz;

-- One row of periods may stand for a run of idle periods under the same terms: [period_start, period_end) is the run, and its sums are
-- those of the journal. What each of its periods began with is computed from these columns.
ALTER TABLE periods
    ADD COLUMN IF NOT EXISTS idle         bigint NOT NULL DEFAULT 0, -- number of periods in the run; 0: an ordinary period
    ADD COLUMN IF NOT EXISTS terms_at     timestamptz,               -- effective_at of the tenant's terms of the run; NULL: no run
    ADD COLUMN IF NOT EXISTS rolled_over  bigint NOT NULL DEFAULT 0, -- units of opening that the first period got by rollover
    ADD COLUMN IF NOT EXISTS rollover     bigint NOT NULL DEFAULT 0, -- amount of that rollover, with what the minimum adds
    ADD COLUMN IF NOT EXISTS owing        bigint NOT NULL DEFAULT 0; -- overage of earlier periods that the first period began with

-- Balances that a roll could not write.
ALTER TABLE rolls ADD COLUMN IF NOT EXISTS set_aside bigint NOT NULL DEFAULT 0;
RESET lock_timeout;

-- Finds the balances that a roll has something to write for. Idle balances are not in it. A debit changes neither column, so its update stays
-- heap-only. The index of next_event_at served rolls only.
DROP INDEX CONCURRENTLY IF EXISTS balances_to_roll; -- left invalid by a migration that was interrupted
CREATE INDEX CONCURRENTLY balances_to_roll ON balances (coalesce(roll_at, next_event_at))
    WHERE coalesce(roll_at, next_event_at) < '9999-12-31T00:00:00Z';
DROP INDEX CONCURRENTLY IF EXISTS balances_due;

-- +goose Down
CREATE INDEX CONCURRENTLY IF NOT EXISTS balances_due ON balances (next_event_at);
DROP INDEX CONCURRENTLY IF EXISTS balances_to_roll;
ALTER TABLE rolls DROP COLUMN IF EXISTS set_aside;
ALTER TABLE periods DROP COLUMN IF EXISTS owing, DROP COLUMN IF EXISTS rollover, DROP COLUMN IF EXISTS rolled_over, DROP COLUMN IF EXISTS terms_at,
    DROP COLUMN IF EXISTS idle;
ALTER TABLE balances DROP COLUMN IF EXISTS roll_at;
