-- +goose NO TRANSACTION
-- +goose Up
-- An operation is (tenant, id, month): after its memory a key names another operation. So a refund has to say of which month its
-- operation is, and the months that hold entries have to be known, because a clock that was ahead leaves entries in coming months.
-- Each step can run again after an interruption. From the CHECK on, instances of the version before refuse refunds (500, nothing is
-- changed; a retry with the same key succeeds on a new instance). They do everything else.

-- The months that hold entries. The first batch that writes into a month adds it.
CREATE TABLE IF NOT EXISTS journal_months (
    month date PRIMARY KEY
);

-- +goose StatementBegin
DO $$
DECLARE
    part record;
BEGIN
    FOR part IN
        SELECT c.oid::regclass AS name, pg_get_expr(c.relpartbound, c.oid) = 'DEFAULT' AS any_month
        FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'entries'::regclass
    LOOP
        IF part.any_month THEN
            EXECUTE format('INSERT INTO journal_months SELECT DISTINCT month FROM %s ON CONFLICT DO NOTHING', part.name);
        ELSE
            EXECUTE format('INSERT INTO journal_months SELECT month FROM (SELECT month FROM %s LIMIT 1) AS one ON CONFLICT DO NOTHING', part.name);
        END IF;
    END LOOP;
END $$;
-- +goose StatementEnd

ALTER TABLE refunds ADD COLUMN IF NOT EXISTS month date;

-- Rows get the month of the newest operation with their id, or 1970-01 if the journal no longer has it. Rows of ids that two
-- operations share are divided below.
-- +goose StatementBegin
DO $$
DECLARE
    filled bigint;
    closed boolean := false; -- old instances can add no more rows
BEGIN
    LOOP
        WITH unset AS (SELECT tenant_id, operation_id, line FROM refunds WHERE month IS NULL LIMIT 5000)
        UPDATE refunds r
        SET month = coalesce((SELECT max(e.month) FROM entries e
                              WHERE e.tenant_id = r.tenant_id AND e.operation_id = r.operation_id AND e.line = r.line), 'epoch')
        FROM unset
        WHERE r.tenant_id = unset.tenant_id AND r.operation_id = unset.operation_id AND r.line = unset.line;
        GET DIAGNOSTICS filled = ROW_COUNT;
        COMMIT;
        CONTINUE WHEN filled > 0;
        EXIT WHEN closed;
        ALTER TABLE refunds DROP CONSTRAINT IF EXISTS refunds_month_set;
        ALTER TABLE refunds ADD CONSTRAINT refunds_month_set CHECK (month IS NOT NULL) NOT VALID;
        COMMIT;
        closed := true;
    END LOOP;
END $$;
-- +goose StatementEnd

ALTER TABLE refunds VALIDATE CONSTRAINT refunds_month_set;
DROP INDEX CONCURRENTLY IF EXISTS refunds_by_month;
CREATE UNIQUE INDEX CONCURRENTLY refunds_by_month ON refunds (tenant_id, operation_id, month, line);

-- The key is exchanged under a short lock: the CHECK saves the scan, and the index exists.
-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_constraint WHERE conrelid = 'refunds'::regclass AND contype = 'p' AND array_length(conkey, 1) = 4) THEN
        DROP INDEX refunds_by_month; -- an earlier run has come this far
    ELSE
        SET LOCAL lock_timeout = '3s';
        ALTER TABLE refunds ALTER COLUMN month SET NOT NULL,
            DROP CONSTRAINT refunds_pkey, ADD CONSTRAINT refunds_pkey PRIMARY KEY USING INDEX refunds_by_month;
    END IF;
    ALTER TABLE refunds DROP CONSTRAINT IF EXISTS refunds_month_set;
END $$;
-- +goose StatementEnd

-- Operations that share an id had one row together. What was refunded before the newer one was made belongs to the older one. The
-- rest belongs to the newer one, up to its amount, as the refunds gave it back.
-- +goose StatementBegin
DO $$
DECLARE
    shared record;
    op record;
    before bigint;
    remaining bigint;
    part bigint;
BEGIN
    FOR shared IN
        SELECT r.tenant_id, r.operation_id, r.line, sum(r.refunded)::bigint AS refunded
        FROM refunds r
        WHERE (SELECT count(*) FROM entries e WHERE e.tenant_id = r.tenant_id AND e.operation_id = r.operation_id AND e.line = r.line) > 1
        GROUP BY r.tenant_id, r.operation_id, r.line
    LOOP
        remaining := shared.refunded;
        DELETE FROM refunds r WHERE r.tenant_id = shared.tenant_id AND r.operation_id = shared.operation_id AND r.line = shared.line;
        FOR op IN
            SELECT e.meter, e.subject, e.seq, e.month, e.created_at, e.amount, e.month = min(e.month) OVER () AS oldest
            FROM entries e
            WHERE e.tenant_id = shared.tenant_id AND e.operation_id = shared.operation_id AND e.line = shared.line
            ORDER BY e.month DESC
        LOOP
            SELECT coalesce(sum(e.amount), 0) INTO before
            FROM entries e
            WHERE e.tenant_id = shared.tenant_id AND e.created_at < op.created_at
              AND e.kind IN ('refund', 'unoverage', 'unowe', 'unsettle', 'closed_refund')
              AND e.detail->>'refund_of' = shared.operation_id
              AND ((e.detail->>'refund_line')::integer = shared.line
                   -- The first entry of a refund did not keep the line: its balance tells it.
                   OR (e.detail->>'refund_line')::integer = 0 AND EXISTS (
                       SELECT 1 FROM entries o
                       WHERE o.tenant_id = e.tenant_id AND o.operation_id = shared.operation_id AND o.line = shared.line
                         AND o.meter = e.meter AND o.subject = e.subject AND o.month < op.month));
            part := CASE WHEN op.oldest THEN remaining ELSE greatest(0, least(op.amount, remaining - before)) END;
            IF part > 0 THEN
                INSERT INTO refunds (tenant_id, operation_id, month, line, refunded)
                VALUES (shared.tenant_id, shared.operation_id, op.month, shared.line, part);
            END IF;
            remaining := remaining - part;
        END LOOP;
    END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
DO $$
BEGIN
    IF to_regclass('journal_months') IS NULL THEN -- an earlier run has come this far
        RETURN;
    END IF;
    CREATE TEMP TABLE joined ON COMMIT DROP AS
        SELECT tenant_id, operation_id, line, sum(refunded)::bigint AS refunded FROM refunds GROUP BY tenant_id, operation_id, line;
    TRUNCATE refunds;
    ALTER TABLE refunds DROP CONSTRAINT refunds_pkey, DROP COLUMN month, ADD PRIMARY KEY (tenant_id, operation_id, line);
    INSERT INTO refunds (tenant_id, operation_id, line, refunded) SELECT tenant_id, operation_id, line, refunded FROM joined;
    DROP TABLE journal_months;
END $$;
-- +goose StatementEnd
