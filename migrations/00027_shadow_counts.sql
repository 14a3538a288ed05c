-- +goose Up
-- What limits in shadow mode would have denied. Nothing depends on this table, and no decision reads it.

-- How many requests of a tenant a shadow limit spoke about in a minute, and the same again in its hour: a question about a week reads hours. The key begins
-- with the limit, as the questions do; a tenant is looked up by nobody. One partition per week, from a Monday 00:00 UTC on, which is dropped when all of it
-- is older than 35 days.
CREATE TABLE shadow_counts (
    rule       text COLLATE "C" NOT NULL,                  -- the shadow limit
    every      smallint    NOT NULL CHECK (every IN (1, 60)), -- minutes that the row is about
    since      timestamptz NOT NULL,                       -- their start
    tenant_id  text COLLATE "C" NOT NULL,
    refused_by text COLLATE "C" NOT NULL,                  -- '' = the request was granted; the limit that refused it; (other) = refused for another reason
    denies     bigint      NOT NULL CHECK (denies >= 0),   -- requests that the shadow limit would have denied
    passes     bigint      NOT NULL CHECK (passes >= 0),   -- that it would have let pass: of those that another limit refused
    PRIMARY KEY (rule, every, since, tenant_id, refused_by)
) PARTITION BY RANGE (since);

-- +goose StatementBegin
DO $$
DECLARE
    week timestamptz := date_trunc('week', now(), 'UTC') - interval '168 hours';
BEGIN
    FOR i IN 0..10 LOOP
        EXECUTE format('CREATE TABLE %I PARTITION OF shadow_counts FOR VALUES FROM (%L) TO (%L)',
                       to_char(week AT TIME ZONE 'UTC', '"shadow_counts_"YYYY_MM_DD'), week, week + interval '168 hours');
        week := week + interval '168 hours';
    END LOOP;
END
$$;
-- +goose StatementEnd

-- +goose Down
DROP TABLE shadow_counts;
