-- +goose Up
-- Sealed days: what the journal was, in a form that somebody else can hold. Package ledger/audit makes and checks them.

-- The log of seals, one row per seal. Each covers what was entered since the seal before it, up to the end of its day.
CREATE TABLE IF NOT EXISTS seals (
    position   bigint      PRIMARY KEY CHECK (position >= 0), -- in the log, without a gap
    day        date        NOT NULL UNIQUE,                   -- UTC
    heads      bigint      NOT NULL CHECK (heads >= 0),       -- balances that had new entries
    root       bytea       NOT NULL CHECK (octet_length(root) = 32), -- of the Merkle tree of their heads
    checkpoint text        NOT NULL,                          -- the log with this seal as its newest record: a note, signed if there was a key
    sealed_at  timestamptz NOT NULL
);

-- What was sealed of each balance that had new entries. Rows of a day without a seal are those of a run that was interrupted.
CREATE TABLE IF NOT EXISTS sealed_heads (
    tenant_id text COLLATE "C" NOT NULL,
    meter     text COLLATE "C" NOT NULL,
    subject   text COLLATE "C" NOT NULL,
    day       date  NOT NULL,
    chain     bytea NOT NULL CHECK (octet_length(chain) = 48), -- as in balances: first and newest seq that it covers, and the hash
    PRIMARY KEY (tenant_id, meter, subject, day)
);
CREATE INDEX IF NOT EXISTS sealed_heads_of_day ON sealed_heads (day);

-- +goose Down
DROP TABLE IF EXISTS sealed_heads;
DROP TABLE IF EXISTS seals;
