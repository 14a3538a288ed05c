-- +goose Up
-- What makes the journal tamper-evident: a hash chain per balance, checkpoints of verified journals, and sealed days.

-- These take short locks, of which the first waits at most this long: rerun the migration if it fails.
SET LOCAL lock_timeout = '3s';

-- The head of the chain: first and newest seq that it covers, 8 bytes each, big endian, then SHA-256(head before, entry). NULL: no
-- entry was chained yet. A balance's update writes it, so a debit needs no further row.
ALTER TABLE balances ADD COLUMN chain bytea;

-- One row: entries that are older than this instant may be outside the chain. They were written before there was one, or by an instance
-- of the version before during the rollout, for which it leaves a day.
CREATE TABLE chain_start (
    only_row boolean     PRIMARY KEY DEFAULT true CHECK (only_row),
    at       timestamptz NOT NULL
);
INSERT INTO chain_start (at)
SELECT CASE WHEN EXISTS (SELECT 1 FROM balances) THEN clock_timestamp() + interval '1 day' ELSE '-infinity' END;

-- What verifications have found to be true: the journal of a balance up to and including entry seq. The next verification begins after it.
-- An archived one stands for entries that were exported and removed; nothing deletes it.
CREATE TABLE checkpoints (
    tenant_id  text COLLATE "C" NOT NULL,
    meter      text COLLATE "C" NOT NULL,
    subject    text COLLATE "C" NOT NULL,
    seq        bigint      NOT NULL CHECK (seq >= 1),
    created_at timestamptz NOT NULL,                       -- of entry seq
    remaining  bigint      NOT NULL,                       -- remaining_after of entry seq
    chain      bytea       NOT NULL,                       -- as in balances: the chain up to entry seq
    state      jsonb       NOT NULL,                       -- sums of the journal up to entry seq: package audit says which
    archived   boolean     NOT NULL DEFAULT false,
    made_at    timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, meter, subject, seq)
);

-- How far the newest full verification of all tenants has come, if it was not finished. The next one continues there.
CREATE TABLE full_pass (
    only_row boolean     PRIMARY KEY DEFAULT true CHECK (only_row),
    position jsonb       NOT NULL,                         -- the last balance, and what was found up to there
    saved_at timestamptz NOT NULL
);

-- +goose Down
DROP TABLE full_pass;
DROP TABLE checkpoints;
DROP TABLE chain_start;
ALTER TABLE balances DROP COLUMN chain;
