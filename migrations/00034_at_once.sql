-- +goose NO TRANSACTION
-- +goose Up
-- Every batch of the ledger asks for the newest terms of its tenants that apply at once. Most tenants have none, and are not in the index.
DROP INDEX CONCURRENTLY IF EXISTS tenant_terms_at_once; -- left invalid by a migration that was interrupted
CREATE INDEX CONCURRENTLY tenant_terms_at_once ON tenant_terms (tenant_id, effective_at) WHERE immediate OR at_once;

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS tenant_terms_at_once;
