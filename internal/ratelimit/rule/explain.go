package rule

import (
	"cmp"
	"math/bits"
	"time"
)

// Explanation describes the effects of a rule in numbers.
type Explanation struct {
	// Num is the number of units that come back per microsecond, and Units the number of units of one token. Both are
	// 0 for kinds other than buckets.
	Num, Units int64
	// Capacity is in tokens.
	Capacity int64
	// InAnySecond is the largest number of tokens that pass within one second. For a bucket it is the burst plus the
	// refill of a second. For a fixed window it is the limit of two windows, because a window may start within the
	// second.
	InAnySecond int64
	// Sustained is the rate that the rule allows in the long term.
	Sustained Rate
	// LongestWait is the longest time until a bucket is full: from empty, with the largest allowed debt.
	LongestWait time.Duration
	// Fills is the time in which an empty bucket without debt becomes full. It is 0 for kinds other than buckets.
	Fills time.Duration
	// MaxTTL is the longest TTL of a bucket's key after its last change.
	MaxTTL time.Duration
	// KeyBytes is the approximate memory of one bucket in Redis: key, value and table entries.
	KeyBytes int64
	// Holders is the number of replicas that hold a portion of a bucket while Redis is away. Share is the number of
	// tokens of the smallest portion, and ShareRate the rate of this portion. If there is one replica, these are the
	// capacity and the rate of the rule.
	Holders, Share int64
	ShareRate      Rate
	// WindowStart and WindowEnd are the bounds of the present fixed window. They are zero for other kinds.
	WindowStart, WindowEnd time.Time
}

const (
	// keyOverhead is the memory of a key with an expiry, besides key and value. It is an entry of 32 bytes in each of
	// two hash tables, and 21 bytes of the tables themselves, which are about two thirds full.
	keyOverhead = 85

	// valueHeader is the number of bytes that Redis adds to a short value: the object, the length and the end of the
	// string.
	valueHeader = 20

	// longestChange is the largest change of a zone's clock, for example to daylight saving time. A day can be longer
	// than 24 hours by this time.
	longestChange = 2 * time.Hour

	// typicalTenant is the length of a tenant's id that KeyBytes assumes.
	typicalTenant = 12
)

// Explain returns the explanation of a rule of any kind except concurrency. WindowStart and WindowEnd are the bounds of
// the window that contains now. zone is the time zone of the rule's windows; nil is the rule's own zone. dimension is
// true if the rule's buckets have a dimension. holders and share are the results of replica.Set.Share for the rule's
// burst.
func (r *Rule) Explain(now time.Time, zone *time.Location, dimension bool, holders, share int64) Explanation {
	e := Explanation{Capacity: r.Burst, Sustained: r.Rate, ShareRate: r.Rate, Holders: holders, Share: share}
	if r.Kind == KindTokenBucket || r.Kind == KindLeakyBucket {
		e.ShareRate.Period *= time.Duration(e.Holders)
	} else {
		e.ShareRate.Count = e.Share
	}
	second := time.Second.Microseconds()
	p := r.Rate.Period.Microseconds()
	value := 12
	switch l := r.limit.(type) {
	case bucket:
		value = l.explain(&e)
	case leaky:
		value = l.explain(&e)
	case fixedWindow:
		e.InAnySecond = capped(l.tokens, 1+CeilDiv(second, p))
		zone = cmp.Or(zone, r.Zone)
		if e.LongestWait = r.Rate.Period; !l.even(zone) {
			e.LongestWait += longestChange
		}
		value = max(value, 9+bytesOf(l.tokens+l.debt))
		start, end := l.bounds(now.UnixMicro(), zone)
		e.WindowStart, e.WindowEnd = time.UnixMicro(start).UTC(), time.UnixMicro(end).UTC()
	case slidingWindow:
		e.InAnySecond = min(maxExact, capped(l.tokens, second)/p+l.tokens)
		e.LongestWait = 2 * r.Rate.Period
	case slidingLog:
		e.InAnySecond = capped(l.tokens, CeilDiv(second, p))
		e.LongestWait = r.Rate.Period
		value = 7*(1+int(l.tokens+l.debt)) + bytesOf(short(l.length/1000))
	}
	// The TTL of a key is the time that the bucket needs, plus a second. The time by which a bucket's time may be ahead
	// of the clock is added as well. For a fixed window it is up to an eighth longer, because it is rounded up.
	e.MaxTTL = e.LongestWait + maxAheadUS*time.Microsecond
	if r.Kind == KindFixedWindow {
		e.MaxTTL = Micros(roughly(e.MaxTTL.Microseconds()))
	}
	e.MaxTTL += time.Second
	name := ""
	if dimension {
		name = string(make([]byte, dimensionLen))
	}
	key, _ := r.BucketKey(string(make([]byte, typicalTenant)), name)
	e.KeyBytes = keyOverhead + sizeClass(len(key)+4) + sizeClass(value+valueHeader)
	return e
}

// explain sets the fields that only buckets have, and returns the largest length of a stored value in bytes.
func (b bucket) explain(e *Explanation) int {
	e.Num, e.Units = b.num, b.s
	e.InAnySecond = min(maxExact, b.tokens+capped(b.num, time.Second.Microseconds())/b.s)
	// All units are below 2^53, so this is at most 285 years, which a Duration can hold.
	fills := func(units int64) time.Duration { return Micros(CeilDiv(units, b.num)) }
	most := b.full() + b.debt*b.s
	e.LongestWait, e.Fills = fills(most), fills(b.full())
	form := 1
	for f := short(b.s); f >= 128; f /= 128 {
		form++
	}
	if b.num > 1 {
		form += 8
	}
	return 7 + form + bytesOf(most)
}

// bytesOf returns the number of bytes that n takes in a stored value.
func bytesOf(n int64) int { return max(1, (bits.Len64(uint64(n))+7)/8) }

// capped returns a*b, at most 2^53-1.
func capped(a, b int64) int64 { return min(mulCap(a, b), maxExact) }

// sizeClass returns the number of bytes that Redis's allocator (jemalloc) uses for n bytes. Up to 128 it is a
// multiple of 16. Above 128 there are four size classes for each doubling.
func sizeClass(n int) int64 {
	step := 16
	if n > 128 {
		step = 1 << (bits.Len(uint(n-1)) - 3)
	}
	return int64((n + step - 1) / step * step)
}
