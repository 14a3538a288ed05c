-- +goose Up
-- What a hold pays for at a price that is no whole number is rounded once over all its captures, releases and refunds. The defaults are constants:
-- no row is written again. Holds of the version before get their values with their next capture.

-- This takes a short lock, for which it waits at most this long: rerun the migration if it fails.
SET LOCAL lock_timeout = '3s';

ALTER TABLE hold_lines
    ADD COLUMN pays_for text COLLATE "C" NOT NULL DEFAULT '', -- where per is not 1: the item's meter
    ADD COLUMN deferred bigint NOT NULL DEFAULT 0,            -- reserved units that captures have used; the end of the hold captures them
    ADD COLUMN refunded bigint NOT NULL DEFAULT 0,            -- captured units that refunds gave back
    ADD COLUMN beyond   bigint NOT NULL DEFAULT 0;            -- units of the item captured beyond the hold, less refunded ones

-- +goose Down
ALTER TABLE hold_lines DROP COLUMN pays_for, DROP COLUMN deferred, DROP COLUMN refunded, DROP COLUMN beyond;
