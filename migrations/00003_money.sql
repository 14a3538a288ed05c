-- +goose Up
-- What was used before a change of plan counts on. The defaults are constants: no row is written again.

-- What a change that applies at once does with the use of the periods that it ends. Changes that were made before this column existed
-- opened whole allowances, and some of them are still to be worked off: they keep that result.
ALTER TABLE tenant_terms ADD COLUMN usage text NOT NULL DEFAULT 'reset' CHECK (usage IN ('carry', 'reset'));
ALTER TABLE tenant_terms ALTER COLUMN usage SET DEFAULT 'carry';

ALTER TABLE balances
    ADD COLUMN carried   bigint      NOT NULL DEFAULT 0,        -- use before the open period that made its allowance smaller
    ADD COLUMN span_used bigint      NOT NULL DEFAULT 0,        -- use of allowances since the first change of plan of a span
    ADD COLUMN span_end  timestamptz NOT NULL DEFAULT 'epoch';  -- until then changes of plan share that count; 'epoch' = there is no span
ALTER TABLE balances ADD CONSTRAINT balances_carried_not_negative CHECK (carried >= 0 AND span_used >= 0) NOT VALID;

-- +goose Down
ALTER TABLE balances DROP COLUMN carried, DROP COLUMN span_used, DROP COLUMN span_end;
ALTER TABLE tenant_terms DROP COLUMN usage;
