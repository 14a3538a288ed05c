package testenv

import (
	"fmt"
	"testing"
	"time"
)

// Patience is the time limit of each wait of a test for an expected event. It only ends tests that hang, because even a
// busy or slow machine needs much less time. Benchmarks, not tests, measure speed.
const Patience = 5 * time.Minute

// pollEvery is the interval of Eventually's checks. A query to a server takes about a millisecond.
const pollEvery = 10 * time.Millisecond

// Eventually waits until reached returns true. It calls reached at once and then every 10 ms. After Patience it fails
// the test with the arguments `what`, which describe the expected event.
func Eventually(t testing.TB, reached func() bool, what ...any) {
	t.Helper()
	deadline := time.Now().Add(Patience)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !reached() {
		if time.Now().After(deadline) {
			t.Fatalf("not in %s: %s", Patience, fmt.Sprint(what...))
		}
		<-tick.C
	}
}

// Receive returns the next value of a channel. If the channel is closed, ok is false. After Patience, Receive fails
// the test.
func Receive[T any](t testing.TB, from <-chan T) (value T, ok bool) {
	t.Helper()
	limit := time.NewTimer(Patience)
	defer limit.Stop()
	select {
	case value, ok = <-from:
	case <-limit.C:
		t.Fatalf("nothing came in %s", Patience)
	}
	return value, ok
}
