package testenv

import (
	"fmt"
	"testing"
	"time"
)

// Patience bounds each wait of a test for something that must come. It is there for hangs: a machine that is busy or slow
// stays far below it. How quick something is belongs into a benchmark.
const Patience = 5 * time.Minute

// pollEvery is how often Eventually asks. A question to a server takes about a millisecond.
const pollEvery = 10 * time.Millisecond

// Eventually waits until reached returns true. It asks at once and then every 10 ms. After Patience it fails the test, with
// what, which says what should have come.
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

// Receive waits for the next value of a channel, or until it is closed; then ok is false. It fails the test after Patience.
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
