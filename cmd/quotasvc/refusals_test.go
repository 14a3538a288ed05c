package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/quotasvc/quotasvc/internal/bench"
	benchreport "github.com/quotasvc/quotasvc/internal/bench/report"
	"github.com/quotasvc/quotasvc/internal/testenv"
)

// `make bench-flood` has the bounds of what others wait.
const (
	// Transactions for up to 200 refused requests of 10 tenants in half a second, sent to a process that has just started. It looks for
	// each tenant once in any case: some 15 transactions. A refusal for lack of units is remembered for 100 ms: 50 more.
	limitedTransactions = 50
	emptyTransactions   = 120
	unknownTransactions = 50
)

// This is the small form of `make bench-flood`: others debit beside ten times as many requests that are refused, by a limit, for lack
// of units, and because their tenants do not exist.
func TestFlood_RefusedRequests_OthersGetTheirDebits(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	env := []string{
		"QUOTASVC_DATABASE_URL=" + testenv.AsService(url), "QUOTASVC_REDIS_URL=" + testenv.RedisURL(t), "QUOTASVC_ADMIN_KEY=" + testKey,
		"QUOTASVC_LOG_LEVEL=error", "QUOTASVC_DRAIN_DELAY=0s",
	}
	const slice = 500 * time.Millisecond
	var lasted []time.Duration // of each instance
	r, err := bench.Flood(t.Context(), bench.FloodConfig{
		Start: func(context.Context) (string, func(context.Context) error, error) {
			in := serve(t, env)
			began := time.Now()
			return strings.TrimPrefix(in.api, "http://"), func(context.Context) error {
				lasted = append(lasted, time.Since(began))
				in.stop()
				return nil
			}, nil
		},
		Database: url, AdminKey: testKey, Rate: 40, Connections: 64, Rounds: 1, Slice: slice,
	})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := r.Print(&benchreport.Printer{Out: &text}); err != nil {
		t.Error(err)
	}
	t.Log(text.String())
	for i := range r.Floods {
		f := &r.Floods[i]
		if f.Errors > 0 {
			t.Errorf("flood %s: %d debits of others were not answered with 200", f.Name, f.Errors)
		}
		for status, n := range f.Answers {
			if status >= 500 {
				t.Errorf("flood %s: %d answers %d", f.Name, n, status)
			}
		}
	}
	for i, most := range []int64{limitedTransactions, emptyTransactions, unknownTransactions} {
		c := &r.Costs[i]
		most *= int64(lasted[len(lasted)-len(r.Costs)+i]/slice) + 1 // what is remembered for a while is asked again
		if c.Refused < 50 || c.Transactions > most {
			t.Errorf("%s: %d transactions for %d refused requests, want at most %d for 50 or more", c.Name, c.Transactions, c.Refused, most)
		}
	}
}
