-- +goose NO TRANSACTION
-- +goose Up
-- A new version of a plan says when it is in force for the tenants that are on the plan: now, or next_period, which is the
-- end of the tenant's billing period. null: the version is older than this column, or a program of before made it. Such a
-- version keeps its meaning: the next period of each allowance opens with it. The statements can run again. Citus adds no
-- column together with its constraint.
ALTER TABLE plans ADD COLUMN IF NOT EXISTS apply text;
ALTER TABLE plans DROP CONSTRAINT IF EXISTS plans_apply_check;
ALTER TABLE plans ADD CONSTRAINT plans_apply_check CHECK (apply IN ('now', 'next_period'));

-- +goose Down
-- Versions that wait then act where the next period of each allowance opens. Open periods keep what they have.
ALTER TABLE plans DROP COLUMN IF EXISTS apply;
