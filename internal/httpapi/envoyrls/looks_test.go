package envoyrls

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
)

// looksSince returns an empty memory of looks. ask returns whether a charge with these hits, at this time after its
// start, is a report. 0 hits are a look.
func looksSince(now time.Time) (l *looks, ask func(tenant string, hits int64, after time.Duration) bool) {
	l = newLooks(now, prometheus.NewCounter(prometheus.CounterOpts{Name: "forgotten"}))
	return l, func(tenant string, hits int64, after time.Duration) bool {
		charges := make([]charge, 1)
		charges[0].Tenant, charges[0].Cost, charges[0].DryRun = tenant, max(hits, 1), hits == 0
		l.pair(charges, now.Add(after))
		return charges[0].AfterTheFact
	}
}

func TestLooks_Each_RememberedForAnHour(t *testing.T) {
	t.Parallel()
	const hour, until = time.Hour, time.Hour + lookSlot
	for _, at := range []time.Duration{0, 1, lookSlot - 1, lookSlot, 25 * hour, 25*hour + lookSlot - 1} {
		for after, want := range map[time.Duration]bool{
			1: true, lookSlot: true, hour - 1: true, hour: true, until: false, 3 * hour: false, 100 * hour: false,
		} {
			l, ask := looksSince(time.Now())
			assert.False(t, ask("acme", 0, at))
			assert.Equal(t, want, ask("acme", 5, at+after), "looked at after %s, reported %s later", at, after)
			assert.False(t, ask("acme", 5, at+after), "one look, two reports")
			assert.Zero(t, l.unused.Len(), "descriptors without looks take memory")
		}
	}
}

// The oldest look is used first, so that a long stream and a short one both find theirs.
func TestLooks_SeveralOfOneDescriptor_OldestUsedFirst(t *testing.T) {
	t.Parallel()
	_, ask := looksSince(time.Now())
	ask("acme", 0, 0)
	ask("acme", 0, 50*time.Minute)
	ask("other", 0, 50*time.Minute)
	assert.True(t, ask("acme", 5, 59*time.Minute))
	assert.True(t, ask("acme", 5, 100*time.Minute))
	assert.False(t, ask("acme", 5, 100*time.Minute))
	assert.True(t, ask("other", 5, 100*time.Minute))
}

func TestLooks_AtOnce_EachUsedOnce(t *testing.T) {
	t.Parallel()
	_, ask := looksSince(time.Now())
	var all sync.WaitGroup
	var reports atomic.Int64
	for range 8 {
		all.Go(func() {
			for range 100 {
				ask("acme", 0, 0)
			}
		})
	}
	all.Wait()
	for range 8 {
		all.Go(func() {
			for range 200 {
				if ask("acme", 5, time.Minute) {
					reports.Add(1)
				}
			}
		})
	}
	all.Wait()
	assert.EqualValues(t, 800, reports.Load(), "of 1600 charges after 800 looks")
}

// Not parallel: this test measures the heap. A client that chooses a path for each request cannot fill the memory. The
// descriptors that were looked at first are forgotten, and counted.
func TestLooks_MillionDescriptors_BoundedMemory(t *testing.T) {
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before, many := heap(), 1_000_000
	l, ask := looksSince(time.Now())
	ask("acme", 0, 0)
	for i := range many {
		ask(fmt.Sprint("tenant-", i), 0, 0)
	}
	used := heap() - before
	assert.True(t, l.unused.Len() == looksMax && used < 12<<20, "%d descriptors in %d bytes", l.unused.Len(), used)
	assert.EqualValues(t, many+1-looksMax, testutil.ToFloat64(l.forgotten))
	assert.False(t, ask("acme", 5, 1), "the first look")
	assert.True(t, ask(fmt.Sprint("tenant-", many-looksMax), 5, 1), "the oldest look that is left")
	assert.True(t, ask(fmt.Sprint("tenant-", many-1), 5, 1), "the last look")
}
