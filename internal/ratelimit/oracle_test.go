package ratelimit

import (
	"maps"
	"math/big"
	"sort"
	"time"

	"github.com/quotasvc/quotasvc/internal/bound"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// oracle is a second implementation of the package's promise, in fractions of tokens and lists of charges instead of units and
// counters: no integer trick of the package is repeated here, and when something will be there is not worked out but tried.
type oracle struct {
	buckets map[string]*oracleBucket
}

// oracleCharge is a charge in the oracle's terms.
type oracleCharge struct {
	kind     rule.Kind
	key      string
	count    int64 // tokens per period
	period   int64 // us
	month    bool
	zone     *time.Location
	capacity int64
	cost     int64
	taken    int64 // us; of a refund
	shadow   bool
}

// oracleBucket is a bucket's state as of a time. Which fields are used depends on the kind.
type oracleBucket struct {
	at      int64           // us
	debt    *big.Rat        // buckets: tokens
	s       *big.Int        // buckets: units per token the debt was written in
	count   int64           // fixed window: tokens
	counts  map[int64]int64 // sliding window: tokens per window, by its number
	length  int64           // sliding window: us
	log     []int64         // sliding log: us
	emptyAt int64           // us; from then on it says nothing
	written oracleCharge    // by whom
}

type oracleRow struct {
	code      rule.Code
	remaining int64
	retry     int64 // us
	next      int64 // us
	reset     int64 // us
	delay     int64 // us
}

// oracleKind is what a kind does to a bucket.
type oracleKind interface {
	// settle turns a copy of what is stored into the bucket as of now. back says that the clock was set back by a lot.
	advance(c oracleCharge, b *oracleBucket, now int64, back bool)
	// fits says whether n tokens could be taken from a settled bucket, untouched since, at a later time.
	fits(c oracleCharge, b *oracleBucket, later, n int64) bool
	take(c oracleCharge, b *oracleBucket, n int64)
	// give gives back up to n tokens and says whether there were any.
	give(c oracleCharge, b *oracleBucket, n, taken int64) bool
	// waits is an upper bound of what it can take to be empty.
	waits(c oracleCharge, b *oracleBucket) int64
}

func (c oracleCharge) model() oracleKind {
	switch c.kind {
	case rule.KindFixedWindow:
		return oracleFixed{}
	case rule.KindSlidingWindow:
		return oracleSliding{}
	case rule.KindSlidingLog:
		return oracleLog{}
	default:
		return oracleRefilling{}
	}
}

func newOracle() *oracle { return &oracle{buckets: make(map[string]*oracleBucket)} }

func (o *oracle) decide(now int64, what rule.Op, charges []oracleCharge) (allowed bool, rows []oracleRow) {
	allowed = true
	settled := make([]*oracleBucket, len(charges))
	codes := make([]rule.Code, len(charges))
	for i, c := range charges {
		settled[i] = o.advance(c, now)
		switch {
		case what == rule.Refund:
		case c.cost > c.capacity:
			codes[i] = rule.Never
		case !c.model().fits(c, settled[i], now, c.cost):
			codes[i] = rule.Denied
		}
		if codes[i] != rule.Pass && !c.shadow {
			allowed = false
		}
	}
	for i, c := range charges {
		b := settled[i]
		delay := c.turn(b, now)
		switch {
		case what == rule.Refund:
			if c.model().give(c, b, c.cost, c.taken) {
				o.write(c, b, now)
			}
		case what == rule.Consume && allowed && codes[i] == rule.Pass:
			c.model().take(c, b, c.cost)
			o.write(c, b, now)
		}
		// The largest cost that fits.
		remaining := int64(sort.Search(int(c.capacity), func(n int) bool { return !c.model().fits(c, b, now, int64(n)+1) }))
		row := oracleRow{code: codes[i], remaining: remaining, reset: c.wait(b, now, c.capacity)}
		if remaining < c.capacity {
			row.next = c.wait(b, now, remaining+1)
		}
		if codes[i] == rule.Denied {
			row.retry = c.wait(b, now, c.cost)
		}
		if codes[i] == rule.Pass && c.kind == rule.KindLeakyBucket {
			row.delay = delay
		}
		rows = append(rows, row)
	}
	return allowed, rows
}

// settle is the bucket as of now. A clock set back by more than 5 s moves the stored bucket.
func (o *oracle) advance(c oracleCharge, now int64) *oracleBucket {
	b := &oracleBucket{at: now, debt: new(big.Rat), s: unitsPerToken(c.count, c.period), counts: map[int64]int64{}, length: c.period}
	back := false
	if stored := o.buckets[c.key]; stored != nil {
		copied := *stored
		b = &copied
		b.debt, b.counts, b.log = new(big.Rat).Set(stored.debt), maps.Clone(stored.counts), append([]int64(nil), stored.log...)
		back = b.at > now+5_000_000
	}
	c.model().advance(c, b, now, back)
	if back {
		b.at = now
		o.write(c, b, now)
	}
	b.at = max(b.at, now)
	return b
}

// write stores b unless it says nothing: then no key is left behind.
func (o *oracle) write(c oracleCharge, b *oracleBucket, now int64) {
	b.emptyAt = now + c.wait(b, now, c.capacity)
	b.written = c
	if b.emptyAt <= now && b.at <= now {
		delete(o.buckets, c.key)
		return
	}
	b.emptyAt = max(b.emptyAt, b.at)
	copied := *b
	copied.debt, copied.counts, copied.log = new(big.Rat).Set(b.debt), maps.Clone(b.counts), append([]int64(nil), b.log...)
	o.buckets[c.key] = &copied
}

// forget drops the buckets that were due to be empty by now, whatever their rule is now.
func (o *oracle) forget(now int64) {
	maps.DeleteFunc(o.buckets, func(_ string, b *oracleBucket) bool { return b.emptyAt <= now })
}

// wait is the whole microseconds until n tokens are there: the first moment at which they can be taken.
func (c oracleCharge) wait(b *oracleBucket, now, n int64) int64 {
	if c.model().fits(c, b, now, n) {
		return 0
	}
	bound := c.model().waits(c, b)
	return int64(sort.Search(int(bound), func(w int) bool { return c.model().fits(c, b, now+int64(w), n) }))
}

// turn is when a request that comes now has its turn in a queue.
func (c oracleCharge) turn(b *oracleBucket, now int64) int64 {
	if b.debt.Sign() == 0 {
		return 0
	}
	work := new(big.Rat).Mul(b.debt, big.NewRat(c.period, c.count))
	return ceilRat(work) + b.at - now
}

// oracleRefilling is the token bucket and the leaky one.
type oracleRefilling struct{}

func (oracleRefilling) advance(c oracleCharge, b *oracleBucket, now int64, _ bool) {
	s := unitsPerToken(c.count, c.period)
	if b.s.Cmp(s) != 0 { // a new rate: whole units, rounded up, at most 2^53-1 of them
		inUnits := new(big.Rat).Mul(b.debt, new(big.Rat).SetInt(s))
		b.debt.SetFrac(big.NewInt(min(ceilRat(inUnits), bound.MaxAmount)), s)
		b.s = s
	}
	b.debt = c.debtAt(b, now)
}

// debtAt is the debt at a time: from the bucket's own on, it is worked off.
func (c oracleCharge) debtAt(b *oracleBucket, now int64) *big.Rat {
	debt := new(big.Rat).Set(b.debt)
	if now > b.at {
		refill := big.NewRat(c.count, c.period)
		debt.Sub(debt, refill.Mul(refill, tokens(now-b.at)))
	}
	if debt.Sign() < 0 {
		debt.SetInt64(0)
	}
	return debt
}

func (oracleRefilling) fits(c oracleCharge, b *oracleBucket, later, n int64) bool {
	debt := c.debtAt(b, later)
	return debt.Add(debt, tokens(n)).Cmp(tokens(c.capacity)) <= 0
}

func (oracleRefilling) take(_ oracleCharge, b *oracleBucket, n int64) { b.debt.Add(b.debt, tokens(n)) }

func (oracleRefilling) give(_ oracleCharge, b *oracleBucket, n, _ int64) bool {
	if b.debt.Sign() == 0 {
		return false
	}
	if b.debt.Sub(b.debt, tokens(n)); b.debt.Sign() < 0 {
		b.debt.SetInt64(0)
	}
	return true
}

func (oracleRefilling) waits(c oracleCharge, b *oracleBucket) int64 {
	return min(ceilRat(new(big.Rat).Mul(b.debt, big.NewRat(c.period, c.count))), 1<<61) + 5_000_001
}

func unitsPerToken(count, period int64) *big.Int {
	g := new(big.Int).GCD(nil, nil, big.NewInt(count), big.NewInt(period))
	return g.Div(big.NewInt(period), g)
}

func tokens(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

func ceilRat(x *big.Rat) int64 {
	n := new(big.Int).Neg(x.Num())
	return saturate(n.Neg(n.Div(n, x.Denom()))) // Euclidean: the denominator is positive
}

func saturate(n *big.Int) int64 {
	switch {
	case n.IsInt64():
		return n.Int64()
	case n.Sign() < 0:
		return -1 << 63
	default:
		return 1<<63 - 1
	}
}
