-- +goose Up
-- Prices of an overflow that are no whole number: units of another meter for per units of this one. The defaults are constants: no row is written
-- again.

-- These take short locks, of which the first waits at most this long: rerun the migration if it fails.
SET LOCAL lock_timeout = '3s';

-- An overflow at such a price is in columns of its own. An instance of the version before sees none: it refuses what the other meter would pay for,
-- instead of charging it as if each unit cost the whole number.
ALTER TABLE plan_allowances
    ADD COLUMN ratio_meter text COLLATE "C",
    ADD COLUMN ratio_units bigint,                         -- units of ratio_meter
    ADD COLUMN ratio_per   bigint;                         -- for so many units of meter
ALTER TABLE plan_allowances ADD CONSTRAINT plan_allowances_ratio CHECK (
    CASE WHEN ratio_meter IS NULL THEN ratio_units IS NULL AND ratio_per IS NULL
         ELSE overflow_meter IS NULL AND coalesce(ratio_units >= 1 AND ratio_per >= 1, false) END);
ALTER TABLE plan_allowances ADD CONSTRAINT plan_allowances_ratio_meter_fkey FOREIGN KEY (ratio_meter) REFERENCES meters (meter);

ALTER TABLE hold_lines
    ADD COLUMN per  bigint NOT NULL DEFAULT 1,             -- price is that of so many units of the item's meter
    ADD COLUMN paid bigint NOT NULL DEFAULT 0;             -- where per is not 1: units of the item that the hold's lines of this meter pay for

-- A refund of a part of what one unit paid for gives nothing back, and has a row nevertheless.
ALTER TABLE refunds ADD COLUMN units bigint NOT NULL DEFAULT 0; -- refunded of the item, on the line that carries its units
ALTER TABLE refunds DROP CONSTRAINT refunds_refunded_check;
ALTER TABLE refunds ADD CONSTRAINT refunds_refunded_check CHECK (refunded >= 0 AND units >= 0 AND (refunded >= 1 OR units >= 1)) NOT VALID;

-- +goose Down
ALTER TABLE plan_allowances DROP COLUMN ratio_meter, DROP COLUMN ratio_units, DROP COLUMN ratio_per;
ALTER TABLE refunds DROP CONSTRAINT refunds_refunded_check;
ALTER TABLE refunds ADD CONSTRAINT refunds_refunded_check CHECK (refunded >= 1) NOT VALID;
ALTER TABLE refunds DROP COLUMN units;
ALTER TABLE hold_lines DROP COLUMN per, DROP COLUMN paid;
