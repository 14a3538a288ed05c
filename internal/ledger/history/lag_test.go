package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLag_ReplicaReachesMarks_CompleteUntilTheLast(t *testing.T) {
	t.Parallel()
	start := time.Now().Add(-time.Hour)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	l := &lag{}
	want := func(complete time.Time, bytes int64) {
		t.Helper()
		if got, behind, _ := l.state(); !got.Equal(complete) || behind != bytes {
			t.Errorf("complete until %s, %d bytes behind; want %s, %d", got.Sub(start), behind, complete.Sub(start), bytes)
		}
	}
	before := at(-10)
	l.note(mark{at(0), 100})
	l.reached(90, 100, &before, nil)
	want(before, 10) // the time in before, because the replica has not reached a mark
	l.note(mark{at(1), 200})
	l.note(mark{at(2), 300})
	l.reached(250, 300, &before, nil)
	want(at(1), 50)
	l.note(mark{at(3), 300}) // the same position as in the mark before, because nothing was written
	l.reached(250, 300, &before, nil)
	want(at(1), 50)
	l.reached(300, 300, &before, nil)
	want(at(3), 0)
	l.failed(errNoStandby)
	want(time.Time{}, -1)
}

func TestLag_FarBehind_MarksAreThinned(t *testing.T) {
	t.Parallel()
	start := time.Now()
	l := &lag{}
	for i := range 3 * lagMarks {
		l.note(mark{start.Add(time.Duration(i) * time.Second), int64(i + 1)})
	}
	n := len(l.waiting)
	assert.True(t, n <= lagMarks, "%d marks wait, at most %d may", n, lagMarks)
	l.reached(lagMarks, 3*lagMarks, nil, nil)
	got, want := l.complete.Sub(start).Seconds(), float64(lagMarks-1)
	assert.True(t, got <= want && got >= want-32, "complete until %.0f s, want %.0f or half a minute less", got, want)
	for i := 1; i < len(l.waiting); i++ {
		require.True(t, l.waiting[i].position > l.waiting[i-1].position, "mark %d is before the one before it", i)
	}
}
