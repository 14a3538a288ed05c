-- +goose Up
-- Sessions of people who have signed in to the console with a key of the API. Their cookie has the session's id. The name of the row here and the key
-- that opens `sealed` are both derived from that id, so this table, or a copy of it, opens nothing.
CREATE TABLE console_sessions (
    name       bytea PRIMARY KEY CHECK (octet_length(name) = 32),
    key_id     text COLLATE "C" NOT NULL,
    sealed     bytea            NOT NULL CHECK (octet_length(sealed) BETWEEN 29 AND 1024), -- the secret that they signed in with
    created_at timestamptz      NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz      NOT NULL
);

-- Finds the oldest sessions of a key, and those that have ended.
CREATE INDEX console_sessions_of_key ON console_sessions (key_id, created_at);
CREATE INDEX console_sessions_ends ON console_sessions (expires_at);

-- +goose Down
DROP TABLE console_sessions;
