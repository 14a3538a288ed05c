package gate

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// publishFor is the time in which the balance of a debit reaches Redis if the service is not overloaded: a pause of 5
// ms and two round trips.
const publishFor = 10 * time.Millisecond

// instants is a list of instants in order. It is safe for concurrent use.
type instants struct {
	mu  sync.Mutex
	all []time.Time
}

func (in *instants) add() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.all = append(in.all, time.Now())
}

// until returns the number of instants that are not after t.
func (in *instants) until(t time.Time) int64 {
	in.mu.Lock()
	defer in.mu.Unlock()
	n, _ := slices.BinarySearchFunc(in.all, t, func(at, t time.Time) int {
		if at.After(t) {
			return 1
		}
		return -1
	})
	return int64(n)
}

// longestPause returns the longest time between two successive instants since t.
func (in *instants) longestPause(t time.Time) (longest time.Duration) {
	in.mu.Lock()
	defer in.mu.Unlock()
	end := time.Now()
	for i := len(in.all) - 1; i >= 0 && end.After(t); i-- {
		longest, end = max(longest, end.Sub(in.all[i])), in.all[i]
	}
	return longest
}

// Checks of one instance see the debits that another instance has acknowledged, except the debits of the last
// redisstore.HeldFor plus publishFor. The test allows ten times this bound. Soon after the first check of a balance,
// the other instance may not have read the announcement yet, so settling is added to the bound. On a busy machine a
// publication waits for the CPU several times. For each wait the test adds the longest pause of a goroutine and of
// Redis.
func TestCheck_Held_MissesNoOlderDebit(t *testing.T) {
	t.Parallel()
	database, options := testenv.Postgres(t), testenv.Redis(t)
	a, b := newInstance(t, database, patientClient(options)), newInstance(t, database, patientClient(options))
	a.catalogue()
	const granted, rounds, checks, fewest, turns, settling = 100_000, 5, 30, 8, 4, 200 * time.Millisecond
	a.putPlan(catalog.Plan{ID: "large", Allowances: []catalog.Allowance{yearly("calls", granted)}})
	pulse, client := &instants{}, patientClient(options)
	defer func() { _ = client.Close() }()
	ctx, end := context.WithCancel(t.Context())
	var beating sync.WaitGroup
	beating.Go(func() {
		for ; ctx.Err() == nil; pace() {
			if client.Ping(t.Context()).Err() == nil {
				pulse.add()
			}
		}
	})
	defer beating.Wait()
	defer end()
	sources := map[Source]int{}
	for round := range rounds {
		tenant := fmt.Sprint("t", round)
		a.putTenant(catalog.Tenant{ID: tenant, Plan: "large"})
		debited := &instants{}
		ctx, stop := context.WithCancel(t.Context())
		var slowest atomic.Int64 // longest time of a debit, in nanoseconds
		var debiting sync.WaitGroup
		debiting.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				began := time.Now()
				_, err := a.Debit(t.Context(), forTenant(tenant, request(fmt.Sprint("k", n), "calls", 1)))
				if !assert.NoError(t, err) {
					return
				}
				debited.add()
				slowest.Store(max(slowest.Load(), int64(time.Since(began))))
				pace()
			}
		})
		testenv.Eventually(t, func() bool { return debited.until(time.Now()) > int64(round%3) }, "the first debits")
		copied, checked, began := 0, 0, time.Now()
		testenv.Eventually(t, func() bool {
			asked := time.Now()
			got := b.checks(forTenant(tenant, request("", "calls", 1)))
			if sources[got.Source]++; got.Source != SourceLedger {
				copied++
			}
			checked++
			bound := 10 * (redisstore.HeldFor + publishFor)
			// The other instance reads the announcement after the running commit and the next commit.
			if settled := settling + 2*time.Duration(slowest.Load()); asked.Sub(began) < settled {
				bound += settled
			}
			bound += turns * max(0, pulse.longestPause(asked.Add(-2*bound))-20*time.Millisecond)
			if known := debited.until(asked.Add(-bound)); got.Items[0].Remaining > granted-known {
				t.Errorf("round %d, %s after its first check: the %s has %d left, and %d were debited %s before or earlier",
					round, asked.Sub(began), got.Source, got.Items[0].Remaining, known, bound)
			}
			return checked >= checks && copied >= fewest
		}, "enough checks rely on a copy")
		stop()
		debiting.Wait()
	}
	t.Logf("%v", sources)
}
