package gate

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// CheckBatchMax is the largest number of checks in a batch.
const CheckBatchMax = ledger.BatchMax

// checkersMax is the largest number of checks of a batch that wait for Redis or PostgreSQL at a time. Checks that
// wait at the same time share round trips to Redis.
const checkersMax = 64

// CheckOutcome is the result of one check of a batch.
type CheckOutcome struct {
	Check Check
	Err   error // the error of Check; nil: Check is the answer
}

// CheckBatch makes up to CheckBatchMax independent checks. It returns their outcomes in order. Some checks need only
// values that this process holds: CheckBatch makes these first, one after the other. Then it makes the other checks,
// many at a time.
func (g *Gate) CheckBatch(ctx context.Context, reqs []Request) []CheckOutcome {
	out := make([]CheckOutcome, len(reqs))
	var others []int
	for i := range reqs {
		check, ok, err := g.check(ctx, &reqs[i], true)
		if !ok {
			others = append(others, i)
			continue
		}
		g.observeCheck(&check, err)
		out[i] = CheckOutcome{check, err}
	}
	var next atomic.Int64
	work := func() {
		for n := int(next.Add(1)) - 1; n < len(others); n = int(next.Add(1)) - 1 {
			i := others[n]
			out[i].Check, out[i].Err = g.checkSafely(ctx, reqs[i])
		}
	}
	var workers sync.WaitGroup
	for range min(len(others), checkersMax) - 1 {
		workers.Go(work)
	}
	work()
	workers.Wait()
	return out
}

// checkSafely calls Check, and returns an error for a panic. A panic in a goroutine of CheckBatch would end the
// process.
func (g *Gate) checkSafely(ctx context.Context, req Request) (out Check, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	return g.Check(ctx, req)
}
