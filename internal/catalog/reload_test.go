package catalog

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// runningLoop returns a loop for which Run is running, and its number of reads.
func runningLoop(t *testing.T, read func() error) (l *reloadLoop, reads *atomic.Int64) {
	t.Helper()
	reads = &atomic.Int64{}
	l = newReloadLoop(reloadConfig{
		What: "x", Every: time.Hour, Now: time.Now, Ended: func(error) {}, Log: slog.New(slog.DiscardHandler),
		Read: func(context.Context) error {
			err := read()
			reads.Add(1)
			return err
		},
	})
	ctx, stop := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() { l.Run(ctx) })
	t.Cleanup(func() { stop(); ended.Wait() })
	return l, reads
}

func TestReload_CatchUp_NothingAnnounced_ReadsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, reads := runningLoop(t, func() error { time.Sleep(time.Second); return nil })
		waited, err := l.CatchUp(t.Context())
		require.NoError(t, err)
		require.False(t, waited)
		l.Trigger()
		time.Sleep(time.Minute)
		for range 1000 {
			waited, err = l.CatchUp(t.Context())
			require.NoError(t, err)
			require.False(t, waited)
		}
		require.EqualValues(t, 1, reads.Load())
	})
}

// CatchUp reads at once during the pause after a read. It does not wait for the next read of Run.
func TestReload_CatchUp_InAPause_ReadsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, reads := runningLoop(t, func() error { time.Sleep(100 * time.Millisecond); return nil })
		l.Trigger()
		time.Sleep(101 * time.Millisecond)
		l.Trigger()
		began := time.Now()
		waited, err := l.CatchUp(t.Context())
		require.NoError(t, err)
		require.True(t, waited)
		require.Equal(t, 100*time.Millisecond, time.Since(began))
		require.EqualValues(t, 2, reads.Load())
	})
}

// A read that began before the trigger may lack the change. So CatchUp waits for another read, and all waiting
// callers share that read.
func TestReload_CatchUp_WhileAReadRuns_WaitsForTheNextOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, reads := runningLoop(t, func() error { time.Sleep(100 * time.Millisecond); return nil })
		l.Trigger()
		time.Sleep(time.Millisecond)
		l.Trigger()
		testenv.Together(50, func(_ int) {
			_, err := l.CatchUp(t.Context())
			assert.True(t, err == nil && reads.Load() >= 2, "%v after %d reads", err, reads.Load())
		})
		require.EqualValues(t, 2, reads.Load())
	})
}

func TestReload_CatchUp_FailsWithTheRead_AndWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		away := errors.New("away")
		var back atomic.Bool
		l, _ := runningLoop(t, func() error {
			time.Sleep(time.Second)
			if back.Load() {
				return nil
			}
			return away
		})
		l.Trigger()
		_, err := l.CatchUp(t.Context())
		require.ErrorIs(t, err, away)
		l.Trigger()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		l.reading <- struct{}{}
		_, err = l.CatchUp(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		<-l.reading
		back.Store(true)
		time.Sleep(time.Minute) // Run tries again meanwhile
		waited, err := l.CatchUp(t.Context())
		require.NoError(t, err)
		require.False(t, waited)
	})
}

func TestReload_Flood_ReadsAFifthOfTheTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, reads := runningLoop(t, func() error { time.Sleep(10 * time.Millisecond); return nil })
		for range 5000 {
			l.Trigger()
			time.Sleep(time.Millisecond)
		}
		n := reads.Load()
		assert.True(t, n >= 90 && n <= 101, "%d reads of 10 ms in 5 s", n)
	})
}
