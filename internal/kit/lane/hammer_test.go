package lane_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/lane"
)

// TestLane_Hammer_EveryCallerGetsTheTrueOutcome runs many callers and stops the lane halfway. Some callers give up at
// random moments. The test compares the result of each caller with the processed items.
func TestLane_Hammer_EveryCallerGetsTheTrueOutcome(t *testing.T) {
	t.Parallel()
	const callers, perCaller = 64, 200
	for _, deadline := range []time.Duration{time.Hour, 0} { // Stop finishes the queue, or cuts it off
		var processed [callers * perCaller]atomic.Int32
		l := lane.New(lane.Config{Name: "hammer", MaxQueue: callers / 2, MaxBatch: 16}, nil,
			func(_ context.Context, batch []int) []int {
				for _, q := range batch {
					processed[q].Add(1)
				}
				return twice(batch)
			})
		var (
			callersDone, started sync.WaitGroup
			results              [callers * perCaller]error
		)
		for c := range callers {
			callersDone.Add(1)
			started.Add(1)
			go func() {
				defer callersDone.Done()
				for i := range perCaller {
					if i == perCaller/2 {
						started.Done()
					}
					q := c*perCaller + i
					ctx, cancel := context.WithCancel(context.Background())
					if q%3 == 0 {
						go cancel() // races with the start of the batch
					}
					do := func() (int, error) { return l.Do(ctx, q) }
					switch q % 6 {
					case 1, 4:
						do = func() (int, error) { return l.DoBy(t.Context(), time.Now().Add(20*time.Microsecond), q) } // also races
					case 3, 5:
						do = func() (int, error) { return l.DoWithin(ctx, time.Now().Add(20*time.Microsecond), q) }
					}
					answer, err := do()
					if err == nil && answer != 2*q {
						err = errors.New("another item's answer")
					}
					results[q] = err
					cancel()
				}
			}()
		}
		started.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		stopErr := l.Stop(ctx)
		cancel()
		callersDone.Wait()
		require.NoError(t, l.Stop(context.Background()))
		if deadline > 0 {
			require.NoError(t, stopErr)
		}
		for q, err := range results {
			n := processed[q].Load()
			switch {
			case err == nil:
				require.EqualValues(t, 1, n, "an answered item was processed once")
			case errors.Is(err, lane.ErrUnfinished):
				require.Zero(t, deadline)
				require.LessOrEqual(t, n, int32(1))
			case errors.Is(err, lane.ErrFull), errors.Is(err, lane.ErrStopped), errors.Is(err, lane.ErrLate),
				errors.Is(err, context.Canceled):
				require.Zero(t, n, "item %d was processed but its caller got %v", q, err)
			default:
				require.NoError(t, err)
			}
		}
	}
}
