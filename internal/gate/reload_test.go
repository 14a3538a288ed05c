package gate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

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
			v := res.verdict("r")
			assert.True(t, v.Remaining == step.remaining && v.Allowed == step.allowed,
				"step %d, %+v: %+v, want %d left, allowed %v", i, step.limit, v, step.remaining, step.allowed)
		}
		// If the kind of a rule changes, the rule starts with an empty state.
		window := rule("5/month", 0, "")
		window.Kind = "fixed_window"
		in.putLimits(window)
		res := in.charge(request("", "calls", 1))
		assert.EqualValues(t, 4, res.verdict("r").Remaining, "as a window")
		in.putLimits(rule("1/day", 11, ""))
		res = in.charge(request("", "calls", 1))
		assert.Zero(t, res.verdict("r").Remaining, "as a bucket again")
	})
}

// Rate and burst change while the tenant sends requests. The number of admitted requests equals the number of tokens.
func TestReload_UnderLoad_NoTokenLostOrGained(t *testing.T) {
	onRedisAndLocal(t, func(t *testing.T, in *instance) {
		in.catalogue()
		const least, most = 150, 250
		in.putLimits(perDay("r", least, "tenant"))
		var admitted atomic.Int64
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var callers sync.WaitGroup
		for range 8 {
			callers.Go(func() {
				req := request("", "calls", 1)
				for ; ctx.Err() == nil; pace() {
					f, err := in.tenants.facts(t.Context(), req.Tenant)
					if !assert.NoError(t, err) {
						return
					}
					res, err := in.limits(t.Context(), &req, &f, chargeAll, nil)
					if !assert.True(t, err == nil && !res.degraded, "%+v, %v", res, err) {
						return
					}
					if res.refusal == nil {
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
		stop()
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
		assert.Equal(t, denies, !dark.verdict(prefix+"dark").Allowed, "request %d (%s): would deny", i, route)
		first, second := both.verdict(prefix+"first"), both.verdict(prefix+"second")
		assert.True(t, first.Allowed != denies && second.Allowed == first.Allowed && second.Shadow,
			"request %d (%s): enforced %+v, shadow %+v", i, route, first, second)
	}
	assert.True(t, denied != 0 && denied != 60, "%d of 60 were denied: the trace proves nothing", denied)
	for _, shadow := range []string{"dark", "second"} {
		would := in.sum("quotasvc_limit_decisions_total", prefix+shadow, "would_deny")
		assert.EqualValues(t, denied, would, "would-deny decisions of %s in the metrics", shadow)
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
