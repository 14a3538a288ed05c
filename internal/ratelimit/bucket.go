package ratelimit

import (
	"math/bits"
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

func (b bucket) capacity() int64 { return b.tokens }

func (b bucket) params(moment) params { return params{b.tokens, b.num, b.s, short(b.s)} }

func (b bucket) width() int { return 2 }

func (b bucket) read(row []int64, ahead, now int64, _ params) settled {
	return settled{now: now, used: row[0], ahead: ahead}
}

// exact reports whether all of the bucket's arithmetic stays below 2^53.
func (b bucket) exact() bool { return b.tokens <= maxExact/b.s }

func (b bucket) full() int64 { return b.tokens * b.s }

// settle refills the time that has passed, waits where the clock is a little behind, and rebases where it is far behind.
func (b bucket) settle(s state, at moment) settled {
	st := settling(s.ts, at.now)
	st.used = s.used
	if s.unit != b.s && s.used > 0 {
		st.used = convert(s.used, s.unit, b.s)
	}
	if s.ts >= at.now {
		return st
	}
	if passed := at.now - s.ts; passed < ceilDiv(st.used, b.num) { // so the product cannot overflow
		st.used -= passed * b.num
	} else {
		st.used = 0
	}
	return st
}

func (b bucket) fits(st settled, cost int64) bool { return st.used <= b.full()-cost*b.s }

func (b bucket) charge(st settled, cost int64) settled {
	st.used += cost * b.s
	return st
}

func (b bucket) refund(st settled, cost, _ int64) settled {
	if cost >= ceilDiv(st.used, b.s) {
		st.used = 0
	} else {
		st.used -= cost * b.s
	}
	return st
}

func (b bucket) store(st settled, now int64) (s state, until int64) {
	ts := now + st.ahead
	return state{ts: ts, used: st.used, unit: b.s}, ts + ceilDiv(st.used, b.num)
}

// remaining is none for a debt beyond the capacity, left by a rule that allowed more.
func (b bucket) remaining(st settled) int64 {
	return max(0, b.full()-st.used) / b.s
}

func (b bucket) wait(st settled, cost int64) time.Duration {
	missing := st.used - (b.full() - cost*b.s)
	if missing <= 0 {
		return 0
	}
	return micros(ceilDiv(missing, b.num) + st.ahead)
}

func (b bucket) delay(settled, int64) time.Duration { return 0 }

// share has its part of the rate exactly: holders of them make the rate.
func (b bucket) share(p portion) limit { return b.part(p) }

func (b bucket) part(p portion) bucket {
	g := gcd(b.num, p.holders)
	return bucket{tokens: p.tokens, num: b.num / g, s: b.s * (p.holders / g)}
}

func (b bucket) scale(s state, from limit) state { return b.scaled(s, from.(bucket)) }

func (b bucket) scaled(s state, from bucket) state {
	return state{ts: s.ts, used: fraction(s.used, from.full(), b.full()), unit: b.s}
}

// leaky is a bucket as a queue: its debt is the work that waits, so a request's turn comes when what was there before it
// has been worked off. It admits what a token bucket admits.
type leaky struct{ bucket }

func (b leaky) delay(st settled, own int64) time.Duration {
	before := st.used - own*b.s
	if before <= 0 {
		return 0
	}
	return micros(ceilDiv(before, b.num) + st.ahead)
}

func (b leaky) share(p portion) limit { return leaky{b.part(p)} }

func (b leaky) scale(s state, from limit) state { return b.scaled(s, from.(leaky).bucket) }

// convert turns a debt in units of from per token into units of to per token. It rounds up: less than one unit.
func convert(used, from, to int64) int64 {
	whole, rest := used/from, used%from
	hi, lo := bits.Mul64(uint64(whole), uint64(to))
	part := mulDivCeil(rest, to, from)
	if hi != 0 || lo > uint64(maxExact-part) {
		return maxExact
	}
	return int64(lo) + part
}

// mulDivCeil is ceil(a*b/c) for 0 <= a < c and b >= 1; the product may pass 64 bits.
func mulDivCeil(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, rest := bits.Div64(hi, lo, uint64(c))
	if rest > 0 {
		q++
	}
	return int64(q)
}

func ceilDiv(a, b int64) int64 {
	q := a / b
	if a%b > 0 {
		q++
	}
	return q
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
