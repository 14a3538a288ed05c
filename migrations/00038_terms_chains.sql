-- +goose Up
-- A hash chain over the terms of each tenant, and one over the versions of each plan: they decide what a period gives.

-- This takes a short lock, for which it waits at most this long: rerun the migration if it fails.
SET LOCAL lock_timeout = '3s';

-- Whoever writes terms has locked the tenant's row; whoever writes a version of a plan has the lock of the catalogue. A chain
-- without a row begins with the next change, verification or seal.
CREATE TABLE terms_chains (
    tenant_id text COLLATE "C" NOT NULL, -- '' = the chain is that of a plan
    plan      text COLLATE "C" NOT NULL, -- '' = the chain is that of the tenant's terms
    -- The number of rows that it covers and the instant up to which it covers all, 8 bytes each, big endian, then
    -- SHA-256(hash before, row); then the hash of the terms that wait, if there are some.
    chain     bytea NOT NULL CHECK (octet_length(chain) IN (48, 80)),
    PRIMARY KEY (tenant_id, plan)
);

-- Terms and versions since this instant are in a chain that exists. The version before writes none, and the rollout has a day.
ALTER TABLE chain_start ADD COLUMN terms_at timestamptz NOT NULL DEFAULT '-infinity';
UPDATE chain_start SET terms_at = now() + interval '1 day' WHERE EXISTS (SELECT 1 FROM plans) OR EXISTS (SELECT 1 FROM tenants);

-- +goose Down
-- Seals that cover these chains need the version that made them.
ALTER TABLE chain_start DROP COLUMN terms_at;
DROP TABLE terms_chains;
