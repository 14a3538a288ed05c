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

func TestRoom_OneCaller_LeavesHalfToOthers(t *testing.T) {
	t.Parallel()
	r := newRoom(nil, 4)
	var leaves []func()
	enter := func(callers ...string) {
		t.Helper()
		leave, err := r.enter(t.Context(), callers, nil)
		require.NoError(t, err)
		leaves = append(leaves, leave)
	}
	enter("a")
	enter("a")
	assert.False(t, free(t, r, "a"), "a third of the same caller")
	assert.True(t, free(t, r, "b") && free(t, r), "another caller")
	enter("b")
	enter()
	assert.False(t, free(t, r, "c") || free(t, r), "a full room")
	for _, leave := range leaves {
		leave()
	}
	assert.True(t, free(t, r, "a"), "an empty room")
	assert.Empty(t, r.callers, "callers that are gone are remembered")
}

func TestRoom_CallerWithinACaller_LeavesHalfOfItsPart(t *testing.T) {
	t.Parallel()
	r := newRoom(nil, 8)
	var leaves []func()
	enter := func(callers ...string) {
		t.Helper()
		leave, err := r.enter(t.Context(), callers, nil)
		require.NoError(t, err)
		leaves = append(leaves, leave)
	}
	enter("links", "a")
	enter("links", "a")
	assert.False(t, free(t, r, "links", "a"), "a third of the same caller")
	assert.True(t, free(t, r, "links", "b") && free(t, r, "other", "a"), "other callers")
	enter("links", "b")
	enter("links", "c")
	assert.False(t, free(t, r, "links", "d") || free(t, r, "links"), "half of the room is full")
	assert.True(t, free(t, r, "other", "a"), "the other half")
	for _, leave := range leaves {
		leave()
	}
	assert.True(t, free(t, r, "links", "a"), "an empty room")
	assert.Empty(t, r.callers, "callers that are gone are remembered")
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
