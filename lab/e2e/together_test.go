package e2e

import (
	"context"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// together is a fixture that several tests share. The first test that needs the fixture starts it. The fixture ends
// after the last test that joined. A test joins before it calls t.Parallel, so all tests of a run have joined before
// one of them ends.
type together[T any] struct {
	start func(h *host) T

	mu    sync.Mutex
	users int
	host  *host
	value *T // nil: not started
}

// host is the test that starts a fixture. The fixture may end later than this test.
type host struct {
	*testing.T

	failed   bool // whether one of the tests that joined has failed
	cleanups []func()
}

func (f *together[T]) join(t *testing.T) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.users++
	t.Cleanup(func() { f.leave(t) })
}

func (f *together[T]) leave(t *testing.T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.users--
	if f.host == nil {
		return
	}
	f.host.failed = f.host.failed || t.Failed()
	if f.users > 0 {
		return
	}
	f.host.T = t
	for _, clean := range slices.Backward(f.host.cleanups) {
		clean()
	}
	f.host, f.value = nil, nil
}

// parallel joins the users of the fixture, makes the test parallel, and returns the fixture.
func (f *together[T]) parallel(t *testing.T) T {
	t.Helper()
	f.join(t)
	t.Parallel()
	return f.get(t)
}

// get returns the fixture. It starts the fixture if no test has started it.
func (f *together[T]) get(t *testing.T) T {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	require.NotZero(t, f.users, "join before t.Parallel")
	if f.host == nil {
		f.host = &host{T: t}
		value := f.start(f.host)
		f.value = &value
	}
	require.NotNil(t, f.value, "it did not start for another test")
	return *f.value
}

// Cleanup implements testing.TB. The function clean runs after the last test that joined.
func (h *host) Cleanup(clean func()) { h.cleanups = append(h.cleanups, clean) }

// Context implements testing.TB. It does not end.
func (h *host) Context() context.Context { return context.Background() }

// Failed implements testing.TB.
func (h *host) Failed() bool { return h.failed }

// TempDir implements testing.TB.
func (h *host) TempDir() string {
	h.Helper()
	dir, err := os.MkdirTemp("", "quotasvc-together-")
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
