package gate

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/quotasvc/quotasvc/internal/body"
	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/override"
	"github.com/quotasvc/quotasvc/internal/period"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/route"
)

// networkBits is the part of an IPv6 address that names a bucket. A customer has at least 2^64 addresses, and gets one bucket.
const networkBits = 64

// limitRule is a compiled limit of the catalogue.
type limitRule struct {
	source     *catalog.Limit
	compiled   rule.Rule
	overridden *override.Override // whose numbers these are; nil: the limit's own

	// The requests it applies to; empty: all.
	tenant, plan, meter string
	route               route.Pattern

	// It has a bucket for each of these, beside the tenant.
	perSubject, perRoute, perIP bool

	costs        []routeCost // by precedence
	byAmount     bool        // the cost is per unit of meter, not per request
	replaces     string      // the id of the rule it replaces; empty: none
	zoneOfTenant bool        // its windows follow each tenant's calendar
}

type routeCost struct {
	route route.Pattern
	cost  int64
}

// compileRule compiles a limit. The error is a *body.Fault.
func compileRule(l *catalog.Limit) (*limitRule, error) {
	spec := rule.Spec{
		ID: l.Rule, Kind: l.Kind, Rate: l.Rate, Burst: l.Burst, Cost: l.Cost, Shadow: l.Mode == catalog.ModeShadow,
		OnBackendError: l.OnBackendError, Shared: l.Shared(), RegionShare: l.RegionShare,
	}
	r := &limitRule{
		source: l,
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
		if r.route, err = route.Parse(l.Match.Route); err != nil {
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
			return &body.Fault{Field: fmt.Sprintf("per[%d]", i), Message: fmt.Sprintf("%.40q is not a dimension", per)}
		}
	}
	return nil
}

func (r *limitRule) compileCosts(costs []catalog.RouteCost) error {
	for i, c := range costs {
		at := fmt.Sprintf("costs[%d]", i)
		pattern, err := route.Parse(c.Route)
		if err != nil {
			return &body.Fault{Field: at + ".route", Message: err.Error()}
		}
		if c.Cost < 1 || c.Cost > r.compiled.Burst {
			return &body.Fault{Field: at + ".cost", Message: fmt.Sprintf("must be from 1 to the burst, %d; it is %d", r.compiled.Burst, c.Cost)}
		}
		r.costs = append(r.costs, routeCost{pattern, c.Cost})
	}
	slices.SortStableFunc(r.costs, func(a, b routeCost) int { return a.route.Compare(b.route) })
	if r.byAmount && r.compiled.Burst >= ledger.MaxAmount {
		// cost returns burst + 1 for any product above the burst; that must be an amount.
		return &body.Fault{Field: "burst", Message: fmt.Sprintf("must be below %d when cost_by is amount", ledger.MaxAmount)}
	}
	return nil
}

// CheckLimit returns an error if the gate cannot enforce l: a *body.Fault that names the field and its bound. It is
// the catalogue's StoreConfig.CheckLimit.
func CheckLimit(l *catalog.Limit) error {
	_, err := compileRule(l)
	return err
}

// dimension returns the name of req's bucket among the rule's buckets for one tenant, or for all tenants if it is shared.
func (r *limitRule) dimension(req *Request) string {
	if !r.perSubject && !r.perRoute && !r.perIP {
		return ""
	}
	values := make([]string, 0, 6)
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

// cost returns the tokens that req takes from a bucket of the rule, which applies to it. Any cost above the burst becomes
// burst + 1.
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

// item returns the item of a meter, nil if there is none.
func (req *Request) item(meter string) *ledger.Item {
	for i := range req.Items {
		if req.Items[i].Meter == meter {
			return &req.Items[i]
		}
	}
	return nil
}
