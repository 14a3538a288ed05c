package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/lab/bench"
	benchreport "github.com/quotasvc/quotasvc/lab/bench/report"
)

// These constants are maximum numbers of transactions. Only `make bench-flood` checks the latency of other tenants.
const (
	// The numbers apply to up to 200 refused requests of 10 tenants in half a second. The requests are sent to a
	// process that has just started. The process reads each tenant once, which takes some 15 transactions. It remembers
	// a refusal for lack of units only for 100 ms, so such requests cost 50 more transactions.
	limitedTransactions = 50
	emptyTransactions   = 120
	unknownTransactions = 50
)

// This is the small form of `make bench-flood`. Other tenants make debits while ten times as many requests are
// refused. The reasons are a limit, a lack of units, and tenants that do not exist.
func TestFlood_RefusedRequests_OthersGetTheirDebits(t *testing.T) {
	t.Parallel()
	slice, r, lasted := 250*time.Millisecond, (*bench.FloodResult)(nil), []time.Duration(nil)
	testenv.Eventually(t, func() bool { // a busy machine refuses few requests in a short slice
		slice *= 2
		r, lasted = refusals(t, slice)
		return !slices.ContainsFunc(r.Costs, func(c bench.FloodCost) bool { return c.Refused < 50 })
	}, "50 refusals of each kind")
	for i := range r.Floods {
		f := &r.Floods[i]
		assert.True(t, f.Errors <= 0, "flood %s: %d debits of others were not answered with 200", f.Name, f.Errors)
		for status, n := range f.Answers {
			assert.True(t, status < 500, "flood %s: %d answers %d", f.Name, n, status)
		}
	}
	for i, most := range []int64{limitedTransactions, emptyTransactions, unknownTransactions} {
		c := &r.Costs[i]
		// The service remembers a refusal only for a while, and then reads again.
		most *= max(1, int64(lasted[len(lasted)-len(r.Costs)+i]/(500*time.Millisecond)))
		assert.True(t, c.Transactions <= most,
			"%s: %d transactions for %d refused requests, want at most %d", c.Name, c.Transactions, c.Refused, most)
	}
}

// refusals runs the floods in slices of this length. lasted contains the time for which each instance ran.
func refusals(t *testing.T, slice time.Duration) (r *bench.FloodResult, lasted []time.Duration) {
	t.Helper()
	url := testenv.Postgres(t)
	env := using(testenv.AsService(url), testenv.RedisURL(t), "QUOTASVC_LOG_LEVEL=error", "QUOTASVC_DRAIN_DELAY=0s")
	r = testenv.Must(t).Get(bench.Flood(t.Context(), bench.FloodConfig{
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
	}))
	var text strings.Builder
	assert.NoError(t, r.Print(&benchreport.Printer{Out: &text}))
	t.Log(text.String())
	return r, lasted
}
