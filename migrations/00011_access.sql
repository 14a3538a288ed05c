-- +goose Up
-- Who may call the API (keys), what administrators changed (audit), and who made an entry of the journal (actor).

-- These take short locks, of which the first waits at most this long: rerun the migration if it fails.
SET LOCAL lock_timeout = '3s';

-- The id of the key with which an entry's operation was asked for; NULL: the ledger's own entry, or one of an older version. Part of the hash
-- chain where it is set.
ALTER TABLE entries ADD COLUMN IF NOT EXISTS actor text COLLATE "C";

-- Keys of callers. A revoked or expired key stays, so that the audit log can be read.
CREATE TABLE keys (
    key_id       text COLLATE "C" PRIMARY KEY,
    name         text        NOT NULL,
    scopes       text[]      NOT NULL CHECK (scopes <@ ARRAY['use', 'read', 'admin'] AND cardinality(scopes) >= 1),
    tenant_id    text COLLATE "C" NOT NULL DEFAULT '',     -- '' = all tenants
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at   timestamptz,                              -- NULL: never
    revoked_at   timestamptz,
    last_used_at timestamptz                               -- some minutes late
);
CREATE INDEX keys_of_tenant ON keys (tenant_id, key_id);

-- The secrets of a key: one, or two while a rotated one still works. Only hashes are stored.
CREATE TABLE key_secrets (
    hash       bytea       PRIMARY KEY CHECK (octet_length(hash) = 32), -- SHA-256 of the secret
    key_id     text COLLATE "C" NOT NULL REFERENCES keys (key_id),
    prefix     text        NOT NULL,                       -- its first characters, for people to tell secrets apart
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ends_at    timestamptz                                 -- end of the overlap after a rotation; NULL: the key's newest secret
);
CREATE INDEX key_secrets_of_key ON key_secrets (key_id);

-- What administrators changed. Append-only: a line is inserted by the transaction of its change.
CREATE TABLE audit (
    audit_id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor_key   text COLLATE "C" NOT NULL,                 -- the key's id; 'bootstrap', or 'command' for a command on the database
    actor_name  text        NOT NULL,
    action      text        NOT NULL,                      -- such as limit.put
    object_kind text        NOT NULL,
    object_id   text        NOT NULL,
    tenant_id   text COLLATE "C" NOT NULL DEFAULT '',      -- '' = not about one tenant
    before      jsonb,                                     -- NULL: it did not exist
    after       jsonb,                                     -- NULL: it does not exist any more
    reason      text        NOT NULL DEFAULT '',
    request_id  text        NOT NULL DEFAULT '',
    ip          text        NOT NULL DEFAULT ''
);
CREATE INDEX audit_at ON audit (at, audit_id);
CREATE INDEX audit_of_tenant ON audit (tenant_id, at, audit_id) WHERE tenant_id <> '';
CREATE INDEX audit_of_actor ON audit (actor_key, at, audit_id);

-- +goose Down
DROP TABLE audit;
DROP TABLE key_secrets;
DROP TABLE keys;
ALTER TABLE entries DROP COLUMN actor;
