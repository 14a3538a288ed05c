-- +goose NO TRANSACTION
-- +goose Up
-- Terms that apply at once. Every batch of the ledger asks for the newest of its tenants, so that a change of terms need not touch their
-- balances. Most tenants have none, and are not in the index.
DROP INDEX CONCURRENTLY IF EXISTS tenant_terms_immediate; -- left invalid by a migration that was interrupted
CREATE INDEX CONCURRENTLY tenant_terms_immediate ON tenant_terms (tenant_id, effective_at) WHERE immediate;

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS tenant_terms_immediate;
