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

// The bounds of this test are loose: it runs beside others, on few cores. `make bench-flood` has the real ones.
const (
	// refusalsSlack is what a flood may add to others' p99, in addition to half of what they wait without it.
	refusalsSlack = 2 * time.Second

	// Transactions for up to 500 refused requests of 10 tenants in half a second, sent to a process that has just started. It looks for
	// each tenant once in any case: some 15 transactions. A refusal for lack of units is remembered for 100 ms: 50 more.
	limitedTransactions = 50
	emptyTransactions   = 150
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
	r, err := bench.Flood(t.Context(), bench.FloodConfig{
		Start: func(context.Context) (string, func(context.Context) error, error) {
			in := serve(t, env)
			return strings.TrimPrefix(in.api, "http://"), func(context.Context) error { in.stop(); return nil }, nil
		},
		Database: url, AdminKey: testKey, Rate: 100, Connections: 64, Rounds: 1, Slice: 500 * time.Millisecond,
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
		if most := time.Duration(f.Quiet.P99)*time.Microsecond*3/2 + refusalsSlack; time.Duration(f.Flood.P99)*time.Microsecond > most {
			t.Errorf("flood %s: others' p99 is %s, at most %s", f.Name, benchreport.Micros(f.Flood.P99), most)
		}
		for status, n := range f.Answers {
			if status >= 500 {
				t.Errorf("flood %s: %d answers %d", f.Name, n, status)
			}
		}
	}
	for i, most := range []int64{limitedTransactions, emptyTransactions, unknownTransactions} {
		c := &r.Costs[i]
		if c.Refused < 50 || c.Transactions > most {
			t.Errorf("%s: %d transactions for %d refused requests, want at most %d for 50 or more", c.Name, c.Transactions, c.Refused, most)
		}
	}
}
