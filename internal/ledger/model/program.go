package model

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/kit/price"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// Tenant is the tenant of every program.
const Tenant = "acme"

// Meters are the meters of every program. DrawTerms gives allowances for the first three.
var Meters = []string{"calls", "credits", "trial", "other"}

// Plans are the plans of every program.
var Plans = []string{"small", "large", "third"}

// Program draws random requests and changes of plans. It keeps the catalogue of the model and of the memory equal.
type Program struct {
	T      *rapid.T
	Memory *Memory
	Model  *Model
	Now    time.Time
	Sent   []Request // earlier requests, which can be sent again
	Sticky bool      // denials are stored
	paid   bool      // credits pay for most calls, at a price that is not a whole number, and most requests are about holds
	serial int
	holds  int      // number in the id of the newest hold
	grants []string // ids that earlier batches have issued
	debits []string // ids of operations in earlier batches that can be refunded
	fresh  struct{ grants, debits []string }
}

// Start returns a program with a new tenant, all plans, and the tenant on plan small.
func Start(t *rapid.T) *Program {
	anchor := time.Date(2026, 1, 31, 10, 0, 0, 0, time.UTC)
	birth := anchor.Add(time.Duration(rapid.IntRange(0, 7200).Draw(t, "birth")) * time.Second)
	p := &Program{T: t, Memory: newMemory(), Model: newModel(anchor, birth), Now: birth, Sticky: rapid.Bool().Draw(t, "sticky")}
	p.paid = rapid.IntRange(0, 3).Draw(t, "paid?") == 0
	for _, plan := range Plans {
		p.Publish(plan, p.DrawTerms(), whenOpening, p.Now.Add(-time.Hour))
	}
	p.ChangePlan(PlanChange{Plan: "small"})
	return p
}

// DrawTerms draws the terms that a plan has for each meter.
func (p *Program) DrawTerms() map[string]Terms {
	t := p.T
	some := func(name string, lo, hi int64) *int64 {
		if rapid.Bool().Draw(t, name+"?") {
			return new(rapid.Int64Range(lo, hi).Draw(t, name))
		}
		return nil
	}
	calls := Terms{
		amount:  rapid.Int64Range(0, 40).Draw(t, "amount"),
		rollMin: some("roll min", 0, 5), rollMax: some("roll max", 5, 20), perSubject: some("per subject", 0, 15),
	}
	if rapid.Bool().Draw(t, "overage") {
		calls.overage, calls.overageCap = true, some("overage cap", 0, 8)
	}
	calls.preserve, calls.day = rapid.Bool().Draw(t, "preserve"), rapid.IntRange(0, 2).Draw(t, "day?") == 0
	if rapid.Bool().Draw(t, "overflow") {
		calls.overflow, calls.price, calls.per = "credits", rapid.Int64Range(1, 3).Draw(t, "price"), 1
		if rapid.Bool().Draw(t, "ratio") {
			calls.per = rapid.Int64Range(2, 7).Draw(t, "per")
		}
	}
	meters, least, most := map[string]Terms{"calls": calls}, int64(0), int64(10)
	switch {
	case p.paid:
		least, most, calls.perSubject = 20, 60, nil
		calls.amount, calls.overflow, calls.price, calls.per = calls.amount/8, "credits", calls.price|1, 2*(calls.per/2)+2
		meters["calls"] = calls
	case rapid.IntRange(0, 5).Draw(t, "calls in plan") == 0:
		delete(meters, "calls")
	case rapid.IntRange(0, 7).Draw(t, "calls once") == 0:
		calls.once, calls.lasts = true, p.drawLasts()
		meters["calls"] = calls
	}
	if p.paid || rapid.Bool().Draw(t, "credits in plan") {
		meters["credits"] = Terms{amount: rapid.Int64Range(least, most).Draw(t, "credits"), day: rapid.IntRange(0, 3).Draw(t, "credits day?") == 0}
	}
	if rapid.Bool().Draw(t, "trial in plan") {
		meters["trial"] = Terms{amount: rapid.Int64Range(0, 10).Draw(t, "trial"), once: true, lasts: p.drawLasts()}
	}
	return meters
}

// drawLasts draws how long a once-only allowance lasts: for ever, or some days.
func (p *Program) drawLasts() time.Duration {
	return time.Duration(rapid.IntRange(0, 4).Draw(p.T, "lasts")) * 24 * time.Hour
}

// DrawApply draws when a new version of a plan is in force for the tenants on the plan.
func (p *Program) DrawApply() string {
	return rapid.SampledFrom([]string{whenBilled, whenBilled, whenMade, whenOpening}).Draw(p.T, "apply")
}

// Publish adds a version of plan with these terms, made at the given instant.
func (p *Program) Publish(plan string, meters map[string]Terms, apply string, at time.Time) {
	stored := ledger.PlanVersion{
		Version: int32(len(p.Memory.Plans[plan])) + 1, CreatedAt: at, Apply: ledger.Apply(apply),
		Allowances: map[string]ledger.Allowance{},
	}
	for meter, m := range meters {
		a := ledger.Allowance{
			Amount: m.amount, Every: period.Hour, Anchor: period.Tenant, RolloverMin: m.rollMin, RolloverMax: m.rollMax,
			OverageAllowed: m.overage, OverageCap: m.overageCap, OveragePreserved: m.preserve,
			OverflowMeter: m.overflow, OverflowPrice: price.Ratio{Units: m.price, Per: m.per}, PerSubject: m.perSubject,
		}
		if m.day {
			a.Every = period.Day
		}
		if m.once {
			a.Every, a.Lasts = period.Once, m.lasts
		}
		stored.Allowances[meter] = a
	}
	p.Model.plans[plan] = append(p.Model.plans[plan], planVersion{at: at, apply: apply, meters: meters})
	p.Memory.Plans[plan] = append(p.Memory.Plans[plan], stored)
}

// DrawChange draws a change of plan: the plan, now or from the next period on, prorated or not, and whether earlier
// use counts.
func (p *Program) DrawChange() PlanChange {
	last := p.Model.Changes[len(p.Model.Changes)-1]
	c := PlanChange{Plan: rapid.SampledFrom(Plans).Draw(p.T, "plan"), Shift: last.Shift, Own: last.Own}
	c.Now = rapid.IntRange(0, 2).Draw(p.T, "now?") > 0
	c.Prorate = c.Now && rapid.Bool().Draw(p.T, "prorate")
	if c.Now {
		usage := rapid.SampledFrom([]string{"carry", "carry", "carry", "reset", "add"}).Draw(p.T, "usage")
		c.Reset, c.Add = usage == "reset", usage == "add"
	}
	return c
}

// DrawTermsChange draws a change as DrawChange does, and other terms with it: an anchor, own amounts, and an instant in
// the future. It may take the newest change back, or change nothing but these other terms.
func (p *Program) DrawTermsChange() PlanChange {
	t, changes := p.T, p.Model.Changes
	c := p.DrawChange()
	switch rapid.IntRange(0, 5).Draw(t, "as before?") {
	case 0:
		c.Plan = changes[len(changes)-1].Plan
	case 1:
		back := changes[max(0, len(changes)-2)]
		c.Plan, c.Shift, c.Own = back.Plan, back.Shift, back.Own
	}
	if rapid.IntRange(0, 3).Draw(t, "anchor?") == 0 {
		c.Shift = time.Duration(rapid.IntRange(-90, 90).Draw(t, "shift")) * time.Minute
	}
	if rapid.IntRange(0, 2).Draw(t, "own?") == 0 {
		c.Own = map[string]int64{rapid.SampledFrom(Meters[:3]).Draw(t, "own meter"): rapid.Int64Range(0, 40).Draw(t, "own amount")}
	}
	if rapid.IntRange(0, 3).Draw(t, "future?") == 0 {
		c.After = p.drawMinutes(2000, "after")
	}
	return c
}

// ChangePlan changes the tenant's terms, now or at an instant in the future.
func (p *Program) ChangePlan(c PlanChange) {
	c.at = p.Now.Add(c.After)
	at := 0
	for i := range p.Model.Changes {
		if p.Model.Changes[i].at.Equal(c.at) && i > 0 {
			return // the program has no two changes at one instant
		}
		if p.Model.Changes[i].at.Before(c.at) {
			at = i + 1
		}
	}
	p.Model.Changes = slices.Insert(slices.Clip(p.Model.Changes), at, c)
	p.Memory.History = slices.Insert(slices.Clip(p.Memory.History), at, ledger.TenantTerms{
		Since: c.at, Plan: c.Plan, AnchorAt: p.Model.anchor.Add(c.Shift), Zone: time.UTC, Overrides: c.Own,
		Now: c.Now, Prorate: c.Prorate, Reset: c.Reset, Add: c.Add,
	})
	if c.Now {
		p.Memory.makeDue(p.Now)
	}
}

// NameFresh lets later requests refer to grants and debits of earlier requests, to void or to refund them.
func (p *Program) NameFresh() {
	p.grants, p.debits = append(p.grants, p.fresh.grants...), append(p.debits, p.fresh.debits...)
	p.fresh.grants, p.fresh.debits = nil, nil
}
