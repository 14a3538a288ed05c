package lane_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quotasvc/quotasvc/internal/kit/lane"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a lane whose batches end when the test calls next: process records each batch and waits for goOn. The tests
// that use a rig run in a synctest bubble, where synctest.Wait returns when every goroutine is blocked.
type rig struct {
	t       *testing.T
	lane    *lane.Lane[int, int]
	batches [][]int         // the batches in the order of processing
	goOn    chan struct{}   // process receives once per batch
	ctx     context.Context // the context of the latest batch
	act     func()          // process calls it after goOn; may be nil
}

func newRig(t *testing.T, cfg lane.Config, weight func(int) int) *rig {
	r := &rig{t: t, goOn: make(chan struct{})}
	r.lane = lane.New(cfg, weight, func(ctx context.Context, batch []int) []int {
		r.ctx = ctx
		r.batches = append(r.batches, slices.Clone(batch))
		<-r.goOn
		if r.act != nil {
			r.act()
		}
		return twice(batch)
	})
	return r
}

// twice returns the answers to a batch: each item doubled.
func twice(batch []int) []int {
	answers := make([]int, len(batch))
	for i, q := range batch {
		answers[i] = 2 * q
	}
	return answers
}

// call is a call of Do or DoBy that is running or has ended.
type call struct {
	answer int
	err    error
	done   bool
	took   time.Duration // set by DoBy only
	cancel context.CancelFunc
}

// do calls Do in a new goroutine. It returns when that goroutine is blocked or has ended.
func (r *rig) do(q int) *call {
	ctx, cancel := context.WithCancel(r.t.Context())
	c := &call{cancel: cancel}
	go func() {
		defer cancel()
		c.answer, c.err = r.lane.Do(ctx, q)
		c.done = true
	}()
	synctest.Wait()
	return c
}

// doBy calls DoBy in a new goroutine. The deadline is the time `wait` from now. doBy returns when that goroutine is
// blocked or has ended.
func (r *rig) doBy(wait time.Duration, q int) *call {
	c, began := &call{}, time.Now()
	go func() {
		c.answer, c.err = r.lane.DoBy(context.Background(), began.Add(wait), q)
		c.took, c.done = time.Since(began), true
	}()
	synctest.Wait()
	return c
}

// next ends the current batch.
func (r *rig) next() {
	r.goOn <- struct{}{}
	synctest.Wait()
}

func (r *rig) stop() {
	close(r.goOn)
	require.NoError(r.t, r.lane.Stop(context.Background()))
	synctest.Wait()
}

func (r *rig) answered(q int, c *call) {
	r.t.Helper()
	require.True(r.t, c.done)
	require.NoError(r.t, c.err)
	require.Equal(r.t, 2*q, c.answer)
}

func (r *rig) failed(c *call, target error) {
	r.t.Helper()
	require.True(r.t, c.done)
	require.ErrorIs(r.t, c.err, target)
	require.Zero(r.t, c.answer)
}

var wide = lane.Config{Name: "test", MaxQueue: 100, MaxBatch: 100}

func TestLane_Idle_ProcessesAnItemAtOnceAndAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, wide, nil)
		start := time.Now()
		one := r.do(1)
		require.Equal(t, [][]int{{1}}, r.batches)
		require.False(t, one.done)
		r.next()
		r.answered(1, one)
		require.Zero(t, time.Since(start), "no timer may delay an item")
		r.stop()
	})
}

func TestLane_Busy_WaitingItemsBecomeTheNextBatchInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, wide, nil)
		calls := []*call{r.do(1), r.do(2), r.do(3), r.do(4)}
		require.Equal(t, [][]int{{1}}, r.batches)
		require.Equal(t, 3, r.lane.Depth())
		r.next()
		require.Equal(t, [][]int{{1}, {2, 3, 4}}, r.batches)
		require.Zero(t, r.lane.Depth())
		r.next()
		for i, c := range calls {
			r.answered(i+1, c)
		}
		r.stop()
	})
}

func TestBatch_HoldsAtMostMaxBatchWeight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := wide
		cfg.MaxBatch = 10
		r := newRig(t, cfg, func(q int) int { return q })
		// The weights 0 and -5 count as 1. The item 11 exceeds the weight of a batch and is processed alone. The item
		// 10 fills a batch exactly.
		for _, q := range []int{1, 4, 6, 1, 11, 10, 0, -5, 8, 1} {
			r.do(q)
		}
		for range 6 {
			r.next()
		}
		require.Equal(t, [][]int{{1}, {4, 6}, {1}, {11}, {10}, {0, -5, 8}, {1}}, r.batches)
		r.next()
		r.stop()
	})
}

func TestDo_FullQueue_RefusesAtOnceAndUsesTheLastPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := wide
		cfg.MaxQueue = 2
		r := newRig(t, cfg, nil)
		running, second, third := r.do(1), r.do(2), r.do(3)
		r.failed(r.do(4), lane.ErrFull)
		require.False(t, third.done)
		r.next()
		fifth := r.do(5) // there is room again
		r.next()
		r.next()
		for q, c := range map[int]*call{1: running, 2: second, 3: third, 5: fifth} {
			r.answered(q, c)
		}
		require.Equal(t, [][]int{{1}, {2, 3}, {5}}, r.batches)
		r.stop()
	})
}

func TestDo_CancelledBeforeItsBatch_DropsTheItem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, wide, nil)
		r.do(1)
		gone, stays := r.do(2), r.do(3)
		gone.cancel()
		synctest.Wait()
		r.failed(gone, context.Canceled)
		r.next()
		r.next()
		r.answered(3, stays)
		require.Equal(t, [][]int{{1}, {3}}, r.batches)

		// If all waiting items are abandoned, there is no batch.
		r.do(4)
		gone = r.do(5)
		gone.cancel()
		synctest.Wait()
		r.next()
		require.Equal(t, [][]int{{1}, {3}, {4}}, r.batches)
		r.stop()
	})
}

func TestDo_CancelledInItsBatch_KeepsTheItem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, wide, nil)
		c := r.do(1)
		c.cancel()
		synctest.Wait()
		require.False(t, c.done)
		require.NoError(t, r.ctx.Err(), "process must not see a caller's cancellation")
		r.next()
		r.answered(1, c)
		r.stop()
	})
}

func TestDoBy_BatchTooLate_DropsTheItem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, wide, nil)
		started := r.doBy(time.Second, 1)
		late, inTime := r.doBy(time.Second, 2), r.doBy(3*time.Second, 3)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		r.failed(late, lane.ErrLate)
		require.Equal(t, time.Second, late.took)
		require.False(t, started.done, "an item is never dropped once its batch has started")
		r.next()
		r.answered(1, started)
		r.next()
		r.answered(3, inTime)
		require.Equal(t, [][]int{{1}, {3}}, r.batches)

		r.failed(r.doBy(0, 4), lane.ErrLate)
		require.Len(t, r.batches, 2, "an item past its deadline is not queued")

		// Tickets and their timers are reused. A timer of an earlier wait must not end a later wait.
		for q := 5; q < 9; q++ {
			c := r.doBy(time.Second, q)
			time.Sleep(900 * time.Millisecond)
			r.next()
			r.answered(q, c)
		}
		// A timer that was stopped must work again for the next wait.
		started = r.do(9)
		late = r.doBy(2*time.Second, 10)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		r.failed(late, lane.ErrLate)
		require.Equal(t, 2*time.Second, late.took)
		r.next()
		r.answered(9, started)
		r.stop()
	})
}

func TestDoWithin_CallerGoneOrTooLate_DropsTheItem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, wide, nil)
		began := time.Now()
		doWithin := func(wait time.Duration, q int) *call {
			ctx, cancel := context.WithCancel(t.Context())
			c, now := &call{cancel: cancel}, time.Now()
			go func() {
				c.answer, c.err = r.lane.DoWithin(ctx, now.Add(wait), q)
				c.took, c.done = time.Since(now), true
			}()
			synctest.Wait()
			return c
		}
		started, late, gone, stays := doWithin(time.Second, 1), doWithin(time.Second, 2), doWithin(time.Minute, 3), doWithin(time.Minute, 4)
		gone.cancel()
		synctest.Wait()
		r.failed(gone, context.Canceled)
		require.Zero(t, time.Since(began))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		r.failed(late, lane.ErrLate)
		require.Equal(t, time.Second, late.took)
		started.cancel()
		synctest.Wait()
		require.False(t, started.done, "an item is never dropped once its batch has started")
		r.next()
		r.answered(1, started)
		r.next()
		r.answered(4, stays)
		require.Equal(t, [][]int{{1}, {4}}, r.batches)
		r.failed(doWithin(0, 5), lane.ErrLate)
		gone = doWithin(time.Minute, 6)
		r.next()
		r.answered(6, gone)
		r.stop()
	})
}

func TestDo_ContextAlreadyDone_IsNotQueued(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, wide, nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := r.lane.Do(ctx, 1)
		require.ErrorIs(t, err, context.Canceled)
		synctest.Wait()
		require.Empty(t, r.batches)
		r.stop()
	})
}

func TestStop_FinishesQueuedItemsAndRefusesNewOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, wide, nil)
		running, waiting := r.do(1), r.do(2)
		stopped := make([]error, 2) // two concurrent calls
		for i := range stopped {
			stopped[i] = errors.New("not returned")
			go func() { stopped[i] = r.lane.Stop(context.Background()) }()
		}
		synctest.Wait()
		r.failed(r.do(3), lane.ErrStopped)
		require.EqualError(t, stopped[0], "not returned")
		r.next()
		require.NoError(t, r.ctx.Err(), "a stop within its deadline must not cancel process")
		r.next()
		r.answered(1, running)
		r.answered(2, waiting)
		require.Equal(t, []error{nil, nil}, stopped)
		require.NoError(t, r.lane.Stop(context.Background()))
		r.failed(r.do(4), lane.ErrStopped)
		require.ErrorIs(t, r.ctx.Err(), context.Canceled, "the lane's context ends with it")
	})
}

func TestStop_PastDeadline_AnswersAllAndCancelsProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, wide, nil)
		running, waiting, gone := r.do(1), r.do(2), r.do(3)
		gone.cancel()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, r.lane.Stop(ctx), context.DeadlineExceeded)
		synctest.Wait()

		r.failed(running, lane.ErrUnfinished)
		r.failed(running, lane.ErrStopped)
		r.failed(waiting, lane.ErrStopped)
		require.NotErrorIs(t, waiting.err, lane.ErrUnfinished, "nothing was done for a queued item")
		r.failed(gone, context.Canceled)
		require.ErrorIs(t, r.ctx.Err(), context.Canceled)
		require.ErrorIs(t, r.lane.Stop(ctx), context.DeadlineExceeded, "the goroutine is still in process")

		r.next() // the late answers of process are discarded
		require.NoError(t, r.lane.Stop(ctx))
		require.Equal(t, [][]int{{1}}, r.batches)
	})
}

func TestProcess_Panic_FailsItsBatchOnly(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	for name, tc := range map[string]struct {
		act    func()
		target []error
	}{
		"panic with an error":  {func() { panic(cause) }, []error{lane.ErrPanicked, cause}},
		"panic with a value":   {func() { panic("value") }, []error{lane.ErrPanicked}},
		"panic with nil":       {func() { panic(nil) }, []error{lane.ErrPanicked}},
		"end of the goroutine": {runtime.Goexit, []error{lane.ErrPanicked}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, wide, nil)
				first, second, third := r.do(1), r.do(2), r.do(3)
				r.next()
				r.act = tc.act
				r.next()
				r.act = nil
				r.answered(1, first)
				for _, target := range tc.target {
					r.failed(second, target)
					r.failed(third, target)
				}
				fourth := r.do(4)
				r.next()
				r.answered(4, fourth)
				r.stop()
			})
		})
	}
}

func TestProcess_WrongNumberOfAnswers_IsAnError(t *testing.T) {
	t.Parallel()
	for name, answers := range map[string][]int{"none": nil, "too many": {1, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := lane.New(wide, nil, func(context.Context, []int) []int { return answers })
			got, err := l.Do(t.Context(), 1)
			require.ErrorIs(t, err, lane.ErrAnswers)
			require.Zero(t, got)
			require.NoError(t, l.Stop(t.Context()))
		})
	}
}

func TestNew_WithoutBounds_Panics(t *testing.T) {
	t.Parallel()
	for _, cfg := range []lane.Config{{MaxQueue: 1}, {MaxBatch: 1}, {MaxQueue: -1, MaxBatch: 1}} {
		require.Panics(t, func() { lane.New(cfg, nil, func(_ context.Context, b []int) []int { return b }) })
	}
}

// impatient is a context that, like some contexts of requests, creates a timer when Done is called.
type impatient struct {
	context.Context // with the deadline

	gone   <-chan struct{}
	awaits int // number of calls of Done
}

func (c *impatient) DoneBefore(until time.Time) <-chan struct{} {
	if at, _ := c.Deadline(); at.Before(until) {
		return c.Done()
	}
	return c.gone
}

func (c *impatient) Done() <-chan struct{} {
	c.awaits++
	return c.Context.Done()
}

func (c *impatient) Err() error {
	select {
	case <-c.gone:
		return context.Canceled
	default:
		return c.Context.Err()
	}
}

// DoWithin calls Done of an impatient context only if the deadline of the context is before the time `until`.
func TestDoWithin_ContextWithTimerForDone_NeedsItOnlyForAnEarlierDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, wide, nil)
		busy := r.do(1)
		now := time.Now()
		leave := make(chan struct{})
		time.AfterFunc(2*time.Second, func() { close(leave) })
		for _, c := range []struct {
			deadline, bound time.Duration
			gone            <-chan struct{}
			awaits          int
			want            error
		}{
			{time.Minute, time.Second, nil, 0, lane.ErrLate},
			{time.Minute, time.Minute, leave, 0, context.Canceled},
			{time.Second, time.Minute, nil, 1, context.DeadlineExceeded},
		} {
			base, cancel := context.WithDeadline(t.Context(), time.Now().Add(c.deadline))
			ctx := &impatient{Context: base, gone: c.gone}
			if _, err := r.lane.DoWithin(ctx, time.Now().Add(c.bound), 2); !errors.Is(err, c.want) || ctx.awaits != c.awaits {
				t.Errorf("deadline %s, bound %s: %v, Done called %d times; want %v, %d times", c.deadline, c.bound, err, ctx.awaits, c.want, c.awaits)
			}
			cancel()
		}
		assert.Equal(t, 3*time.Second, time.Since(now), "the time of the waits")
		r.next()
		r.answered(1, busy)
		r.stop()
	})
}
