-- +goose Up
-- Links to the customer's page, each for one tenant until it ends. The link has a secret of 256 random bits; its SHA-256 is here, so this table, or a
-- copy of it, opens nothing.
CREATE TABLE portal_sessions (
    session_id  text COLLATE "C" PRIMARY KEY,
    secret_hash bytea            NOT NULL CHECK (octet_length(secret_hash) = 32),
    tenant_id   text COLLATE "C" NOT NULL,
    key_id      text COLLATE "C",          -- the stored key that made it, and with which it ends; null: another caller did
    return_url  text             NOT NULL DEFAULT '' CHECK (octet_length(return_url) <= 2048),
    created_at  timestamptz      NOT NULL DEFAULT clock_timestamp(),
    expires_at  timestamptz      NOT NULL
);

-- Finds the oldest links of a tenant, and those that have ended.
CREATE INDEX portal_sessions_of_tenant ON portal_sessions (tenant_id, created_at);
CREATE INDEX portal_sessions_ends ON portal_sessions (expires_at);

-- +goose Down
DROP TABLE portal_sessions;
