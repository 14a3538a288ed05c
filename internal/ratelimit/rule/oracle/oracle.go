package oracle

import (
	"maps"
	"math/big"
	"sort"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// Oracle is a second implementation of the limiter's decisions.
type Oracle struct {
	Buckets map[string]*Bucket
	Bans    map[string]ban // by the key of the bucket

	seen map[string]int // by the key of a sliding log: number of tokens after the last decision on it
}

// Charge is a charge of one rule on one bucket.
type Charge struct {
	Kind     rule.Kind
	Key      string
	Count    int64 // tokens per period
	Period   int64 // us
	Month    bool
	Zone     *time.Location
	Capacity int64
	Debt     int64 // tokens
	Ban      rule.Ban
	Cost     int64
	Taken    int64 // us; of an earlier charge: its time, of a bucket when it would have been full; 0: now
	Shadow   bool
}

// Bucket is the state of a bucket at the time At. The kind of the rule determines which fields are used.
type Bucket struct {
	At      int64           // us
	debt    *big.Rat        // buckets: tokens
	s       *big.Int        // buckets: units per token when debt was written
	count   int64           // fixed window: tokens
	counts  map[int64]int64 // sliding window: tokens per window, by its number
	length  int64           // sliding window: us
	log     []int64         // sliding log: the time of each token, us
	until   int64           // fixed window: us; its end, with the rounding of inFourBits
	EmptyAt int64           // us; from then on it is like an unused bucket
	Written Charge          // the charge that wrote it
	before  Charge          // the charge that wrote it before this decision
}

// Row is the verdict on one charge. Its fields are those of a Verdict.
type Row struct {
	Code      rule.Code
	Remaining int64
	Retry     int64 // us
	Next      int64 // us
	Reset     int64 // us
	Delay     int64 // us
	Taken     int64 // tokens, by this request
	Banned    int64 // us
}

// kindModel is the arithmetic of one kind.
type kindModel interface {
	// advance changes b, a copy of the stored bucket, to the bucket as of now. back means that the clock was set back
	// by more than 5 s. advance reports whether the rule's rate has changed since the bucket was written. Then the
	// bucket must be written again.
	advance(c Charge, b *Bucket, now int64, back bool) (mustStore bool)
	// fits reports whether n tokens can be taken from b at the time `later`, if nothing is charged before that time.
	// advance must have been called for b.
	fits(c Charge, b *Bucket, later, n int64) bool
	// take takes n tokens, as if at the given time. It reports whether any of them are missing now.
	take(c Charge, b *Bucket, n, taken int64) bool
	// give gives back up to n tokens that were taken at the given time. It reports whether it gave back any.
	give(c Charge, b *Bucket, n, taken int64) bool
	// waits returns an upper bound, in us, of the time until the bucket is full.
	waits(c Charge, b *Bucket) int64
}

func (c Charge) model() kindModel {
	switch c.Kind {
	case rule.KindFixedWindow:
		return fixed{}
	case rule.KindSlidingWindow:
		return sliding{}
	case rule.KindSlidingLog:
		return slidingLog{}
	default:
		return refilling{}
	}
}

// New returns an oracle without buckets.
func New() *Oracle {
	return &Oracle{Buckets: make(map[string]*Bucket), Bans: make(map[string]ban), seen: make(map[string]int)}
}

// Decide decides charges at now. It charges all of them or none, and returns a row for each charge.
func (o *Oracle) Decide(now int64, what rule.Op, charges []Charge) (allowed bool, rows []Row) {
	allowed = true
	mustStore := make([]*Bucket, len(charges))
	codes, banned := make([]rule.Code, len(charges)), make([]int64, len(charges))
	for i, c := range charges {
		mustStore[i] = o.Advance(c, now)
		switch {
		case what == rule.Refund || what == rule.Late:
		case c.Cost > c.Capacity:
			codes[i] = rule.Never
		case !c.model().fits(c, mustStore[i], now, c.Cost):
			codes[i] = rule.Denied
		}
		banned[i] = o.banned(c, now, what, codes[i])
		if (codes[i] != rule.Pass || banned[i] > 0) && !c.Shadow {
			allowed = false
		}
	}
	for i, c := range charges {
		b, taken := mustStore[i], int64(0)
		delay := c.turn(b, now)
		switch {
		case what == rule.Refund:
			if c.model().give(c, b, c.Cost, c.Taken) {
				o.write(c, b, now)
			}
		case what == rule.Consume && allowed && codes[i] == rule.Pass && banned[i] == 0:
			taken = c.Cost
			c.model().take(c, b, taken, 0)
			o.write(c, b, now)
		case what == rule.Late:
			if taken = c.late(b, now); taken > 0 {
				if c.model().take(c, b, taken, c.Taken) {
					o.write(c, b, now)
				}
			}
		}
		o.note(c, b)
		// Remaining is the largest cost that fits.
		remaining := int64(sort.Search(int(c.Capacity), func(n int) bool { return !c.model().fits(c, b, now, int64(n)+1) }))
		row := Row{Code: codes[i], Taken: taken, Remaining: remaining, Reset: c.wait(b, now, c.Capacity)}
		if remaining < c.Capacity {
			row.Next = c.wait(b, now, remaining+1)
		}
		if codes[i] == rule.Denied {
			row.Retry = c.wait(b, now, c.Cost)
		}
		if codes[i] == rule.Pass && c.Kind == rule.KindLeakyBucket {
			row.Delay = delay
		}
		if banned[i] > 0 {
			row.Code, row.Banned, row.Delay = rule.Denied, banned[i], 0
			row.Retry = max(row.Retry, row.Banned)
		}
		rows = append(rows, row)
	}
	return allowed, rows
}

// late returns the number of tokens that a charge after the fact takes. It is the largest part of the cost that fits a
// bucket with a capacity of c.Capacity+c.Debt.
func (c Charge) late(b *Bucket, now int64) int64 {
	most := c
	most.Capacity, most.Debt = c.Capacity+c.Debt, 0
	return int64(sort.Search(int(c.Cost), func(n int) bool { return !c.model().fits(most, b, now, int64(n)+1) }))
}

// Advance returns the bucket as of now. If the clock was set back by more than 5 s, the stored bucket is moved to
// now. If the rule's rate has changed, the stored bucket is converted.
func (o *Oracle) Advance(c Charge, now int64) *Bucket {
	b := &Bucket{At: now, debt: new(big.Rat), s: UnitsPerToken(c.Count, c.Period), counts: map[int64]int64{}, length: c.Period}
	back := false
	if stored := o.Buckets[c.Key]; stored != nil {
		copied := *stored
		b = &copied
		b.before = stored.Written
		b.debt, b.counts, b.log = new(big.Rat).Set(stored.debt), maps.Clone(stored.counts), append([]int64(nil), stored.log...)
		back = b.At > now+5_000_000
		if back && c.Kind == rule.KindFixedWindow {
			if start, end := c.window(now); b.At >= end && b.At < end+(end-start) {
				b.At, back = end, false // the next window keeps its tokens, as if they were taken at its start
			}
		}
	}
	mustStore := c.model().advance(c, b, now, back)
	if back {
		b.At = now
	}
	b.At = max(b.At, now)
	if back || mustStore {
		o.write(c, b, now)
	}
	return b
}

// Fits reports whether n tokens can be taken at the time `later` from b. The bucket b must be a result of Advance.
func (c Charge) Fits(b *Bucket, later, n int64) bool { return c.model().fits(c, b, later, n) }

// write stores b, or deletes it if it is full.
func (o *Oracle) write(c Charge, b *Bucket, now int64) {
	b.EmptyAt = now + c.wait(b, now, c.Capacity)
	b.Written = c
	if c.Kind == rule.KindFixedWindow {
		_, end := c.window(b.At)
		b.until = b.At + inFourBits(end-b.At)
	}
	if b.EmptyAt <= now && b.At <= now {
		delete(o.Buckets, c.Key)
		return
	}
	b.EmptyAt = max(b.EmptyAt, b.At)
	copied := *b
	copied.debt, copied.counts, copied.log = new(big.Rat).Set(b.debt), maps.Clone(b.counts), append([]int64(nil), b.log...)
	o.Buckets[c.Key] = &copied
}

// Forget drops the buckets that are full at now under the rule with which they were written.
func (o *Oracle) Forget(now int64) {
	maps.DeleteFunc(o.Buckets, func(_ string, b *Bucket) bool { return b.EmptyAt <= now })
}

// wait returns the time until n tokens can be taken, in microseconds, rounded up.
func (c Charge) wait(b *Bucket, now, n int64) int64 {
	if c.model().fits(c, b, now, n) {
		return 0
	}
	bound := c.model().waits(c, b)
	return int64(sort.Search(int(bound), func(w int) bool { return c.model().fits(c, b, now+int64(w), n) }))
}

// turn returns the delay, in us, of a request that enters the queue of a leaky bucket now.
func (c Charge) turn(b *Bucket, now int64) int64 {
	if b.debt.Sign() == 0 {
		return 0
	}
	work := new(big.Rat).Mul(b.debt, big.NewRat(c.Period, c.Count))
	return CeilRat(work) + b.At - now
}

// refilling is the kindModel of token buckets and leaky buckets.
type refilling struct{}

// advance refills the bucket at the rate with which it was written, because a new rate counts only from now on.
func (refilling) advance(c Charge, b *Bucket, now int64, _ bool) (mustStore bool) {
	if b.Written.Count == 0 || b.debt.Sign() == 0 {
		b.s = UnitsPerToken(c.Count, c.Period)
		return false
	}
	b.debt = b.Written.debtAt(b, now)
	if s := UnitsPerToken(c.Count, c.Period); b.s.Cmp(s) != 0 { // round up to whole units, at most 2^53-1
		inUnits := new(big.Rat).Mul(b.debt, new(big.Rat).SetInt(s))
		b.debt.SetFrac(big.NewInt(min(CeilRat(inUnits), bound.MaxAmount)), s)
		b.s = s
	}
	return big.NewRat(c.Count, c.Period).Cmp(big.NewRat(b.Written.Count, b.Written.Period)) != 0
}

// debtAt returns the number of missing tokens at now. If now is before the bucket's own time, it is the number at
// that time.
func (c Charge) debtAt(b *Bucket, now int64) *big.Rat {
	debt := new(big.Rat).Set(b.debt)
	if now > b.At {
		refill := big.NewRat(c.Count, c.Period)
		debt.Sub(debt, refill.Mul(refill, Tokens(now-b.At)))
	}
	if debt.Sign() < 0 {
		debt.SetInt64(0)
	}
	return debt
}

func (refilling) fits(c Charge, b *Bucket, later, n int64) bool {
	debt := c.debtAt(b, later)
	return debt.Add(debt, Tokens(n)).Cmp(Tokens(c.Capacity)) <= 0
}

// take takes what would not have come back by itself. From the time taken on a bucket would have been full.
func (refilling) take(c Charge, b *Bucket, n, taken int64) bool {
	more := Tokens(n)
	if taken != 0 {
		back := big.NewRat(c.Count, c.Period)
		more.Sub(more, back.Mul(back, Tokens(max(0, b.At-taken))))
	}
	if more.Sign() <= 0 {
		return false
	}
	b.debt.Add(b.debt, more)
	return true
}

// give gives back what has not come back by itself. Of a bucket, taken is the time at which everything has.
func (refilling) give(c Charge, b *Bucket, n, taken int64) bool {
	back := Tokens(n)
	if taken != 0 {
		rate := big.NewRat(c.Count, c.Period)
		if b.before.Count > 0 {
			rate = big.NewRat(b.before.Count, b.before.Period)
		}
		missing := rate.Mul(rate, Tokens(max(0, taken-b.At)))
		if s := UnitsPerToken(c.Count, c.Period); missing.Cmp(back) < 0 { // in whole units
			units := missing.Mul(missing, new(big.Rat).SetInt(s))
			back = new(big.Rat).SetFrac(new(big.Int).Div(units.Num(), units.Denom()), s)
		}
	}
	if back.Cmp(b.debt) > 0 {
		back = b.debt
	}
	if back.Sign() <= 0 {
		return false
	}
	b.debt = new(big.Rat).Sub(b.debt, back)
	return true
}

func (refilling) waits(c Charge, b *Bucket) int64 {
	return min(CeilRat(new(big.Rat).Mul(b.debt, big.NewRat(c.Period, c.Count))), 1<<61) + 5_000_001
}

// UnitsPerToken returns the units per token of a rate. This is the denominator of the fraction count/period in lowest
// terms.
func UnitsPerToken(count, period int64) *big.Int {
	g := new(big.Int).GCD(nil, nil, big.NewInt(count), big.NewInt(period))
	return g.Div(big.NewInt(period), g)
}

// Tokens returns n as a big.Rat.
func Tokens(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

// CeilRat returns x rounded up, or the nearest 64-bit integer if x is too large or too small.
func CeilRat(x *big.Rat) int64 {
	n := new(big.Int).Neg(x.Num())
	return saturate(n.Neg(n.Div(n, x.Denom()))) // Div rounds down, because the denominator is positive
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
