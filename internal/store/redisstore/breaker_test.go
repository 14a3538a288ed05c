package redisstore

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

var errDown = errors.New("down")

// testBreaker is a breaker with a clock that the test sets and a list of its changes.
type testBreaker struct {
	*breaker
	now     time.Time
	changes []string
}

func newTestBreaker() *testBreaker {
	b := &testBreaker{now: time.Unix(1_790_000_000, 0)}
	b.breaker = &breaker{onChange: func(open bool, err error) { b.changes = append(b.changes, fmt.Sprint(open, err)) }}
	return b
}

func (b *testBreaker) admit(now time.Time) pass {
	return b.breaker.admit(func() time.Time { return now })
}

func (b *testBreaker) outcomes(s string) *testBreaker {
	for _, c := range s {
		switch c {
		case '+':
			b.record(b.now, nil)
		case 'w':
			b.wrote()
			b.record(b.now, nil)
		case 'r':
			b.record(b.now, errReadOnly)
		default:
			b.record(b.now, errDown)
		}
	}
	return b
}

func TestBreaker_OpensAtHalfOf20OrFiveInARow(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		calls string
		open  bool
	}{
		{"", false},
		{"----", false},                                     // four failures open nothing
		{"-----", true},                                     // five failures in a row open the breaker
		{"-+-+-+-+-+-+-+-+-+-", false},                      // 19 calls
		{"-+-+-+-+-+-+-+-+-+-+-", true},                     // half of the latest 20 calls fail
		{"++-+-+-+-+-+-+-+-+-+", false},                     // 9 of 20 calls fail
		{"++++++++++++++++++++++++++++++++++----", false},   // four failures after many successes
		{"++++++++++++++++++++++++++++++++++-----", true},   // five failures after many successes
		{"++++r++++r++++r++++r++++", false},                 // four rejected writes
		{"++++r++++r++++r++++r++++r", true},                 // five rejected writes, with successful reads between them
		{"++++r++++r++++r++++r+w++r++++r++++r++++r", false}, // an accepted write between the rejected writes
		{"++++r++++r++++r++++r++++-", false},                // the fifth failure was not a rejected write
	} {
		b := newTestBreaker().outcomes(tc.calls)
		assert.True(t, b.isOpen() == tc.open, "after %q: open is %v", tc.calls, b.isOpen())
	}
}

func TestBreaker_ReadOnly_WhenWritesAreRejected(t *testing.T) {
	t.Parallel()
	b := newTestBreaker().outcomes("r+r+r+r+")
	assert.False(t, b.isReadOnly(), "it is not open yet")
	b.outcomes("r")
	assert.True(t, b.isReadOnly(), "it has opened for refused writes")
	b.endProbe(b.now, probePassed)
	b.outcomes("r+r+r+r+")
	assert.True(t, !b.isReadOnly() && !b.isOpen(), "it remembers the refusals of before")
	b.outcomes("-----")
	assert.True(t, !b.isReadOnly() && b.isOpen(), "it has opened for calls that failed")
}

func TestBreaker_ForgetsCallsAfterTenSeconds(t *testing.T) {
	t.Parallel()
	b := newTestBreaker().outcomes("-+-+-+-+-+-+-+-+-+")
	b.now = b.now.Add(breakerAge + time.Microsecond)
	b.outcomes("-+-+-+-+-+-+-+-+-")
	assert.False(t, b.isOpen(), "it opened on old calls")
	b.outcomes("+-+-")
	assert.True(t, b.isOpen(), "it did not open on twenty fresh ones")
}

func TestBreaker_Open_ProbesOnceAfterFiveSeconds(t *testing.T) {
	t.Parallel()
	b := newTestBreaker().outcomes("-----")
	b.now = b.now.Add(RetryAfter - time.Microsecond)
	require.Equal(t, passRefused, b.admit(b.now), "just before")
	b.now = b.now.Add(time.Microsecond)
	var probes, refused atomic.Int64
	testenv.Together(16, func(_ int) {
		switch b.admit(b.now) {
		case passProbe:
			probes.Add(1)
		case passRefused:
			refused.Add(1)
		case passCall:
			t.Error("an open breaker lets a call through")
		}
	})
	require.True(t, probes.Load() == 1 && refused.Load() == 15, "%d probes, %d refused", probes.Load(), refused.Load())

	b.endProbe(b.now, probeFailed)
	require.Equal(t, passRefused, b.admit(b.now.Add(RetryAfter-time.Microsecond)), "after a failed probe")
	b.now = b.now.Add(RetryAfter)
	require.Equal(t, passProbe, b.admit(b.now), "the second probe")
	b.endProbe(b.now, probeUndecided)
	require.Equal(t, passProbe, b.admit(b.now), "after an undecided probe")
	b.endProbe(b.now, probePassed)
	require.Equal(t, passCall, b.admit(b.now), "after a good probe")
	require.False(t, b.isOpen(), "after a good probe")
	b.outcomes("----")
	assert.False(t, b.isOpen(), "it remembers the failures of before")
	assert.Equal(t, "[true down false <nil>]", fmt.Sprint(b.changes), "one line per change")
}
