package gate

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/catalog/override"
	"github.com/quotasvc/quotasvc/internal/kit/address"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/kit/route"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// limitRule is a compiled limit of the catalogue.
type limitRule struct {
	source     *catalog.Limit
	compiled   rule.Rule
	overridden *override.Override // the override that set the numbers; nil: they are the limit's own

	// The requests to which the rule applies; an empty field matches all requests.
	tenant, plan, meter, method string
	route                       routeMatch
	forms                       [2]route.Forms // in which routes are compared, by Request.way

	// The dimensions of the rule's buckets, in addition to the tenant.
	perSubject, perRoute, perIP bool

	refills   time.Duration // the longest time in which an empty bucket is full again
	policy    string        // its member of the RateLimit-Policy header
	byPattern bool          // all routes of a pattern share one bucket
	prefix    address.Prefix

	costs        []routeCost // by precedence
	byAmount     bool        // the cost is per unit of meter, not per request
	replaces     string      // the id of the rule it replaces; empty: none
	zoneOfTenant bool        // its windows follow each tenant's calendar
	attempts     bool        // a request that is not granted costs tokens, too
}

type routeCost struct {
	route routeMatch
	cost  int64
}

// routeMatch is a pattern as a rule compares it. The zero value matches every route, and requests without a route.
type routeMatch struct {
	route.Pattern
	normal [2][]route.Pattern // the pattern in the rule's forms, by Request.way
}

func newRouteMatch(text string, forms [2]route.Forms) (routeMatch, error) {
	p, err := route.Parse(text)
	if err != nil {
		return routeMatch{}, err
	}
	m := routeMatch{Pattern: p}
	for way, f := range forms {
		if m.normal[way] = p.In(f); way > 0 && slices.Equal(m.normal[way], m.normal[0]) {
			m.normal[way] = m.normal[0]
		}
	}
	return m, nil
}

// matches reports whether a route, which is normalized in the same forms, matches.
func (m *routeMatch) matches(way int, name string) bool {
	return m.normal[way] == nil || slices.ContainsFunc(m.normal[way], func(p route.Pattern) bool { return p.Match(name) })
}

// compileRule compiles a limit. The error is a *body.Fault.
func compileRule(l *catalog.Limit) (*limitRule, error) {
	// The fields with which the limiter decides, and the other fields that the gate needs.
	spec := rule.Spec{
		ID: l.Rule, Kind: l.Kind, Rate: l.Rate, Burst: l.Burst, Cost: l.Cost, Debt: l.Debt, Shadow: l.Mode == catalog.ModeShadow,
		Ban: rule.BanSpec{After: l.Ban.After, Within: l.Ban.Within, For: l.Ban.For}, OnBackendError: l.OnBackendError, Shared: l.Shared(), RegionShare: l.RegionShare,
	}
	r := &limitRule{
		source: l,
		tenant: l.Match.Tenant, plan: l.Match.Plan, meter: l.Match.Meter, replaces: l.Replaces, byAmount: l.CostBy == catalog.CostByAmount,
		zoneOfTenant: l.Timezone == catalog.ZoneOfTenant, attempts: l.Counts == catalog.CountsAttempts, method: l.Match.Method, prefix: l.IPPrefix,
	}

	// Forms of routes, and the calendar.
	if l.Normalize != nil {
		r.forms[direct] = route.FormsOf(l.Normalize)
		r.forms[atGateway] = r.forms[direct]
	} else {
		r.forms[atGateway] = route.AllForms
	}
	var err error
	if l.Timezone != "" && !r.zoneOfTenant {
		if spec.Zone, err = period.ParseZone(l.Timezone); err != nil {
			return nil, &body.Fault{Field: "timezone", Message: err.Error()}
		}
	}

	// The limiter's rule.
	if r.compiled, err = rule.Compile(spec); err != nil {
		if field, ok := errors.AsType[*rule.FieldError](err); ok {
			return nil, &body.Fault{Field: field.Field, Message: field.Reason}
		}
		return nil, &body.Fault{Field: "rule", Message: err.Error()}
	}
	r.refills, r.policy = r.compiled.Refills(), r.compiled.Policy()

	// The requests that it applies to, and its buckets.
	if l.Match.Route != "" {
		if r.route, err = newRouteMatch(l.Match.Route, r.forms); err != nil {
			return nil, &body.Fault{Field: "match.route", Message: err.Error()}
		}
	}
	if err := r.compileDimensions(l.Per); err != nil {
		return nil, err
	}
	r.byPattern = r.perRoute && l.Match.Route != "" && l.RouteKey != catalog.RouteKeyPath
	if r.compiled.Kind == rule.KindConcurrency && r.meter != "" {
		return nil, &body.Fault{Field: "match.meter", Message: "must be absent: a lease names no meter"}
	}
	if r.compiled.Kind == rule.KindConcurrency && r.method != "" {
		return nil, &body.Fault{Field: "match.method", Message: "must be absent: a lease names no method"}
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
		pattern, err := newRouteMatch(c.Route, r.forms)
		if err != nil {
			return &body.Fault{Field: at + ".route", Message: err.Error()}
		}
		if c.Cost < 1 || c.Cost > r.compiled.Burst {
			return &body.Fault{Field: at + ".cost", Message: fmt.Sprintf("must be from 1 to the burst, %d; it is %d", r.compiled.Burst, c.Cost)}
		}
		r.costs = append(r.costs, routeCost{pattern, c.Cost})
	}
	slices.SortStableFunc(r.costs, func(a, b routeCost) int { return a.route.Compare(b.route.Pattern) })
	if r.byAmount && r.compiled.Burst >= ledger.MaxAmount {
		// cost returns burst + 1 for any product above the burst: burst + 1 must be an amount.
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

// dimension returns the name of req's bucket among the rule's buckets for one tenant, or for all tenants if the rule
// is shared.
func (r *limitRule) dimension(req *Request) string {
	if !r.perSubject && !r.perRoute && !r.perIP {
		return ""
	}
	values := make([]string, 0, 6)
	if r.perSubject {
		values = append(values, catalog.PerSubject, req.Subject)
	}
	switch {
	case r.perRoute && r.byPattern:
		values = append(values, catalog.PerRoute, r.route.String())
	case r.perRoute:
		values = append(values, catalog.PerRoute, req.routeIn(r.forms[req.way()]))
	}
	if r.perIP {
		values = append(values, catalog.PerIP, address.Network(req.IP, r.prefix))
	}
	return rule.Dimension(values...)
}

// cost returns the tokens that req takes from a bucket of the rule. The rule must apply to req. Any cost above the
// burst becomes burst + 1.
func (r *limitRule) cost(req *Request) int64 {
	cost := r.compiled.Cost
	if req.Route != "" {
		way := req.way()
		name := req.routeIn(r.forms[way])
		for i := range r.costs {
			if r.costs[i].route.matches(way, name) {
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

// item returns the item of a meter. It returns nil if there is none.
func (req *Request) item(meter string) *ledger.Item {
	for i := range req.Items {
		if req.Items[i].Meter == meter {
			return &req.Items[i]
		}
	}
	return nil
}
