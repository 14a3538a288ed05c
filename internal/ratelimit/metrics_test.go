package ratelimit

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

func TestMetrics_Near_FromFourFifthsOn(t *testing.T) {
	everywhere(t, func(t *testing.T, l *Limiter) {
		r := compile(t, rule.Spec{ID: "near", Rate: "1/day", Burst: 10})
		shadow := compile(t, rule.Spec{ID: "shadow", Rate: "1/day", Burst: 3, Shadow: true})
		near := func(r string) float64 { return testutil.ToFloat64(l.metrics.near.WithLabelValues(r)) }
		for used := range 12 {
			mustConsume(t, l, Request{Tenant: "acme", Charges: []Charge{{Rule: r}, {Rule: shadow}}})
			if want := float64(min(max(0, used-6), 3)); near("near") != want { // the 8th, 9th and 10th are near
				t.Fatalf("%v times near after %d of 10, want %v", near("near"), used+1, want)
			}
		}
		assert.True(t, near("shadow") == 1,
			"a shadow rule of 3 was near %v times, want once, with the third", near("shadow"))
		leases := concurrency(t, 5)
		for range 6 {
			mustAcquire(t, l, LeaseRequest{Tenant: "acme", Rule: leases})
		}
		assert.True(t, near("exports") == 2,
			"leases were near %v times, want 2: the fourth and fifth of 5", near("exports"))
	})
}

func TestMetrics_RetryAfter_OfDenials(t *testing.T) {
	everywhere(t, func(t *testing.T, l *Limiter) {
		said := func() (n uint64, sum float64) {
			var m dto.Metric
			require.NoError(t, l.metrics.retryAfter.Write(&m))
			return m.GetHistogram().GetSampleCount(), m.GetHistogram().GetSampleSum()
		}
		r := compile(t, rule.Spec{ID: "slow", Rate: "1/h", Burst: 1})
		shadow := compile(t, rule.Spec{ID: "shadow", Rate: "1/day", Burst: 1, Shadow: true})
		req := Request{Tenant: "acme", Charges: []Charge{{Rule: r}, {Rule: shadow}}}
		mustConsume(t, l, req)
		n, _ := said()
		assert.Zero(t, n, "waits of a request that passed")
		mustConsume(t, l, req)
		mustConsume(t, l, Request{Tenant: "acme", Charges: []Charge{{Rule: r, Cost: 2}}}) // Never: no wait is counted
		n, sum := said()
		assert.True(t, n == 1 && sum >= 3500 && sum <= 3600, "%d waits of %v s in all, want one of an hour", n, sum)
		leases := concurrency(t, 1)
		for range 2 {
			mustAcquire(t, l, LeaseRequest{Tenant: "acme", Rule: leases})
		}
		n, _ = said()
		assert.True(t, n == 2, "%d waits with that for a lease, want 2", n)
	})
}

// TestMetrics_RuleDegraded_FollowsDecisions: when Redis is away, rules with any policy are reported as degraded,
// until Redis decides them again.
func TestMetrics_RuleDegraded_FollowsDecisions(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	clock := &movableClock{}
	l := patientLimiter(t, patientClient(t, server.Options()), settings{Now: clock.now})
	limit := func(id, policy string) *rule.Rule {
		return compile(t, rule.Spec{ID: id, Rate: "1000/s", OnBackendError: policy})
	}
	share, open, closed, idle := limit("share", "local_share"), limit("open", "open"), limit("closed", "closed"), limit("idle", "")
	leases := concurrency(t, 100)
	ask := func() {
		for _, r := range []*rule.Rule{share, open, closed} {
			_, err := l.Consume(t.Context(), Request{Tenant: "acme", Charges: []Charge{{Rule: r}}})
			assert.False(t, err != nil && (r != closed || !errors.Is(err, ErrUnavailable)), err)
		}
		mustAcquire(t, l, LeaseRequest{Tenant: "acme", Rule: leases})
	}
	degraded := func() []string {
		l.metrics.degradedRules.mu.Lock()
		defer l.metrics.degradedRules.mu.Unlock()
		return slices.Sorted(maps.Keys(l.metrics.degradedRules.all))
	}
	gauge := func(limit string) float64 {
		return testutil.ToFloat64(l.metrics.degradedRules.gauge.WithLabelValues(limit))
	}
	ask()
	mustConsume(t, l, Request{Tenant: "acme", Charges: []Charge{{Rule: idle}}})
	assert.Empty(t, degraded(), "while Redis decides")
	server.Kill()
	ask()
	assert.Equal(t, []string{"closed", "exports", "open", "share"}, degraded(), "while Redis is away")
	assert.True(t, gauge("open") == 1 && gauge("idle") == 0, "while Redis is away")
	mustConsume(t, l, Request{Tenant: "acme", Charges: []Charge{{Rule: idle}}})
	server.Start()
	testenv.Eventually(t, func() bool {
		clock.advance(redisstore.RetryAfter)
		return mustConsume(t, l, Request{Tenant: "acme", Charges: []Charge{{Rule: share}}}).Mode == ModeRedis
	}, "redis decides")
	assert.Zero(t, gauge("share"), "when Redis decides again")
	testenv.Eventually(t, func() bool { return len(degraded()) == 0 && gauge("idle") == 0 }, "nobody is degraded, neither whom nobody asks")
}

func TestMetrics_Forget_DropsSeries(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	metrics := NewMetrics(reg)
	l := patientLimiter(t, nil, settings{Metrics: metrics})
	for _, id := range []string{"stays", "goes"} {
		r := compile(t, rule.Spec{ID: id, Rate: "1/day"})
		mustConsume(t, l, Request{Tenant: "acme", Charges: []Charge{{Rule: r}}})
		lease := mustAcquire(t, l, LeaseRequest{Tenant: "acme", Rule: concurrency(t, 1, func(s *rule.Spec) { s.ID = id })})
		mustRelease(t, l, lease.ID)
		metrics.degradedRules.note(id, true, ModeLocal)
	}
	metrics.Forget([]string{"goes", "never-was"})
	families := testenv.Must(t).Get(reg.Gather())
	labels := map[string]int{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "rule" {
					labels[l.GetValue()]++
				}
			}
		}
	}
	assert.True(t, labels["goes"] == 0 && labels["stays"] >= 5, "series by rule: %v", labels)
}

// TestMetrics_Decisions_ByOutcomeAndMode: each outcome and mode is counted in its own series, also the outcomes whose
// counters are in passCounters.
func TestMetrics_Decisions_ByOutcomeAndMode(t *testing.T) {
	t.Parallel()
	m := NewMetrics(nil)
	r := compile(t, rule.Spec{ID: "rule", Rate: "1/s"})
	want := map[string]float64{}
	n := 0
	for _, mode := range []Mode{ModeRedis, ModeMemo, ModeLocal} {
		for outcome, v := range map[string]Verdict{
			"allow": {Allowed: true}, "error": {Allowed: true, Unknown: true}, "deny": {}, "never": {Never: true},
			"would_deny": {Shadow: true}, "would_never": {Never: true, Shadow: true},
		} {
			v.Rule, v.Mode = r, mode
			n++
			want[outcome+" "+mode.String()] = float64(n)
			for range n {
				m.count(Decision{Verdicts: []Verdict{v}})
			}
		}
	}
	for series, times := range want {
		outcome, mode, _ := strings.Cut(series, " ")
		got := testutil.ToFloat64(m.decisions.WithLabelValues("rule", "token_bucket", outcome, mode))
		assert.True(t, got == times, "%s: counted %v times, want %v", series, got, times)
	}
}

// TestMetrics_ForgottenRule_IsCountedAgain: after Forget, a rule that returns is counted again, even if decisions
// were running during Forget.
func TestMetrics_ForgottenRule_IsCountedAgain(t *testing.T) {
	t.Parallel()
	m := NewMetrics(nil)
	bucket, window := compile(t, rule.Spec{ID: "back", Rate: "1/s"}), compile(t, rule.Spec{ID: "back", Rate: "1/s", Kind: "fixed_window"})
	count := func(r *rule.Rule) {
		m.count(Decision{Allowed: true, Verdicts: []Verdict{{Rule: r, Allowed: true, Limit: 10, Remaining: 9, Mode: ModeRedis}}})
	}
	counted := func(r *rule.Rule) float64 {
		return testutil.ToFloat64(m.decisions.WithLabelValues("back", r.Kind.String(), "allow", "redis"))
	}
	for range 20 {
		testenv.Together(4, func(_ int) {
			for range 100 {
				count(bucket)
				m.Forget([]string{"back"})
			}
			count(bucket)
		})
		before := counted(bucket)
		count(bucket)
		require.True(t, counted(bucket) == before+1, "counted %v times, and once more %v", before, counted(bucket))
		m.Forget([]string{"back"})
	}
	count(bucket)
	count(window) // the rule has returned with the kind fixed_window
	count(window)
	assert.True(t, counted(bucket) == 1 && counted(window) == 2,
		"counted %v times as a bucket and %v as a window", counted(bucket), counted(window))
	m.Forget([]string{"back"})
	assert.Zero(t, testutil.CollectAndCount(m.decisions), "series of a rule that is gone")
	count(window)
	assert.True(t, counted(window) == 1, "counted %v times, want once since it is back", counted(window))
}
