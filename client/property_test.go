package client

import (
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/pprof"
	"testing"
	"time"
)

// drawn draws the random values of one case of a property.
type drawn struct {
	*testing.T
	random *rand.Rand
}

// always checks a property with a thousand random cases. If a case fails, it reports the seed of the case. It uses no
// library for property tests, because such a library would become a requirement of every program that uses the
// client.
func always(t *testing.T, property func(d *drawn)) {
	t.Helper()
	for range 1000 {
		seed := rand.Uint64()
		property(&drawn{t, rand.New(rand.NewPCG(seed, 0))})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// between draws a number in a range. It often draws the first or the last number of the range, or a number near them.
func (d *drawn) between(least, most int64) int64 {
	span := uint64(most) - uint64(least)
	switch d.random.IntN(4) {
	case 0:
		return least + int64(min(span, d.random.Uint64N(3)))
	case 1:
		return most - int64(min(span, d.random.Uint64N(3)))
	case 2:
		span = min(span, 1<<d.random.UintN(63)) // of any size
	}
	return least + int64(d.random.Uint64N(span+1))
}

func (d *drawn) yes() bool { return d.random.IntN(2) == 0 }

// TestMain fails if goroutines that the tests started are still running after the tests.
func TestMain(m *testing.M) {
	before := runtime.NumGoroutine()
	code := m.Run()
	for end := time.Now().Add(time.Minute); code == 0 && runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(end) {
			_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
			code = 1
		}
	}
	os.Exit(code)
}
