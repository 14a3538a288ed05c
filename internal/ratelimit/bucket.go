package ratelimit

import (
	"math/bits"
	"time"
)

// maxAheadUS is how far a bucket's time may be ahead of now before that counts as a clock that was set back. Up to here
// the bucket just waits: two servers after a failover, or a slewed clock, differ by less. Beyond, waiting would starve.
const maxAheadUS = 5_000_000

// bucket is a token bucket's parameters in units. A token is s units, num units come back per microsecond; both are
// integers for every rational rate, so nothing is ever rounded:
//
//	rate R per P us, g = gcd(R, P):  num = R/g,  s = P/g
//
// Invariants: capacity, num, s >= 1; capacity*s < 2^53; num < 2^53.
type bucket struct {
	capacity int64 // tokens
	num      int64 // units per us
	s        int64 // units per token
}

// level is a bucket's state: the debt, not what is left, so that no state at all is a full bucket, a larger capacity adds
// exactly the difference and a smaller one gives nothing away. The zero value is a full bucket.
type level struct {
	ts   int64 // us; the debt is as of this time
	used int64 // units of s per token, 0..2^53-1
	s    int64 // units per token when used was written; 0 only in the zero value
}

// settled is a level as of now.
type settled struct {
	used    int64 // units
	ahead   int64 // us by which the bucket's time is ahead of now: nothing comes back before they have passed
	rebased bool  // the clock was set back: the level must be stored whatever is decided, or time stands still
}

// code is the verdict of one bucket on one request. The values are the script's.
type code int64

const (
	codePass    code = 0
	codeDenied  code = 1 // for now: RetryAfter says how long
	codeNever   code = 2 // the cost is beyond the capacity
	codeCorrupt code = 3 // the stored value is not a bucket
)

func newBucket(r Rate, capacity int64) bucket {
	period := r.Period.Microseconds()
	g := gcd(r.Count, period)
	return bucket{capacity: capacity, num: r.Count / g, s: period / g}
}

// exact reports whether all of the bucket's arithmetic stays below 2^53.
func (b bucket) exact() bool { return b.capacity <= maxExact/b.s }

func (b bucket) full() int64 { return b.capacity * b.s }

// settle brings l to now: it refills the time that has passed, waits where the clock is a little behind, and rebases where
// it is far behind.
func (b bucket) settle(l level, now int64) settled {
	if l == (level{}) {
		return settled{}
	}
	used := l.used
	if l.s != b.s {
		used = convert(used, l.s, b.s)
	}
	switch {
	case l.ts > now && l.ts-now <= maxAheadUS:
		return settled{used: used, ahead: l.ts - now}
	case l.ts > now:
		return settled{used: used, rebased: true}
	case now-l.ts >= ceilDiv(used, b.num): // so the product below cannot overflow
		return settled{}
	default:
		return settled{used: used - (now-l.ts)*b.num}
	}
}

func (b bucket) verdict(st settled, cost int64) code {
	switch {
	case cost > b.capacity:
		return codeNever
	case st.used > b.full()-cost*b.s:
		return codeDenied
	default:
		return codePass
	}
}

// charge needs a verdict of codePass.
func (b bucket) charge(st settled, cost int64) settled {
	st.used += cost * b.s
	return st
}

func (b bucket) refund(st settled, cost int64) settled {
	if cost >= ceilDiv(st.used, b.s) {
		st.used = 0
	} else {
		st.used -= cost * b.s
	}
	return st
}

func (b bucket) store(st settled, now int64) level {
	return level{ts: now + st.ahead, used: st.used, s: b.s}
}

// remaining is the whole tokens that a request could take now. A debt beyond the capacity, left by a rule that allowed
// more, is none.
func (b bucket) remaining(st settled) int64 {
	return max(0, b.full()-st.used) / b.s
}

// wait is the time until cost tokens are there, exact to the microsecond: one earlier they are not. The cost must be at
// most the capacity.
func (b bucket) wait(st settled, cost int64) time.Duration {
	missing := st.used - (b.full() - cost*b.s)
	if missing <= 0 {
		return 0
	}
	return time.Duration(ceilDiv(missing, b.num)+st.ahead) * time.Microsecond
}

// reset is the time until the bucket is full.
func (b bucket) reset(st settled) time.Duration {
	return b.wait(st, b.capacity)
}

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
