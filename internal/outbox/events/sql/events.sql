-- Events, marks of emitted events, and reminders for the ends of grants. Some conditions compare tenant_id a second
-- time: Citus needs them, and they cost nothing on plain PostgreSQL.

-- name: InsertEvents
-- Inserts events without positions. Each array has one element per event. Locks nothing. Positions are assigned in the
-- order of `at` and event_key. So a key begins with the time of the statement in microseconds, and with the number of
-- the event in the statement. Events of one instant are listed in the order in which they were inserted. The rest is
-- random.
INSERT INTO events (tenant_id, event_key, month, type, at, meter, subject, data)
SELECT e.tenant_id,
       (lpad(to_hex((extract(epoch FROM statement_timestamp()) * 1000000)::bigint), 14, '0') || lpad(to_hex(e.n), 6, '0')
           || right(gen_random_uuid()::text, 12))::uuid,
       date_trunc('month', e.at AT TIME ZONE 'UTC')::date, e.type, e.at, e.meter, e.subject, e.data::jsonb
FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::text[], $5::text[], $6::text[])
     WITH ORDINALITY AS e (tenant_id, type, at, meter, subject, data, n);

-- name: SelectMarks
-- Returns those of the marks $1..$5 that exist.
SELECT m.tenant_id, m.meter, m.subject, m.period_start, m.mark
FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::text[]) AS k (tenant_id, meter, subject, period_start, mark)
JOIN event_marks m ON m.tenant_id = k.tenant_id AND m.meter = k.meter AND m.subject = k.subject AND m.period_start = k.period_start AND m.mark = k.mark
    AND m.tenant_id = ANY ($1::text[]);

-- name: InsertMarks
-- Inserts the marks $1..$5 of periods that end at $6. Marks that exist do not change.
INSERT INTO event_marks (tenant_id, meter, subject, period_start, mark, ends_at)
SELECT m.tenant_id, m.meter, m.subject, m.period_start, m.mark, m.ends_at
FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::text[], $6::timestamptz[])
     AS m (tenant_id, meter, subject, period_start, mark, ends_at)
ON CONFLICT (tenant_id, meter, subject, period_start, mark) DO NOTHING;

-- name: DropMarks
-- Deletes the marks $1..$5. They need not exist.
DELETE FROM event_marks m
USING unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::text[]) AS k (tenant_id, meter, subject, period_start, mark)
WHERE m.tenant_id = k.tenant_id AND m.meter = k.meter AND m.subject = k.subject AND m.period_start = k.period_start AND m.mark = k.mark
  AND m.tenant_id = ANY ($1::text[]);

-- name: ClaimMarks
-- Inserts the marks $1..$5 of periods that end at $6, and returns the marks that did not exist. It waits for
-- transactions that insert the same marks. All transactions insert marks in the same order, so there is no deadlock.
INSERT INTO event_marks (tenant_id, meter, subject, period_start, mark, ends_at)
SELECT m.tenant_id, m.meter, m.subject, m.period_start, m.mark, m.ends_at
FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::text[], $6::timestamptz[])
     AS m (tenant_id, meter, subject, period_start, mark, ends_at)
ORDER BY m.tenant_id, m.meter, m.subject, m.period_start, m.mark
ON CONFLICT (tenant_id, meter, subject, period_start, mark) DO NOTHING
RETURNING tenant_id, meter, subject, period_start, mark;

-- name: TenantsWhoWant
-- Returns the tenants with a webhook that subscribes to the type $1; '' stands for all tenants. Paused webhooks
-- count, because a replay can deliver the events later.
SELECT DISTINCT w.tenant_id FROM webhooks w WHERE $1::text = ANY (w.types);

-- name: InsertReminders
-- Inserts reminders for the grants $1..$4 that are due at $5.
INSERT INTO grant_reminders (tenant_id, meter, subject, grant_id, due_at)
SELECT r.tenant_id, r.meter, r.subject, r.grant_id, r.due_at
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[]) AS r (tenant_id, meter, subject, grant_id, due_at)
ON CONFLICT (tenant_id, meter, subject, grant_id) DO NOTHING;

-- name: DropReminders
-- Deletes the reminders for the grants $1..$4. They need not exist.
DELETE FROM grant_reminders r
USING unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS k (tenant_id, meter, subject, grant_id)
WHERE r.tenant_id = k.tenant_id AND r.meter = k.meter AND r.subject = k.subject AND r.grant_id = k.grant_id AND r.tenant_id = ANY ($1::text[]);

-- name: DueReminders
-- Returns up to $2 reminders that are due at $1, the oldest first. Locks nothing.
SELECT r.tenant_id, r.meter, r.subject, r.grant_id
FROM grant_reminders r
WHERE r.due_at <= $1::timestamptz
ORDER BY r.due_at
LIMIT $2::integer;

-- name: TakeReminders
-- Deletes those of the reminders $1..$4 that are due at $5, and returns them. The reminders were read before:
-- meanwhile another instance may have handled one, or an extension of its grant may have changed its time.
DELETE FROM grant_reminders r
USING unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS k (tenant_id, meter, subject, grant_id)
WHERE r.tenant_id = k.tenant_id AND r.meter = k.meter AND r.subject = k.subject AND r.grant_id = k.grant_id AND r.tenant_id = ANY ($1::text[])
  AND r.due_at <= $5::timestamptz
RETURNING r.tenant_id, r.meter, r.subject, r.grant_id;

-- name: RemindedGrants
-- Returns those of the grants $1..$4 that have not ended at $5, with their remaining units. The remaining units of a
-- head grant are stored in its balance.
SELECT g.tenant_id, g.meter, g.subject, g.grant_id, g.source, g.amount, g.expires_at,
       CASE WHEN b.head_grant = g.grant_id THEN b.head_remaining WHEN g.status = 'pending' THEN g.amount ELSE g.remaining END
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS k (tenant_id, meter, subject, grant_id)
JOIN grants g ON g.tenant_id = k.tenant_id AND g.meter = k.meter AND g.subject = k.subject AND g.grant_id = k.grant_id AND g.tenant_id = ANY ($1::text[])
JOIN balances b ON b.tenant_id = g.tenant_id AND b.meter = g.meter AND b.subject = g.subject AND b.tenant_id = ANY ($1::text[])
WHERE g.status IN ('pending', 'active') AND g.expires_at > $5::timestamptz;

-- name: OldMarks
-- Deletes at most $2 marks of periods that ended before $1.
DELETE FROM event_marks m
WHERE (m.tenant_id, m.meter, m.subject, m.period_start, m.mark) IN (
    SELECT o.tenant_id, o.meter, o.subject, o.period_start, o.mark FROM event_marks o WHERE o.ends_at < $1::timestamptz LIMIT $2::integer);

-- name: ListingLock
-- Tries to get the lock for assigning positions, until the transaction ends. Returns false if another instance has
-- the lock.
SELECT pg_try_advisory_xact_lock(7162931505);

-- name: NewestPosition
-- Returns the highest position and the time of PostgreSQL's clock, both in microseconds.
SELECT coalesce((SELECT max(e.position) FROM events e WHERE e.position IS NOT NULL), 0), (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;

-- name: Unlisted
-- Returns up to $1 events without a position, the oldest first.
SELECT e.tenant_id, e.event_key, e.month, e.type, e.at, e.meter, e.subject, e.data
FROM events e
WHERE e.position IS NULL
ORDER BY e.at, e.event_key
LIMIT $1::integer;

-- name: GivePositions
-- Sets the positions $4 of the events $1..$3.
UPDATE events e
SET position = n.position
FROM unnest($1::text[], $2::uuid[], $3::date[], $4::bigint[]) AS n (tenant_id, event_key, month, position)
WHERE e.tenant_id = n.tenant_id AND e.event_key = n.event_key AND e.month = n.month AND e.position IS NULL AND e.tenant_id = ANY ($1::text[]);

-- name: Listing
-- Returns the position up to which the list is complete, and the range of the positions that were assigned last.
SELECT l.listed_to, l.given_from, l.given_to FROM event_listing l;

-- name: CountGiven
-- Returns the number of events with positions from $1 to $2.
SELECT count(*) FROM events e WHERE e.position BETWEEN $1::bigint AND $2::bigint;

-- name: SetListing
-- Stores that the list is complete up to $1, and that the positions from $2 to $3 were assigned last.
UPDATE event_listing SET listed_to = $1, given_from = $2, given_to = $3;

-- name: SelectEvents
-- Returns up to $5 events with positions after $1 and up to $6, in the order of their positions. The events are of
-- tenant $2 and type $3 (NULL: all), and not older than $4.
SELECT e.tenant_id, e.type, e.at, e.meter, e.subject, e.data, e.position
FROM events e
WHERE e.position > $1::bigint AND e.position <= $6::bigint AND e.month >= date_trunc('month', $4::timestamptz AT TIME ZONE 'UTC')::date AND e.at >= $4::timestamptz
  AND ($2::text IS NULL OR e.tenant_id = $2) AND ($3::text IS NULL OR e.type = $3)
ORDER BY e.position
LIMIT $5::integer;

-- name: CountUnlisted
-- Returns the number of events without a position, at most $1, and the age of the oldest of these events in seconds.
SELECT count(*), coalesce(extract(epoch FROM clock_timestamp() - min(u.at)), 0)::float8
FROM (SELECT e.at FROM events e WHERE e.position IS NULL ORDER BY e.at LIMIT $1::integer) AS u;
