package gate

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

func TestReload_ChangedLimit_KeepsItsBuckets(t *testing.T) {
	onRedisAndLocal(t, func(t *testing.T, in *instance) {
		in.catalogue()
		rule := func(rate string, burst int64, mode string) catalog.Limit {
			return catalog.Limit{Rule: "r", Per: []string{"tenant"}, Kind: "token_bucket", Rate: rate, Burst: burst, Mode: mode}
		}
		in.putLimits(rule("1/day", 10, ""))
		for range 4 {
			in.charge(request("", "calls", 1))
		}
		for i, step := range []struct {
			limit     catalog.Limit
			remaining int64 // tokens that remain after one more request
			allowed   bool
		}{
			{rule("1/day", 10, ""), 5, true},      // nothing changed
			{rule("1/day", 20, ""), 14, true},     // the increase of the burst is added
			{rule("1/day", 7, ""), 0, true},       // 6 tokens were taken, and one now
			{rule("1/day", 5, ""), 0, false},      // more tokens were taken than the bucket can hold
			{rule("7/9day", 9, ""), 1, true},      // the unit of levels changes: 7 tokens were taken, and one now
			{rule("1/day", 9, "shadow"), 0, true}, // a shadow rule uses the same bucket
			{rule("1/day", 9, "shadow"), 0, false},
			{rule("1/day", 9, ""), 0, false},
			{rule("1/day", 11, "enforce"), 1, true},
		} {
			in.putLimits(step.limit)
			res := in.charge(request("", "calls", 1))
			if v := res.verdict("r"); v.Remaining != step.remaining || v.Allowed != step.allowed {
				t.Errorf("step %d, %+v: %+v, want %d left, allowed %v", i, step.limit, v, step.remaining, step.allowed)
			}
		}
		// If the kind of a rule changes, the rule starts with an empty state.
		window := rule("5/month", 0, "")
		window.Kind = "fixed_window"
		in.putLimits(window)
		res := in.charge(request("", "calls", 1))
		assert.True(t, res.verdict("r").Remaining == 4, "as a window: %+v", res.verdict("r"))
		in.putLimits(rule("1/day", 11, ""))
		res = in.charge(request("", "calls", 1))
		assert.Zero(t, res.verdict("r").Remaining, "as a bucket again: %+v", res.verdict("r"))
	})
}

// Rate and burst change while the tenant sends requests. The number of admitted requests equals the number of tokens.
func TestReload_UnderLoad_NoTokenLostOrGained(t *testing.T) {
	onRedisAndLocal(t, func(t *testing.T, in *instance) {
		in.catalogue()
		const least, most = 150, 250
		in.putLimits(perDay("r", least, "tenant"))
		var admitted atomic.Int64
		done := make(chan struct{})
		var callers sync.WaitGroup
		for range 8 {
			callers.Go(func() {
				req := request("", "calls", 1)
				for {
					select {
					case <-done:
						return
					default:
						pace()
					}
					f, err := in.tenants.facts(t.Context(), req.Tenant)
					if !assert.NoError(t, err) {
						return
					}
					res, err := in.limits(t.Context(), &req, &f, chargeAll, nil)
					switch {
					case err != nil || res.degraded:
						t.Errorf("%+v, %v", res, err)
						return
					case res.refusal == nil:
						admitted.Add(1)
					}
				}
			})
		}
		var now int64
		for i := range 12 {
			now = least + rand.Int64N(most-least)
			l := perDay("r", now, "tenant")
			if i%2 == 0 {
				l.Rate = "1/299day" // changes the unit of levels
			}
			in.putLimits(l)
		}
		in.putLimits(perDay("r", most, "tenant"))
		testenv.Eventually(t, func() bool { return admitted.Load() >= most }, "the bucket is empty")
		in.putLimits(perDay("r", most+40, "tenant"))
		testenv.Eventually(t, func() bool { return admitted.Load() >= most+40 }, "the added tokens are used")
		close(done)
		callers.Wait()
		// The bucket admits exactly its tokens, although a change of the unit rounds the level.
		got := admitted.Load()
		assert.True(t, got == most+40, "%d were admitted by a bucket of %d", got, most+40)
	})
}

// trace returns the routes of n requests. The routes have different costs.
func trace(seed uint64, n int) []string {
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a reproducible trace, nothing secret
	routes := make([]string, n)
	for i := range routes {
		routes[i] = fmt.Sprint("/", 1+r.IntN(9))
	}
	return routes
}

// wouldDeny returns the number of would-deny decisions of a rule, from the metrics.
func (in *instance) wouldDeny(rule string) (n int) {
	in.t.Helper()
	families, err := in.measured.Gather()
	require.NoError(in.t, err)
	for _, f := range families {
		if f.GetName() != "quotasvc_limit_decisions_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			if label(m, "rule") == rule && label(m, "outcome") == "would_deny" {
				n += int(m.GetCounter().GetValue())
			}
		}
	}
	return n
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

func TestShadow_WouldDenyWhatTheEnforcedLimitDenies(t *testing.T) {
	onRedisAndLocal(t, func(t *testing.T, in *instance) {
		in.catalogue()
		for _, kind := range []string{"token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log"} {
			t.Run(kind, func(t *testing.T) { shadowDeniesAsItsTwin(t, in, kind) })
		}
	})
}

func shadowDeniesAsItsTwin(t *testing.T, in *instance, kind string) {
	prefix := strings.ReplaceAll(kind, "_", "-") + "-"
	twin := func(rule, tenant, mode string) catalog.Limit {
		l := catalog.Limit{
			Rule: prefix + rule, Per: []string{"tenant"}, Kind: kind, Rate: "60/31day", Mode: mode,
			Match: catalog.Match{Tenant: prefix + tenant},
		}
		if kind == "fixed_window" {
			l.Rate = "60/month"
		}
		for cost := int64(1); cost <= 9; cost++ {
			l.Costs = append(l.Costs, catalog.RouteCost{Route: fmt.Sprint("/", cost), Cost: cost})
		}
		return l
	}
	for _, tenant := range []string{"live", "dark", "both"} {
		in.putTenant(catalog.Tenant{ID: prefix + tenant, Plan: "basic"})
	}
	// The first tenant has the limit, the second has the limit in shadow mode, and the third has both limits.
	in.putLimits(
		twin("live", "live", "enforce"), twin("dark", "dark", "shadow"), twin("first", "both", "enforce"), twin("second", "both", "shadow"),
	)
	denied := 0
	for i, route := range trace(7, 60) {
		ask := func(tenant string) limitsResult {
			return in.charge(Request{Tenant: prefix + tenant, Route: route, Items: []ledger.Item{{Meter: "calls", Amount: 1}}})
		}
		live, dark, both := ask("live"), ask("dark"), ask("both")
		require.True(t, dark.refusal == nil, "request %d: a shadow denied: %v", i, dark.refusal)
		denies := live.refusal != nil
		if denies {
			denied++
		}
		if would := !dark.verdict(prefix + "dark").Allowed; would != denies {
			t.Errorf("request %d (%s): the shadow would deny: %v, the limit does: %v", i, route, would, denies)
		}
		first, second := both.verdict(prefix+"first"), both.verdict(prefix+"second")
		assert.True(t, first.Allowed != denies && second.Allowed == first.Allowed && second.Shadow,
			"request %d (%s): enforced %+v, shadow %+v", i, route, first, second)
	}
	assert.True(t, denied != 0 && denied != 60, "%d of 60 were denied: the trace proves nothing", denied)
	if dark, second := in.wouldDeny(prefix+"dark"), in.wouldDeny(prefix+"second"); dark != denied || second != denied {
		t.Errorf("%d and %d would-deny decisions in the metrics, want %d", dark, second, denied)
	}
}

func TestShadow_BesideALiveLimit_DeniesNothing(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue()
	trial := perDay("trial", 1, "tenant")
	trial.Mode = "shadow"
	in.putLimits(perDay("live", 2, "tenant"), trial)
	for i := range 3 {
		res := in.charge(request("", "calls", 1))
		assert.True(t, (res.refusal == nil) == (i < 2) && res.ruleNames() == "live trial",
			"request %d: %v, %+v", i, res.refusal, res.verdicts)
		v := res.verdict("trial")
		assert.True(t, v.Allowed == (i < 1), "request %d: %+v", i, v)
	}
}
