-- +goose NO TRANSACTION
-- +goose Up
-- Counts the tenants of a plan when a new version of it gives less, without reading all tenants.
DROP INDEX CONCURRENTLY IF EXISTS tenants_of_plan; -- left invalid by a migration that was interrupted
CREATE INDEX CONCURRENTLY tenants_of_plan ON tenants (plan, tenant_id);

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS tenants_of_plan;
