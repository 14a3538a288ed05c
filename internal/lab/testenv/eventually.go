package testenv

import (
	"fmt"
	"testing"
	"time"
)

// Patience bounds each wait of a test for an expected event. It only catches hangs: a busy or slow machine stays far
// below it. Speed is measured by benchmarks.
const Patience = 5 * time.Minute

// pollEvery is the interval of Eventually's checks. A query to a server takes about a millisecond.
const pollEvery = 10 * time.Millisecond

// Eventually waits until reached returns true. It calls reached at once and then every 10 ms. After Patience it fails
// the test with what, which describes the expected event.
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

// Receive waits for the next value of a channel, or until it is closed; then ok is false. It fails the test after
// Patience.
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
