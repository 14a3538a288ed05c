package audit

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotasvc/quotasvc/internal/kit/backoff"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
)

const (
	// DifferencesMax bounds the differences that a report lists. All differences are counted.
	DifferencesMax = 100
	// orphansTimeout bounds a transaction that reads a whole table, for example all entries.
	orphansTimeout = 30 * time.Minute
)

//go:embed sql/*.sql
var sqlFiles embed.FS

// Key names a balance.
type Key struct{ Tenant, Meter, Subject string }

// String returns tenant, meter and subject with slashes between them. It leaves out empty names at the end.
func (k Key) String() string { return strings.TrimRight(k.Tenant+"/"+k.Meter+"/"+k.Subject, "/") }

// Copy is the cached copy of a balance.
type Copy struct {
	Seq, Remaining   int64
	AsOf, ValidUntil time.Time // when the copy was made, and the balance's next event
	Derived          bool      // it includes entries that were due but not yet written
}

// CopyReader returns the cached copy for each key, nil for a key without a copy.
type CopyReader func(context.Context, []Key) ([]*Copy, error)

// Options selects what is verified.
type Options struct {
	Tenant   string        // empty: all tenants
	Copies   CopyReader    // nil: no cache is compared
	Terms    TermsComparer // nil: what follows from terms is not compared
	Progress func(Report)  // called after every page or range; nil: not called
	Pause    time.Duration // pause between pages, to limit the load on the database
	// Incremental reads the entries after the newest checkpoints, and skips balances that did not change. Otherwise the
	// pass begins at the first entries, or at archived checkpoints.
	Incremental bool
	// ReadOnly writes no checkpoints.
	ReadOnly bool
	// After is the position from which an interrupted pass over all tenants continues, with its results so far; nil:
	// a new pass.
	After *Position
	// Save is called with the position after every page; nil: positions are not saved.
	Save func(context.Context, *Position)
}

// Auditor verifies a ledger's tables.
type Auditor struct {
	pool *pgxpool.Pool
	sql  map[string]string

	// RangeEntries bounds the entries that one transaction reads. A larger balance is read in ranges. Only the last
	// range is read in the transaction of the comparison. The other ranges are read before it, because entries never
	// change.
	RangeEntries int64
}

// New returns an auditor that reads through pool. target is the kind of the pool's database: PostgreSQL or Citus.
func New(pool *pgxpool.Pool, target namedsql.Target) *Auditor {
	return &Auditor{pool: pool, sql: namedsql.Must(target, sqlFiles), RangeEntries: rangeEntries}
}

// Verify compares every balance and its grants, periods, holds and refunds with the journal. It also compares the
// journal with its hash chain, and cached copies with the balances.
func (a *Auditor) Verify(ctx context.Context, o Options) (*Report, error) {
	report := newReport()
	report.Incremental = o.Incremental
	report.CopiesCompared = o.Copies != nil
	p := &pass{auditor: a, options: &o, report: report, before: forever, touched: map[string]bool{}}
	if err := a.pool.QueryRow(ctx, a.sql["ChainStart"]).Scan(&p.unchained); err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	started, after, t := time.Now(), Key{}, newTenants()
	if o.After != nil {
		after, report = o.After.Key, o.After.restore()
		report.CopiesCompared = report.CopiesCompared && o.Copies != nil
		p.report, t.open = report, after.Tenant
	}
	for {
		page, err := p.page(ctx, after)
		if err != nil {
			return nil, fmt.Errorf("verify: read balances: %w", err)
		}
		if err := p.onePage(ctx, page, t); err != nil {
			return nil, fmt.Errorf("verify: %w", err)
		}
		if len(page) == 0 {
			break
		}
		after = page[len(page)-1].Key
		report.Elapsed = time.Since(started)
		if o.Progress != nil {
			o.Progress(*report)
		}
		if o.Save != nil {
			o.Save(ctx, &Position{Key: after, Report: report.Clone(), Sums: report.sums()})
		}
		if !backoff.Sleep(ctx, o.Pause) {
			return nil, fmt.Errorf("verify: %w", ctx.Err())
		}
	}
	report.conserve()
	if !o.Incremental {
		if err := a.findOrphans(ctx, o.Tenant, report); err != nil {
			return nil, err
		}
		if err := a.compareGauges(ctx, o.Tenant, report); err != nil {
			return nil, err
		}
		if err := p.compareAgreements(ctx); err != nil {
			return nil, err
		}
	}
	report.Elapsed = time.Since(started)
	return report, nil
}

// onePage verifies a page of balances, and the refunds and holds of the tenants whose last balance is in the page. An
// empty page ends the last tenant.
func (p *pass) onePage(ctx context.Context, page []*candidate, t *tenants) error {
	if err := p.verify(ctx, page); err != nil {
		return err
	}
	if err := p.auditor.save(ctx, p.saved); err != nil {
		return err
	}
	p.saved = p.saved[:0]
	if p.options.Copies != nil && len(page) > 0 {
		keys := make([]Key, len(page))
		for i, c := range page {
			keys[i] = c.Key
		}
		if err := p.auditor.compareCopies(ctx, keys, p.options.Copies, p.report); err != nil {
			return err
		}
	}
	ended := t.add(page)
	if p.options.Incremental || len(ended) == 0 {
		return nil
	}
	return p.compareTenants(ctx, ended, p.touched, t.archived)
}

// tenants tracks the tenant whose balances a pass has read only in part.
type tenants struct {
	open     string
	archived map[string]bool // tenants that have archived checkpoints
}

func newTenants() *tenants { return &tenants{archived: map[string]bool{}} }

// add returns the tenants whose last balance is in page.
func (t *tenants) add(page []*candidate) (ended []string) {
	for _, c := range page {
		if c.from != nil && c.from.Archived {
			t.archived[c.Tenant] = true
		}
		if t.open != "" && t.open != c.Tenant {
			ended = append(ended, t.open)
		}
		t.open = c.Tenant
	}
	if len(page) == 0 && t.open != "" {
		ended, t.open = []string{t.open}, ""
	}
	return ended
}

// findOrphans reports entries, checkpoints, grants, closed periods and hold lines of balances that do not exist.
func (a *Auditor) findOrphans(ctx context.Context, tenant string, report *Report) error {
	ctx, cancel := context.WithTimeout(ctx, orphansTimeout)
	defer cancel()
	err := pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) error {
		// This statement reads the whole journal; a hash join is its best plan.
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
		if err != nil {
			return err
		}
		if rows, err = tx.Query(ctx, a.sql["VerifyLost"], tenant); err != nil {
			return err
		}
		var what string
		_, err = pgx.ForEachRow(rows, []any{&what, &k.Tenant, &k.Meter, &k.Subject}, func() error {
			report.add(k, "balance of existing "+strings.TrimPrefix(what, "a "), "a row", "none")
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

// Difference is a value that differs between the journal and another record.
type Difference struct {
	Tenant, Meter, Subject string
	What                   string // name of the value
	Want                   string // the value in the journal
	Got                    string // the stored value
}

// String returns the difference as one line.
func (d Difference) String() string {
	k := Key{cmp.Or(d.Tenant, "all tenants"), d.Meter, d.Subject}
	return fmt.Sprintf("%v: %s: journal says %s, stored is %s", k, d.What, d.Want, d.Got)
}

// Report is the result of a verification.
type Report struct {
	Balances, Entries, Periods, Grants int64
	Unchanged                          int64 // balances that an incremental pass did not need to read
	Copies                             int64 // cached copies compared
	StaleCopies                        int64 // of these, copies that need not equal their balance: see compareCopies
	CopiesCompared                     bool  // false: there was no cache to compare
	Incremental                        bool  // only entries after the newest checkpoints were read
	Totals                             map[string]Totals
	Count                              int64        // differences found
	Differences                        []Difference // the first DifferencesMax differences
	Unread                             int64        // balances or tenants not read, because of a time-out or a lock
	UnreadFirst                        []Key        // the first DifferencesMax of these
	Elapsed                            time.Duration

	totals map[string]*totals
}

func newReport() *Report { return &Report{Totals: map[string]Totals{}, totals: map[string]*totals{}} }

// Clone returns a copy that shares nothing with r.
func (r *Report) Clone() Report {
	out := *r
	out.Totals, out.Differences, out.UnreadFirst = maps.Clone(r.Totals), slices.Clone(r.Differences), slices.Clone(r.UnreadFirst)
	out.totals = maps.Clone(r.totals)
	return out
}

// mark returns a copy of the report, for reset.
func (r *Report) mark() Report { return r.Clone() }

// reset discards what was reported since mark.
func (r *Report) reset(before Report) { *r = before }

// unread reports that a balance could not be read. A key without a meter means the refunds and holds of a tenant.
func (r *Report) unread(k Key) {
	if r.Unread++; len(r.UnreadFirst) < DifferencesMax {
		r.UnreadFirst = append(r.UnreadFirst, k)
	}
}

// conserve compares each meter's sums over all balances: all units that came in were used, expired, are held or remain.
func (r *Report) conserve() {
	for meter, t := range r.totals {
		shown := t.shown()
		shown.Partial = r.Unread > 0
		r.Totals[meter] = shown
		if in, out := t.sides(); !shown.Partial && in.Cmp(out) != 0 {
			r.add(Key{Meter: meter}, "issued + refunded + adjusted = used + expired + remaining + held", in, out)
		}
	}
}

// Position is the state of a pass after a page. An interrupted pass continues from it.
type Position struct {
	Key    Key
	Report Report
	Sums   map[string][]string // exact totals, by meter
}

func (r *Report) sums() map[string][]string {
	out := make(map[string][]string, len(r.totals))
	for meter, t := range r.totals {
		for i := range t {
			out[meter] = append(out[meter], t[i].String())
		}
	}
	return out
}

// restore returns the report of an interrupted pass, to continue the pass.
func (p *Position) restore() *Report {
	out := p.Report.Clone()
	if out.Totals == nil {
		out.Totals = map[string]Totals{}
	}
	out.totals = map[string]*totals{}
	for meter, sums := range p.Sums {
		t := new(totals)
		for i := range min(len(sums), len(t)) {
			t[i].SetString(sums[i], 10)
		}
		out.totals[meter] = t
	}
	return &out
}

// Clean reports whether everything was read and nothing differs.
func (r *Report) Clean() bool { return r.Count == 0 && r.Unread == 0 }

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
