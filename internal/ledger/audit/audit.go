package audit

import (
	"context"
	"embed"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotasvc/quotasvc/internal/namedsql"
)

const (
	// DifferencesMax bounds the differences that a report lists. All are counted.
	DifferencesMax = 100
	// orphansTimeout bounds the one statement that reads the whole journal.
	orphansTimeout = 30 * time.Minute
)

//go:embed sql/*.sql
var sqlFiles embed.FS

// Key names a balance.
type Key struct{ Tenant, Meter, Subject string }

// Copy is what a cache holds of a balance.
type Copy struct {
	Seq, Remaining int64
	ValidUntil     time.Time
}

// CopyReader returns what a cache holds of each key, nil where it holds nothing.
type CopyReader func(context.Context, []Key) ([]*Copy, error)

// Options selects what is verified.
type Options struct {
	Tenant   string        // empty: all
	Copies   CopyReader    // nil: no cache is compared
	Progress func(Report)  // called after every chunk; nil: not wanted
	Pause    time.Duration // between chunks, to spare the database
}

// Auditor verifies a ledger's tables.
type Auditor struct {
	pool *pgxpool.Pool
	sql  map[string]string
}

// New returns an auditor that reads through pool.
func New(pool *pgxpool.Pool) (*Auditor, error) {
	sql, err := namedsql.Load(sqlFiles)
	if err != nil {
		return nil, err
	}
	return &Auditor{pool: pool, sql: sql}, nil
}

// Verify compares every balance, its grants and its periods with sums over the journal, and cached copies with the balances. It
// leaves out checks that need entries of months whose partition was dropped.
func (a *Auditor) Verify(ctx context.Context, o Options) (*Report, error) {
	report := &Report{Totals: map[string]Totals{}}
	started := time.Now()
	after := Key{}
	for {
		c, err := a.readChunk(ctx, after, o.Tenant)
		if err != nil {
			return nil, err
		}
		if len(c.order) == 0 {
			break
		}
		c.compare(report)
		if o.Copies != nil {
			if err := a.compareCopies(ctx, c.order, o.Copies, report); err != nil {
				return nil, err
			}
		}
		after = c.order[len(c.order)-1]
		report.Elapsed = time.Since(started)
		if o.Progress != nil {
			o.Progress(*report)
		}
		if err := sleep(ctx, o.Pause); err != nil {
			return nil, err
		}
	}
	report.conserve()
	if err := a.findOrphans(ctx, o.Tenant, report); err != nil {
		return nil, err
	}
	report.Elapsed = time.Since(started)
	return report, nil
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("verify: %w", ctx.Err())
	}
}

// findOrphans reports entries of balances that do not exist.
func (a *Auditor) findOrphans(ctx context.Context, tenant string, report *Report) error {
	ctx, cancel := context.WithTimeout(ctx, orphansTimeout)
	defer cancel()
	err := pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) error {
		// This statement reads the journal whole; a hash join is its best plan.
		if _, err := tx.Exec(ctx, setTimeout(orphansTimeout)+"; SET LOCAL enable_seqscan = on; SET LOCAL enable_hashjoin = on"); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, a.sql["VerifyOrphans"], tenant)
		if err != nil {
			return err
		}
		var k Key
		_, err = pgx.ForEachRow(rows, []any{&k.Tenant, &k.Meter, &k.Subject}, func() error {
			report.add(k, "balance of existing entries", "a row", "none")
			return nil
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("verify orphans: %w", err)
	}
	return nil
}

func setTimeout(d time.Duration) string {
	return fmt.Sprintf("SET LOCAL statement_timeout = %d", d.Milliseconds())
}

// Difference is one way in which two records of the same fact disagree.
type Difference struct {
	Tenant, Meter, Subject string
	What                   string // the fact
	Want                   string // what the journal says
	Got                    string // what is stored
}

// String returns the difference as one line.
func (d Difference) String() string {
	subject := ""
	if d.Subject != "" {
		subject = "/" + d.Subject
	}
	return fmt.Sprintf("%s/%s%s: %s: journal says %s, stored is %s", d.Tenant, d.Meter, subject, d.What, d.Want, d.Got)
}

// Totals are a meter's sums over all verified balances: Issued + Refunded + Adjusted = Used + Expired + Remaining + Held.
type Totals struct {
	Issued, Used, Refunded, Expired, Adjusted, Remaining, Held int64
	// Partial reports that some of the entries lie in months that were dropped: the sums are not those of all time.
	Partial bool
}

// Report is the result of a verification.
type Report struct {
	Balances, Entries, Periods, Grants int64
	Copies                             int64 // cached copies compared
	StaleCopies                        int64 // of these, how many are older than their balance; no difference
	Totals                             map[string]Totals
	Count                              int64        // differences found
	Differences                        []Difference // the first DifferencesMax
	Elapsed                            time.Duration
}

// Clone returns a copy that shares nothing with r.
func (r *Report) Clone() Report {
	out := *r
	out.Totals, out.Differences = maps.Clone(r.Totals), slices.Clone(r.Differences)
	return out
}

// Clean reports that nothing differs.
func (r *Report) Clean() bool { return r.Count == 0 }

func (r *Report) add(k Key, what string, want, got any) {
	r.Count++
	if len(r.Differences) < DifferencesMax {
		r.Differences = append(r.Differences, Difference{
			Tenant: k.Tenant, Meter: k.Meter, Subject: k.Subject, What: what, Want: fmt.Sprint(want), Got: fmt.Sprint(got),
		})
	}
}

func (r *Report) equal(k Key, what string, want, got int64) {
	if want != got {
		r.add(k, what, want, got)
	}
}
