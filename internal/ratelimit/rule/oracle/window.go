package oracle

import (
	"math/big"
	"slices"
	"sort"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
)

// fixed is the kindModel of fixed windows. It finds the bounds of a window with a search for the instants at which
// the window's label changes.
type fixed struct{}

func (fixed) advance(c Charge, b *Bucket, now int64, back bool) (mustStore bool) {
	as := max(now, b.At)
	if back {
		as = now
	}
	start, end := c.window(as)
	if b.At < start {
		b.count = 0
	}
	return b.count > 0 && b.until < end
}

// inFourBits returns us rounded up to a number with four significant bits, at least 8192.
func inFourBits(us int64) int64 {
	unit := int64(1)
	for us > 15*unit {
		unit *= 2
	}
	return max(8192, (us+unit-1)/unit*unit)
}

func (fixed) fits(c Charge, b *Bucket, later, n int64) bool {
	count := b.count
	if _, end := c.window(b.At); later >= end {
		count = 0
	}
	return count+n <= c.Capacity
}

func (fixed) take(c Charge, b *Bucket, n, taken int64) bool {
	if start, _ := c.window(b.At); taken != 0 && taken < start {
		return false
	}
	b.count += n
	return true
}

func (fixed) give(c Charge, b *Bucket, n, taken int64) bool {
	if start, _ := c.window(b.At); b.count == 0 || taken != 0 && taken < start {
		return false
	}
	b.count = max(0, b.count-n)
	return true
}

func (fixed) waits(c Charge, b *Bucket) int64 {
	start, end := c.window(b.At)
	return 3*(end-start) + 5_000_000 // if the clock was set back, the window may begin after the present one
}

// label returns a name of the window that contains the instant us. The name is the same in the whole window, and
// differs from the names of all other windows.
func (c Charge) label(us int64) string {
	at := time.UnixMicro(us).UTC()
	if c.Zone != nil {
		at = at.In(c.Zone)
	}
	switch period := time.Duration(c.Period) * time.Microsecond; {
	case c.Month:
		return at.Format("2006-01")
	case period == time.Minute:
		return at.UTC().Format("2006-01-02T15:04")
	case period == time.Hour:
		return at.Format("2006-01-02T15 -0700")
	case period == 24*time.Hour:
		return at.Format("2006-01-02")
	case period == 7*24*time.Hour:
		return at.AddDate(0, 0, -(int(at.Weekday())+6)%7).Format("2006-01-02") // the date of its Monday
	}
	return new(big.Int).Div(big.NewInt(us), big.NewInt(c.Period)).String()
}

// window returns the bounds of the window that contains the instant us (in µs).
func (c Charge) window(us int64) (start, end int64) {
	name := c.label(us)
	reach := int(c.Period) + int(26*time.Hour/time.Microsecond) // a day is up to 26 hours long
	if c.Period < int64(time.Hour/time.Microsecond) {
		reach = int(c.Period)
	}
	before := sort.Search(reach, func(d int) bool { return c.label(us-int64(d)) != name })
	behind := sort.Search(reach, func(d int) bool { return c.label(us+int64(d)) != name })
	return us - int64(before) + 1, us + int64(behind)
}

// sliding is the kindModel of sliding windows. It stores the number of tokens of each window.
type sliding struct{}

func (sliding) advance(c Charge, b *Bucket, now int64, back bool) (mustStore bool) {
	mustStore = b.length != c.Period
	if back || b.length != c.Period {
		// The estimate at the bucket's time, rounded up, replaces the tokens of both windows. It counts as one charge
		// at that time.
		covered := big.NewRat(b.length-b.At%b.length, b.length)
		n := CeilRat(covered.Mul(covered, Tokens(b.counts[b.At/b.length-1])))
		total := min(n+b.counts[b.At/b.length], bound.MaxAmount)
		at := b.At
		if back {
			at = now
		}
		b.counts, b.length = map[int64]int64{at / c.Period: total}, c.Period
	}
	latest := max(b.At, now)
	if back {
		latest = now
	}
	for number := range b.counts {
		if number < latest/c.Period-1 {
			delete(b.counts, number)
		}
	}
	return mustStore
}

func (sliding) fits(c Charge, b *Bucket, later, n int64) bool {
	at := max(later, b.At)
	number := at / c.Period
	// A tick is a microsecond if the capacity can be counted exactly in microseconds, else a millisecond.
	tick := int64(1)
	if new(big.Int).Mul(big.NewInt(c.Capacity+c.Debt), big.NewInt(c.Period)).Cmp(big.NewInt(bound.MaxAmount)) > 0 {
		tick = 1000
	}
	covered := big.NewRat(c.Period-at%c.Period/tick*tick, c.Period)
	estimate := covered.Mul(covered, Tokens(b.counts[number-1]))
	estimate.Add(estimate, Tokens(b.counts[number]))
	return estimate.Add(estimate, Tokens(n)).Cmp(Tokens(c.Capacity)) <= 0
}

func (sliding) take(c Charge, b *Bucket, n, taken int64) bool {
	number := b.At / c.Period
	if taken != 0 && taken/c.Period < number {
		number = taken / c.Period
	}
	if number < b.At/c.Period-1 {
		return false
	}
	b.counts[number] += n
	return true
}

func (sliding) give(c Charge, b *Bucket, n, taken int64) bool {
	number := b.At / c.Period
	if taken != 0 && taken/c.Period < number {
		number = taken / c.Period
	}
	if b.counts[number] == 0 {
		return false
	}
	b.counts[number] = max(0, b.counts[number]-n)
	return true
}

func (sliding) waits(c Charge, _ *Bucket) int64 { return 2*c.Period + 5_000_001 }

// slidingLog is the kindModel of sliding logs. It stores the time of each token.
type slidingLog struct{}

func (slidingLog) advance(c Charge, b *Bucket, now int64, back bool) (mustStore bool) {
	at := max(b.At, now)
	b.log = slices.DeleteFunc(b.log, func(t int64) bool { return t+c.Period <= at })
	if back {
		for i := range b.log {
			b.log[i] -= b.At - now
		}
	}
	return b.Written.Period != 0 && b.Written.Period != c.Period
}

func (slidingLog) fits(c Charge, b *Bucket, later, n int64) bool {
	at := max(later, b.At)
	for _, t := range b.log {
		if t+c.Period > at {
			n++
		}
	}
	return n <= c.Capacity
}

func (slidingLog) take(c Charge, b *Bucket, n, taken int64) bool {
	at := b.At
	if taken != 0 {
		at = min(at, taken)
	}
	if at+c.Period <= b.At {
		return false
	}
	for range n {
		b.log = append(b.log, at)
	}
	slices.Sort(b.log)
	return true
}

// give removes up to n of the tokens that were taken at or before the charge, the newest first.
func (slidingLog) give(_ Charge, b *Bucket, n, taken int64) bool {
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

func (slidingLog) waits(c Charge, _ *Bucket) int64 { return c.Period + 5_000_001 }
