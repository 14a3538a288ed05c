-- +goose Up
-- Changes of terms inside a period amend its allowance and cut no period any more. The defaults are constants: no row is written again. allowance_at
-- before period_start means that a version which knows none of this opened the period; then the other columns are without meaning.

-- This takes a short lock, for which it waits at most this long: rerun the migration if it fails.
SET LOCAL lock_timeout = '3s';

ALTER TABLE balances
    ADD COLUMN amended        bigint      NOT NULL DEFAULT 0,       -- what changes of terms added to the period's allowance; part of adjusted
    ADD COLUMN entitled       bigint      NOT NULL DEFAULT 0,       -- what the period's allowance is worth
    ADD COLUMN short          bigint      NOT NULL DEFAULT 0,       -- drawn and held units beyond that; units that come back make up for them first
    ADD COLUMN overage_before bigint      NOT NULL DEFAULT 0,       -- overage since carried_from that counts against the cap
    ADD COLUMN carried_from   timestamptz NOT NULL DEFAULT 'epoch', -- the use since then counts in carried; 'epoch' = none
    ADD COLUMN allowance_at   timestamptz NOT NULL DEFAULT 'epoch', -- when the allowance was given as a whole
    ADD COLUMN terms_at       timestamptz NOT NULL DEFAULT 'epoch'; -- instant of the newest terms that have taken effect
ALTER TABLE balances ADD CONSTRAINT balances_changes_not_negative CHECK (entitled >= 0 AND short >= 0 AND overage_before >= 0) NOT VALID;
ALTER TABLE periods ADD COLUMN amended bigint NOT NULL DEFAULT 0; -- part of adjusted
ALTER TABLE tenant_terms DROP CONSTRAINT tenant_terms_usage_check;
ALTER TABLE tenant_terms ADD CONSTRAINT tenant_terms_usage_check CHECK (usage IN ('carry', 'reset', 'add')) NOT VALID;

-- Terms that apply at once. An older version that runs beside this one would end an open period by the column immediate, also one that was amended
-- already. It does not know at_once, and lets such terms wait for the end of the period.
ALTER TABLE tenant_terms ADD COLUMN at_once boolean NOT NULL DEFAULT false;

-- +goose Down
UPDATE tenant_terms SET immediate = true WHERE at_once;
ALTER TABLE tenant_terms DROP COLUMN at_once;
ALTER TABLE periods DROP COLUMN amended;
ALTER TABLE balances DROP COLUMN amended, DROP COLUMN entitled, DROP COLUMN short, DROP COLUMN overage_before, DROP COLUMN carried_from,
    DROP COLUMN allowance_at, DROP COLUMN terms_at;
UPDATE tenant_terms SET usage = 'reset' WHERE usage = 'add';
ALTER TABLE tenant_terms DROP CONSTRAINT tenant_terms_usage_check;
ALTER TABLE tenant_terms ADD CONSTRAINT tenant_terms_usage_check CHECK (usage IN ('carry', 'reset')) NOT VALID;
