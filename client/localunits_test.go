package client

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestLocalUnitsOptions_Wrong_NamesFieldAndBound(t *testing.T) {
	t.Parallel()
	good := LocalUnitsOptions{URL: "http://127.0.0.1:1", Tenant: "acme", Meter: "api_calls"}
	for want, change := range map[string]func(*LocalUnitsOptions){
		"URL is required":                                  func(o *LocalUnitsOptions) { o.URL = "" },
		"Tenant is required":                               func(o *LocalUnitsOptions) { o.Tenant = "" },
		"Meter is required":                                func(o *LocalUnitsOptions) { o.Meter = "" },
		"Max must be from 1 to 2^53 - 1":                   func(o *LocalUnitsOptions) { o.Max = 1 << 53 },
		"Min must be from 1 to Max":                        func(o *LocalUnitsOptions) { o.Min, o.Max = 11, 10 },
		"TTL must be whole seconds from 1s to 24h":         func(o *LocalUnitsOptions) { o.TTL = 24*time.Hour + time.Second },
		"CaptureEvery must be above 0":                     func(o *LocalUnitsOptions) { o.CaptureEvery = -1 },
		"Timeout must be above 0":                          func(o *LocalUnitsOptions) { o.Timeout = -1 },
		"UnbackedMax must be from 0 to 2^53 - 1":           func(o *LocalUnitsOptions) { o.UnbackedMax = -1 },
		"LocalUnitsOptions.TTL must be whole seconds from": func(o *LocalUnitsOptions) { o.TTL = 1500 * time.Millisecond },
	} {
		o := good
		change(&o)
		if _, err := NewLocalUnits(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for max, least := range map[int64]int64{0: defaultMin, 7: 7, 1<<53 - 1: defaultMin} {
		o := good
		o.Max = max
		if err := o.complete(); err != nil || o.Min != least {
			t.Errorf("Max %d: Min is %d, %v", max, o.Min, err)
		}
	}
}

// TestSizing_AnyUse_StaysWithinBounds: a hold has at most Max units. It has at most 1/share of the remaining units. If
// a Take lacked more units than that, it has as many units as that Take lacked.
func TestSizing_AnyUse_StaysWithinBounds(t *testing.T) {
	t.Parallel()
	always(t, func(d *drawn) {
		s := sizing{min: d.between(1, 1000)}
		s.max = s.min + d.between(0, maxAmount-s.min)
		taken, now := int64(0), time.Duration(0)
		for range 20 {
			taken += d.between(0, 1<<40)
			now += time.Duration(d.between(0, int64(time.Hour)))
			missing := d.between(0, s.max)
			s.miss(missing)
			s.known = d.yes()
			s.remaining = d.between(-5, 1<<40)
			got := s.next(taken, now)
			share := max(s.remaining, 0)/share + 1
			if got < 1 || got > s.max || got < missing || s.known && got > max(share, missing) || !s.known && got < s.min {
				t.Fatalf("%d of %+v", got, s)
			}
			for n := range 100 { // the sequence of denials ends after some steps
				available := d.between(0, s.max)
				less := s.smaller(available)
				if less == 0 {
					break
				}
				if less > available || less >= got || less < missing || n == 99 {
					t.Fatalf("%d after %d, of which %d were left", less, got, available)
				}
				got = less
			}
			s.missing = 0
		}
	})
}

func TestSizing_SteadyUse_HoldLastsASecond(t *testing.T) {
	t.Parallel()
	s, taken, now := sizing{min: 10, max: 1 << 30}, int64(0), time.Duration(0)
	for range 40 { // 5000 units a second; half of each hold is used when the next is requested
		used := s.next(taken, now) / 2
		taken += used
		now += time.Duration(used) * time.Second / 5000
	}
	if s.chunk < 4900 || s.chunk > 5100 {
		t.Errorf("a hold has %d units", s.chunk)
	}
}

func TestLocalHold_Next_ByItsAge(t *testing.T) {
	t.Parallel()
	o := &LocalUnitsOptions{TTL: time.Minute, CaptureEvery: time.Second}
	hold := func(change func(*localHold)) *localHold {
		h := &localHold{size: 100, taken: 10, asked: 10, captured: 10, touched: true}
		h.lasts(time.Minute, time.Minute)
		change(h)
		return h
	}
	none := func(*localHold) {}
	used := func(h *localHold) { h.asked, h.captured, h.since = 4, 4, 10*time.Second }
	for name, c := range map[string]struct {
		hold    *localHold
		at      time.Duration
		closing bool
		want    action
		due     time.Duration
	}{
		"new":                          {hold(none), 0, false, actionWait, 30 * time.Second},
		"used a moment ago":            {hold(used), 10 * time.Second, false, actionWait, 11 * time.Second},
		"used a while ago":             {hold(used), 11 * time.Second, false, actionCapture, 0},
		"half over, in use":            {hold(none), 30 * time.Second, false, actionExtend, 0},
		"half over, not in use":        {hold(func(h *localHold) { h.touched = false }), 30 * time.Second, false, actionRelease, 0},
		"half over, period ends":       {hold(func(h *localHold) { h.reset = 89 * time.Second }), 30 * time.Second, false, actionWait, 50 * time.Second},
		"half over, period ends later": {hold(func(h *localHold) { h.reset = 90 * time.Second }), 30 * time.Second, false, actionExtend, 0},
		"near its end":                 {hold(used), 50 * time.Second, false, actionFinish, 0},
		"near its end, not used":       {hold(none), 50 * time.Second, false, actionRelease, 0},
		"spent":                        {hold(func(h *localHold) { h.taken = 100 }), 0, false, actionFinish, 0},
		"closing":                      {hold(used), 0, true, actionFinish, 0},
		"closing, not used":            {hold(none), 0, true, actionRelease, 0},
		"not known to exist":           {&localHold{ending: true}, 0, true, actionRelease, 0},
	} {
		if do, due := c.hold.next(c.at, o, c.closing); do != c.want || due != c.due {
			t.Errorf("%s: %d at %s, want %d at %s", name, do, due, c.want, c.due)
		}
	}
}

func TestLocalUnits_NeverUsed_SendsNothing(t *testing.T) {
	t.Parallel()
	s := &script{}
	l, err := NewLocalUnits(LocalUnitsOptions{URL: "http://quotasvc.example", Tenant: "acme", Meter: "api_calls", Client: &http.Client{Transport: s}})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int64{0, -1, defaultMax + 1} {
		if err := l.Take(n); err == nil || !strings.Contains(err.Error(), "from 1 to 10000") {
			t.Errorf("%d: %v", n, err)
		}
		if err := l.TakeWait(t.Context(), n); err == nil {
			t.Errorf("%d: no error", n)
		}
	}
	if err := errors.Join(l.Close(t.Context()), l.Close(t.Context())); err != nil || len(s.sent) > 0 {
		t.Errorf("%v, sent %q", err, s.sent)
	}
	if err := l.Take(1); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
	if err := l.TakeWait(context.Background(), 1); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
}

// A 404 of a proxy is not an answer about a hold. If it counted as an answer, an operation that took effect could be
// replaced by another operation, and its units would be charged twice.
func TestOpAnswer_WithoutCode_IsNotFinal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		code   string
		want   bool
	}{
		{200, "", true},
		{201, "", true},
		{404, "hold_not_found", true},
		{409, "hold_not_active", true},
		{402, "credits_exhausted", true},
		{429, "quota_exceeded", true},
		{403, "tenant_suspended", true},
		{404, "", false},
		{409, "", false},
		{429, "rate_limited", false},
		{408, "", false},
		{500, "internal", false},
		{503, "unavailable", false},
		{302, "", false},
	} {
		if got := (&opAnswer{status: c.status, Code: c.code}).final(); got != c.want {
			t.Errorf("%d %s: %t", c.status, c.code, got)
		}
	}
}

// TestLocalUnits_RetryAfterBeyondBounds_NotAtOnce: the time of the next attempt does not overflow.
func TestLocalUnits_RetryAfterBeyondBounds_NotAtOnce(t *testing.T) {
	t.Parallel()
	l, op := &LocalUnits{now: func() time.Duration { return time.Hour }}, &operation{tries: 1}
	l.postpone(op, RetryAfter(http.Header{"Retry-After": {"99999999999999999999"}}))
	if op.wait != math.MaxInt64 || op.retry != math.MaxInt64 {
		t.Errorf("waits %s until %s", op.wait, op.retry)
	}
}
