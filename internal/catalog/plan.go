package catalog

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/body"
	"github.com/quotasvc/quotasvc/internal/bound"
	"github.com/quotasvc/quotasvc/internal/period"
)

const (
	// MaxAllowances bounds a plan: a balance of a tenant is one allowance, and a listing of them one page.
	MaxAllowances = 100

	// MaxPlanLimits bounds a plan's own limits: all that apply are decided in one call per request.
	MaxPlanLimits = 50

	// MaxExpiresInDays bounds a trial: ten years, beyond which "it expires" is a mistake in the unit.
	MaxExpiresInDays = 3660
)

// Plan is one version of a named set of allowances. It is immutable.
type Plan struct {
	ID         string      `json:"plan"`
	Version    int32       `json:"-"` // from 1, without a gap
	Allowances []Allowance `json:"allowances"`
	Limits     []Limit     `json:"limits,omitempty"` // for this plan's tenants; they replace global limits of the same rule
	CreatedAt  time.Time   `json:"-"`
}

// Allowance is what a plan grants of one meter per period.
type Allowance struct {
	Meter  string            `json:"meter"`
	Amount int64             `json:"amount"` // 0..bound.MaxAmount; 0 for a meter that only grants pay
	Every  period.Interval   `json:"every"`
	Anchor period.AnchorKind `json:"anchor"`

	Rollover   *Rollover `json:"rollover,omitzero"`    // nil: what is left expires with the period
	Overage    *Overage  `json:"overage,omitzero"`     // nil: deny
	Overflow   *Overflow `json:"overflow,omitzero"`    // nil: none
	PerSubject *int64    `json:"per_subject,omitzero"` // cap of each subject, 0..bound.MaxAmount; nil: none

	// ExpiresInDays is how long a once-only allowance lasts from when it is granted, in days of 24 hours, 1..MaxExpiresInDays:
	// a trial. nil: for ever. Only with every once.
	ExpiresInDays *int64 `json:"expires_in_days,omitzero"`
}

// Rollover says what of a period's remainder the next period takes over: all of it, but no less than Min and no more than Max.
// A once-only allowance has no next period, and so no rollover.
type Rollover struct {
	Min int64 `json:"min,omitzero"` // 0..Max
	Max int64 `json:"max"`          // 1..bound.MaxAmount
}

// Overage says whether use may go beyond what remains.
type Overage struct {
	Policy string `json:"policy"`       // deny or allow
	Cap    *int64 `json:"cap,omitzero"` // 0..bound.MaxAmount of what is owed at a time, only with allow; nil: no cap

	// AtPeriodEnd says what becomes of a period's overage, that of drains included: forgive, or preserve, which leaves it owed
	// and lets the next allowance pay it first. "": forgive. A once-only allowance has no period's end.
	AtPeriodEnd string `json:"at_period_end,omitzero"`
}

// Overflow names the meter that pays when the own one is used up. It need not be in the plan; if it is, it has no overflow of
// its own: units are paid for in one step, so that a price is a price.
type Overflow struct {
	Meter string `json:"meter"` // another one
	Price int64  `json:"price"` // units of Meter for one unit, 1..bound.MaxAmount
}

// Check returns all faults of p.
func (p *Plan) Check(given body.Given) []body.Fault {
	c := checker{given: given}
	c.id("plan", p.ID)
	c.require(len(p.Allowances) <= MaxAllowances, "allowances", "must have at most %d elements", MaxAllowances)
	c.require(len(p.Limits) <= MaxPlanLimits, "limits", "must have at most %d elements", MaxPlanLimits)
	if len(c.fields) > 0 && (len(p.Allowances) > MaxAllowances || len(p.Limits) > MaxPlanLimits) {
		return c.fields // a hostile plan gets no list of its faults
	}
	first := map[string]int{}
	for i := range p.Allowances {
		a := &p.Allowances[i]
		path := fmt.Sprintf("allowances[%d]", i)
		c.within(path, a.check)
		if j, twice := first[a.Meter]; twice {
			c.require(false, path+".meter", "names the same meter as allowances[%d]; a plan has each meter once", j)
		} else {
			first[a.Meter] = i
		}
	}
	for i := range p.Allowances {
		o := p.Allowances[i].Overflow
		if o == nil || o.Meter == p.Allowances[i].Meter {
			continue // none, or reported already
		}
		if j, there := first[o.Meter]; there {
			c.require(p.Allowances[j].Overflow == nil, fmt.Sprintf("allowances[%d].overflow.meter", i),
				"must be a meter without overflow of its own; allowances[%d] has one", j)
		}
	}
	first = map[string]int{}
	for i := range p.Limits {
		path := fmt.Sprintf("limits[%d]", i)
		c.within(path, p.Limits[i].check)
		c.require(len(p.Limits[i].Per) == 0 || !p.Limits[i].Shared(), path+".per", "must contain tenant or subject: a plan's limits are its tenants' own")
		if j, twice := first[p.Limits[i].Rule]; twice {
			c.require(false, path+".rule", "names the same rule as limits[%d]", j)
		} else {
			first[p.Limits[i].Rule] = i
		}
	}
	return c.fields
}

func (a *Allowance) check(c *checker) {
	c.id("meter", a.Meter)
	c.amount("amount", a.Amount, 0)
	if _, err := period.ParseInterval(string(a.Every)); err != nil {
		c.require(false, "every", "%s", body.OneOf("hour", "day", "week", "month", "year", "once"))
	}
	if _, err := period.ParseAnchorKind(string(a.Anchor)); err != nil {
		c.require(false, "anchor", "%s", body.OneOf("calendar", "tenant"))
	}
	if r := a.Rollover; r != nil && c.amount("rollover.max", r.Max, 1) {
		c.require(r.Min >= 0 && r.Min <= r.Max, "rollover.min", "must be an integer from 0 to rollover.max, %d", r.Max)
	}
	c.require(a.Rollover == nil || a.Every != period.Once, "rollover", "must be absent where every is once: there is no next period")
	if o := a.Overage; o != nil {
		c.oneOf("overage.policy", o.Policy, "deny", "allow")
		if c.has("overage.at_period_end", o.AtPeriodEnd != "") {
			c.oneOf("overage.at_period_end", o.AtPeriodEnd, "forgive", "preserve")
			c.require(a.Every != period.Once, "overage.at_period_end", "must be absent where every is once: there is no period's end")
		}
		if o.Cap != nil {
			c.amount("overage.cap", *o.Cap, 0)
			c.require(o.Policy != "deny", "overage.cap", "must be absent where overage.policy is deny")
		}
	}
	if o := a.Overflow; o != nil {
		c.id("overflow.meter", o.Meter)
		c.require(o.Meter != a.Meter, "overflow.meter", "must be another meter than the allowance's own")
		c.amount("overflow.price", o.Price, 1)
	}
	if a.PerSubject != nil {
		c.amount("per_subject", *a.PerSubject, 0)
	}
	if days := a.ExpiresInDays; days != nil {
		c.require(*days >= 1 && *days <= MaxExpiresInDays, "expires_in_days", "%s", bound.MustBeInteger(1, MaxExpiresInDays))
		c.require(a.Every == period.Once, "expires_in_days", "must be absent unless every is once: other allowances end with their period")
	}
}

// normalize fills in defaults, so that what is stored and compared has one form.
func (p *Plan) normalize() {
	p.Allowances = append([]Allowance{}, p.Allowances...)
	p.Limits = append([]Limit{}, p.Limits...)
	for i := range p.Limits {
		p.Limits[i].normalize()
	}
}

// same reports whether p and o grant the same, whatever the order of their parts. Both are normalized.
func (p *Plan) same(o *Plan) bool {
	byMeter := func(a, b Allowance) int { return cmp.Compare(a.Meter, b.Meter) }
	byRule := func(a, b Limit) int { return cmp.Compare(a.Rule, b.Rule) }
	return reflect.DeepEqual(slices.SortedFunc(slices.Values(p.Allowances), byMeter), slices.SortedFunc(slices.Values(o.Allowances), byMeter)) &&
		reflect.DeepEqual(slices.SortedFunc(slices.Values(p.Limits), byRule), slices.SortedFunc(slices.Values(o.Limits), byRule))
}

// meters lists the meters p refers to, with the field that does.
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

// reference is a field that names another object.
type reference struct{ field, id string }
