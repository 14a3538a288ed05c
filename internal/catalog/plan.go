package catalog

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/catalog/check"
	"github.com/quotasvc/quotasvc/internal/catalog/feature"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/kit/price"
)

const (
	// MaxAllowances is the largest number of allowances of a plan. Each allowance is a balance of a tenant, and one
	// page lists all balances of a tenant.
	MaxAllowances = 100

	// MaxPlanLimits is the largest number of limits of a plan. For each request, one call decides all limits that
	// apply.
	MaxPlanLimits = 50

	// MaxExpiresInDays is the longest trial, in days: ten years and a week. If a client sends more days, it has
	// probably mistaken the unit.
	MaxExpiresInDays = 3660

	// MaxAlerts is the largest number of alert percentages of an allowance.
	MaxAlerts = 10
	// MaxAlertAt is the largest alert percentage: with overage, use may be ten times the allowance.
	MaxAlertAt = 1000
)

// Plan is one version of a named set of allowances. It is immutable.
type Plan struct {
	ID         string      `json:"plan"`
	Version    int32       `json:"-"` // 1, 2, 3, ... without a gap
	Allowances []Allowance `json:"allowances"`
	Limits     []Limit     `json:"limits,omitempty"` // for this plan's tenants; they replace global limits of the same name
	Features   feature.Set `json:"features,omitempty"`
	CreatedAt  time.Time   `json:"-"`

	// Apply is applyNow if the version takes effect at once for all tenants that are on the plan. If it is empty or
	// applyNextPeriod, the version waits for the end of each tenant's billing period. A plan's first version has none.
	Apply string `json:"apply,omitzero"`
}

// AppliesNow reports whether the version took effect at once for all tenants that were on the plan.
func (p *Plan) AppliesNow() bool { return p.Apply == applyNow }

// Allowance is the amount that a plan grants of one meter in each period, with its conditions.
type Allowance struct {
	Meter  string            `json:"meter"`
	Amount int64             `json:"amount"`         // 0..bound.MaxAmount; 0 if use of the meter is paid only by grants
	Every  period.Interval   `json:"every,omitzero"` // Every and Anchor are empty for a gauge: Amount bounds its value
	Anchor period.AnchorKind `json:"anchor,omitzero"`

	Rollover   *Rollover `json:"rollover,omitzero"`    // nil: the remainder expires with the period
	Overage    *Overage  `json:"overage,omitzero"`     // nil: deny
	Overflow   *Overflow `json:"overflow,omitzero"`    // nil: none
	PerSubject *int64    `json:"per_subject,omitzero"` // cap of each subject's use, 0..bound.MaxAmount; nil: no cap

	// ExpiresInDays bounds a trial: an allowance whose Every is "once" ends this many days of 24 hours after it is
	// granted. 1..MaxExpiresInDays; nil: it never ends.
	ExpiresInDays *int64 `json:"expires_in_days,omitzero"`

	// AlertAt lists the percentages of use at which an event is emitted, 1..MaxAlertAt in order. nil: 80 and 100.
	// Empty: none.
	AlertAt []int64 `json:"alert_at,omitzero"`
}

// Rollover says how much the next period gets from the remainder of a period: the remainder, but at most Max. If the
// remainder is less than Min, the next period gets Min. An allowance whose Every is "once" has no next period, and so
// no rollover.
type Rollover struct {
	Min int64 `json:"min,omitzero"` // 0..Max
	Max int64 `json:"max"`          // 1..bound.MaxAmount
}

// Overage says whether use may exceed the remainder.
type Overage struct {
	Policy string `json:"policy"`       // deny or allow: whether use may exceed the remainder
	Cap    *int64 `json:"cap,omitzero"` // largest overage, 0..bound.MaxAmount; only with allow; nil: no cap

	// AtPeriodEnd says what happens to the overage of a period, including drains. "forgive" cancels the overage.
	// "preserve" keeps the overage, and the next allowance pays it first. Empty: forgive. AtPeriodEnd has no effect if
	// Every is "once", because then the period has no end.
	AtPeriodEnd string `json:"at_period_end,omitzero"`
}

// Overflow names another meter that pays when the meter of the allowance is used up. The plan must have an allowance
// of that other meter, with amount 0 if only grants pay. The other meter must not have an overflow, so that one
// conversion is enough. Plans that earlier versions of the program stored may lack the allowance of the other meter.
type Overflow struct {
	Meter string      `json:"meter"` // a different meter
	Price price.Ratio `json:"price"` // of one unit, in units of Meter
}

// Check returns all faults of p.
func (p *Plan) Check(given body.Given) []body.Fault {
	c := check.Checker{Given: given}
	c.ID("plan", p.ID)
	if c.Has("apply", p.Apply != "") {
		c.OneOf("apply", p.Apply, applyNow, applyNextPeriod)
	}
	c.Require(len(p.Allowances) <= MaxAllowances, "allowances", "must have at most %d elements", MaxAllowances)
	c.Require(len(p.Limits) <= MaxPlanLimits, "limits", "must have at most %d elements", MaxPlanLimits)
	if len(c.Faults) > 0 && (len(p.Allowances) > MaxAllowances || len(p.Limits) > MaxPlanLimits) {
		return c.Faults // return early: a plan that is far too large must not cause a long list of faults
	}
	feature.Check(&c, "features", p.Features.Changes())
	first := map[string]int{}
	for i := range p.Allowances {
		a := &p.Allowances[i]
		path := fmt.Sprintf("allowances[%d]", i)
		c.Within(path, a.check)
		if j, twice := first[a.Meter]; twice {
			c.Require(false, path+".meter", "is a duplicate of allowances[%d].meter", j)
		} else {
			first[a.Meter] = i
		}
	}
	for i := range p.Allowances {
		o := p.Allowances[i].Overflow
		if o == nil || o.Meter == p.Allowances[i].Meter {
			continue // no overflow, or the fault is reported above
		}
		if j, there := first[o.Meter]; there {
			c.Require(p.Allowances[j].Overflow == nil, fmt.Sprintf("allowances[%d].overflow.meter", i),
				"must be a meter without overflow; allowances[%d] has one", j)
		}
	}
	first = map[string]int{}
	for i := range p.Limits {
		path := fmt.Sprintf("limits[%d]", i)
		c.Within(path, p.Limits[i].check)
		c.Require(len(p.Limits[i].Per) == 0 || !p.Limits[i].Shared(), path+".per", "must have tenant or subject: the limits of a plan are not shared by tenants")
		if j, twice := first[p.Limits[i].Rule]; twice {
			c.Require(false, path+".rule", "is a duplicate of limits[%d].rule", j)
		} else {
			first[p.Limits[i].Rule] = i
		}
	}
	return c.Faults
}

func (a *Allowance) check(c *check.Checker) {
	c.ID("meter", a.Meter)
	c.Amount("amount", a.Amount, 0)
	if a.PerSubject != nil {
		c.Amount("per_subject", *a.PerSubject, 0)
	}
	if a.ofGauge() {
		const must = "must be absent without every: an allowance without every is that of a gauge, which has no periods"
		c.Require(a.Rollover == nil, "rollover", must)
		c.Require(a.Overage == nil, "overage", must)
		c.Require(a.Overflow == nil, "overflow", must)
		c.Require(a.ExpiresInDays == nil, "expires_in_days", must)
		return
	}
	if _, err := period.ParseInterval(string(a.Every)); a.Every == "" {
		c.Require(false, "every", "is required with anchor; without both it is the allowance of a gauge")
	} else if err != nil {
		c.Require(false, "every", "%s", body.OneOf("hour", "day", "week", "month", "year", "once"))
	}
	if _, err := period.ParseAnchorKind(string(a.Anchor)); err != nil {
		c.Require(false, "anchor", "%s", body.OneOf("calendar", "tenant"))
	}
	if r := a.Rollover; r != nil && c.Amount("rollover.max", r.Max, 1) {
		c.Require(r.Min >= 0 && r.Min <= r.Max, "rollover.min", "must be an integer from 0 to rollover.max, %d", r.Max)
	}
	c.Require(a.Rollover == nil || a.Every != period.Once, "rollover", "must be absent if every is once: there is no next period")
	if o := a.Overage; o != nil {
		c.OneOf("overage.policy", o.Policy, "deny", "allow")
		if c.Has("overage.at_period_end", o.AtPeriodEnd != "") {
			c.OneOf("overage.at_period_end", o.AtPeriodEnd, "forgive", "preserve")
			c.Require(a.Every != period.Once, "overage.at_period_end", "must be absent if every is once: there is no end of a period")
		}
		if o.Cap != nil {
			c.Amount("overage.cap", *o.Cap, 0)
			c.Require(o.Policy != "deny", "overage.cap", "must be absent if overage.policy is deny")
		}
	}
	if o := a.Overflow; o != nil {
		c.ID("overflow.meter", o.Meter)
		c.Require(o.Meter != a.Meter, "overflow.meter", "must differ from the meter of the allowance")
		c.Require(o.Price.Valid(), "overflow.price", "%s", price.MustBe)
	}
	if days := a.ExpiresInDays; days != nil {
		c.Require(*days >= 1 && *days <= MaxExpiresInDays, "expires_in_days", "%s", bound.MustBeInteger(1, MaxExpiresInDays))
		c.Require(a.Every == period.Once, "expires_in_days", "must be absent unless every is once: other allowances end with their period")
	}
	c.Require(len(a.AlertAt) <= MaxAlerts, "alert_at", "must have at most %d elements", MaxAlerts)
	for i, percent := range a.AlertAt[:min(len(a.AlertAt), MaxAlerts)] {
		field := fmt.Sprintf("alert_at[%d]", i)
		c.Require(percent >= 1 && percent <= MaxAlertAt, field, "%s", bound.MustBeInteger(1, MaxAlertAt))
		c.Require(i == 0 || percent > a.AlertAt[i-1], field, "must be greater than the element before")
	}
}

// ofGauge reports whether the meter of the allowance is a gauge.
func (a *Allowance) ofGauge() bool { return a.Every == "" && a.Anchor == "" }

// misfits returns the faults of allowances that do not fit the kinds (counter or gauge) of their meters. meters must
// contain all meters of the allowances.
func (p *Plan) misfits(meters map[string]*Meter) (faults []body.Fault) {
	add := func(i int, field, message string) {
		faults = append(faults, body.Fault{Field: fmt.Sprintf("allowances[%d].%s", i, field), Message: message})
	}
	for i := range p.Allowances {
		a := &p.Allowances[i]
		switch isGauge := meters[a.Meter].Kind == KindGauge; {
		case isGauge && !a.ofGauge():
			add(i, "every", fmt.Sprintf("must be absent, as anchor: the meter %q is a gauge, which has no periods", a.Meter))
		case !isGauge && a.ofGauge():
			add(i, "every", fmt.Sprintf("is required, as anchor: the meter %q is no gauge", a.Meter))
		}
		if o := a.Overflow; o != nil && meters[o.Meter].Kind == KindGauge {
			add(i, "overflow.meter", fmt.Sprintf("must be a counter: the meter %q is a gauge, which cannot pay", o.Meter))
		}
	}
	return faults
}

// normalize sets defaults, so that plans with the same meaning are equal.
func (p *Plan) normalize() {
	p.Allowances = append([]Allowance{}, p.Allowances...)
	p.Limits = append([]Limit{}, p.Limits...)
	if len(p.Features) == 0 {
		p.Features = nil
	}
	if p.Apply == applyNextPeriod {
		p.Apply = ""
	}
	for i := range p.Limits {
		p.Limits[i].normalize()
	}
}

// same reports whether p and o have the same allowances, limits and features. The order of allowances and limits does
// not matter. p and o must be normalized.
func (p *Plan) same(o *Plan) bool {
	byMeter := func(a, b Allowance) int { return cmp.Compare(a.Meter, b.Meter) }
	byRule := func(a, b Limit) int { return cmp.Compare(a.Rule, b.Rule) }
	return reflect.DeepEqual(slices.SortedFunc(slices.Values(p.Allowances), byMeter), slices.SortedFunc(slices.Values(o.Allowances), byMeter)) &&
		reflect.DeepEqual(slices.SortedFunc(slices.Values(p.Limits), byRule), slices.SortedFunc(slices.Values(o.Limits), byRule)) &&
		maps.Equal(p.Features, o.Features)
}

// meters returns the references of p to meters.
func (p *Plan) meters() []reference {
	var refs []reference
	for i := range p.Allowances {
		a := &p.Allowances[i]
		refs = append(refs, reference{fmt.Sprintf("allowances[%d].meter", i), a.Meter})
		if a.Overflow != nil {
			refs = append(refs, reference{fmt.Sprintf("allowances[%d].overflow.meter", i), a.Overflow.Meter})
		}
	}
	for i := range p.Limits {
		if m := p.Limits[i].Match.Meter; m != "" {
			refs = append(refs, reference{fmt.Sprintf("limits[%d].match.meter", i), m})
		}
	}
	return refs
}

// unpaid returns a fault for each overflow into a meter of which p has no allowance. A tenant with this plan could
// not pay without a grant of that meter, and no message would say the reason. Only new versions are checked: stored
// versions stay valid.
func (p *Plan) unpaid() (faults []body.Fault) {
	for i := range p.Allowances {
		o := p.Allowances[i].Overflow
		if o != nil && !slices.ContainsFunc(p.Allowances, func(a Allowance) bool { return a.Meter == o.Meter }) {
			faults = append(faults, body.Fault{Field: fmt.Sprintf("allowances[%d].overflow.meter", i), Message: fmt.Sprintf(
				"names the meter %q, of which the plan %q has no allowance: add one, with amount 0 if only grants pay", o.Meter, p.ID)})
		}
	}
	return faults
}

// reference is a field of an object, with the id of the other object that this field names.
type reference struct{ field, id string }
