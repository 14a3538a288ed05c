-- +goose Up
-- The key that signs ids given to clients: of leases and of charges. All instances read it when they start.
CREATE TABLE signing_keys (
    name           text COLLATE "C" PRIMARY KEY,
    secret         bytea       NOT NULL CHECK (octet_length(secret) = 32),
    unsigned_until timestamptz NOT NULL, -- until then leases of the version before, whose ids are not signed, can be renewed and released
    created_at     timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Three times 122 random bits. A database without tenants has no leases of the version before.
INSERT INTO signing_keys (name, secret, unsigned_until)
SELECT 'ids', sha256(convert_to(concat(gen_random_uuid(), gen_random_uuid(), gen_random_uuid()), 'UTF8')),
       clock_timestamp() + CASE WHEN EXISTS (SELECT FROM tenants) THEN interval '1 day' ELSE interval '0' END;

-- +goose Down
DROP TABLE signing_keys;
