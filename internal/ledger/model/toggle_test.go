package model

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// toggles is a tenant that changes its plan very often, and uses all available units.
type toggles struct {
	t      *rapid.T
	memory *Memory
	now    time.Time
	serial int
	every  map[string]period.Interval // interval of each plan
}

// startToggles returns a tenant with random plans: of all intervals, some with rollover, overage and caps per
// subject.
func startToggles(t *rapid.T) *toggles {
	g := &toggles{t: t, memory: newMemory(), every: map[string]period.Interval{}}
	g.now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(rapid.IntRange(0, 40*24).Draw(t, "birth")) * time.Hour)
	for i := range rapid.IntRange(2, 5).Draw(t, "plans") {
		a := ledger.Allowance{
			Amount: rapid.Int64Range(0, 100).Draw(t, "amount"), Anchor: period.Calendar,
			Every: rapid.SampledFrom([]period.Interval{period.Hour, period.Day, period.Month, period.Month, period.Month, period.Year, period.Once}).Draw(t, "every"),
		}
		if a.Every != period.Once && rapid.Bool().Draw(t, "rolls?") {
			a.RolloverMin, a.RolloverMax = new(rapid.Int64Range(0, 9).Draw(t, "min")), new(rapid.Int64Range(9, 50).Draw(t, "max"))
		}
		if rapid.Bool().Draw(t, "overage?") {
			a.OverageAllowed, a.OverageCap, a.OveragePreserved = true, new(int64(20)), rapid.Bool().Draw(t, "preserved")
		}
		if rapid.Bool().Draw(t, "capped?") {
			a.PerSubject = new(rapid.Int64Range(0, 60).Draw(t, "per subject"))
		}
		plan := fmt.Sprint("p", i)
		meters := map[string]ledger.Allowance{"calls": a}
		if rapid.IntRange(0, 4).Draw(t, "lacks the meter?") == 0 {
			meters = nil
		} else {
			g.every[plan] = a.Every
		}
		g.memory.Plans[plan] = []ledger.PlanVersion{{Version: 1, CreatedAt: g.now, Allowances: meters}}
	}
	g.change(false)
	return g
}

// change changes the tenant's plan to a random one: at once if `now` is true, else from the next period on. After a
// change at once, used units still count, and the amount may be prorated.
func (g *toggles) change(now bool) {
	plan := fmt.Sprint("p", rapid.IntRange(0, len(g.memory.Plans)-1).Draw(g.t, "plan"))
	row := ledger.TenantTerms{Since: g.now, Plan: plan, AnchorAt: g.now, Zone: time.UTC, Now: now, Prorate: now && rapid.Bool().Draw(g.t, "prorate")}
	g.memory.History = append(g.memory.History, row)
	if now {
		g.memory.makeDue(g.now)
	}
}

// use sends a debit, a hold, or a refund of an earlier debit.
func (g *toggles) use() {
	g.serial++
	key := fmt.Sprint("op", g.serial)
	subject := rapid.SampledFrom([]string{"", "ann"}).Draw(g.t, "subject")
	items := []ledger.Item{{Meter: "calls", Amount: rapid.Int64Range(1, 60).Draw(g.t, "amount")}}
	var op ledger.Operation = &ledger.Debit{Tenant: Tenant, Key: key, Subject: subject, Items: items, Mode: ledger.ModeBestEffort}
	switch rapid.IntRange(0, 5).Draw(g.t, "use") {
	case 0:
		op = &ledger.Hold{Tenant: Tenant, Key: key, HoldID: key, Subject: subject, Items: items, TTL: time.Hour}
	case 1:
		op = &ledger.Refund{Tenant: Tenant, Key: key, OperationID: fmt.Sprint("op", rapid.IntRange(1, g.serial).Draw(g.t, "of"))}
	}
	g.memory.run(g.t, []*ledger.Call{ledger.NewCall(op)}, g.now, false)
}

// drawn returns the units that were drawn from allowances and not returned to them. The key of the map is the
// schedule of the allowance's plan and the nominal period in which the allowance was opened. A once-only allowance
// has one period for each plan.
func (g *toggles) drawn(k ledger.BalanceKey) map[string]int64 {
	planAt := map[string]string{}
	b := g.memory.balances[k]
	planAt[b.Start.String()] = b.Plan
	for _, p := range g.memory.periods[k] {
		planAt[p.Start.String()] = p.Plan
	}
	sums := map[string]int64{}
	for _, lines := range g.memory.entries {
		for _, e := range lines {
			grant := g.memory.grants[k][e.Grant]
			if e.BalanceKey != k || grant.Source != ledger.SourceAllowance {
				continue
			}
			plan := planAt[grant.EffectiveAt.String()]
			of := plan
			if every := g.every[plan]; every != period.Once {
				p, err := period.Schedule{Every: every, Anchor: period.Calendar, AnchorAt: g.now, Location: time.UTC}.Containing(grant.EffectiveAt)
				require.NoError(g.t, err)
				of = string(every) + " " + p.Start.Format(time.RFC3339)
			}
			switch e.Kind {
			case ledger.EntryDebit, ledger.EntryHold, ledger.EntryPayOwed:
				sums[of] += e.Amount
			case ledger.EntryRefund, ledger.EntryRelease, ledger.EntryRefundPaid:
				if !strings.Contains(string(e.Detail), `"policy"`) { // the units returned to the allowance
					sums[of] -= e.Amount
				}
			}
		}
	}
	return sums
}

// A tenant cannot gain units by changing its plan. In one period, all allowances with the same schedule together give
// at most the units of the largest of these allowances. A once-only allowance never gives more than its amount. A
// subject's cap is tested as an allowance.
func TestPlanChanges_Toggled_DrawNoMoreThanLargestAllowance(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := startToggles(t)
		for range 60 {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				g.now = g.now.Add(time.Duration(rapid.IntRange(1, 3*24*60).Draw(t, "minutes")) * time.Minute)
			case 1, 2:
				g.now = g.now.Add(time.Second)
				g.change(rapid.IntRange(0, 3).Draw(t, "now?") > 0)
			default:
				g.use()
			}
		}
		for k, b := range g.memory.balances {
			if !b.Opened() {
				continue
			}
			for of, n := range g.drawn(k) {
				most := g.most(k, of)
				require.True(t, n <= most,
					"%v: %d units of allowances were drawn in %q, the largest has %d", k, n, of, most)
			}
		}
		g.memory.check(t)
	})
}

// most returns the amount of the largest allowance of k with the schedule in the argument `of`, which is a key of the
// map from drawn.
func (g *toggles) most(k ledger.BalanceKey, of string) int64 {
	most := int64(0)
	for plan, versions := range g.memory.Plans {
		a, ok := versions[0].Allowances["calls"]
		if !ok || plan != of && (a.Every == period.Once || !strings.HasPrefix(of, string(a.Every)+" ")) {
			continue
		}
		if k.Subject == "" {
			most = max(most, a.Amount)
		} else if a.PerSubject != nil {
			most = max(most, *a.PerSubject)
		}
	}
	return most
}
