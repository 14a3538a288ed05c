package backoff

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBackoff_Wait_DoublesUpToTheLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := New(time.Second, 4*time.Second)
		for _, seconds := range []int{1, 2, 4, 4} {
			most := time.Duration(seconds) * time.Second
			began := time.Now()
			require.True(t, b.Wait(t.Context()), "stopped")
			d := time.Since(began)
			assert.True(t, d >= most/2 && d <= most, "waited %s of at most %s", d, most)
		}
		b.Reset()
		began := time.Now()
		b.Wait(t.Context())
		assert.LessOrEqual(t, time.Since(began), time.Second, "the wait after a reset")
	})
}

func TestBackoff_ContextEnds_False(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.False(t, New(time.Hour, time.Hour).Wait(ctx), "waited for an hour")
}

func TestEvery_EachInterval_UntilContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		var after []time.Duration
		Every(ctx, time.Second, func(at time.Time) {
			if after = append(after, at.Sub(began)); len(after) == 2 {
				cancel()
			}
		})
		assert.Equal(t, []time.Duration{time.Second, 2 * time.Second}, after)
	})
}

func TestSleep_ForAsLong_OrUntilContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		assert.True(t, Sleep(t.Context(), time.Minute) && time.Since(began) == time.Minute,
			"slept for %s", time.Since(began))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		assert.True(t, !Sleep(ctx, time.Hour) && time.Since(began) == time.Second,
			"slept for %s beyond its context", time.Since(began))
		assert.False(t, Sleep(ctx, 0), "slept after its context")
	})
}
