package rule

import (
	"cmp"
	"time"
)

// bucket has the parameters of a token bucket in units. A token is s units, and num units come back per microsecond.
// For every rate, s and num are integers, so nothing is rounded:
//
//	rate R per P us, g = gcd(R, P):  num = R/g,  s = P/g
//
// The state is the number of missing units, not the remaining units. So a bucket without a stored state is full, a
// larger capacity adds exactly the difference, and a smaller capacity gives nothing away.
//
// Invariants: num, s >= 1; tokens >= 1, or 0 for a portion without tokens; (tokens+debt)*s < 2^53; num < 2^53.
type bucket struct {
	tokens int64 // capacity
	debt   int64 // tokens that may be owed beyond the capacity
	num    int64 // units per us
	s      int64 // units per token
}

func newBucket(r Rate, capacity int64) bucket {
	period := r.Period.Microseconds()
	g := gcd(r.Count, period)
	return bucket{tokens: capacity, num: r.Count / g, s: period / g}
}

// Capacity implements Limit.
func (b bucket) Capacity() int64 { return b.tokens }

// exact reports whether all numbers in the bucket's arithmetic stay below 2^53, so that Lua computes them exactly.
func (b bucket) exact() bool { return b.tokens+b.debt <= maxExact/b.s }

func (b bucket) full() int64 { return b.tokens * b.s }

// Advance refills the bucket for the time that has passed, at the rate with which the state was stored. If the clock
// is at most 5 s behind the state, the bucket is not refilled until the clock has caught up. If the clock is further
// behind, the state is moved to now.
func (b bucket) Advance(s State, at Moment) Level {
	st := advancing(s.At, at.Now)
	if s.Used == 0 {
		return st
	}
	st.Used = s.Used
	if passed := at.Now - s.At; passed >= CeilDiv(s.Used, s.Num) { // otherwise the product below cannot overflow
		st.Used = 0
	} else if passed > 0 {
		st.Used -= passed * s.Num
	}
	if st.MustStore = s.Unit != b.s || s.Num != b.num; st.MustStore {
		st.Used = convert(st.Used, s.Unit, b.s)
		st.unit, st.num = s.Unit, s.Num
	}
	return st
}

func (b bucket) fits(st Level, cost int64) bool { return st.Used <= b.full()-cost*b.s }

// Charge implements Limit.
func (b bucket) Charge(st Level, cost, until int64) Level {
	units := cost * b.s
	if until != UnknownTime {
		units = max(0, units-mulCap(max(0, st.Now+st.Ahead-until), b.num))
	}
	st.Used += units
	return st
}

// Refund implements Limit. It gives back what of the bucket's level after the charge has not come back by itself, at
// the rate with which the state was stored.
func (b bucket) Refund(st Level, cost, until int64) Level {
	back := min(st.Used, mulCap(cost, b.s))
	if until != UnknownTime {
		num, unit := cmp.Or(st.num, b.num), cmp.Or(st.unit, b.s)
		left := min(mulCap(max(0, until-st.Now-st.Ahead), num), maxExact)
		back = min(back, mulCap(left/unit, b.s)+partOf(b.s, left%unit, unit))
	}
	st.Used -= back
	return st
}

// Store implements Limit.
func (b bucket) Store(st Level, now int64) (s State, until int64) {
	ts := now + st.Ahead
	return State{At: ts, Used: st.Used, Unit: b.s, Num: b.num}, ts + CeilDiv(st.Used, b.num)
}

// Debt implements Limit.
func (b bucket) Debt() int64 { return b.debt }

// Left implements Limit.
func (b bucket) Left(st Level) int64 {
	if left := b.full() - st.Used; left >= 0 {
		return left / b.s
	}
	return -b.owed(st)
}

func (b bucket) owed(st Level) int64 { return CeilDiv(st.Used-b.full(), b.s) }

// Wait implements Limit.
func (b bucket) Wait(st Level, cost int64) time.Duration {
	missing := st.Used - (b.full() - cost*b.s)
	if missing <= 0 {
		return 0
	}
	return Micros(CeilDiv(missing, b.num) + st.Ahead)
}

// Delay implements Limit.
func (b bucket) Delay(Level, int64) time.Duration { return 0 }

// Share implements Limit. It divides the rate exactly, so the shares of all holders sum to the rate.
func (b bucket) Share(p Portion) Limit { return b.part(p) }

func (b bucket) part(p Portion) bucket {
	g := gcd(b.num, p.Holders)
	return bucket{tokens: p.Tokens, debt: partOf(b.debt, p.Tokens, b.tokens), num: b.num / g, s: b.s * (p.Holders / g)}
}

// Scale implements Limit.
func (b bucket) Scale(s State, from Limit) State { return b.scaled(s, from.(bucket)) }

func (b bucket) scaled(s State, from bucket) State {
	return State{At: s.At, Used: convert(s.Used, from.full(), b.full()), Unit: b.s, Num: b.num}
}

// leaky is a bucket that works as a queue. Its missing units are the waiting work. A request must wait until the work
// before it is done. A leaky bucket admits the same requests as a token bucket.
type leaky struct{ bucket }

// Delay implements Limit.
func (b leaky) Delay(st Level, own int64) time.Duration {
	before := st.Used - own*b.s
	if before <= 0 {
		return 0
	}
	return Micros(CeilDiv(before, b.num) + st.Ahead)
}

// Share implements Limit.
func (b leaky) Share(p Portion) Limit { return leaky{b.part(p)} }

// Scale implements Limit.
func (b leaky) Scale(s State, from Limit) State { return b.scaled(s, from.(leaky).bucket) }
