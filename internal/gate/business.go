package gate

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

const (
	// labelsMax bounds the plans, and the meters, with a label value of their own. With the six codes below that is 600 series.
	labelsMax = 100

	// labelOther is the label value of all others, labelNone that of no plan. No id of the catalogue has a bracket.
	labelOther = "(other)"
	labelNone  = "(none)"
)

// business counts what a product's owner asks for: who is refused, and what is used. Labels are names of the catalogue, never what a client sends.
type business struct {
	refusals *prometheus.CounterVec
	units    *prometheus.CounterVec

	mu      sync.Mutex // held while following the catalogue
	current atomic.Pointer[labelled]
}

// labelled are the names of one snapshot that have a label value of their own.
type labelled struct {
	snapshot      *catalog.Snapshot
	plans, meters map[string]bool
}

func newBusiness(reg prometheus.Registerer) *business {
	b := &business{
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotasvc_plan_refusals_total",
			Help: "Refused consumes, debits, holds and captures by the tenant's plan and by code. Checks and dry runs do not count.",
		}, []string{"plan", "code"}),
		units: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotasvc_debited_units_total",
			Help: "Units taken by consumes, debits and captures, by the meter that had them. Refunds are not subtracted.",
		}, []string{"meter"}),
	}
	if reg != nil {
		reg.MustRegister(b.refusals, b.units)
	}
	return b
}

// names returns the names of a snapshot with a label value of their own. A name keeps its value as long as it exists; the series of a deleted one
// are removed.
func (b *business) names(snapshot *catalog.Snapshot) *labelled {
	if l := b.current.Load(); l != nil && l.snapshot == snapshot {
		return l
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.current.Load()
	switch {
	case before == nil:
		before = &labelled{}
	case before.snapshot == snapshot:
		return before
	}
	l := &labelled{
		snapshot: snapshot,
		plans:    follow(before.plans, snapshot.Plans, func(plan string) { b.refusals.DeletePartialMatch(prometheus.Labels{"plan": plan}) }),
		meters:   follow(before.meters, snapshot.Meters, func(meter string) { b.units.DeleteLabelValues(meter) }),
	}
	b.current.Store(l)
	return l
}

// follow returns at most labelsMax names of present: first those of before, then the others in order. It calls gone for the names of before that
// are not present any more.
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

// refused counts the refusal of a request of a tenant on plan. Other errors, and nil, do not count.
func (b *business) refused(snapshot *catalog.Snapshot, plan string, err error) {
	if err == nil {
		return
	}
	code := CodeOf(err)
	switch code { // all others are about the request or about the service, not about the plan
	case CodeRateLimited, CodeCostExceedsCapacity, ledger.CodeQuotaExceeded, ledger.CodeCreditsExhausted, ledger.CodeMeterNotInPlan, ledger.CodeTenantSuspended:
	default:
		return
	}
	switch {
	case plan == "":
		plan = labelNone
	case !b.names(snapshot).plans[plan]:
		plan = labelOther
	}
	b.refusals.WithLabelValues(plan, string(code)).Inc()
}

// drawn counts the units of draws.
func (b *business) drawn(snapshot *catalog.Snapshot, draws []ledger.Draw) {
	names := b.names(snapshot)
	for i := range draws {
		meter := draws[i].Meter
		if !names.meters[meter] {
			meter = labelOther
		}
		b.units.WithLabelValues(meter).Add(float64(draws[i].Amount))
	}
}

// debited counts a debit that was decided, or its refusal.
func (g *Gate) debited(plan string, dryRun bool, result *ledger.DebitResult, err error) {
	if dryRun {
		return
	}
	snapshot := g.tenants.catalog.Snapshot()
	if err != nil {
		g.business.refused(snapshot, plan, err)
		return
	}
	if result == nil || result.Replayed {
		return
	}
	for i := range result.Items {
		g.business.drawn(snapshot, result.Items[i].Draws)
	}
}

// captured counts a capture that was decided, or its refusal. Other changes of holds draw nothing.
func (g *Gate) captured(plan string, h *ledger.HoldChange, result *ledger.HoldResult, err error) {
	snapshot := g.tenants.catalog.Snapshot()
	g.business.refused(snapshot, plan, err)
	if err != nil || result.Replayed || h.Action != ledger.ActionCapture {
		return
	}
	for i := range result.Items {
		g.business.drawn(snapshot, result.Items[i].Draws)
	}
}
