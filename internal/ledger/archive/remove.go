package archive

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/parquet-go/parquet-go"

	"github.com/quotasvc/quotasvc/internal/ledger/journal"
	"github.com/quotasvc/quotasvc/internal/outbox/auditlog"
)

// removeRows is the number of rows that one transaction removes. Such a transaction takes some tens of milliseconds.
const removeRows = 1000

// remove removes the rows that the files contain. All steps of a run before remove can be repeated. The first step of
// remove records the months as archived.
func (r *run) remove(ctx context.Context, m *Manifest) error {
	months, err := m.months()
	if err != nil {
		return err
	}
	digest, err := r.digest()
	if err != nil {
		return err
	}
	if err := r.record(ctx, months, digest); err != nil {
		return err
	}
	for i := range m.Files {
		if f := &m.Files[i]; f.Table == "entries" {
			if err := r.removeMonth(ctx, f); err != nil {
				return err
			}
		}
	}
	for _, t := range tables {
		if f := m.file(t.file()); f != nil && !t.keep {
			if err := r.removeTable(ctx, f); err != nil {
				return err
			}
		}
	}
	if _, err := r.conn.Exec(ctx, r.sql["FinishArchives"], digest); err != nil {
		return fmt.Errorf("archive: record the end: %w", err)
	}
	return nil
}

// record commits the new border, with a line in the audit log.
func (r *run) record(ctx context.Context, months []journal.Month, digest []byte) error {
	starts, names := make([]time.Time, len(months)), make([]string, len(months))
	for i, m := range months {
		starts[i], names[i] = m.Start(), m.String()
	}
	var others int
	if err := r.conn.QueryRow(ctx, r.sql["ArchivesOf"], starts, digest).Scan(&others); err != nil {
		return fmt.Errorf("archive: look for archives of the same months: %w", err)
	}
	if others > 0 {
		return fmt.Errorf("%d of the months are recorded with another archive: continue that one, in its directory", others)
	}
	err := pgx.BeginFunc(ctx, r.conn, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, r.sql["RecordArchives"], starts, digest)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return auditlog.Record(ctx, tx, []auditlog.Line{{
			Actor: auditlog.From(ctx), Action: "journal.archive", Object: auditlog.Object{Kind: "journal", ID: r.Before.String()},
			After: map[string]any{"months": names, "manifest_sha256": hex.EncodeToString(digest)},
		}})
	})
	if err != nil {
		return fmt.Errorf("archive: record the months: %w", err)
	}
	return nil
}

// removeMonth detaches and drops a month's partition. Before and after it is detached, the partition must have the
// same number of entries as its file.
func (r *run) removeMonth(ctx context.Context, f *File) error {
	month, err := monthOfFile(f)
	if err != nil {
		return err
	}
	r.Progress(Progress{Step: "remove " + f.Name})
	var attached int64
	if err := r.conn.QueryRow(ctx, r.sql["CountEntries"], month.Start()).Scan(&attached); err != nil {
		return fmt.Errorf("archive: count the entries of %s: %w", month, err)
	}
	if attached != 0 && attached != f.Rows {
		return fmt.Errorf("%s has %d entries, %s has %d: entries were added after the export; nothing of that month was removed", month, attached, f.Name, f.Rows)
	}
	if err := r.journal.Detach(ctx, r.conn, month); err != nil {
		return err
	}
	var left bool
	if err := r.conn.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", month.Partition()).Scan(&left); err != nil {
		return fmt.Errorf("archive: look for %s: %w", month.Partition(), err)
	}
	if !left {
		return nil // an earlier run has dropped the partition
	}
	var rows int64
	if err := r.conn.QueryRow(ctx, "SELECT count(*) FROM "+month.Partition()).Scan(&rows); err != nil {
		return fmt.Errorf("archive: count the entries of %s: %w", month, err)
	}
	if rows != f.Rows {
		return fmt.Errorf("%s has %d entries, %s has %d: the table is detached and was not dropped", month.Partition(), rows, f.Name, f.Rows)
	}
	return r.journal.Drop(ctx, r.conn, month)
}

// removeTable removes the rows of a file from their table, by their keys.
func (r *run) removeTable(ctx context.Context, f *File) error {
	names, types, err := r.keyColumns(ctx, f.Table)
	if err != nil {
		return err
	}
	file, err := openFile(r.dir.path(f.Name), names)
	if err != nil {
		return err
	}
	defer func() { _ = file.close() }() // the file was only read
	statement := removeStatement(f.Table, names, types)
	row, done := make([]parquet.Value, len(names)), int64(0)
	for {
		keys, n := make([][]any, len(names)), 0
		for ; n < removeRows; n++ {
			if err := file.next(row); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return err
			}
			for i := range row {
				keys[i] = append(keys[i], keyValue(row[i], types[i]))
			}
		}
		if n == 0 {
			return nil
		}
		args := make([]any, len(keys))
		for i := range keys {
			args[i] = keys[i]
		}
		if _, err := r.conn.Exec(ctx, statement, args...); err != nil {
			return fmt.Errorf("archive: remove rows of %s: %w", f.Table, err)
		}
		done += int64(n)
		r.Progress(Progress{Step: "remove " + f.Name, Rows: done, Total: f.Rows})
	}
}

// keyColumns returns the names and types of the columns of a table's primary key.
func (r *run) keyColumns(ctx context.Context, table string) (names, types []string, err error) {
	rows, _ := r.conn.Query(ctx, r.sql["KeyColumns"], table)
	var name, kind string
	_, err = pgx.ForEachRow(rows, []any{&name, &kind}, func() error {
		names, types = append(names, name), append(types, kind)
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("archive: read the key of %s: %w", table, err)
	}
	return names, types, nil
}

func removeStatement(table string, names, types []string) string {
	arrays, equal := make([]string, len(names)), make([]string, len(names))
	for i := range names {
		arrays[i] = fmt.Sprintf("$%d::%s[]", i+1, types[i])
		equal[i] = fmt.Sprintf("t.%s = k.%s", names[i], names[i])
	}
	return fmt.Sprintf("DELETE FROM %s t USING unnest(%s) AS k (%s) WHERE %s",
		table, strings.Join(arrays, ", "), strings.Join(names, ", "), strings.Join(equal, " AND "))
}

// keyValue converts a value of a file to a query argument.
func keyValue(v parquet.Value, kind string) any {
	switch kind {
	case "integer":
		return v.Int32()
	case "bigint":
		return v.Int64()
	case "date":
		return time.Unix(int64(v.Int32())*86400, 0).UTC()
	case "timestamp with time zone":
		return time.UnixMicro(v.Int64()).UTC()
	default:
		return string(v.ByteArray())
	}
}
