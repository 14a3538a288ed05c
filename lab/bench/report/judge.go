package report

import (
	"fmt"
	"slices"

	"github.com/quotasvc/quotasvc/lab/bench/chart"
)

// These are the bounds of the targets. Costs are CPU time relative to the bare echo handler, so they also hold on a
// busy machine.
const (
	debitCost      = 3.0  // x the cost of echo
	debitHotCost   = 2.4  // x the cost of echo
	batchCost      = 40.0 // µs per debit
	batchRate      = 60_000.0
	batchRatio     = 8.0  // x the rate of one PL/pgSQL call per debit; an alternative to batchRate
	checkCost      = 1.5  // x the cost of echo
	checkBatchCost = 0.35 // x echo, for each check
	keptCost       = 1.05 // x the cost of another binary; two runs of the same binary differ by less
	thresholdCost  = 1.05 // x the cost of a debit without thresholds; two runs of that debit differ as much
	oneClientP99   = 3.0  // ms
	memoryMB       = 150.0
	firstTouchRate = 10_000.0
	verifyRate     = 500_000.0
)

// latencyTargets contains the maximum p99, in ms, at fixed rates.
var latencyTargets = []struct {
	name string
	rate int
	most float64
}{{LoadDebit, 1000, 8}, {LoadCheck, 10_000, 5}, {LoadDebit, 10_000, 20}}

// Judge computes the targets and ratios from the results.
func (r *Results) Judge() {
	r.Targets = slices.Concat(r.costs(), r.batches(), r.latencies(), r.sizes())
	r.Ratios = measured(
		r.ratio("debits, many tenants, to bare echo", DebitsMany, EchoDebits),
		r.ratio("debits, many tenants, to one PL/pgSQL call per debit", DebitsMany, PLSQLMany),
		r.ratio("debits, one hot tenant, to bare echo", DebitsHot, EchoDebits),
		r.ratio("debits, one hot tenant, to one PL/pgSQL call per debit", DebitsHot, PLSQLHot),
		r.ratio("debits in batches to one PL/pgSQL call per debit", DebitBatches, PLSQLMany),
		r.ratio("check, many tenants, to bare echo", ChecksMany, EchoCheck),
		r.ratio("check, one hot tenant, to bare echo", ChecksHot, EchoCheck),
		r.ratio("64 checks in a request, each, to bare echo", CheckBatches, EchoCheck),
		r.ratio("debits, many tenants, to the binary before", DebitsMany, BeforeMany),
		r.ratio("debits, one hot tenant, to the binary before", DebitsHot, BeforeHot),
		r.ratio("check, many tenants, to the binary before", ChecksMany, BeforeChecks),
	)
}

// Met reports whether all targets are met.
func (r *Results) Met() bool { return AllMet(r.Targets) }

// measured returns the targets that were measured in this run.
func measured(all ...Target) []Target {
	return slices.DeleteFunc(all, func(t Target) bool { return t.High == 0 })
}

// costs returns the targets for CPU time.
func (r *Results) costs() []Target {
	return measured(
		r.cost("CPU of a debit, many tenants, to bare echo", DebitsMany, EchoDebits, debitCost),
		r.cost("CPU of a debit, one hot tenant, to bare echo", DebitsHot, EchoDebits, debitHotCost),
		r.cost("CPU of a check, many tenants, to bare echo", ChecksMany, EchoCheck, checkCost),
		r.cost("CPU of a check, one hot tenant, to bare echo", ChecksHot, EchoCheck, checkCost),
		r.cost("CPU of each of 64 checks in a request, to bare echo", CheckBatches, EchoCheck, checkBatchCost),
		r.cost("CPU of a debit that crosses none of ten thresholds, to one without thresholds", DebitsThresholds, DebitsPlain, thresholdCost),
		r.cost("CPU of a debit, many tenants, to the binary before", DebitsMany, BeforeMany, keptCost),
		r.cost("CPU of a debit, one hot tenant, to the binary before", DebitsHot, BeforeHot, keptCost),
		r.cost("CPU of a check, many tenants, to the binary before", ChecksMany, BeforeChecks, keptCost),
	)
}

// cost returns a target: the cost per unit of variant a divided by that of variant b, as the median of the rounds. If
// b is a baseline, only its HTTP server counts, because it does not use PostgreSQL or Redis.
func (r *Results) cost(what, a, b string, most float64) Target {
	over, base := r.variant(a).Rounds, r.variant(b)
	var all []float64
	for i := range min(len(over), len(base.Rounds)) {
		under := base.Rounds[i].Cost()
		if base.Baseline {
			under = base.Rounds[i].Service
		}
		if under > 0 && over[i].Cost() > 0 {
			all = append(all, float64(over[i].Cost())/float64(under))
		}
	}
	return AtMost(what, "x", most, Median(all)).Between(all)
}

// ratio returns the rate of variant a divided by the rate of variant b, as the median of the rounds.
func (r *Results) ratio(what, a, b string) Target {
	all := Ratios(r.variant(a).Rates, r.variant(b).Rates)
	return Target{What: what, Unit: "x", Measured: Median(all)}.Between(all)
}

// Ratios returns the quotient of two values for each round. It omits rounds in which the divisor is 0.
func Ratios(over, under []float64) (all []float64) {
	for i := range min(len(over), len(under)) {
		if under[i] > 0 {
			all = append(all, over[i]/under[i])
		}
	}
	return all
}

// batches returns the targets for batches of debits.
func (r *Results) batches() (all []Target) {
	v := r.variant(DebitBatches)
	if cost := us(v.CPU.Cost()); cost > 0 {
		t := AtMost("CPU of a debit in a batch", "µs", batchCost, cost)
		for _, c := range v.Rounds {
			t.Low, t.High = min(nonZero(t.Low, us(c.Cost())), us(c.Cost())), max(t.High, us(c.Cost()))
		}
		all = append(all, t)
	}
	if v.Median > 0 {
		t := AtLeast(fmt.Sprintf("debits in batches (or %.0f x the PL/pgSQL call)", batchRatio), "/s", batchRate,
			v.Median).Between(v.Rates)
		t.Pass = t.Pass || r.ratio("", DebitBatches, PLSQLMany).Measured >= batchRatio
		all = append(all, t)
	}
	return all
}

func nonZero(v, otherwise float64) float64 {
	if v == 0 {
		return otherwise
	}
	return v
}

// latencies returns the targets for p99.
func (r *Results) latencies() (all []Target) {
	if o := r.OneClient; o != nil {
		t := AtMost("p99 of a debit, one client, idle service", "ms", oneClientP99, float64(o.P99)/1000)
		t.Pass = t.Pass && o.Errors == 0
		all = append(all, t)
	}
	for _, want := range latencyTargets {
		for _, o := range r.OpenLoops {
			if o.Name == want.name && o.Rate == want.rate {
				t := AtMost(fmt.Sprintf("p99 of a %s at %s/s", o.Name, chart.Figure(float64(o.Rate))), "ms", want.most, float64(o.P99)/1000)
				// A low latency does not count if the service refused requests or did not reach the rate.
				t.Pass = t.Pass && o.Errors == 0 && o.Achieved >= 0.99*float64(o.Rate)
				all = append(all, t)
			}
		}
	}
	return all
}

// sizes returns the targets for memory, for first debits and for verify.
func (r *Results) sizes() (all []Target) {
	const mb = 1e6
	if m := r.Machine.ServiceMemory; m > 0 {
		all = append(all, AtMost(fmt.Sprintf("peak memory, %s tenants", chart.Figure(float64(r.Machine.Tenants))), "MB", memoryMB, float64(m)/mb))
	}
	if u := r.InUse; u != nil {
		if u.Memory > 0 {
			all = append(all, AtMost(fmt.Sprintf("peak memory, %s tenants in use", chart.Figure(float64(u.Tenants))), "MB", memoryMB, float64(u.Memory)/mb))
		}
		t := AtLeast("first debits of tenants, in batches", "/s", firstTouchRate, u.FirstTouch)
		t.Pass = t.Pass && u.Errors == 0
		all = append(all, t)
	}
	if r.VerifyPerSecond > 0 {
		all = append(all, AtLeast("verify, with a process start", "entries/s", verifyRate, r.VerifyPerSecond))
	}
	return all
}
