package backoff

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestBackoff_Wait_DoublesUpToTheLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := New(time.Second, 4*time.Second)
		for _, seconds := range []int{1, 2, 4, 4} {
			most := time.Duration(seconds) * time.Second
			began := time.Now()
			if !b.Wait(t.Context()) {
				t.Fatal("stopped")
			}
			if d := time.Since(began); d < most/2 || d > most {
				t.Errorf("waited %s of at most %s", d, most)
			}
		}
		b.Reset()
		began := time.Now()
		b.Wait(t.Context())
		if d := time.Since(began); d > time.Second {
			t.Errorf("waited %s after a reset", d)
		}
	})
}

func TestBackoff_ContextEnds_False(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if New(time.Hour, time.Hour).Wait(ctx) {
		t.Error("waited for an hour")
	}
}

func TestSleep_ForAsLong_OrUntilContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if !Sleep(t.Context(), time.Minute) || time.Since(began) != time.Minute {
			t.Errorf("slept for %s", time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		if Sleep(ctx, time.Hour) || time.Since(began) != time.Second {
			t.Errorf("slept for %s beyond its context", time.Since(began))
		}
		if Sleep(ctx, 0) {
			t.Error("slept after its context")
		}
	})
}
