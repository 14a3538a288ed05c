-- +goose Up
-- Units of a meter that another meter of the plan paid for, since this version. The rows are sums of the payments in the journal's
-- entries. An older instance beside this one counts none, and its payments name no period.
CREATE TABLE overflows (
    tenant_id    text COLLATE "C" NOT NULL,
    meter        text COLLATE "C" NOT NULL,                      -- the meter whose units were paid for
    period_start timestamptz NOT NULL,                           -- of that meter's period
    paid_by      text COLLATE "C" NOT NULL,                      -- the meter that paid
    quarter      timestamptz NOT NULL,                           -- start of a quarter of an hour of the period; 'epoch' = the whole period
    units        bigint      NOT NULL CHECK (units > 0),         -- 2^63-1 stands for any larger sum
    operations   bigint      NOT NULL CHECK (operations >= 0),   -- operations without an entry of use of the meter itself
    PRIMARY KEY (tenant_id, meter, quarter, period_start, paid_by)
) WITH (fillfactor = 70); -- the newest rows are updated with each payment

-- Where this migration was undone before, the journal has payments that name their periods, and checkpoints have their sums. The rows
-- are written again then, without the numbers of operations.
-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM checkpoints c WHERE c.state -> 'paid' <> '{}') THEN
        INSERT INTO overflows (tenant_id, meter, period_start, paid_by, quarter, units, operations)
        SELECT p.tenant_id, p.pays_for, p.period_start, p.meter, q.quarter, least(sum(p.units), 9223372036854775807)::bigint, 0
        FROM (
            SELECT e.tenant_id, e.meter, e.created_at, coalesce(e.detail #>> '{overflow,for}', e.detail ->> 'for') AS pays_for,
                   coalesce(e.detail #>> '{overflow,period}', e.detail ->> 'period')::timestamptz AS period_start,
                   coalesce(e.detail #>> '{overflow,units}', e.detail ->> 'units')::bigint AS units
            FROM entries e
            WHERE e.kind IN ('debit', 'capture') AND coalesce(e.detail #>> '{overflow,period}', e.detail ->> 'period') IS NOT NULL
        ) AS p
        CROSS JOIN LATERAL (VALUES (date_bin('15 minutes', p.created_at, 'epoch')), ('epoch'::timestamptz)) AS q (quarter)
        WHERE p.units > 0
        GROUP BY p.tenant_id, p.pays_for, p.period_start, p.meter, q.quarter;
    END IF;
END
$$;
-- +goose StatementEnd

-- +goose Down
DROP TABLE overflows;
