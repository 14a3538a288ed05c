package audit

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

func text64(n int64) string { return strconv.FormatInt(n, 10) }

// stored has the stored rows of some balances, read in one transaction.
type stored struct {
	order    []Key
	balances map[Key]*balance
	periods  map[Key][]period
	grants   map[Key][]grant
	held     map[grantKey]int64
	holdEnds map[Key]time.Time // earliest end of an open hold line
	past     map[Key]*PastOverage
	paid     map[Key]map[paidFor]int64
}

type grantKey struct {
	Key
	id string
}

// balance is a row of balances.
type balance struct {
	seq                              int64
	start, end                       time.Time
	opening, granted, refunded, used int64
	expired, adjusted, held, overage int64
	owed, paid, forgivenSeq          int64
	headID, headSource               string
	headRemaining                    int64
	nextEvent, updatedAt             time.Time
	chain                            []byte
	facts                            string // a digest of the row
	plan                             string
	planVersion                      int32
	allowance                        int64
	renews                           bool
	rollAt                           time.Time // next_event_at in rows of earlier versions
	amended                          int64     // part of adjusted
	// The next columns have no meaning in rows whose open period an earlier version opened: see knows.
	entitled, short, carried, overageBefore int64
	carriedFrom, allowanceAt, termsAt       time.Time
}

func (b *balance) remaining() int64 {
	return b.opening + b.granted + b.refunded - b.used - b.expired + b.adjusted - b.held
}

// knows reports whether the row has the columns about changes inside the open period. A version that does not have them
// leaves them as they were in an earlier period.
func (b *balance) knows() bool { return b.opened() && !b.allowanceAt.Before(b.start) }

// opened reports whether the balance has a period. Before its first period, start is the epoch.
func (b *balance) opened() bool { return b.start.Unix() != 0 }

// period is a row of periods.
type period struct {
	start, end                      time.Time
	opening, granted                int64
	refunded, used                  int64
	expired, adjusted               int64
	overage, held, closing, lastSeq int64
	amended                         int64 // part of adjusted
	closedAt                        time.Time
	idle                            int64 // number of idle periods in the row; 0: an ordinary period
	rolledOver, rollover, owing     int64 // the state in which the first of these periods began
	plan                            string
	planVersion                     int32
	termsAt                         *time.Time // nil: an ordinary period
}

// grant is a row of grants.
type grant struct {
	id, source              string
	amount, remaining, held int64
	priority                int32
	effectiveAt, expiresAt  time.Time
	costBasis, reason       string
	operation               string
	createdAt               time.Time
	status                  string
}

// burnsBefore reports whether debits draw from g before o: lower priority, then earlier expiry, then earlier effect,
// then id.
func (g *grant) burnsBefore(o *grant) bool {
	return cmp.Or(cmp.Compare(g.priority, o.priority), g.expiresAt.Compare(o.expiresAt), g.effectiveAt.Compare(o.effectiveAt),
		cmp.Compare(g.id, o.id)) < 0
}

// columnsOf returns keys as parallel arrays for unnest.
func columnsOf(keys []Key) (tenants, meters, subjects []string) {
	tenants, meters, subjects = make([]string, len(keys)), make([]string, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		tenants[i], meters[i], subjects[i] = k.Tenant, k.Meter, k.Subject
	}
	return tenants, meters, subjects
}

// scanBalances reads the rows of VerifyStored or VerifyCopied.
func scanBalances(rows pgx.Rows, into map[Key]*balance) error {
	var k Key
	var b balance
	_, err := pgx.ForEachRow(rows, []any{
		&k.Tenant, &k.Meter, &k.Subject, &b.seq, &b.start, &b.end, &b.opening, &b.granted, &b.refunded, &b.used, &b.expired,
		&b.adjusted, &b.held, &b.overage, &b.owed, &b.paid, &b.forgivenSeq, &b.headID, &b.headSource, &b.headRemaining,
		&b.nextEvent, &b.updatedAt, &b.chain, &b.facts,
		&b.plan, &b.planVersion, &b.allowance, &b.renews, &b.rollAt, &b.amended, &b.allowanceAt,
		&b.entitled, &b.short, &b.carried, &b.overageBefore, &b.carriedFrom, &b.termsAt,
	}, func() error {
		row := b
		row.chain = slices.Clone(b.chain)
		into[k] = &row
		return nil
	})
	return err
}

// queueStored queues the reads of the rows that belong to the balances in keys.
func (a *Auditor) queueStored(b *pgx.Batch, keys []Key) *stored {
	s := &stored{
		order: keys, balances: map[Key]*balance{}, periods: map[Key][]period{}, grants: map[Key][]grant{}, held: map[grantKey]int64{},
		holdEnds: map[Key]time.Time{}, paid: map[Key]map[paidFor]int64{},
	}
	tenants, meters, subjects := columnsOf(keys)
	b.Queue(a.sql["VerifyStored"], tenants, meters, subjects).Query(func(rows pgx.Rows) error { return scanBalances(rows, s.balances) })
	b.Queue(a.sql["VerifyPeriods"], tenants, meters, subjects).Query(s.scanPeriods)
	b.Queue(a.sql["VerifyGrants"], tenants, meters, subjects).Query(s.scanGrants)
	b.Queue(a.sql["VerifyHeld"], tenants, meters, subjects).Query(s.scanHeld)
	b.Queue(a.sql["VerifyOverflows"], tenants, meters, subjects).Query(s.scanPaid)
	return s
}

func (s *stored) scanPeriods(rows pgx.Rows) error {
	var k Key
	var p period
	_, err := pgx.ForEachRow(rows, []any{
		&k.Tenant, &k.Meter, &k.Subject, &p.start, &p.end, &p.opening, &p.granted, &p.refunded, &p.used, &p.expired, &p.adjusted,
		&p.overage, &p.held, &p.closing, &p.lastSeq, &p.closedAt, &p.idle, &p.rolledOver, &p.rollover, &p.owing,
		&p.plan, &p.planVersion, &p.termsAt, &p.amended,
	}, func() error {
		s.periods[k] = append(s.periods[k], p)
		return nil
	})
	return err
}

func (s *stored) scanGrants(rows pgx.Rows) error {
	var k Key
	var g grant
	_, err := pgx.ForEachRow(rows, []any{
		&k.Tenant, &k.Meter, &k.Subject, &g.id, &g.source, &g.amount, &g.remaining, &g.held, &g.priority, &g.effectiveAt, &g.expiresAt,
		&g.costBasis, &g.reason, &g.operation, &g.createdAt, &g.status,
	}, func() error {
		s.grants[k] = append(s.grants[k], g)
		return nil
	})
	return err
}

func (s *stored) scanHeld(rows pgx.Rows) error {
	var k grantKey
	var held int64
	var ends time.Time
	_, err := pgx.ForEachRow(rows, []any{&k.Tenant, &k.Meter, &k.Subject, &k.id, &held, &ends}, func() error {
		s.held[k] = held
		if first, found := s.holdEnds[k.Key]; !found || ends.Before(first) {
			s.holdEnds[k.Key] = ends
		}
		return nil
	})
	return err
}

// inSnapshot runs read in a transaction that sees one state of the database.
func (a *Auditor) inSnapshot(ctx context.Context, timeout time.Duration, read func(context.Context, pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return pgx.BeginTxFunc(ctx, a.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, setTimeout(timeout)); err != nil {
			return err
		}
		return read(ctx, tx)
	})
}
