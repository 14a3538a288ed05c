-- +goose Up
-- The list of verifications, the newest first: of all, and of one tenant.

-- The table has one row per verification that was asked for, so these locks are short. The first waits at most this long: rerun the migration if it fails.
SET LOCAL lock_timeout = '3s';
CREATE INDEX verifications_newest ON verifications (started_at, verification_id);
CREATE INDEX verifications_of_tenant ON verifications (tenant_id, started_at, verification_id);
DROP INDEX verifications_started; -- the first one does its work too

-- +goose Down
CREATE INDEX verifications_started ON verifications (started_at);
DROP INDEX verifications_of_tenant;
DROP INDEX verifications_newest;
