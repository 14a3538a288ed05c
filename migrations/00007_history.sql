-- +goose Up
-- Sums of the journal up to certain entries, so that a question about the past reads about a thousand entries and not millions.

-- Cumulative sums of one balance's entries 1 to seq, about every 500 entries. The service writes the rows in the background; nothing depends on
-- them: what follows the newest row is summed from the entries. Entries never change, so a row never changes. Its seq is the last entry of an
-- operation: rows never split one.
CREATE TABLE rollups (
    tenant_id  text COLLATE "C" NOT NULL,
    meter      text COLLATE "C" NOT NULL,
    subject    text COLLATE "C" NOT NULL,
    seq        bigint      NOT NULL CHECK (seq > 0),
    created_at timestamptz NOT NULL,                       -- of entry seq
    operations bigint      NOT NULL,                       -- number of operations with an entry of use: debits, captures, overage and their refunds
    kinds      text[]      NOT NULL,                       -- these four have one element per kind and source of entries
    sources    text[]      NOT NULL,
    amounts    numeric[]   NOT NULL,                       -- sums; they may exceed bigint
    counts     bigint[]    NOT NULL,
    PRIMARY KEY (tenant_id, meter, subject, seq),
    CONSTRAINT rollups_parallel CHECK (cardinality(kinds) = cardinality(sources) AND cardinality(kinds) = cardinality(amounts) AND cardinality(kinds) = cardinality(counts))
);
-- Finds the rows on both sides of an instant.
CREATE INDEX rollups_by_time ON rollups (tenant_id, meter, subject, created_at, seq);

-- Entries by kind, without the kind that most have: a debit costs no row here. And entries by the subject that a client named: only those requests
-- cost one. On a journal with entries only the parent's index is made, at once; `quotasvc migrate up` then makes those of the
-- partitions, CONCURRENTLY and one by one, and attaches them. Questions are answered without them, more slowly.
-- +goose StatementBegin
DO $$
DECLARE
    how text := CASE WHEN EXISTS (SELECT 1 FROM entries) THEN 'ONLY ' ELSE '' END;
BEGIN
    SET LOCAL lock_timeout = '3s';
    EXECUTE 'CREATE INDEX entries_rare ON ' || how || 'entries (tenant_id, kind, meter, subject, seq) WHERE kind <> ''debit''';
    EXECUTE 'CREATE INDEX entries_named ON ' || how || 'entries (tenant_id, op_subject, meter, subject, seq) WHERE op_subject IS NOT NULL';
END
$$;
-- +goose StatementEnd

-- +goose Down
DROP INDEX entries_rare;
DROP INDEX entries_named;
DROP TABLE rollups;
