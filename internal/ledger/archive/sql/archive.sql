-- The statements that export and remove rows. Exports return all columns, including columns that later versions of
-- the schema add. A checkpoint with archived = true replaces the entries of its balance up to its seq.

-- name: ArchiveLock
-- Tries to take the lock that allows one run at a time. The connection holds it until it is closed.
SELECT pg_try_advisory_lock(7162931505);

-- name: State
-- Returns PostgreSQL's clock, the schema's version, this database's id, and the first month that is kept. NULL means
-- that nothing was archived yet.
SELECT clock_timestamp(), (SELECT max(g.version_id) FROM goose_db_version g WHERE g.is_applied),
       (SELECT i.database_id::text FROM database_identity i), (SELECT max(a.month) + interval '1 month' FROM archives a)::date;

-- name: CountEntries
-- Returns the number of entries of the month $1.
SELECT count(*) FROM entries e WHERE e.month = $1::date;

-- name: ExportEntries
-- Returns the entries of the month $1 in the order of balances and seq.
SELECT e.* FROM entries e WHERE e.month = $1::date AND e.seq > 0 ORDER BY e.tenant_id, e.meter, e.subject, e.seq;

-- name: SumsNeeded
-- Returns for each balance the seqs up to which sums are needed at the border $1, in order. These are the seq of its
-- newest archived entry, and the seq of the last entry before the period that contains the border.
WITH b AS MATERIALIZED (
    SELECT a.tenant_id, a.meter, a.subject, a.seq, p.last_seq
    FROM (SELECT c.tenant_id, c.meter, c.subject, max(c.seq) AS seq FROM checkpoints c WHERE c.archived AND c.created_at < $1::timestamptz
          GROUP BY c.tenant_id, c.meter, c.subject) AS a
    LEFT JOIN (SELECT o.tenant_id, o.meter, o.subject, max(o.last_seq) AS last_seq FROM periods o WHERE o.period_end <= $1::timestamptz
               GROUP BY o.tenant_id, o.meter, o.subject) AS p
        ON p.tenant_id = a.tenant_id AND p.meter = a.meter AND p.subject = a.subject
)
SELECT n.tenant_id, n.meter, n.subject, n.seq
FROM (
    SELECT b.tenant_id, b.meter, b.subject, b.seq FROM b
    UNION
    SELECT b.tenant_id, b.meter, b.subject, b.last_seq FROM b WHERE b.last_seq > 0 AND b.last_seq < b.seq
) AS n
ORDER BY n.tenant_id, n.meter, n.subject, n.seq;

-- name: ExportCheckpoints
-- Returns the newest archived checkpoint of each balance, at which the entries of the archive end.
SELECT DISTINCT ON (c.tenant_id, c.meter, c.subject) c.*
FROM checkpoints c
WHERE c.archived AND c.created_at < $1::timestamptz
ORDER BY c.tenant_id, c.meter, c.subject, c.seq DESC;

-- name: ExportPeriods
-- Returns the closed periods that ended until the border $1 and have all their entries before the border. The newest
-- such period of each balance is not returned, because the next period begins with its closing balance.
SELECT p.*
FROM periods p
JOIN (SELECT c.tenant_id, c.meter, c.subject, max(c.seq) AS seq FROM checkpoints c WHERE c.archived AND c.created_at < $1::timestamptz
      GROUP BY c.tenant_id, c.meter, c.subject) AS a
    ON a.tenant_id = p.tenant_id AND a.meter = p.meter AND a.subject = p.subject
WHERE p.period_end <= $1::timestamptz AND p.last_seq <= a.seq
  AND EXISTS (SELECT 1 FROM periods o
              WHERE o.tenant_id = p.tenant_id AND o.meter = p.meter AND o.subject = p.subject AND o.period_start > p.period_start
                AND o.period_end <= $1::timestamptz AND o.last_seq <= a.seq)
ORDER BY p.tenant_id, p.meter, p.subject, p.period_start;

-- name: ExportOverflows
-- Returns the overflow of the periods that ExportPeriods returns, also of each period in a run of idle periods.
SELECT o.*
FROM periods p
JOIN (SELECT c.tenant_id, c.meter, c.subject, max(c.seq) AS seq FROM checkpoints c WHERE c.archived AND c.created_at < $1::timestamptz
      GROUP BY c.tenant_id, c.meter, c.subject) AS a
    ON a.tenant_id = p.tenant_id AND a.meter = p.meter AND a.subject = p.subject
JOIN overflows o ON o.tenant_id = p.tenant_id AND o.meter = p.meter AND p.subject = '' AND o.period_start >= p.period_start AND o.period_start < p.period_end
WHERE p.period_end <= $1::timestamptz AND p.last_seq <= a.seq
  AND EXISTS (SELECT 1 FROM periods n
              WHERE n.tenant_id = p.tenant_id AND n.meter = p.meter AND n.subject = p.subject AND n.period_start > p.period_start
                AND n.period_end <= $1::timestamptz AND n.last_seq <= a.seq)
ORDER BY o.tenant_id, o.meter, o.quarter, o.period_start, o.paid_by;

-- name: ExportGrants
-- Returns the allowances and rollovers that ended before the border $1, if no unit of such a grant is held and no
-- kept entry names it. $2 is the first day that is kept. Grants whose ids clients chose are not returned, so that the
-- ids cannot be used again.
SELECT g.*
FROM grants g
WHERE g.source IN ('allowance', 'rollover') AND g.status IN ('exhausted', 'expired', 'voided') AND g.held = 0 AND g.remaining = 0
  AND g.created_at < $1::timestamptz AND g.expires_at <= $1::timestamptz
  AND NOT EXISTS (SELECT 1 FROM entries e
                  WHERE e.month >= $2::date AND e.tenant_id = g.tenant_id AND e.meter = g.meter AND e.subject = g.subject AND e.grant_id = g.grant_id)
  AND NOT EXISTS (SELECT 1 FROM balances b
                  WHERE b.tenant_id = g.tenant_id AND b.meter = g.meter AND b.subject = g.subject AND b.head_grant = g.grant_id)
ORDER BY g.tenant_id, g.meter, g.subject, g.grant_id;

-- name: ExportHolds
-- Returns the holds that ended before the border $1, if no unit of the hold is reserved and no kept entry names the
-- hold. $2 is the first day that is kept.
SELECT h.*
FROM holds h
WHERE h.status <> 'active' AND h.created_at < $1::timestamptz AND h.expires_at <= $1::timestamptz
  AND NOT EXISTS (SELECT 1 FROM hold_lines l WHERE l.tenant_id = h.tenant_id AND l.hold_id = h.hold_id AND l.captured + l.returned < l.amount)
  AND NOT EXISTS (SELECT 1 FROM entries e
                  WHERE e.month >= $2::date AND e.kind IN ('hold', 'capture', 'release', 'extend', 'overage')
                    AND e.tenant_id = h.tenant_id AND e.detail ->> 'hold' = h.hold_id)
ORDER BY h.tenant_id, h.hold_id;

-- name: ExportHoldLines
-- Returns the lines of the holds that ExportHolds returns.
SELECT l.*
FROM hold_lines l
JOIN holds h ON h.tenant_id = l.tenant_id AND h.hold_id = l.hold_id
WHERE h.status <> 'active' AND h.created_at < $1::timestamptz AND h.expires_at <= $1::timestamptz
  AND NOT EXISTS (SELECT 1 FROM hold_lines o WHERE o.tenant_id = h.tenant_id AND o.hold_id = h.hold_id AND o.captured + o.returned < o.amount)
  AND NOT EXISTS (SELECT 1 FROM entries e
                  WHERE e.month >= $2::date AND e.kind IN ('hold', 'capture', 'release', 'extend', 'overage')
                    AND e.tenant_id = h.tenant_id AND e.detail ->> 'hold' = h.hold_id)
ORDER BY l.tenant_id, l.hold_id, l.line;

-- name: ExportRefunds
-- Returns the refund sums of operations before the month $1, if no kept entry is a refund of the operation.
SELECT r.*
FROM refunds r
WHERE r.month < $1::date
  AND NOT EXISTS (SELECT 1 FROM entries e
                  WHERE e.month >= $1::date AND e.tenant_id = r.tenant_id AND e.detail ->> 'refund_of' = r.operation_id)
ORDER BY r.tenant_id, r.month, r.operation_id, r.line;

-- name: ExportSealedHeads
-- Returns the sealed heads of days before the border $1. The newest head of each balance is not returned, because the
-- balance's next head begins with it.
SELECT s.*
FROM sealed_heads s
WHERE s.day < ($1::timestamptz AT TIME ZONE 'UTC')::date
  AND EXISTS (SELECT 1 FROM sealed_heads o WHERE o.tenant_id = s.tenant_id AND o.meter = s.meter AND o.subject = s.subject AND o.day > s.day)
ORDER BY s.tenant_id, s.meter, s.subject, s.day;

-- name: ExportRolls
-- Returns the rolls that finished before the border $1 and are older than the newest roll with status done.
SELECT r.*
FROM rolls r
WHERE r.finished_at < $1::timestamptz AND r.as_of < (SELECT max(o.as_of) FROM rolls o WHERE o.status = 'done')
ORDER BY r.roll_id;

-- name: ExportVerifications
-- Returns the verifications that finished before the border $1.
SELECT v.* FROM verifications v WHERE v.finished_at < $1::timestamptz ORDER BY v.verification_id;

-- name: KeyColumns
-- Returns the columns of the primary key of table $1 with their types.
SELECT a.attname::text, format_type(a.atttypid, a.atttypmod)
FROM pg_index i
CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k (attnum, position)
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
WHERE i.indrelid = $1::regclass AND i.indisprimary
ORDER BY k.position;

-- name: RecordArchives
-- Records the months $1 of the archive whose manifest has digest $2, before anything is removed. If a second run of
-- the same archive repeats this, nothing changes.
INSERT INTO archives (month, manifest, archived_at)
SELECT m.month, $2::bytea, clock_timestamp()
FROM unnest($1::date[]) AS m (month)
ON CONFLICT (month) DO NOTHING;

-- name: ArchivesOf
-- Returns how many of the months $1 are recorded with a manifest whose digest is not $2.
SELECT count(*) FROM archives a WHERE a.month = ANY ($1::date[]) AND a.manifest <> $2::bytea;

-- name: FinishArchives
-- Records that all rows of the archive with manifest $1 were removed.
UPDATE archives SET removed_at = statement_timestamp() WHERE manifest = $1::bytea AND removed_at IS NULL;

-- name: ManifestOf
-- Returns the digest of the manifest with which the month $1 was archived. It returns no row if the month was not
-- archived.
SELECT a.manifest FROM archives a WHERE a.month = $1::date;

-- name: ArchivedEnds
-- Returns the archived checkpoints of each balance, by seq. The entries of each archive end at a checkpoint.
SELECT c.tenant_id, c.meter, c.subject, c.seq, c.created_at, c.remaining, c.chain
FROM checkpoints c
WHERE c.archived
ORDER BY c.tenant_id, c.meter, c.subject, c.seq;
