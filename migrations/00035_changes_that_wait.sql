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
CREATE INDEX CONCURRENTLY IF NOT EXISTS tenants_pending ON tenants (pending_at) WHERE pending_at IS NOT NULL;

-- +goose Down
-- Changes that wait are lost: the program before does not put them into force.
DELETE FROM tenant_terms t USING tenants n WHERE n.tenant_id = t.tenant_id AND n.pending_at = t.effective_at AND t.effective_at > clock_timestamp();
DROP INDEX CONCURRENTLY IF EXISTS tenants_pending;
DROP TABLE tenant_changes;
ALTER TABLE tenant_terms DROP COLUMN asked, DROP COLUMN apply, DROP COLUMN features;
ALTER TABLE tenants DROP COLUMN pending_at;
