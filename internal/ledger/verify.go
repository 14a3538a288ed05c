package ledger

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// verifyChunk is how many balances one verifying transaction reads: short enough not to hold back the removal of dead
	// row versions.
	verifyChunk = 200
	// DifferencesMax bounds the differences a report lists; all are counted.
	DifferencesMax = 100
	// verifyTimeout bounds one chunk.
	verifyTimeout = 60 * time.Second
	// orphansTimeout bounds the one statement that reads the whole journal.
	orphansTimeout = 30 * time.Minute
)

// BalanceKey names a balance to a CopyReader.
type BalanceKey struct{ Tenant, Meter, Subject string }

// CopyReader returns what a cache holds of each key, nil where it holds nothing.
type CopyReader func(context.Context, []BalanceKey) ([]*BalanceCopy, error)

// VerifyOptions selects what is verified.
type VerifyOptions struct {
	Tenant   string             // '' = all
	Copies   CopyReader         // nil = no cache is compared
	Progress func(VerifyReport) // called after every chunk; nil = not wanted
	Pause    time.Duration      // between chunks, for a verification that shall not be felt
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

// Totals are a meter's sums over all balances verified: Issued + Refunded + Adjusted = Used + Expired + Remaining + Held.
type Totals struct {
	Issued, Used, Refunded, Expired, Adjusted, Remaining, Held int64
	// Partial says that some of the entries lie in months that were dropped: the sums above are not those of all time.
	Partial bool
}

// VerifyReport is the result of a verification.
type VerifyReport struct {
	Balances, Entries, Periods, Grants int64
	Copies                             int64 // cached copies compared
	StaleCopies                        int64 // of these, how many are older than their balance; no difference
	Totals                             map[string]Totals
	Count                              int64        // differences found
	Differences                        []Difference // the first DifferencesMax
	Elapsed                            time.Duration
}

// clone is a copy that shares nothing with r, which goes on growing.
func (r *VerifyReport) clone() VerifyReport {
	out := *r
	out.Totals, out.Differences = maps.Clone(r.Totals), slices.Clone(r.Differences)
	return out
}

// Clean says that nothing differs.
func (r *VerifyReport) Clean() bool { return r.Count == 0 }

func (r *VerifyReport) add(k key, what string, want, got any) {
	r.Count++
	if len(r.Differences) < DifferencesMax {
		r.Differences = append(r.Differences, Difference{
			Tenant: k.Tenant, Meter: k.Meter, Subject: k.Subject, What: what, Want: fmt.Sprint(want), Got: fmt.Sprint(got),
		})
	}
}

func (r *VerifyReport) equal(k key, what string, want, got int64) {
	if want != got {
		r.add(k, what, want, got)
	}
}

// Verify compares every balance, its grants and its periods with sums over the journal, and the cached copies with the
// balances. Entries of months whose partition was dropped are taken as read: checks that would need them are left out.
func (l *Ledger) Verify(ctx context.Context, o VerifyOptions) (*VerifyReport, error) {
	report := &VerifyReport{Totals: map[string]Totals{}}
	started := time.Now()
	if o.Tenant != "" {
		if e := validID("tenant", o.Tenant); e != nil {
			return nil, e
		}
		if err := l.mustExist(ctx, o.Tenant); err != nil {
			return nil, err
		}
	}
	after := key{}
	for {
		v, err := l.verifyChunk(ctx, after, o.Tenant)
		if err != nil {
			return nil, err
		}
		if len(v.order) == 0 {
			break
		}
		v.compare(report)
		if o.Copies != nil {
			if err := l.verifyCopies(ctx, v, o.Copies, report); err != nil {
				return nil, err
			}
		}
		after = v.order[len(v.order)-1]
		report.Elapsed = time.Since(started)
		if o.Progress != nil {
			o.Progress(*report)
		}
		if err := sleep(ctx, o.Pause); err != nil {
			return nil, err
		}
	}
	report.conserve()
	if err := l.verifyOrphans(ctx, o.Tenant, report); err != nil {
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

// verification is what one chunk has read.
type verification struct {
	order   []key
	books   map[key]*book
	chains  map[key]chain
	sums    map[key][]sums
	periods map[key][]closedPeriod
	grants  map[key][]GrantRecord
	held    map[grantKey]int64
}

// chain is a balance's journal at a glance.
type chain struct {
	count, first, last             int64
	gap, broken, backwards, ending int64
}

// sums is what the journal says of one grant in one period.
type sums struct {
	period                     time.Time
	grant                      string
	lastSeq                    int64
	granted, refunded, used    int64
	expired, adjusted, overage int64
	owing, forgiven            int64 // overage that the period began with; that was forgiven at its end
	forgivenSeq                int64 // entry that forgave
	owed, settled              int64
	held, issued, left         int64
	unknown                    int64
}

// plus adds up two sums of the same period, or of the same grant.
func (s sums) plus(o sums) sums {
	s.lastSeq = max(s.lastSeq, o.lastSeq)
	s.granted, s.refunded, s.used = s.granted+o.granted, s.refunded+o.refunded, s.used+o.used
	s.expired, s.adjusted, s.overage = s.expired+o.expired, s.adjusted+o.adjusted, s.overage+o.overage
	s.owing, s.forgiven, s.forgivenSeq = s.owing+o.owing, s.forgiven+o.forgiven, max(s.forgivenSeq, o.forgivenSeq)
	s.owed, s.settled = s.owed+o.owed, s.settled+o.settled
	s.held, s.issued, s.left, s.unknown = s.held+o.held, s.issued+o.issued, s.left+o.left, s.unknown+o.unknown
	return s
}

func (l *Ledger) verifyChunk(ctx context.Context, after key, tenant string) (*verification, error) {
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	v := &verification{
		books: map[key]*book{}, chains: map[key]chain{}, sums: map[key][]sums{}, periods: map[key][]closedPeriod{},
		grants: map[key][]GrantRecord{}, held: map[grantKey]int64{},
	}
	err := pgx.BeginTxFunc(ctx, l.readers, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		// One chunk of a hot tenant may hold millions of entries: the reader's usual time limit does not fit.
		if _, err := tx.Exec(ctx, "SET LOCAL statement_timeout = "+milliseconds(verifyTimeout)); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, l.queries["VerifyBalances"], after.Tenant, after.Meter, after.Subject, verifyChunk, tenant)
		if err != nil {
			return err
		}
		if err := scanBalances(v.books)(rows); err != nil {
			return err
		}
		for k := range v.books {
			v.order = append(v.order, k)
		}
		sortKeys(v.order)
		c := columnsOf(v.order)
		b := &pgx.Batch{}
		b.Queue(l.queries["VerifyChain"], c.tenants, c.meters, c.subjects).Query(v.scanChains)
		b.Queue(l.queries["VerifySums"], c.tenants, c.meters, c.subjects).Query(v.scanSums)
		b.Queue(l.queries["VerifyPeriods"], c.tenants, c.meters, c.subjects).Query(v.scanPeriods)
		b.Queue(l.queries["VerifyGrants"], c.tenants, c.meters, c.subjects).Query(v.scanGrants)
		b.Queue(l.queries["VerifyHolds"], c.tenants, c.meters, c.subjects).Query(v.scanHolds)
		return tx.SendBatch(ctx, b).Close()
	})
	if err != nil {
		return nil, unavailable("verify balances", err)
	}
	return v, nil
}

func (v *verification) scanChains(rows pgx.Rows) error {
	var k key
	var c chain
	_, err := pgx.ForEachRow(rows, []any{
		&k.Tenant, &k.Meter, &k.Subject, &c.count, &c.first, &c.last, &c.gap, &c.broken, &c.backwards, &c.ending,
	}, func() error {
		v.chains[k] = c
		return nil
	})
	return err
}

func (v *verification) scanSums(rows pgx.Rows) error {
	var k key
	var s sums
	_, err := pgx.ForEachRow(rows, []any{
		&k.Tenant, &k.Meter, &k.Subject, &s.period, &s.grant, &s.lastSeq, &s.granted, &s.refunded, &s.used, &s.expired,
		&s.adjusted, &s.overage, &s.owing, &s.forgiven, &s.forgivenSeq, &s.owed, &s.settled, &s.held, &s.issued, &s.left, &s.unknown,
	}, func() error {
		v.sums[k] = append(v.sums[k], s)
		return nil
	})
	return err
}

func (v *verification) scanPeriods(rows pgx.Rows) error {
	var p closedPeriod
	_, err := pgx.ForEachRow(rows, []any{
		&p.Tenant, &p.Meter, &p.Subject, &p.start, &p.end, &p.opening, &p.granted, &p.refunded, &p.used, &p.expired, &p.adjusted,
		&p.overage, &p.closing, &p.lastSeq,
	}, func() error {
		v.periods[p.key] = append(v.periods[p.key], p)
		return nil
	})
	return err
}

func (v *verification) scanGrants(rows pgx.Rows) error {
	var g GrantRecord
	_, err := pgx.ForEachRow(rows, grantTargets(&g), func() error {
		k := key{g.Tenant, g.Meter, g.Subject}
		v.grants[k] = append(v.grants[k], g)
		return nil
	})
	return err
}

func (v *verification) scanHolds(rows pgx.Rows) error {
	var k grantKey
	var held int64
	_, err := pgx.ForEachRow(rows, []any{&k.Tenant, &k.Meter, &k.Subject, &k.id, &held}, func() error {
		v.held[k] = held
		return nil
	})
	return err
}

func (l *Ledger) verifyOrphans(ctx context.Context, tenant string, report *VerifyReport) error {
	ctx, cancel := context.WithTimeout(ctx, orphansTimeout)
	defer cancel()
	return pgx.BeginFunc(ctx, l.readers, func(tx pgx.Tx) error {
		// This is the one statement that has to read the journal whole; a hash join is its best plan.
		if _, err := tx.Exec(ctx, "SET LOCAL statement_timeout = "+milliseconds(orphansTimeout)+"; SET LOCAL enable_seqscan = on; SET LOCAL enable_hashjoin = on"); err != nil {
			return unavailable("verify orphans", err)
		}
		rows, err := tx.Query(ctx, l.queries["VerifyOrphans"], tenant)
		if err != nil {
			return unavailable("verify orphans", err)
		}
		var k key
		_, err = pgx.ForEachRow(rows, []any{&k.Tenant, &k.Meter, &k.Subject}, func() error {
			report.add(k, "balance of existing entries", "a row", "none")
			return nil
		})
		if err != nil {
			return unavailable("verify orphans", err)
		}
		return nil
	})
}
