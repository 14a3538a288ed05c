package gate

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/kit/metric"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

const (
	// labelsMax is the largest number of plans, and of meters, that have their own label value. With the six codes of
	// refusalCode, the plans make 600 series.
	labelsMax = 100

	// labelOther is the label value of all other plans or meters. labelNone is the label value if the tenant has no
	// plan. No id in the catalogue contains a bracket, so neither value can be an id.
	labelOther = "(other)"
	labelNone  = "(none)"
)

// catalogCounts counts refusals by plan and used units by meter, for the owner of a product. Labels are names of the
// catalogue, never values from a client.
type catalogCounts struct {
	refusals *prometheus.CounterVec
	units    *prometheus.CounterVec

	mu      sync.Mutex // held while the method names replaces current
	current atomic.Pointer[labelled]
}

// labelled contains the plans and meters of one snapshot that have their own label value.
type labelled struct {
	snapshot      *catalog.Snapshot
	plans, meters map[string]bool
}

// newCatalogCounts returns counters. It registers them in reg if reg is not nil.
func newCatalogCounts(reg prometheus.Registerer) *catalogCounts {
	c := &catalogCounts{
		refusals: metric.CounterVec(reg, "quotasvc_plan_refusals_total",
			"Refused consumes, debits, holds and captures by the tenant's plan and by code. "+
				"Checks and dry runs do not count.",
			"plan", "code"),
		units: metric.CounterVec(reg, "quotasvc_debited_units_total",
			"Units taken by consumes, debits and captures, by the meter that had them. Refunds are not subtracted.",
			"meter"),
	}
	return c
}

// names returns the plans and meters of a snapshot that have their own label value. A plan or meter keeps its label
// value until it is deleted. The series of a deleted plan or meter are removed.
func (c *catalogCounts) names(snapshot *catalog.Snapshot) *labelled {
	if l := c.current.Load(); l != nil && l.snapshot == snapshot {
		return l
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.current.Load()
	switch {
	case before == nil:
		before = &labelled{}
	case before.snapshot == snapshot:
		return before
	}
	l := &labelled{
		snapshot: snapshot,
		plans: follow(before.plans, snapshot.Plans, func(plan string) {
			c.refusals.DeletePartialMatch(prometheus.Labels{"plan": plan})
		}),
		meters: follow(before.meters, snapshot.Meters, func(meter string) { c.units.DeleteLabelValues(meter) }),
	}
	c.current.Store(l)
	return l
}

// follow returns at most labelsMax names of present: first the names in the set `before`, then the other names in
// alphabetical order. It calls the function `gone` for each name of that set that is no longer present.
func follow[T any](before map[string]bool, present map[string]T, gone func(string)) map[string]bool {
	kept := make(map[string]bool, min(len(present), labelsMax))
	for name := range before {
		if _, ok := present[name]; ok {
			kept[name] = true
		} else {
			gone(name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(present)) {
		if len(kept) < labelsMax {
			kept[name] = true
		}
	}
	return kept
}

// refused counts a refused request of a tenant with the given plan. An empty plan means that the tenant has no plan.
func (c *catalogCounts) refused(snapshot *catalog.Snapshot, plan, code string) {
	switch {
	case plan == "":
		plan = labelNone
	case !c.names(snapshot).plans[plan]:
		plan = labelOther
	}
	c.refusals.WithLabelValues(plan, code).Inc()
}

// drawn counts the units of draws by meter.
func (c *catalogCounts) drawn(snapshot *catalog.Snapshot, draws []ledger.Draw) {
	names := c.names(snapshot)
	for i := range draws {
		meter := draws[i].Meter
		if !names.meters[meter] {
			meter = labelOther
		}
		c.units.WithLabelValues(meter).Add(float64(draws[i].Amount))
	}
}
