package breaker_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/store/breaker"
)

// server is the server that the breaker of a test probes.
type server struct {
	err    atomic.Pointer[error]
	hangs  atomic.Bool
	probes atomic.Int64
}

func (s *server) probe(ctx context.Context) error {
	s.probes.Add(1)
	if s.hangs.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	if err := s.err.Load(); err != nil {
		return *err
	}
	return nil
}

func newBreaker(s *server) *breaker.Breaker {
	return breaker.New(breaker.Config{
		Name: "test", Probe: s.probe, Every: 250 * time.Millisecond, Timeout: time.Second, Log: slog.New(slog.DiscardHandler),
	})
}

func TestBreaker_Suspicion_OpensOnlyAfterFailedProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s server
		b := newBreaker(&s)
		defer b.Stop()
		time.Sleep(time.Hour)
		require.Zero(t, s.probes.Load(), "nobody suspects anything")

		b.Suspect()
		synctest.Wait()
		require.EqualValues(t, 1, s.probes.Load())
		require.NoError(t, b.Cause(), "the server answers: one connection was lost")

		away := errors.New("connection refused")
		s.err.Store(&away)
		synctest.Wait()
		require.NoError(t, b.Cause(), "nobody has told the breaker")
		b.Suspect()
		synctest.Wait()
		require.ErrorIs(t, b.Cause(), away)
	})
}

func TestBreaker_Open_ClosesSoonAfterReturn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s server
		s.hangs.Store(true)
		b := newBreaker(&s)
		defer b.Stop()
		for range 5 {
			b.Suspect()
		}
		time.Sleep(999 * time.Millisecond)
		require.NoError(t, b.Cause(), "the probe has its time")
		time.Sleep(2 * time.Millisecond)
		require.ErrorIs(t, b.Cause(), context.DeadlineExceeded)

		time.Sleep(time.Minute)
		require.Less(t, s.probes.Load(), int64(60), "one probe at a time, with pauses")
		s.hangs.Store(false)
		time.Sleep(1250 * time.Millisecond) // a probe that hangs, and a pause
		require.NoError(t, b.Cause())
		probes := s.probes.Load()
		time.Sleep(time.Hour)
		// A suspicion that was reported while the server was away causes one more probe.
		require.LessOrEqual(t, s.probes.Load(), probes+1)
	})
}

func TestBreaker_ServedDuringProbe_StaysClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s server
		s.hangs.Store(true)
		b := newBreaker(&s)
		defer b.Stop()
		b.Suspect()
		time.Sleep(500 * time.Millisecond)
		b.Served()
		time.Sleep(time.Second)
		require.NoError(t, b.Cause(), "the server is only slow with new connections")
		b.Suspect()
		time.Sleep(1001 * time.Millisecond)
		require.Error(t, b.Cause(), "that was before this probe")
	})
}

func TestStop_DuringProbe_Returns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s server
		s.hangs.Store(true)
		b := newBreaker(&s)
		b.Suspect()
		synctest.Wait()
		began := time.Now()
		b.Stop()
		require.Zero(t, time.Since(began))
		b.Suspect() // after Stop no probe begins, and Suspect does not block
		b.Suspect()
	})
}
