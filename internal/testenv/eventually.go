package testenv

import (
	"testing"
	"time"
)

// eventuallyMax bounds the wait for what other goroutines and servers do: enough on a busy machine.
const eventuallyMax = 10 * time.Second

// Eventually waits until reached returns true, and returns how long that took. After ten seconds it fails the test.
func Eventually(t testing.TB, reached func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !reached() {
		if <-tick.C; time.Since(began) > eventuallyMax {
			t.Fatalf("condition not reached in %s", eventuallyMax)
		}
	}
	return time.Since(began)
}
