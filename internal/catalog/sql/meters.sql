-- name: SelectMeters
-- At most $3 of the meters $1 (of all meters if $1 is null), after the id $2, in order of ids.
SELECT meter, unit, description, kind, denial_replay, dimensions, created_at, updated_at
FROM meters
WHERE ($1::text[] IS NULL OR meter = ANY ($1)) AND meter > $2
ORDER BY meter
LIMIT $3;

-- name: InsertMeter
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS at
)
INSERT INTO meters (meter, unit, description, denial_replay, dimensions, kind, created_at, updated_at)
SELECT $1, $2, $3, $4, $5::text[], $6, clock.at, clock.at FROM clock
RETURNING created_at, updated_at;

-- name: UpdateMeter
UPDATE meters
SET unit = $2, description = $3, denial_replay = $4, dimensions = $5::text[], kind = $6, updated_at = statement_timestamp()
WHERE meter = $1
RETURNING created_at, updated_at;

-- name: LockMeter
-- Locks the meter $1, so that the ledger creates no balances of it until this transaction ends. Waits for
-- transactions that are creating such balances. Returns no row if there is no such meter. On Citus each node has a
-- copy of the meter. FOR UPDATE locks only one copy, an UPDATE locks all copies.
-- citus: UPDATE meters SET unit = unit WHERE meter = $1
SELECT 1 FROM meters WHERE meter = $1 FOR UPDATE -- plain
;

-- name: DeleteEmptyBalances
-- Deletes the balances of the meter $1 that never had an entry: refused requests created them. The caller has locked
-- the meter. The statement locks the balances in the same order as the ledger. A balance that gets an entry before
-- its lock stays. If no version of a plan has the meter, these balances have no closed periods, because the first
-- period of such a meter does not end.
-- citus: DELETE FROM balances b WHERE b.meter = $1 AND b.seq = 0
WITH empty AS MATERIALIZED ( -- plain
    SELECT b.tenant_id, b.subject FROM balances b WHERE b.meter = $1 AND b.seq = 0 -- plain
    ORDER BY b.tenant_id, b.meter, b.subject -- plain
    FOR UPDATE -- plain
) -- plain
DELETE FROM balances b USING empty e WHERE b.tenant_id = e.tenant_id AND b.meter = $1 AND b.subject = e.subject -- plain
;

-- name: DeleteMeter
DELETE FROM meters WHERE meter = $1;

-- name: MeterInUse
-- The name of one object that prevents the deletion of the meter $1, or no row. Old plan versions prevent it, because
-- the history of terms refers to them. Balances without an entry do not prevent it: see DeleteEmptyBalances.
SELECT what FROM (
    (SELECT 'version ' || a.version || ' of plan ' || a.plan AS what FROM plan_allowances a
     WHERE a.meter = $1 OR a.overflow_meter = $1 OR a.ratio_meter = $1 ORDER BY a.plan, a.version DESC LIMIT 1)
    UNION ALL
    (SELECT 'limit ' || l.rule FROM limits l WHERE l.spec -> 'match' ->> 'meter' = $1 ORDER BY l.rule LIMIT 1)
    UNION ALL
    (SELECT 'a limit of version ' || p.version || ' of plan ' || p.plan FROM plans p
     WHERE p.limits @> jsonb_build_array(jsonb_build_object('match', jsonb_build_object('meter', $1::text)))
     ORDER BY p.plan, p.version DESC LIMIT 1)
    UNION ALL
    (SELECT 'the gauge of tenant ' || g.tenant_id FROM gauges g WHERE g.meter = $1 LIMIT 1)
    UNION ALL
    (SELECT 'the balance of tenant ' || b.tenant_id FROM balances b WHERE b.meter = $1 AND b.seq > 0 LIMIT 1)
) AS uses
LIMIT 1;

-- name: MissingMeters
-- The ids in $1 for which no meter exists.
SELECT k.meter FROM unnest($1::text[]) AS k (meter) WHERE NOT EXISTS (SELECT 1 FROM meters m WHERE m.meter = k.meter);
