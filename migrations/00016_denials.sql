-- +goose Up
-- Why requests were refused: how many in each minute, and the last ones of each tenant. Nothing depends on these tables, and no decision reads them.

-- How many requests of a tenant were refused in a minute, by code, meter and limit. One partition per week, from a Monday 00:00 UTC on, which is dropped
-- when all of it is older than 35 days.
CREATE TABLE denial_counts (
    tenant_id text COLLATE "C" NOT NULL,
    minute    timestamptz NOT NULL,
    code      text COLLATE "C" NOT NULL,
    meter     text COLLATE "C" NOT NULL,                   -- '' = none, or several; (other) = one of many
    rule      text COLLATE "C" NOT NULL,                   -- the limit; '' = no limit refused
    n         bigint      NOT NULL CHECK (n > 0),
    PRIMARY KEY (tenant_id, minute, code, meter, rule)
) PARTITION BY RANGE (minute);

-- +goose StatementBegin
DO $$
DECLARE
    week timestamptz := date_trunc('week', now(), 'UTC') - interval '168 hours';
BEGIN
    FOR i IN 0..10 LOOP
        EXECUTE format('CREATE TABLE %I PARTITION OF denial_counts FOR VALUES FROM (%L) TO (%L)',
                       to_char(week AT TIME ZONE 'UTC', '"denial_counts_"YYYY_MM_DD'), week, week + interval '168 hours');
        week := week + interval '168 hours';
    END LOOP;
END
$$;
-- +goose StatementEnd

-- The last 100 refused requests of a tenant, in one row that is replaced: a flood makes no further rows. The documents are stored out of line, so that the
-- table itself stays small.
CREATE TABLE denials_recent (
    tenant_id text COLLATE "C" PRIMARY KEY,
    newest_at timestamptz NOT NULL,
    items     jsonb       NOT NULL CHECK (jsonb_typeof(items) = 'array') -- about newest first
) WITH (toast_tuple_target = 128, fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, toast.autovacuum_vacuum_scale_factor = 0.05);

-- +goose Down
DROP TABLE denials_recent;
DROP TABLE denial_counts;
