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
	overridden *override.Override // the override that set rate and burst; nil: the limit's own values are in force

	// The rule applies to requests with these values. An empty field matches all requests.
	tenant, plan, meter, method string
	route                       routeMatch
	forms                       [2]route.Forms // forms in which routes are compared, by Request.way

	// perSubject, perRoute and perIP are the dimensions of the rule's buckets, in addition to the tenant.
	perSubject, perRoute, perIP bool

	refills   time.Duration // the longest time in which an empty bucket fills
	policy    string        // the rule's member of the RateLimit-Policy header
	byPattern bool          // all routes of a pattern share one bucket
	prefix    address.Prefix

	costs        []routeCost // in the order of precedence
	byAmount     bool        // the cost is per unit of meter, not per request
	replaces     string      // id of the rule that this rule replaces; empty: none
	zoneOfTenant bool        // the windows of the rule follow each tenant's calendar
	attempts     bool        // the rule counts attempts: refused requests are charged as well
}

type routeCost struct {
	route routeMatch
	cost  int64
}

// routeMatch is the pattern of a rule in the forms in which the rule compares routes. The zero value matches every
// request, with or without a route.
type routeMatch struct {
	route.Pattern
	normal [2][]route.Pattern // the pattern in these forms, by Request.way
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

// matches reports whether a route matches the pattern. The route must be normalized in the rule's forms for this way.
func (m *routeMatch) matches(way int, name string) bool {
	return m.normal[way] == nil || slices.ContainsFunc(m.normal[way], func(p route.Pattern) bool { return p.Match(name) })
}

// compileRule compiles a limit. The error is a *body.Fault.
func compileRule(l *catalog.Limit) (*limitRule, error) {
	// The fields that the limiter needs for its decisions, and the other fields that the gate needs.
	spec := rule.Spec{
		ID: l.Rule, Kind: l.Kind, Rate: l.Rate, Burst: l.Burst, Cost: l.Cost, Debt: l.Debt, Shadow: l.Mode == catalog.ModeShadow,
		Ban: rule.BanSpec{After: l.Ban.After, Within: l.Ban.Within, For: l.Ban.For}, OnBackendError: l.OnBackendError, Shared: l.Shared(), RegionShare: l.RegionShare,
	}
	r := &limitRule{
		source: l,
		tenant: l.Match.Tenant, plan: l.Match.Plan, meter: l.Match.Meter, replaces: l.Replaces, byAmount: l.CostBy == catalog.CostByAmount,
		zoneOfTenant: l.Timezone == catalog.ZoneOfTenant, attempts: l.Counts == catalog.CountsAttempts, method: l.Match.Method, prefix: l.IPPrefix,
	}

	// The forms in which routes are compared, and the calendar.
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

	// The rule of the limiter.
	if r.compiled, err = rule.Compile(spec); err != nil {
		if field, ok := errors.AsType[*rule.FieldError](err); ok {
			return nil, &body.Fault{Field: field.Field, Message: field.Reason}
		}
		return nil, &body.Fault{Field: "rule", Message: err.Error()}
	}
	r.refills, r.policy = r.compiled.Refills(), r.compiled.Policy()

	// The requests to which the rule applies, and its buckets.
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
		// cost returns burst + 1 for any product above the burst, so burst + 1 must be a valid amount.
		return &body.Fault{Field: "burst", Message: fmt.Sprintf("must be below %d when cost_by is amount", ledger.MaxAmount)}
	}
	return nil
}

// CheckLimit returns an error if the gate cannot enforce l. The error is a *body.Fault that names the field and its
// bound. CheckLimit is the catalogue's StoreConfig.CheckLimit.
func CheckLimit(l *catalog.Limit) error {
	_, err := compileRule(l)
	return err
}

// dimension returns the part of a bucket's name that depends on the subject, route and address of req. It is "" if
// the rule has none of these dimensions.
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

// cost returns the tokens that req takes from a bucket of the rule. The rule must apply to req. If the cost is above
// the burst, cost returns burst + 1.
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

// item returns the item of req for a meter. It returns nil if req has no such item.
func (req *Request) item(meter string) *ledger.Item {
	for i := range req.Items {
		if req.Items[i].Meter == meter {
			return &req.Items[i]
		}
	}
	return nil
}
