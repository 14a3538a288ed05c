package ratelimit

import (
	"math/big"
	"slices"
	"sort"
	"time"

	"github.com/quotasvc/quotasvc/internal/bound"
)

// oracleFixed counts the tokens of a window. It finds a window's bounds by looking where the calendar changes.
type oracleFixed struct{}

func (oracleFixed) advance(c oracleCharge, b *oracleBucket, now int64, back bool) {
	if start, _ := c.window(max(now, min(b.at, now+5_000_000))); b.at < start && !back {
		b.count = 0
	}
}

func (oracleFixed) fits(c oracleCharge, b *oracleBucket, later, n int64) bool {
	count := b.count
	if _, end := c.window(b.at); later >= end {
		count = 0
	}
	return count+n <= c.capacity
}

func (oracleFixed) take(_ oracleCharge, b *oracleBucket, n int64) { b.count += n }

func (oracleFixed) give(c oracleCharge, b *oracleBucket, n, taken int64) bool {
	if start, _ := c.window(b.at); b.count == 0 || taken != 0 && taken < start {
		return false
	}
	b.count = max(0, b.count-n)
	return true
}

func (oracleFixed) waits(c oracleCharge, b *oracleBucket) int64 {
	start, end := c.window(b.at)
	return end - start + 5_000_000
}

// label is what the calendar shows at us for the whole of a window and for no other: the window's name.
func (c oracleCharge) label(us int64) string {
	at := time.UnixMicro(us).UTC()
	if c.zone != nil {
		at = at.In(c.zone)
	}
	switch period := time.Duration(c.period) * time.Microsecond; {
	case c.month:
		return at.Format("2006-01")
	case period == time.Minute:
		return at.UTC().Format("2006-01-02T15:04")
	case period == time.Hour:
		return at.Format("2006-01-02T15 -0700")
	case period == 24*time.Hour:
		return at.Format("2006-01-02")
	case period == 7*24*time.Hour:
		return at.AddDate(0, 0, -(int(at.Weekday())+6)%7).Format("2006-01-02") // its Monday
	}
	return new(big.Int).Div(big.NewInt(us), big.NewInt(c.period)).String()
}

// window is the bounds of the window around us.
func (c oracleCharge) window(us int64) (start, end int64) {
	name := c.label(us)
	reach := int(c.period) + int(26*time.Hour/time.Microsecond) // a day is up to 26 hours long
	if c.period < int64(time.Hour/time.Microsecond) {
		reach = int(c.period)
	}
	before := sort.Search(reach, func(d int) bool { return c.label(us-int64(d)) != name })
	behind := sort.Search(reach, func(d int) bool { return c.label(us+int64(d)) != name })
	return us - int64(before) + 1, us + int64(behind)
}

// oracleSliding keeps the tokens of each window by its number.
type oracleSliding struct{}

func (oracleSliding) advance(c oracleCharge, b *oracleBucket, now int64, back bool) {
	if back || b.length != c.period {
		// What they count for at their time, rounded up, is one charge at that time.
		covered := big.NewRat(b.length-b.at%b.length, b.length)
		n := ceilRat(covered.Mul(covered, tokens(b.counts[b.at/b.length-1])))
		total := min(n+b.counts[b.at/b.length], bound.MaxAmount)
		at := b.at
		if back {
			at = now
		}
		b.counts, b.length = map[int64]int64{at / c.period: total}, c.period
	}
	latest := max(b.at, now)
	if back {
		latest = now
	}
	for number := range b.counts {
		if number < latest/c.period-1 {
			delete(b.counts, number)
		}
	}
}

func (oracleSliding) fits(c oracleCharge, b *oracleBucket, later, n int64) bool {
	at := max(later, b.at)
	number := at / c.period
	// A tick is the microsecond if the capacity can be counted in them exactly, the millisecond otherwise.
	tick := int64(1)
	if new(big.Int).Mul(big.NewInt(c.capacity), big.NewInt(c.period)).Cmp(big.NewInt(bound.MaxAmount)) > 0 {
		tick = 1000
	}
	covered := big.NewRat(c.period-at%c.period/tick*tick, c.period)
	estimate := covered.Mul(covered, tokens(b.counts[number-1]))
	estimate.Add(estimate, tokens(b.counts[number]))
	return estimate.Add(estimate, tokens(n)).Cmp(tokens(c.capacity)) <= 0
}

func (oracleSliding) take(c oracleCharge, b *oracleBucket, n int64) { b.counts[b.at/c.period] += n }

func (oracleSliding) give(c oracleCharge, b *oracleBucket, n, taken int64) bool {
	number := b.at / c.period
	if taken != 0 && taken/c.period < number {
		number = taken / c.period
	}
	if b.counts[number] == 0 {
		return false
	}
	b.counts[number] = max(0, b.counts[number]-n)
	return true
}

func (oracleSliding) waits(c oracleCharge, _ *oracleBucket) int64 { return 2*c.period + 5_000_001 }

// oracleLog keeps each token's time.
type oracleLog struct{}

func (oracleLog) advance(c oracleCharge, b *oracleBucket, now int64, back bool) {
	at := max(b.at, now)
	b.log = slices.DeleteFunc(b.log, func(t int64) bool { return t+c.period <= at })
	if back {
		for i := range b.log {
			b.log[i] -= b.at - now
		}
	}
}

func (oracleLog) fits(c oracleCharge, b *oracleBucket, later, n int64) bool {
	at := max(later, b.at)
	for _, t := range b.log {
		if t+c.period > at {
			n++
		}
	}
	return n <= c.capacity
}

func (oracleLog) take(_ oracleCharge, b *oracleBucket, n int64) {
	for range n {
		b.log = append(b.log, b.at)
	}
}

// give removes the newest that are not younger than the charge.
func (oracleLog) give(_ oracleCharge, b *oracleBucket, n, taken int64) bool {
	given := false
	for i := len(b.log) - 1; i >= 0 && n > 0; i-- {
		if taken == 0 || b.log[i] <= taken {
			b.log = slices.Delete(b.log, i, i+1)
			n--
			given = true
		}
	}
	return given
}

func (oracleLog) waits(c oracleCharge, _ *oracleBucket) int64 { return c.period + 5_000_001 }
