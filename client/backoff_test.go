package client

import (
	"math"
	"net/http"
	"testing"
	"time"
)

// backoff draws a Backoff, whose fields may be out of range.
func (d *drawn) backoff() Backoff {
	duration := func() time.Duration {
		return time.Duration([]int64{0, d.between(-5, int64(time.Hour)), 1 << 62}[d.random.IntN(3)])
	}
	b, draw := Backoff{Base: duration(), Cap: duration()}, d.random.Uint64()
	b.Random = func(n int64) int64 { return int64(draw % uint64(n)) }
	return b
}

func (b Backoff) limit() time.Duration {
	if b.Cap > 0 {
		return b.Cap
	}
	return defaultCap
}

func TestBackoffWait_IsBetweenRetryAfterAndCapOnTop(t *testing.T) {
	t.Parallel()
	always(t, func(d *drawn) {
		b := d.backoff()
		retry := int(d.between(-1, 200))
		asked := time.Duration([]int64{d.between(-5, int64(24*time.Hour)), math.MaxInt64 - d.between(0, 2)}[d.random.IntN(2)])
		got := b.Wait(retry, asked)
		if least := max(asked, 0); got < least || got-least > b.limit() {
			t.Errorf("%+v.Wait(%d, %s) = %s", b, retry, asked, got)
		}
	})
}

func TestBackoffWait_BoundDoublesUpToTheCap(t *testing.T) {
	t.Parallel()
	most := Backoff{Random: func(n int64) int64 { return n - 1 }}
	least := Backoff{Random: func(int64) int64 { return 0 }}
	for retry, want := range []time.Duration{
		100 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond, 1600 * time.Millisecond,
		3200 * time.Millisecond, 6400 * time.Millisecond, 10 * time.Second, 10 * time.Second,
	} {
		if got := most.Wait(retry, 0); got != want {
			t.Errorf("retry %d: at most %s, want %s", retry, got, want)
		}
		if got := least.Wait(retry, time.Second); got != time.Second {
			t.Errorf("retry %d: at least %s, want 1s", retry, got)
		}
	}
}

// TestBackoffWait_SpreadsCallers uses the real source of randomness: each tenth of the range from 0 to the maximum
// must have some of the waits.
func TestBackoffWait_SpreadsCallers(t *testing.T) {
	t.Parallel()
	const callers = 10_000
	var tenths [10]int
	for range callers {
		wait := Backoff{}.Wait(8, time.Minute) - time.Minute
		tenths[min(int(wait*10/defaultCap), 9)]++
	}
	for i, n := range tenths {
		if n < callers/20 || n > callers/5 {
			t.Errorf("%d of %d wait in tenth %d", n, callers, i)
		}
	}
}

func TestRetryAfter_ReadsSecondsOrADate(t *testing.T) {
	t.Parallel()
	const now = "Sat, 21 Nov 2026 08:00:00 GMT"
	for _, c := range []struct {
		header, date string
		want         time.Duration
	}{
		{"", now, 0},
		{"1", "", time.Second},
		{"86400", "", 24 * time.Hour},
		{"0", now, 0},
		{"-1", now, 0},
		{"1.5", now, 0},
		{"soon", now, 0},
		{"2147483648", now, 2147483648 * time.Second},
		{"9223372036", now, 9223372036 * time.Second},
		{"9223372037", now, math.MaxInt64},
		{"18446744073709551616", now, math.MaxInt64},
		{"99999999999999999999999", now, math.MaxInt64},
		{"-99999999999999999999999", now, 0},
		{"+7", now, 0},
		{"1e9", now, 0},
		{"Sat, 21 Nov 9999 08:00:00 GMT", now, math.MaxInt64},
		{"Sat, 21 Nov 2026 08:00:07 GMT", now, 7 * time.Second},
		{"Sat, 21 Nov 2026 07:59:00 GMT", now, 0},
		{"Sat, 21 Nov 2026 08:00:07 GMT", "", 0},
		{"Sat, 21 Nov 2026 08:00:07 GMT", "today", 0},
	} {
		header := http.Header{"Retry-After": {c.header}, "Date": {c.date}}
		if got := RetryAfter(header); got != c.want {
			t.Errorf("%q at %q: %s, want %s", c.header, c.date, got, c.want)
		}
	}
}
