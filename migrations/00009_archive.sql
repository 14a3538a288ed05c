-- +goose NO TRANSACTION
-- +goose Up
-- The journal has no DEFAULT partition any more: it blocked debits whenever a partition was made, and forbade to detach one without a stop. Rows
-- in it are moved to the partitions of their months, and partitions are made for a year ahead. Versions before this one keep working: the
-- partitions that they would make exist.

-- Copies the default partition's rows to tables of their months, some thousand at a time. The rows stay visible where they are until the last
-- step, one short transaction: it copies what was added meanwhile, detaches the default partition and attaches the tables. It waits for locks 100 ms
-- at a time, so that nobody waits behind it for longer; what it holds them for is a scan of the default partition. It can be interrupted and run again.
-- +goose StatementBegin
CREATE OR REPLACE PROCEDURE quotasvc_without_default_partition() LANGUAGE plpgsql AS $$
DECLARE
    step   CONSTANT integer := 1000;  -- pages of 8 kB
    months date[];
    mon    date;
    page   bigint := 0;
    pages  bigint;
    tries  integer := 0;
    done   boolean := NOT EXISTS (SELECT 1 FROM pg_class WHERE oid = to_regclass('entries_default') AND relispartition);
BEGIN
    SET lock_timeout = '100ms';
    pages := CASE WHEN done THEN 0 ELSE pg_relation_size(to_regclass('entries_default')) / current_setting('block_size')::bigint END;
    WHILE page < pages LOOP
        FOR mon IN EXECUTE 'SELECT DISTINCT month FROM entries_default WHERE ctid >= $1 AND ctid < $2'
            USING format('(%s,0)', page)::tid, format('(%s,0)', page + step)::tid
        LOOP
            -- With the check, attaching the table does not scan it.
            EXECUTE format('CREATE TABLE IF NOT EXISTS %I (LIKE entries INCLUDING ALL, CONSTRAINT of_month CHECK (month >= %L AND month < %L))',
                           to_char(mon, '"entries_"YYYY_MM'), mon, (mon + interval '1 month')::date);
            EXECUTE format('INSERT INTO %I SELECT * FROM entries_default WHERE ctid >= $1 AND ctid < $2 AND month = $3 ON CONFLICT DO NOTHING',
                           to_char(mon, '"entries_"YYYY_MM'))
                USING format('(%s,0)', page)::tid, format('(%s,0)', page + step)::tid, mon;
        END LOOP;
        COMMIT;
        page := page + step;
    END LOOP;
    WHILE NOT done LOOP
        BEGIN
            tries := tries + 1;
            LOCK TABLE entries IN ACCESS EXCLUSIVE MODE;
            EXECUTE 'SELECT coalesce(array_agg(DISTINCT month), ''{}'') FROM entries_default' INTO months;
            ALTER TABLE entries DETACH PARTITION entries_default;
            FOREACH mon IN ARRAY months LOOP
                EXECUTE format('CREATE TABLE IF NOT EXISTS %I (LIKE entries INCLUDING ALL)', to_char(mon, '"entries_"YYYY_MM'));
                EXECUTE format('INSERT INTO %I SELECT d.* FROM entries_default d WHERE d.month = $1 AND NOT EXISTS (SELECT 1 FROM %I m
                                WHERE m.tenant_id = d.tenant_id AND m.operation_id = d.operation_id AND m.line = d.line AND m.month = d.month)',
                               to_char(mon, '"entries_"YYYY_MM'), to_char(mon, '"entries_"YYYY_MM')) USING mon;
                EXECUTE format('ALTER TABLE entries ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
                               to_char(mon, '"entries_"YYYY_MM'), mon, (mon + interval '1 month')::date);
                EXECUTE format('ALTER TABLE %I DROP CONSTRAINT IF EXISTS of_month', to_char(mon, '"entries_"YYYY_MM'));
            END LOOP;
            DROP TABLE entries_default;
            done := true;
        EXCEPTION WHEN lock_not_available THEN
            IF tries >= 300 THEN
                RAISE EXCEPTION 'the journal was in use all the time: run the migration again when no report or dump reads it';
            END IF;
        END;
        COMMIT;
        PERFORM pg_sleep(CASE WHEN done THEN 0 ELSE 0.2 * random() + 0.1 END);
    END LOOP;
    RESET lock_timeout;
END
$$;
-- +goose StatementEnd
CALL quotasvc_without_default_partition();
DROP PROCEDURE quotasvc_without_default_partition();

-- Makes the missing partitions from last month to a year ahead.
-- +goose StatementBegin
DO $$
DECLARE
    mon  date;
    name text;
BEGIN
    FOR i IN -1..12 LOOP
        mon := date_trunc('month', clock_timestamp() AT TIME ZONE 'UTC')::date + make_interval(months => i);
        name := to_char(mon, '"entries_"YYYY_MM');
        CONTINUE WHEN to_regclass(name) IS NOT NULL;
        EXECUTE format('CREATE TABLE %I (LIKE entries INCLUDING ALL)', name);
        EXECUTE format('ALTER TABLE entries ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', name, mon, (mon + interval '1 month')::date);
    END LOOP;
END
$$;
-- +goose StatementEnd

-- Versions before this one count the rows of the default partition when they start. A later migration drops it.
CREATE OR REPLACE VIEW entries_default AS SELECT 1 AS none WHERE false;

-- Which database this is, so that an archive is not taken for that of another one. A restored copy has the same id.
CREATE TABLE IF NOT EXISTS database_identity (
    only_row    boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    database_id uuid    NOT NULL DEFAULT gen_random_uuid()
);
INSERT INTO database_identity DEFAULT VALUES ON CONFLICT DO NOTHING;

-- The months whose entries were archived. What happened before the end of the newest one is archived: answers about it say so.
CREATE TABLE IF NOT EXISTS archives (
    month       date        PRIMARY KEY,                   -- first day
    manifest    bytea       NOT NULL,                      -- SHA-256 of the archive's manifest.json
    archived_at timestamptz NOT NULL,                      -- from then on the border is in force
    removed_at  timestamptz                                -- when everything that the archive holds was removed; NULL: not yet
);

-- +goose Down
DROP TABLE IF EXISTS archives;
DROP TABLE IF EXISTS database_identity;
-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_class WHERE oid = to_regclass('entries_default') AND relkind = 'v') THEN -- else an earlier run has come this far
        DROP VIEW entries_default;
    END IF;
    IF to_regclass('entries_default') IS NULL THEN
        CREATE TABLE entries_default (LIKE entries INCLUDING ALL);
        ALTER TABLE entries ATTACH PARTITION entries_default DEFAULT;
    END IF;
END
$$;
-- +goose StatementEnd
