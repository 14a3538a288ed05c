package rule

import (
	"time"
)

// bucket is a token bucket's parameters in units. A token is s units, num units come back per microsecond; both are
// integers for every rational rate, so nothing is ever rounded:
//
//	rate R per P us, g = gcd(R, P):  num = R/g,  s = P/g
//
// The state is the debt in units, not what is left, so that no state at all is a full bucket, a larger capacity adds exactly
// the difference and a smaller one gives nothing away.
//
// Invariants: num, s >= 1; tokens >= 1, but for a share of none; tokens*s < 2^53; num < 2^53.
type bucket struct {
	tokens int64 // capacity
	num    int64 // units per us
	s      int64 // units per token
}

func newBucket(r Rate, capacity int64) bucket {
	period := r.Period.Microseconds()
	g := gcd(r.Count, period)
	return bucket{tokens: capacity, num: r.Count / g, s: period / g}
}

func (b bucket) Capacity() int64 { return b.tokens }

// exact reports whether all of the bucket's arithmetic stays below 2^53.
func (b bucket) exact() bool { return b.tokens <= maxExact/b.s }

func (b bucket) full() int64 { return b.tokens * b.s }

// settle refills the time that has passed, waits where the clock is a little behind, and rebases where it is far behind.
func (b bucket) Advance(s State, at Moment) Level {
	st := advancing(s.Ts, at.Now)
	st.Used = s.Used
	if s.Unit != b.s && s.Used > 0 {
		st.Used = convert(s.Used, s.Unit, b.s)
	}
	if s.Ts >= at.Now {
		return st
	}
	if passed := at.Now - s.Ts; passed < CeilDiv(st.Used, b.num) { // so the product cannot overflow
		st.Used -= passed * b.num
	} else {
		st.Used = 0
	}
	return st
}

func (b bucket) fits(st Level, cost int64) bool { return st.Used <= b.full()-cost*b.s }

func (b bucket) Charge(st Level, cost int64) Level {
	st.Used += cost * b.s
	return st
}

func (b bucket) Refund(st Level, cost, _ int64) Level {
	if cost >= CeilDiv(st.Used, b.s) {
		st.Used = 0
	} else {
		st.Used -= cost * b.s
	}
	return st
}

func (b bucket) Store(st Level, now int64) (s State, until int64) {
	ts := now + st.Ahead
	return State{Ts: ts, Used: st.Used, Unit: b.s}, ts + CeilDiv(st.Used, b.num)
}

// remaining is none for a debt beyond the capacity, left by a rule that allowed more.
func (b bucket) Remaining(st Level) int64 {
	return max(0, b.full()-st.Used) / b.s
}

func (b bucket) Wait(st Level, cost int64) time.Duration {
	missing := st.Used - (b.full() - cost*b.s)
	if missing <= 0 {
		return 0
	}
	return Micros(CeilDiv(missing, b.num) + st.Ahead)
}

func (b bucket) Delay(Level, int64) time.Duration { return 0 }

// share has its part of the rate exactly: holders of them make the rate.
func (b bucket) Share(p Portion) Limit { return b.part(p) }

func (b bucket) part(p Portion) bucket {
	g := gcd(b.num, p.Holders)
	return bucket{tokens: p.Tokens, num: b.num / g, s: b.s * (p.Holders / g)}
}

func (b bucket) Scale(s State, from Limit) State { return b.scaled(s, from.(bucket)) }

func (b bucket) scaled(s State, from bucket) State {
	return State{Ts: s.Ts, Used: fraction(s.Used, from.full(), b.full()), Unit: b.s}
}

// leaky is a bucket as a queue: its debt is the work that waits, so a request's turn comes when what was there before it
// has been worked off. It admits what a token bucket admits.
type leaky struct{ bucket }

func (b leaky) Delay(st Level, own int64) time.Duration {
	before := st.Used - own*b.s
	if before <= 0 {
		return 0
	}
	return Micros(CeilDiv(before, b.num) + st.Ahead)
}

func (b leaky) Share(p Portion) Limit { return leaky{b.part(p)} }

func (b leaky) Scale(s State, from Limit) State { return b.scaled(s, from.(leaky).bucket) }
