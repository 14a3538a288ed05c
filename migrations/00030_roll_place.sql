-- +goose NO TRANSACTION
-- +goose Up
-- What is due in the order of tenants, so that a roll goes on where it was. From the begin it would meet each entry of the index that it has made
-- dead; beside a snapshot that stays open nothing removes them, and each of a million balances cost more than the one before.
SET lock_timeout = '5s';
DROP INDEX CONCURRENTLY IF EXISTS balances_by_due; -- left invalid by a migration that was interrupted
CREATE INDEX CONCURRENTLY balances_by_due ON balances (coalesce(roll_at, next_event_at), tenant_id)
    WHERE coalesce(roll_at, next_event_at) < '9999-12-31T00:00:00Z';
DROP INDEX CONCURRENTLY IF EXISTS balances_to_roll;
RESET lock_timeout;

-- +goose Down
SET lock_timeout = '5s';
DROP INDEX CONCURRENTLY IF EXISTS balances_to_roll;
CREATE INDEX CONCURRENTLY balances_to_roll ON balances (coalesce(roll_at, next_event_at))
    WHERE coalesce(roll_at, next_event_at) < '9999-12-31T00:00:00Z';
DROP INDEX CONCURRENTLY IF EXISTS balances_by_due;
RESET lock_timeout;
