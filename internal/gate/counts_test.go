package gate

import (
	"fmt"
	"maps"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

func TestBusiness_RefusalsByPlanAndUnitsByMeter_DecisionsOnly(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	in := newShared(t, func(cfg *Config) { cfg.Metrics = reg })
	in.catalogue(catalog.Limit{Rule: "three", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "3/day"})
	ctx := t.Context()
	expect := func(what string, refused map[errcode.Code]float64, units float64) {
		t.Helper()
		got := map[string]float64{}
		families, err := reg.Gather()
		require.NoError(t, err)
		for _, family := range families {
			for _, m := range family.GetMetric() {
				labels := ""
				for _, l := range m.GetLabel() {
					labels += " " + l.GetValue()
				}
				if name := family.GetName(); name == "quotasvc_plan_refusals_total" || name == "quotasvc_debited_units_total" {
					got[name+labels] = m.GetCounter().GetValue()
				}
			}
		}
		want := map[string]float64{}
		for code, n := range refused {
			want["quotasvc_plan_refusals_total "+string(code)+" basic"] = n
		}
		if units > 0 {
			want["quotasvc_debited_units_total calls"] = units
		}
		assert.True(t, maps.Equal(got, want), "%s: %v, want %v", what, got, want)
	}
	dry := dryRun(request("dry", "calls", 100))
	_, _ = in.Debit(ctx, dry)
	_, _ = in.Consume(ctx, dry)
	_, _ = in.Check(ctx, request("", "calls", 100))
	_, _ = in.Debit(ctx, request("bad", "calls", -1))
	_, _ = in.Debit(ctx, Request{Tenant: "nobody", Key: "k", Items: request("", "calls", 1).Items})
	expect("checks, dry runs and mistakes", nil, 0)
	for range 2 { // the second debit is a replay
		in.debits("", "d", request("d", "calls", 2))
	}
	expect("a debit and its replay", nil, 2)
	_, _ = in.Consume(ctx, request("c1", "calls", 3))
	_, _ = in.Consume(ctx, request("c2", "calls", 100))
	expect("consumes", map[errcode.Code]float64{errcode.CreditsExhausted: 1}, 5)
	for i := range 4 { // two tokens remain
		_, _ = in.Consume(ctx, request(fmt.Sprint("l", i), "calls", 1))
	}
	expect("a limit", map[errcode.Code]float64{errcode.CreditsExhausted: 1, CodeRateLimited: 2}, 7)
	in.DebitBatch(ctx, []Request{request("b1", "calls", 1), request("b2", "calls", 100), dry})
	expect("a batch", map[errcode.Code]float64{errcode.CreditsExhausted: 2, CodeRateLimited: 2}, 8)
	for _, amount := range []int64{2, 100} {
		_, _ = in.Hold(ctx, &ledger.Hold{Tenant: "acme", Key: fmt.Sprint("h", amount), HoldID: fmt.Sprint("h", amount), Items: request("", "calls", amount).Items}, false)
	}
	expect("holds", map[errcode.Code]float64{errcode.CreditsExhausted: 3, CodeRateLimited: 2}, 8)
	_, err := in.ChangeHold(ctx, &ledger.HoldChange{Tenant: "acme", Key: "cap", HoldID: "h2", Action: ledger.ActionCapture}, false)
	require.NoError(t, err)
	expect("a capture", map[errcode.Code]float64{errcode.CreditsExhausted: 3, CodeRateLimited: 2}, 10)
}
