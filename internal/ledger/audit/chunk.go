package audit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// chunkBalances is how many balances one transaction reads: few enough not to hold back the removal of dead row versions.
	chunkBalances = 200
	// chunkTimeout bounds one chunk. One of a hot tenant may hold millions of entries.
	chunkTimeout = 60 * time.Second
)

// chunk is what one transaction has read.
type chunk struct {
	order    []Key
	balances map[Key]balance
	chains   map[Key]chain
	sums     map[Key][]sums
	periods  map[Key][]period
	grants   map[Key][]grant
	held     map[grantKey]int64
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
	owed, settled, forgivenSeq       int64
	headID                           string
	headRemaining                    int64
}

func (b *balance) remaining() int64 {
	return b.opening + b.granted + b.refunded - b.used - b.expired + b.adjusted - b.held
}

// opened reports whether the balance has a period: its start is the epoch before.
func (b *balance) opened() bool { return b.start.Unix() != 0 }

// period is a row of periods.
type period struct {
	start, end                time.Time
	opening, granted          int64
	refunded, used            int64
	expired, adjusted         int64
	overage, closing, lastSeq int64
}

// grant is a row of grants.
type grant struct {
	id, source              string
	amount, remaining, held int64
	priority                int32
	effectiveAt, expiresAt  time.Time
	status                  string
}

// burnsBefore reports whether debits draw from g before they draw from o: lower priority, then sooner expiry, then earlier effect,
// then id.
func (g *grant) burnsBefore(o *grant) bool {
	return cmp.Or(cmp.Compare(g.priority, o.priority), g.expiresAt.Compare(o.expiresAt), g.effectiveAt.Compare(o.effectiveAt),
		cmp.Compare(g.id, o.id)) < 0
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
	owing, forgiven            int64 // overage that the period began with, and that was forgiven at its end
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

// readChunk reads the next balances after the given key, and what belongs to them.
func (a *Auditor) readChunk(ctx context.Context, after Key, tenant string) (*chunk, error) {
	ctx, cancel := context.WithTimeout(ctx, chunkTimeout)
	defer cancel()
	c := &chunk{
		balances: map[Key]balance{}, chains: map[Key]chain{}, sums: map[Key][]sums{}, periods: map[Key][]period{},
		grants: map[Key][]grant{}, held: map[grantKey]int64{},
	}
	err := pgx.BeginTxFunc(ctx, a.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, setTimeout(chunkTimeout)); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, a.sql["VerifyBalances"], after.Tenant, after.Meter, after.Subject, chunkBalances, tenant)
		if err != nil {
			return err
		}
		if err := scanBalances(rows, c.balances); err != nil {
			return err
		}
		for k := range c.balances {
			c.order = append(c.order, k)
		}
		slices.SortFunc(c.order, func(a, b Key) int {
			return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Meter, b.Meter), cmp.Compare(a.Subject, b.Subject))
		})
		tenants, meters, subjects := columnsOf(c.order)
		b := &pgx.Batch{}
		b.Queue(a.sql["VerifyChain"], tenants, meters, subjects).Query(c.scanChains)
		b.Queue(a.sql["VerifySums"], tenants, meters, subjects).Query(c.scanSums)
		b.Queue(a.sql["VerifyPeriods"], tenants, meters, subjects).Query(c.scanPeriods)
		b.Queue(a.sql["VerifyGrants"], tenants, meters, subjects).Query(c.scanGrants)
		b.Queue(a.sql["VerifyHolds"], tenants, meters, subjects).Query(c.scanHolds)
		return tx.SendBatch(ctx, b).Close()
	})
	if err != nil {
		return nil, fmt.Errorf("verify balances: %w", err)
	}
	return c, nil
}

// columnsOf returns keys as parallel arrays for unnest.
func columnsOf(keys []Key) (tenants, meters, subjects []string) {
	tenants, meters, subjects = make([]string, len(keys)), make([]string, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		tenants[i], meters[i], subjects[i] = k.Tenant, k.Meter, k.Subject
	}
	return tenants, meters, subjects
}

func scanBalances(rows pgx.Rows, into map[Key]balance) error {
	var k Key
	var b balance
	_, err := pgx.ForEachRow(rows, []any{
		&k.Tenant, &k.Meter, &k.Subject, &b.seq, &b.start, &b.end, &b.opening, &b.granted, &b.refunded, &b.used, &b.expired,
		&b.adjusted, &b.held, &b.overage, &b.owed, &b.settled, &b.forgivenSeq, &b.headID, &b.headRemaining,
	}, func() error {
		into[k] = b
		return nil
	})
	return err
}

func (c *chunk) scanChains(rows pgx.Rows) error {
	var k Key
	var ch chain
	_, err := pgx.ForEachRow(rows, []any{
		&k.Tenant, &k.Meter, &k.Subject, &ch.count, &ch.first, &ch.last, &ch.gap, &ch.broken, &ch.backwards, &ch.ending,
	}, func() error {
		c.chains[k] = ch
		return nil
	})
	return err
}

func (c *chunk) scanSums(rows pgx.Rows) error {
	var k Key
	var s sums
	_, err := pgx.ForEachRow(rows, []any{
		&k.Tenant, &k.Meter, &k.Subject, &s.period, &s.grant, &s.lastSeq, &s.granted, &s.refunded, &s.used, &s.expired,
		&s.adjusted, &s.overage, &s.owing, &s.forgiven, &s.forgivenSeq, &s.owed, &s.settled, &s.held, &s.issued, &s.left, &s.unknown,
	}, func() error {
		c.sums[k] = append(c.sums[k], s)
		return nil
	})
	return err
}

func (c *chunk) scanPeriods(rows pgx.Rows) error {
	var k Key
	var p period
	_, err := pgx.ForEachRow(rows, []any{
		&k.Tenant, &k.Meter, &k.Subject, &p.start, &p.end, &p.opening, &p.granted, &p.refunded, &p.used, &p.expired, &p.adjusted,
		&p.overage, &p.closing, &p.lastSeq,
	}, func() error {
		c.periods[k] = append(c.periods[k], p)
		return nil
	})
	return err
}

func (c *chunk) scanGrants(rows pgx.Rows) error {
	var k Key
	var g grant
	_, err := pgx.ForEachRow(rows, []any{
		&k.Tenant, &k.Meter, &k.Subject, &g.id, &g.source, &g.amount, &g.remaining, &g.held, &g.priority, &g.effectiveAt, &g.expiresAt,
		&g.status,
	}, func() error {
		c.grants[k] = append(c.grants[k], g)
		return nil
	})
	return err
}

func (c *chunk) scanHolds(rows pgx.Rows) error {
	var k grantKey
	var held int64
	_, err := pgx.ForEachRow(rows, []any{&k.Tenant, &k.Meter, &k.Subject, &k.id, &held}, func() error {
		c.held[k] = held
		return nil
	})
	return err
}
