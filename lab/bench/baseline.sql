-- The PL/pgSQL baseline makes one call per debit. It keeps quotas in PostgreSQL as a careful team would. A debit
-- takes one round trip and one transaction, locks the balance and stores the key. The baseline is faster because it
-- does less than the ledger: it has no periods, grants, seq, fingerprint or history index.
CREATE SCHEMA bench_baseline;

CREATE TABLE bench_baseline.balances (
    tenant_id  text COLLATE "C" NOT NULL,
    meter      text COLLATE "C" NOT NULL,
    remaining  bigint NOT NULL CHECK (remaining >= 0),
    used       bigint NOT NULL DEFAULT 0,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, meter)
) WITH (fillfactor = 60);

CREATE TABLE bench_baseline.entries (
    tenant_id       text COLLATE "C" NOT NULL,
    operation_id    text COLLATE "C" NOT NULL,
    meter           text COLLATE "C" NOT NULL,
    amount          bigint NOT NULL,
    remaining_after bigint NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, operation_id)
);

-- The function returns the remaining amount, or -1 if not enough units remain. For a stored key it returns the stored
-- result.
CREATE FUNCTION bench_baseline.debit(p_tenant text, p_meter text, p_key text, p_amount bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_remaining bigint;
    v_before    bigint;
BEGIN
    SELECT remaining INTO v_remaining FROM bench_baseline.balances
    WHERE tenant_id = p_tenant AND meter = p_meter FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no balance of % for %', p_meter, p_tenant;
    END IF;
    SELECT remaining_after INTO v_before FROM bench_baseline.entries WHERE tenant_id = p_tenant AND operation_id = p_key;
    IF FOUND THEN
        RETURN v_before;
    END IF;
    IF v_remaining < p_amount THEN
        RETURN -1;
    END IF;
    UPDATE bench_baseline.balances SET remaining = remaining - p_amount, used = used + p_amount, updated_at = clock_timestamp()
    WHERE tenant_id = p_tenant AND meter = p_meter;
    INSERT INTO bench_baseline.entries (tenant_id, operation_id, meter, amount, remaining_after)
    VALUES (p_tenant, p_key, p_meter, p_amount, v_remaining - p_amount);
    RETURN v_remaining - p_amount;
END
$$;
