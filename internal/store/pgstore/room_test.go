package pgstore

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// free reports whether a caller gets a slot of the room without a wait, and gives the slot back.
func free(t *testing.T, r *room, callers ...string) bool {
	t.Helper()
	now, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 { // select takes any case that is ready
		if leave, err := r.enter(now, callers, nil); err == nil {
			leave()
			return true
		}
	}
	return false
}

// testRoom is a room whose slots a test takes.
type testRoom struct {
	*room
	t      *testing.T
	leaves []func()
}

// take takes a slot for callers.
func (r *testRoom) take(callers ...string) {
	r.t.Helper()
	leave, err := r.enter(r.t.Context(), callers, nil)
	require.NoError(r.t, err)
	r.leaves = append(r.leaves, leave)
}

// empty gives all slots back. Then the callers get one again, and the room remembers no caller.
func (r *testRoom) empty(callers ...string) {
	r.t.Helper()
	for _, leave := range r.leaves {
		leave()
	}
	assert.True(r.t, free(r.t, r.room, callers...), "an empty room")
	assert.Empty(r.t, r.callers, "callers that are gone are remembered")
}

func TestRoom_OneCaller_LeavesHalfToOthers(t *testing.T) {
	t.Parallel()
	r := testRoom{room: newRoom(nil, 4), t: t}
	r.take("a")
	r.take("a")
	assert.False(t, free(t, r.room, "a"), "a third of the same caller")
	assert.True(t, free(t, r.room, "b") && free(t, r.room), "another caller")
	r.take("b")
	r.take()
	assert.False(t, free(t, r.room, "c") || free(t, r.room), "a full room")
	r.empty("a")
}

func TestRoom_CallerWithinACaller_LeavesHalfOfItsPart(t *testing.T) {
	t.Parallel()
	r := testRoom{room: newRoom(nil, 8), t: t}
	r.take("links", "a")
	r.take("links", "a")
	assert.False(t, free(t, r.room, "links", "a"), "a third of the same caller")
	assert.True(t, free(t, r.room, "links", "b") && free(t, r.room, "other", "a"), "other callers")
	r.take("links", "b")
	r.take("links", "c")
	assert.False(t, free(t, r.room, "links", "d") || free(t, r.room, "links"), "half of the room is full")
	assert.True(t, free(t, r.room, "other", "a"), "the other half")
	r.empty("links", "a")
}

func TestRoom_TooManyWait_RefusedAtOnce(t *testing.T) {
	t.Parallel()
	r := newRoom(nil, 1)
	r.waiting = make(chan struct{}, 2)
	leave, err := r.enter(t.Context(), nil, nil)
	require.NoError(t, err)
	r.waiting <- struct{}{}
	r.waiting <- struct{}{}
	_, err = r.enter(t.Context(), nil, nil)
	require.ErrorIs(t, err, errRoomFull)
	<-r.waiting
	leave()
	assert.True(t, free(t, r), "nobody has the slot")
}
