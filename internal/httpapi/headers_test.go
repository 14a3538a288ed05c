package httpapi

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

func TestMinRemaining_ItemThatRunsOutFirst(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	item := func(required, remaining, limit int64, reset time.Time) ledger.ItemResult {
		return ledger.ItemResult{Requested: required, Position: ledger.Position{Remaining: remaining, Limit: limit, ResetAt: reset}}
	}
	for name, c := range map[string]struct {
		items                  []ledger.ItemResult
		limit, remaining, left string
	}{
		"same demand":     {[]ledger.ItemResult{item(1, 9, 10, now.Add(time.Hour)), item(1, 4, 1000, now.Add(90*time.Second))}, "1000", "4", "90"},
		"other units":     {[]ledger.ItemResult{item(1000, 5000, 9000, now.Add(time.Hour)), item(1, 100, 100, now)}, "9000", "5000", "3600"},
		"no end":          {[]ledger.ItemResult{item(1, 0, 5, time.Time{}), item(1, 1, 5, now)}, "5", "0", ""},
		"rounded up":      {[]ledger.ItemResult{item(1, 1, 5, now.Add(1500*time.Millisecond))}, "5", "1", "2"},
		"ended just now":  {[]ledger.ItemResult{item(1, 1, 5, now)}, "5", "1", "1"},
		"of a replay":     {[]ledger.ItemResult{item(1, 9, 4, now)}, "9", "9", "1"}, // the limit is the present limit
		"largest amounts": {[]ledger.ItemResult{item(bound.MaxAmount, bound.MaxAmount-1, bound.MaxAmount, now), item(bound.MaxAmount-1, bound.MaxAmount-1, 8, now)}, "9007199254740991", "9007199254740990", "1"},
	} {
		h := http.Header{}
		var tight minRemaining
		tight.offerDebit(&ledger.DebitResult{AsOf: now, Items: c.items})
		tight.write(h)
		want := http.Header{headerQuotaLimit: {c.limit}, headerQuotaRemaining: {c.remaining}, headerQuotaReset: {c.left}}
		if c.left == "" {
			delete(want, headerQuotaReset)
		}
		assert.Equal(t, want, h, name)
	}
	h := http.Header{}
	new(minRemaining).write(h)
	assert.Empty(t, h, h)
}

func TestRetryAfter_AtLeastOneAndLimitsT(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	s := &Server{problems: problemKinds()}
	for name, c := range map[string]struct {
		err  error
		want time.Duration
	}{
		"period's end":        {&errcode.Error{Code: errcode.QuotaExceeded, Data: &ledger.Denial{AsOf: now, ResetAt: now.Add(time.Hour)}}, time.Hour},
		"known event first":   {&errcode.Error{Code: errcode.QuotaExceeded, Data: &ledger.Denial{AsOf: now, ResetAt: now.Add(time.Hour), WouldSucceedAt: now.Add(time.Minute)}}, time.Minute},
		"ledger's own":        {&errcode.Error{Code: errcode.QueueFull, RetryAfter: 3 * time.Second}, 3 * time.Second},
		"ending right now":    {&errcode.Error{Code: errcode.QuotaExceeded, Data: &ledger.Denial{AsOf: now, ResetAt: now}}, time.Second},
		"nothing known":       {&errcode.Error{Code: errcode.Unavailable}, time.Second},
		"waiting is in vain":  {&errcode.Error{Code: errcode.CreditsExhausted, RetryAfter: time.Hour}, 0},
		"limits":              {&gate.RateLimited{Violated: []string{"a"}, RetryAfter: time.Millisecond}, time.Millisecond},
		"limits that are off": {&gate.ReducedCapacity{Violated: []string{"a"}, RetryAfter: 5 * time.Second}, 5 * time.Second},
		"never":               {&gate.CostExceedsCapacity{Violated: []string{"a"}}, 0},
		"internal":            {&errcode.Error{Code: errcode.Internal, RetryAfter: time.Hour}, 0},
	} {
		got := s.problemOf(fmt.Errorf("wrapped: %w", c.err))
		assert.True(t, got.retryAfter == c.want, "%s: %s, want %s", name, got.retryAfter, c.want)
	}
}
