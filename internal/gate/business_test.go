package gate

import (
	"errors"
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

func TestBusiness_RefusalsByPlanAndUnitsByMeter_DecisionsOnly(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	in := newShared(t, func(cfg *Config) { cfg.Metrics = reg })
	in.catalogue(catalog.Limit{Rule: "three", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "3/day"})
	ctx := t.Context()
	expect := func(what string, refused map[ledger.Code]float64, units float64) {
		t.Helper()
		series := 0
		for code, n := range refused {
			series++
			if got := testutil.ToFloat64(in.business.refusals.WithLabelValues("basic", string(code))); got != n {
				t.Errorf("%s: %v refusals of basic with %s, want %v", what, got, code, n)
			}
		}
		if n := testutil.CollectAndCount(in.business.refusals); n != series {
			t.Errorf("%s: %d series, want %d", what, n, series)
		}
		if got := testutil.ToFloat64(in.business.units.WithLabelValues("calls")); got != units {
			t.Errorf("%s: %v units, want %v", what, got, units)
		}
	}
	dry := request("dry", "calls", 100)
	dry.DryRun = true
	_, _ = in.Debit(ctx, dry)
	_, _ = in.Consume(ctx, dry)
	_, _ = in.Check(ctx, request("", "calls", 100))
	_, _ = in.Debit(ctx, request("bad", "calls", -1))
	_, _ = in.Debit(ctx, Request{Tenant: "nobody", Key: "k", Items: request("", "calls", 1).Items})
	expect("checks, dry runs and mistakes", nil, 0)
	for range 2 { // the second time is a replay
		if _, err := in.Debit(ctx, request("d", "calls", 2)); err != nil {
			t.Fatal(err)
		}
	}
	expect("a debit and its replay", nil, 2)
	_, _ = in.Consume(ctx, request("c1", "calls", 3))
	_, _ = in.Consume(ctx, request("c2", "calls", 100))
	expect("consumes", map[ledger.Code]float64{ledger.CodeQuotaExceeded: 1}, 5)
	for i := range 4 { // two tokens are left
		_, _ = in.Consume(ctx, request(fmt.Sprint("l", i), "calls", 1))
	}
	expect("a limit", map[ledger.Code]float64{ledger.CodeQuotaExceeded: 1, CodeRateLimited: 2}, 7)
	in.DebitBatch(ctx, []Request{request("b1", "calls", 1), request("b2", "calls", 100), dry})
	expect("a batch", map[ledger.Code]float64{ledger.CodeQuotaExceeded: 2, CodeRateLimited: 2}, 8)
	for _, amount := range []int64{2, 100} {
		_, _ = in.Hold(ctx, &ledger.Hold{Tenant: "acme", Key: fmt.Sprint("h", amount), HoldID: fmt.Sprint("h", amount), Items: request("", "calls", amount).Items}, false)
	}
	expect("holds", map[ledger.Code]float64{ledger.CodeQuotaExceeded: 3, CodeRateLimited: 2}, 8)
	if _, err := in.ChangeHold(ctx, &ledger.HoldChange{Tenant: "acme", Key: "cap", HoldID: "h2", Action: ledger.ActionCapture}, false); err != nil {
		t.Fatal(err)
	}
	expect("a capture", map[ledger.Code]float64{ledger.CodeQuotaExceeded: 3, CodeRateLimited: 2}, 10)
}

// However many plans and meters there are, the number of series is bounded.
func TestBusiness_ManyNames_RestIsOther(t *testing.T) {
	t.Parallel()
	b := newBusiness(prometheus.NewRegistry())
	snapshot := func(from, to int) *catalog.Snapshot {
		s := &catalog.Snapshot{Plans: map[string]*catalog.Plan{}, Meters: map[string]*catalog.Meter{}}
		for i := from; i < to; i++ {
			s.Plans[fmt.Sprint("plan", i)], s.Meters[fmt.Sprint("meter", i)] = &catalog.Plan{}, &catalog.Meter{}
		}
		return s
	}
	count := func(s *catalog.Snapshot) {
		for i := range 1000 {
			b.refused(s, fmt.Sprint("plan", i), &RateLimited{Violated: []string{"r"}})
			b.drawn(s, []ledger.Draw{{Meter: fmt.Sprint("meter", i), Amount: 2}})
		}
		b.refused(s, "", &RateLimited{Violated: []string{"r"}})
		b.refused(s, "plan1", nil)
		b.refused(s, "plan1", errors.New("something else"))
	}
	first := snapshot(0, labelsMax/2)
	count(first)
	if n, m := testutil.CollectAndCount(b.refusals), testutil.CollectAndCount(b.units); n != labelsMax/2+2 || m != labelsMax/2+1 {
		t.Errorf("%d and %d series of %d names", n, m, labelsMax/2)
	}
	all := snapshot(0, 3*labelsMax)
	count(all)
	count(all)
	if n, m := testutil.CollectAndCount(b.refusals), testutil.CollectAndCount(b.units); n != labelsMax+2 || m != labelsMax+1 {
		t.Errorf("%d and %d series of %d names", n, m, 3*labelsMax)
	}
	if got := testutil.ToFloat64(b.refusals.WithLabelValues("plan7", string(CodeRateLimited))); got != 3 {
		t.Errorf("plan7 has %v, want 3: a name keeps its label value", got)
	}
	count(snapshot(labelsMax/2, labelsMax/2+1)) // all others are deleted
	if n, m := testutil.CollectAndCount(b.refusals), testutil.CollectAndCount(b.units); n != 3 || m != 2 {
		t.Errorf("%d and %d series are left", n, m)
	}
}

func BenchmarkBusiness_Refused(b *testing.B) {
	m := newBusiness(prometheus.NewRegistry())
	s := &catalog.Snapshot{Plans: map[string]*catalog.Plan{"basic": {}}}
	err := error(&RateLimited{Violated: []string{"r"}})
	for b.Loop() {
		m.refused(s, "basic", err)
	}
}
