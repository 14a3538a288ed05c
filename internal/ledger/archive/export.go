package archive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/journal"
)

// table is a table, other than entries, whose rows are archived.
type table struct {
	name   string
	export string // name of the statement that returns the rows
	both   bool   // the statement takes the border twice: as an instant, and as the first day that is kept
	keep   bool   // rows are exported, but not removed
}

// tables lists the archived tables in the order in which their rows are removed: hold_lines before holds.
var tables = []table{
	{name: "checkpoints", export: "ExportCheckpoints", keep: true},
	{name: "refunds", export: "ExportRefunds"},
	{name: "hold_lines", export: "ExportHoldLines", both: true},
	{name: "holds", export: "ExportHolds", both: true},
	{name: "grants", export: "ExportGrants", both: true},
	{name: "overflows", export: "ExportOverflows"},
	{name: "periods", export: "ExportPeriods"},
	{name: "sealed_heads", export: "ExportSealedHeads"},
	{name: "rolls", export: "ExportRolls"},
	{name: "verifications", export: "ExportVerifications"},
}

func (t *table) file() string { return t.name + ".parquet" }

// export verifies the journal, writes the missing files, and completes the manifest.
func (r *run) export(ctx context.Context, m *Manifest) error {
	for i := range m.Files {
		if err := r.dir.check(&m.Files[i]); err != nil {
			return fmt.Errorf("the archive in %s is damaged: %w; nothing was removed. Repair it, or begin in another directory", r.dir, err)
		}
	}
	if m.Complete {
		return nil
	}
	r.Progress(Progress{Step: "verify"})
	if err := r.Verify(ctx); err != nil {
		return err
	}
	r.Progress(Progress{Step: "checkpoints"})
	if err := r.Checkpoint(ctx, m.Oldest); err != nil {
		return fmt.Errorf("archive: make checkpoints: %w", err)
	}
	if err := r.rollUp(ctx, m.Oldest); err != nil {
		return fmt.Errorf("archive: write sums of the archived entries: %w", err)
	}
	months, err := m.months()
	if err != nil {
		return err
	}
	for _, month := range months {
		if err := r.exportFile(ctx, m, File{Name: entriesFile(month), Table: "entries", Month: month.String()}, "ExportEntries", month.Start()); err != nil {
			return err
		}
	}
	for _, t := range tables {
		args := []any{m.Oldest}
		if t.both {
			args = append(args, m.Oldest)
		}
		if err := r.exportFile(ctx, m, File{Name: t.file(), Table: t.name}, t.export, args...); err != nil {
			return err
		}
	}
	m.Complete = true
	return r.dir.save(m)
}

// rollUp writes the sums up to the last archived entry of each balance, and up to the last entry before the period
// that contains the border. The sums of that period, and the amount held at its start, can then be computed as
// differences of these sums.
func (r *run) rollUp(ctx context.Context, border time.Time) error {
	rows, _ := r.conn.Query(ctx, r.sql["SumsNeeded"], border)
	var k ledger.BalanceKey
	var seq int64
	done := int64(0)
	_, err := pgx.ForEachRow(rows, []any{&k.Tenant, &k.Meter, &k.Subject, &seq}, func() error {
		if done++; done%1000 == 0 {
			r.Progress(Progress{Step: "sums", Rows: done})
		}
		return r.Rollup(ctx, k, seq)
	})
	return err
}

// exportFile writes one file and its line in the manifest, unless an earlier run has written it.
func (r *run) exportFile(ctx context.Context, m *Manifest, f File, statement string, args ...any) error {
	if m.file(f.Name) != nil {
		return nil
	}
	out, err := r.dir.create(f.Name)
	if err != nil {
		return err
	}
	f.Rows, err = r.copyRows(ctx, out, "export "+f.Name, statement, args...)
	if f.Bytes, f.SHA256, err = out.end(err); err != nil {
		return err
	}
	m.Files = append(m.Files, f)
	r.Log.Info("archive file written", "file", f.Name, "rows", f.Rows, "bytes", f.Bytes)
	return r.dir.save(m)
}

// copyRows writes the rows of a statement to a Parquet file, and returns their number.
func (r *run) copyRows(ctx context.Context, out *newFile, step, statement string, args ...any) (int64, error) {
	args = append([]any{pgx.QueryResultFormats{pgx.BinaryFormatCode}}, args...)
	rows, err := r.conn.Query(ctx, r.sql[statement], args...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	columns, schema, err := columnsOf(rows.FieldDescriptions())
	if err != nil {
		return 0, err
	}
	w := newFileWriter(out, columns, schema)
	for rows.Next() {
		if err := w.add(rows.RawValues()); err != nil {
			return 0, err
		}
		if w.rows%groupRows == 0 {
			r.Progress(Progress{Step: step, Rows: w.rows})
		}
	}
	if err := errors.Join(rows.Err(), w.close()); err != nil {
		return 0, err
	}
	r.Progress(Progress{Step: step, Rows: w.rows, Total: w.rows})
	return w.rows, nil
}

// monthOfFile returns the month of a file of entries.
func monthOfFile(f *File) (journal.Month, error) {
	m, err := journal.ParseMonth(f.Month)
	if err != nil {
		return 0, fmt.Errorf("manifest, %s: %w", f.Name, err)
	}
	return m, nil
}
