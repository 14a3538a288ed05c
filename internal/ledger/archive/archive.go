package archive

import (
	"context"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/backoff"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/journal"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
	"github.com/quotasvc/quotasvc/internal/store/pgpool"
)

//go:embed sql/*.sql
var sqlFiles embed.FS

// keysKept is the time for which keys are looked up: 31 days, plus one day for the difference of clocks.
const keysKept = 32 * 24 * time.Hour

// Options select what to archive. All fields except DryRun and Progress are required.
type Options struct {
	DatabaseURL string
	Before      journal.Month // the oldest month that is kept
	Dir         string        // directory of the archive; an earlier run of the same archive is continued
	DryRun      bool          // only report what would be done
	// Verify compares the whole journal with the other tables, and fails if they differ.
	Verify func(context.Context) error
	// Checkpoint writes a checkpoint with archived = true for each balance, at its last entry before the border. It
	// must be idempotent.
	Checkpoint func(ctx context.Context, border time.Time) error
	// Rollup writes the sums of a balance up to an entry, so that later sums do not need older entries. It must be
	// idempotent.
	Rollup   func(ctx context.Context, k ledger.BalanceKey, seq int64) error
	Log      *slog.Logger
	Progress func(Progress) // nil: progress is not reported
}

// Progress is the state of a run.
type Progress struct {
	Step  string // such as "export entries of 2026-01"
	Rows  int64  // rows that this step has processed
	Total int64  // rows of this step; 0: unknown
}

// Month is the size of one month's journal.
type Month struct {
	Month journal.Month
	Rows  int64
	Bytes int64 // with indexes
}

// Result lists the months that were archived, or that a dry run would archive.
type Result struct {
	Months   []Month // months whose partitions are removed, oldest first
	Manifest *Manifest
	Oldest   time.Time // the oldest instant that can be queried from now on
	Nothing  bool      // there was nothing to archive
}

// run is the state of one call of Run.
type run struct {
	Options
	conn    *pgx.Conn
	sql     map[string]string
	journal *journal.Journal
	dir     directory
	state   state
}

// state is the state of the database at the beginning.
type state struct {
	now      time.Time
	schema   int64
	database string
	border   *time.Time // border of earlier archives
}

// Run archives all months before o.Before. It returns a *Refusal if that is not allowed.
func Run(ctx context.Context, o Options) (*Result, error) {
	r := &run{Options: o, dir: directory(o.Dir)}
	if err := r.connect(ctx); err != nil {
		return nil, err
	}
	defer func() { _ = r.conn.Close(context.WithoutCancel(ctx)) }() // finished steps are committed
	months, err := r.plan(ctx)
	if err != nil {
		return nil, err
	}
	out := &Result{Months: months, Oldest: o.Before.Start()}
	want := r.manifest(months)
	if o.DryRun {
		names, err := r.dir.names()
		if err == nil {
			_, err = r.dir.begun(names, want)
		}
		return out, err
	}
	if len(months) == 0 && !exists(r.dir.path(manifestName)) {
		out.Nothing = true
		return out, nil
	}
	if out.Manifest, err = r.dir.open(want); err != nil {
		return nil, err
	}
	if err := r.export(ctx, out.Manifest); err != nil {
		return nil, err
	}
	return out, r.remove(ctx, out.Manifest)
}

// connect connects to the database and takes the lock.
func (r *run) connect(ctx context.Context) error {
	if err := r.open(ctx); err != nil {
		return err
	}
	if err := r.lock(ctx); err != nil {
		_ = r.conn.Close(context.WithoutCancel(ctx))
		return err
	}
	return nil
}

// lockWait is how long a run waits for the lock: PostgreSQL releases the lock of a killed run with a delay.
const lockWait = 5 * time.Second

// lock takes the lock that allows one run at a time.
func (r *run) lock(ctx context.Context) error {
	for deadline := time.Now().Add(lockWait); ; {
		var mine bool
		if err := r.conn.QueryRow(ctx, r.sql["ArchiveLock"]).Scan(&mine); err != nil {
			return fmt.Errorf("archive: take the lock: %w", err)
		}
		switch {
		case mine:
			return nil
		case time.Now().After(deadline):
			return errors.New("another archive run works on this database; wait for its end")
		}
		if !backoff.Sleep(ctx, 100*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}

// open connects to the database. The connection has no time limit for locks and statements. Its statements join whole
// tables, so nested loops are disabled.
func (r *run) open(ctx context.Context) error {
	if r.Progress == nil {
		r.Progress = func(Progress) {}
	}
	r.sql = namedsql.Must(namedsql.Plain, sqlFiles)
	r.journal = journal.New(r.Log)
	cfg, err := pgx.ParseConfig(r.DatabaseURL)
	if err != nil {
		return fmt.Errorf("archive: database URL: %w", err)
	}
	cfg.RuntimeParams["application_name"], cfg.RuntimeParams["timezone"] = "quotasvc-archive", "UTC"
	pgpool.Set(cfg, map[string]string{
		"jit": "off", "enable_nestloop": "off", "statement_timeout": "0", "lock_timeout": "0", "idle_in_transaction_session_timeout": "0",
	})
	if r.conn, err = pgx.ConnectConfig(ctx, cfg); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	return nil
}

// readState reads the state from the database.
func (r *run) readState(ctx context.Context) error {
	s := &r.state
	if err := r.conn.QueryRow(ctx, r.sql["State"]).Scan(&s.now, &s.schema, &s.database, &s.border); err != nil {
		return fmt.Errorf("archive: read the database's state: %w", err)
	}
	return nil
}

// plan reads the state, refuses a border that is not allowed, and returns the months to archive.
func (r *run) plan(ctx context.Context) ([]Month, error) {
	if err := r.readState(ctx); err != nil {
		return nil, err
	}
	s := &r.state
	if own := time.Now(); own.Before(s.now) {
		s.now = own
	}
	if newest := journal.MonthOf(s.now.Add(-keysKept)); r.Before > newest {
		if current := journal.MonthOf(s.now); r.Before > current {
			return nil, refuse("--before", "%s lies in the future; the newest month allowed is %s", r.Before, newest)
		}
		return nil, refuse("--before", "%s would archive keys that must still be remembered (31 days); the newest month allowed is %s", r.Before, newest)
	}
	if s.border != nil && r.Before < journal.MonthOf(*s.border) {
		return nil, refuse("--before", "what was before %s is archived already; %s is earlier", journal.MonthOf(*s.border), r.Before)
	}
	partitions, err := r.journal.Partitions(ctx, r.conn)
	if err != nil {
		return nil, err
	}
	var months []Month
	for _, p := range partitions {
		switch {
		case p.From >= r.Before:
			continue
		case p.To != p.From+1 || p.Name != p.From.Partition():
			return nil, fmt.Errorf("partition %s holds %s to %s and was made by hand: archive it by hand", p.Name, p.From, p.To-1)
		}
		m := Month{Month: p.From, Bytes: p.Bytes}
		if err := r.conn.QueryRow(ctx, r.sql["CountEntries"], p.From.Start()).Scan(&m.Rows); err != nil {
			return nil, fmt.Errorf("archive: count the entries of %s: %w", p.From, err)
		}
		months = append(months, m)
	}
	return months, nil
}

// manifest returns the manifest of a new archive.
func (r *run) manifest(months []Month) *Manifest {
	m := &Manifest{
		Format: format, Database: r.state.database, Schema: r.state.schema, Before: r.Before.String(), Oldest: r.Before.Start(),
		Months: []string{}, MadeAt: r.state.now.UTC().Truncate(time.Second),
	}
	for i := range months {
		m.Months = append(m.Months, months[i].Month.String())
	}
	return m
}

// months returns the months of a manifest.
func (m *Manifest) months() ([]journal.Month, error) {
	out := make([]journal.Month, len(m.Months))
	for i, text := range m.Months {
		var err error
		if out[i], err = journal.ParseMonth(text); err != nil {
			return nil, fmt.Errorf("manifest: %w", err)
		}
	}
	return out, nil
}

// digest returns the manifest's digest as the database stores it.
func (r *run) digest() ([]byte, error) {
	_, text, err := ReadManifest(string(r.dir))
	if err != nil {
		return nil, err
	}
	return hex.DecodeString(text)
}
