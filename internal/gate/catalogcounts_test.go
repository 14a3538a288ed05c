package gate

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// The number of series is bounded for any number of plans and meters.
func TestCatalogCounts_ManyNames_RestIsOther(t *testing.T) {
	t.Parallel()
	b := newCatalogCounts(prometheus.NewRegistry())
	snapshot := func(from, to int) *catalog.Snapshot {
		s := &catalog.Snapshot{Plans: map[string]*catalog.Plan{}, Meters: map[string]*catalog.Meter{}}
		for i := from; i < to; i++ {
			s.Plans[fmt.Sprint("plan", i)] = &catalog.Plan{}
			s.Meters[fmt.Sprint("meter", i)] = &catalog.Meter{}
		}
		return s
	}
	count := func(s *catalog.Snapshot) {
		for i := range 1000 {
			b.refused(s, fmt.Sprint("plan", i), "rate_limited")
			b.drawn(s, []ledger.Draw{{Meter: fmt.Sprint("meter", i), Amount: 2}})
		}
		b.refused(s, "", "rate_limited")
	}
	first := snapshot(0, labelsMax/2)
	count(first)
	series := func() (plans, meters int) {
		return testutil.CollectAndCount(b.refusals), testutil.CollectAndCount(b.units)
	}
	n, m := series()
	assert.True(t, n == labelsMax/2+2 && m == labelsMax/2+1, "%d and %d series of %d names", n, m, labelsMax/2)
	all := snapshot(0, 3*labelsMax)
	count(all)
	count(all)
	n, m = series()
	assert.True(t, n == labelsMax+2 && m == labelsMax+1, "%d and %d series of %d names", n, m, 3*labelsMax)
	got := testutil.ToFloat64(b.refusals.WithLabelValues("plan7", "rate_limited"))
	assert.True(t, got == 3, "plan7 has %v, want 3: a name keeps its label value", got)
	count(snapshot(labelsMax/2, labelsMax/2+1)) // all other plans and meters are deleted
	n, m = series()
	assert.True(t, n == 3 && m == 2, "%d and %d series are left", n, m)
}

func BenchmarkCatalogCounts_Refused(b *testing.B) {
	m := newCatalogCounts(prometheus.NewRegistry())
	s := &catalog.Snapshot{Plans: map[string]*catalog.Plan{"basic": {}}}
	for b.Loop() {
		m.refused(s, "basic", "rate_limited")
	}
}
