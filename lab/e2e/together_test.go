package e2e

import (
	"context"
	"os"
	"slices"
	"sync"
	"testing"
)

// together is a fixture that several tests share. It starts for the first test that needs it, and ends after the last
// one. A test joins before it calls t.Parallel, so all tests of a run have joined before one of them ends.
type together[T any] struct {
	start func(h *host) T

	mu    sync.Mutex
	users int
	host  *host
	value *T // nil: not started
}

// host is the test of a fixture. The fixture may outlast the test that starts it.
type host struct {
	*testing.T

	failed   bool // one of the users has failed
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

// get returns the fixture.
func (f *together[T]) get(t *testing.T) T {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.users == 0 {
		t.Fatal("join before t.Parallel")
	}
	if f.host == nil {
		f.host = &host{T: t}
		value := f.start(f.host)
		f.value = &value
	}
	if f.value == nil {
		t.Fatal("it did not start for another test")
	}
	return *f.value
}

// Cleanup implements testing.TB: clean runs after the last user.
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
