package gate

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/quotasvc/quotasvc/internal/body"
	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/period"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// networkBits are what tells IPv6 callers apart: a customer has 2^64 addresses and more, and one bucket.
const networkBits = 64

// limitRule is a limit of the catalogue, ready to be asked.
type limitRule struct {
	compiled rule.Rule

	// What it is about; empty is everything.
	tenant, plan, meter string
	route               catalog.Pattern

	// What divides its buckets, beside the tenant.
	perSubject, perRoute, perIP bool

	costs        []routeCost // by precedence
	byAmount     bool        // a unit of meter costs, not a request
	replaces     string      // the rule it stands in for; "": none
	zoneOfTenant bool        // its windows follow each tenant's calendar
}

type routeCost struct {
	route catalog.Pattern
	cost  int64
}

// compileRule turns a limit into a rule. The error is a *body.Fault.
func compileRule(l *catalog.Limit) (*limitRule, error) {
	spec := rule.Spec{
		ID: l.Rule, Kind: l.Kind, Rate: l.Rate, Burst: l.Burst, Cost: l.Cost, Shadow: l.Mode == catalog.ModeShadow,
		OnBackendError: l.OnBackendError, Shared: l.Shared(), RegionShare: l.RegionShare,
	}
	r := &limitRule{
		tenant: l.Match.Tenant, plan: l.Match.Plan, meter: l.Match.Meter, replaces: l.Replaces, byAmount: l.CostBy == catalog.CostByAmount,
		zoneOfTenant: l.Timezone == catalog.ZoneOfTenant,
	}
	var err error
	if l.Timezone != "" && !r.zoneOfTenant {
		if spec.Zone, err = period.ParseZone(l.Timezone); err != nil {
			return nil, &body.Fault{Field: "timezone", Message: err.Error()}
		}
	}
	if r.compiled, err = rule.Compile(spec); err != nil {
		if field, ok := errors.AsType[*rule.FieldError](err); ok {
			return nil, &body.Fault{Field: field.Field, Message: field.Reason}
		}
		return nil, &body.Fault{Field: "rule", Message: err.Error()}
	}
	if l.Match.Route != "" {
		if r.route, err = catalog.ParsePattern(l.Match.Route); err != nil {
			return nil, &body.Fault{Field: "match.route", Message: err.Error()}
		}
	}
	if err := r.compileDimensions(l.Per); err != nil {
		return nil, err
	}
	if r.compiled.Kind == rule.KindConcurrency && r.meter != "" {
		return nil, &body.Fault{Field: "match.meter", Message: "must be absent: a lease names no meter"}
	}
	return r, r.compileCosts(l.Costs)
}

func (r *limitRule) compileDimensions(dimensions []string) error {
	for i, per := range dimensions {
		switch per {
		case catalog.PerTenant, catalog.PerGlobal:
		case catalog.PerSubject:
			r.perSubject = true
		case catalog.PerRoute:
			r.perRoute = true
		case catalog.PerIP:
			r.perIP = true
		default:
			return &body.Fault{Field: fmt.Sprintf("per[%d]", i), Message: fmt.Sprintf("%.40q is no dimension", per)}
		}
	}
	return nil
}

func (r *limitRule) compileCosts(costs []catalog.RouteCost) error {
	for i, c := range costs {
		at := fmt.Sprintf("costs[%d]", i)
		pattern, err := catalog.ParsePattern(c.Route)
		if err != nil {
			return &body.Fault{Field: at + ".route", Message: err.Error()}
		}
		if c.Cost < 1 || c.Cost > r.compiled.Burst {
			return &body.Fault{Field: at + ".cost", Message: fmt.Sprintf("%d is not from 1 to the burst, %d", c.Cost, r.compiled.Burst)}
		}
		r.costs = append(r.costs, routeCost{pattern, c.Cost})
	}
	slices.SortStableFunc(r.costs, func(a, b routeCost) int { return a.route.Compare(b.route) })
	if r.byAmount && r.compiled.Burst >= ledger.MaxAmount {
		// So that a product that does not fit can always be answered as more than the capacity.
		return &body.Fault{Field: "burst", Message: fmt.Sprintf("must be below %d where cost_by is amount", ledger.MaxAmount)}
	}
	return nil
}

// CheckLimit says whether the gate can enforce l: the catalogue's StoreConfig.CheckLimit. The error is a
// *body.Fault that names the field and its bound.
func CheckLimit(l *catalog.Limit) error {
	_, err := compileRule(l)
	return err
}

// appliesTo says whether the rule is about req, made by a tenant of plan. A rule with a dimension that the request does not
// name is not: there is no bucket it could stand for.
func (r *limitRule) appliesTo(req *Request, plan string) bool {
	switch {
	case r.tenant != "" && r.tenant != req.Tenant,
		r.plan != "" && r.plan != plan,
		r.perSubject && req.Subject == "",
		r.perRoute && req.Route == "",
		r.perIP && !req.IP.IsValid():
		return false
	}
	return (r.meter == "" || req.item(r.meter) != nil) && r.route.Match(req.Route)
}

// dimension names req's bucket among those of the rule and, unless it is shared, the tenant.
func (r *limitRule) dimension(req *Request) string {
	if !r.perSubject && !r.perRoute && !r.perIP {
		return ""
	}
	var space [6]string
	values := space[:0]
	if r.perSubject {
		values = append(values, catalog.PerSubject, req.Subject)
	}
	if r.perRoute {
		values = append(values, catalog.PerRoute, req.Route)
	}
	if r.perIP {
		ip := req.IP.Unmap()
		if ip.Is4() {
			b := ip.As4()
			values = append(values, catalog.PerIP, string(b[:]))
		} else {
			b := ip.As16()
			values = append(values, catalog.PerIP, string(b[:networkBits/8]))
		}
	}
	return rule.Dimension(values...)
}

// cost is what req, which the rule applies to, takes. What is more than a bucket can ever hold comes out as just that.
func (r *limitRule) cost(req *Request) int64 {
	cost := r.compiled.Cost
	if req.Route != "" {
		for i := range r.costs {
			if r.costs[i].route.Match(req.Route) {
				cost = r.costs[i].cost
				break
			}
		}
	}
	if !r.byAmount {
		return cost
	}
	high, low := bits.Mul64(uint64(cost), uint64(req.item(r.meter).Amount))
	if high != 0 || low > uint64(r.compiled.Burst) {
		return r.compiled.Burst + 1
	}
	return int64(low)
}

// item is the item of a meter, nil if there is none.
func (req *Request) item(meter string) *ledger.Item {
	for i := range req.Items {
		if req.Items[i].Meter == meter {
			return &req.Items[i]
		}
	}
	return nil
}

// compareSpecificity orders rules that stand in for the same one, the most specific first: one of a tenant, one of a plan, by
// the precedence of their routes, one of a meter, by their ids.
func compareSpecificity(a, b *member) int {
	first := func(a, b bool) int {
		switch {
		case a == b:
			return 0
		case a:
			return -1
		default:
			return 1
		}
	}
	return cmp.Or(
		first(a.tenant != "", b.tenant != ""),
		first(a.plan != "" || a.own, b.plan != "" || b.own),
		a.route.Compare(b.route),
		first(a.meter != "", b.meter != ""),
		cmp.Compare(a.compiled.ID, b.compiled.ID),
	)
}
