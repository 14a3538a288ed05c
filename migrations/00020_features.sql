-- +goose Up
-- Features of plans and of tenants: name -> true, false or an integer. The defaults are constants: no row is written again.

-- These take short locks, of which the first waits at most this long: rerun the migration if it fails.
SET LOCAL lock_timeout = '3s';

ALTER TABLE plans ADD COLUMN features jsonb NOT NULL DEFAULT '{}';
ALTER TABLE tenants ADD COLUMN features jsonb NOT NULL DEFAULT '{}'; -- those that the tenant overrides

-- +goose Down
ALTER TABLE plans DROP COLUMN features;
ALTER TABLE tenants DROP COLUMN features;
