-- +goose NO TRANSACTION
-- +goose Up
-- A change of a tenant's terms may wait. Its row of tenant_terms lies in the future: at_once, with the instant at which it
-- takes effect. Rows that exist keep their meaning: those that do not apply at once act where a period opens.
-- Each statement can run again, because the index is built without a lock that stops writers.

-- The instant of the tenant's change that waits. Terms of tenant_terms have this effective_at. null: no change waits.
ALTER TABLE tenants ADD COLUMN IF NOT EXISTS pending_at timestamptz;

ALTER TABLE tenant_terms ADD COLUMN IF NOT EXISTS features jsonb; -- the tenant's own features from then on; null: not changed
ALTER TABLE tenant_terms ADD COLUMN IF NOT EXISTS apply text;     -- how the change was asked for; null: the row is older than this column
ALTER TABLE tenant_terms ADD COLUMN IF NOT EXISTS asked jsonb;    -- the members that the request named; null: the change did not wait

-- The changes of tenants that had an Idempotency-Key, with their answers. A change of a tenant removes those of its rows
-- that are older than keys are remembered.
CREATE TABLE IF NOT EXISTS tenant_changes (
    tenant_id   text COLLATE "C" NOT NULL,
    key         text COLLATE "C" NOT NULL,
    fingerprint bytea       NOT NULL,
    answer      jsonb       NOT NULL,
    created_at  timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, key)
);

-- The changes that are due.
DROP INDEX CONCURRENTLY IF EXISTS tenants_pending; -- left invalid by a migration that was interrupted
CREATE INDEX CONCURRENTLY tenants_pending ON tenants (pending_at) WHERE pending_at IS NOT NULL;

-- +goose Down
-- Changes that wait are lost: the program before does not put them into force. It makes no terms of a time to come, apart
-- from a clock that is a little ahead. Each statement can run again.
DELETE FROM tenant_terms WHERE effective_at > now() + interval '1 minute';
DROP INDEX CONCURRENTLY IF EXISTS tenants_pending;
DROP TABLE IF EXISTS tenant_changes;
ALTER TABLE tenant_terms DROP COLUMN IF EXISTS asked, DROP COLUMN IF EXISTS apply, DROP COLUMN IF EXISTS features;
ALTER TABLE tenants DROP COLUMN IF EXISTS pending_at;
