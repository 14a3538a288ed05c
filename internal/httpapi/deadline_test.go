package httpapi

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// contextState has the results of the methods of a context at one moment.
type contextState struct {
	err    error
	done   bool
	at     time.Time
	timed  bool
	value  any
	child  error
	called bool // whether the function of context.AfterFunc was called
}

type contextKey struct{}

// TestDeadline_BehavesLikeWithDeadline compares the request's context with a context of package context. After any
// sequence of events, both contexts have the same visible state. The same holds for their child contexts.
func TestDeadline_BehavesLikeWithDeadline(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.SampledFrom([]string{"look", "done", "child", "after", "cancel parent", "end", "pass half", "pass all"}), 1, 12).Draw(rt, "steps")
		early := rapid.Bool().Draw(rt, "in the past")
		var problem string
		synctest.Test(t, func(*testing.T) { problem = compareDeadlines(steps, early, time.Sleep) })
		require.Empty(rt, problem)
	})
}

func compareDeadlines(steps []string, past bool, pass func(time.Duration)) string {
	at := time.Now().Add(time.Second)
	if past {
		at = time.Now().Add(-time.Second)
	}
	root, cancelParent := context.WithCancel(context.WithValue(context.Background(), contextKey{}, "v"))
	defer cancelParent()
	ours := newDeadline(root, at)
	defer ours.end()
	theirs, cancelTheirs := context.WithDeadline(root, at)
	defer cancelTheirs()
	pair := [2]context.Context{ours, theirs}
	var children [2]context.Context
	var called [2]atomic.Bool // AfterFunc calls its function on another goroutine; synctest.Wait waits for it
	var cleanup []func()
	defer func() {
		for _, f := range cleanup {
			f()
		}
	}()
	see := func(i int) contextState {
		s := contextState{err: pair[i].Err(), value: pair[i].Value(contextKey{}), called: called[i].Load()}
		s.at, s.timed = pair[i].Deadline()
		if children[i] != nil {
			s.child = children[i].Err()
		}
		select {
		case <-pair[i].Done():
			s.done = true
		default:
		}
		return s
	}
	// The parent and the deadline can both end between two steps, in either order. Therefore the test waits after
	// each step until all goroutines have reacted.
	for _, step := range append([]string{"see"}, steps...) {
		for i := range pair {
			switch step {
			case "done":
				pair[i].Done()
			case "child":
				child, cancel := context.WithCancel(pair[i])
				cleanup = append(cleanup, cancel)
				children[i] = child
			case "after":
				stop := context.AfterFunc(pair[i], func() { called[i].Store(true) })
				cleanup = append(cleanup, func() { stop() })
			}
		}
		switch step {
		case "cancel parent":
			cancelParent()
		case "end":
			ours.end()
			cancelTheirs()
		case "pass half":
			pass(500 * time.Millisecond)
		case "pass all":
			pass(2 * time.Second)
		}
		synctest.Wait()
		// The function see calls Err and Done. Here only Err is called: its result must be right even if Done was
		// never called.
		if a, b := ours.Err(), theirs.Err(); !errors.Is(a, b) || (a == nil) != (b == nil) {
			return step + ": Err alone differs"
		}
		if step != "look" {
			continue
		}
		if a, b := see(0), see(1); a != b {
			return step + ": states differ"
		}
	}
	if a, b := see(0), see(1); a != b {
		return "at the end: states differ"
	}
	return ""
}

// TestDeadline_ChildrenNeedNoGoroutine: a context derived from a request's context must not need its own goroutine.
func TestDeadline_ChildrenNeedNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	d := newDeadline(t.Context(), time.Now().Add(time.Minute))
	defer d.end()
	for range 100 {
		_, cancel := context.WithTimeout(d, time.Minute)
		defer cancel()
	}
	n := runtime.NumGoroutine()
	assert.True(t, n <= before+50, "%d goroutines for 100 children, %d before", n, before)
}

// TestDeadline_ConcurrentUse uses one context on several goroutines, so that the race detector can find data races.
func TestDeadline_ConcurrentUse(t *testing.T) {
	t.Parallel()
	parent, cancel := context.WithCancel(t.Context())
	defer cancel()
	d := newDeadline(parent, time.Now().Add(time.Minute))
	testenv.Together(16, func(i int) {
		if i == 8 {
			cancel()
		}
		<-d.Done()
		assert.ErrorIs(t, d.Err(), context.Canceled, "err")
	})
	d.end()
}

// The channel of DoneBefore is closed when the parent ends. A timer is created only if the deadline is earlier.
func TestDeadline_DoneBefore_IsTheParentsEndOrAnEarlierDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		parent, cancel := context.WithCancel(t.Context())
		d, bound := newDeadline(parent, time.Now().Add(time.Minute)), time.Now().Add(time.Minute)
		defer d.end()
		left := d.DoneBefore(bound)
		assert.True(t, d.timed == nil, "a timer was made")
		soon := newDeadline(parent, bound.Add(-time.Second))
		defer soon.end()
		<-soon.DoneBefore(bound)
		assert.Equal(t, time.Second, time.Until(bound), "from the end of the earlier deadline to the bound")
		select {
		case <-left:
			t.Error("ended before its parent")
		default:
		}
		cancel()
		<-left
		assert.ErrorIs(t, d.Err(), context.Canceled, "err")
	})
}
