package catalog

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/address"
	"github.com/quotasvc/quotasvc/internal/body"
	"github.com/quotasvc/quotasvc/internal/bound"
	"github.com/quotasvc/quotasvc/internal/route"
)

// Words of limits that other packages compare with.
const (
	PerTenant  = "tenant"
	PerSubject = "subject"
	PerRoute   = "route"
	PerIP      = "ip"
	PerGlobal  = "global"

	kindFixedWindow = "fixed_window"
	KindConcurrency = "concurrency"

	costByRequest = "request"
	CostByAmount  = "amount"

	// ZoneOfTenant as the timezone of a limit means the time zone of each tenant.
	ZoneOfTenant = "tenant"

	ModeShadow = "shadow"

	modeEnforce = "enforce"
	localShare  = "local_share"

	backendClosed = "closed"
)

const (
	// MaxCosts bounds the costs of a limit. A request may have to be compared with each of them.
	MaxCosts = 100

	// wholeRegion is the region_share of a limit if one Redis serves all regions, in percent.
	wholeRegion = 100
)

// Limit is a rate limit.
//
// If Per names the tenant or a subject, each tenant has buckets of its own. Otherwise all tenants share the buckets.
type Limit struct {
	Rule  string   `json:"rule"`
	Per   []string `json:"per"` // tenant, subject, route, ip: one bucket for each combination; or global alone: one bucket
	Match Match    `json:"match,omitzero"`
	Kind  string   `json:"kind"`
	Rate  string   `json:"rate,omitzero"`  // as in 60/s; only a limit of kind concurrency may omit it
	Burst int64    `json:"burst,omitzero"` // the capacity, 1..bound.MaxAmount; 0: the rate's count

	Debt int64 `json:"debt,omitzero"` // how many tokens a charge after the fact may take beyond what is left, 0..bound.MaxAmount

	Cost   int64       `json:"cost,omitzero"`    // cost of a request, 1..bound.MaxAmount; 0: 1
	Costs  []RouteCost `json:"costs,omitempty"`  // costs of requests on some routes; the most specific pattern counts
	CostBy string      `json:"cost_by,omitzero"` // request, or amount: the cost counts for each unit of Match.Meter; empty: request

	// Replaces names a rule that this limit replaces: where both apply, only this one counts. Empty: none.
	Replaces string `json:"replaces,omitzero"`

	Timezone       string `json:"timezone,omitzero"`         // zone of a fixed window's calendar, or tenant: the zone of the tenant; empty: UTC
	Mode           string `json:"mode,omitzero"`             // enforce or shadow; empty: enforce
	OnBackendError string `json:"on_backend_error,omitzero"` // local_share, open or closed; empty: local_share
	RegionShare    int64  `json:"region_share,omitzero"`     // percent of rate and burst that the Redis of this region has, 1..100; 0: 100

	Counts    string         `json:"counts,omitzero"`    // attempts or successes; empty: attempts if per ip, per route without tenant, or closed
	RouteKey  string         `json:"route_key,omitzero"` // pattern or path, if Per has route; empty: pattern
	Ban       Ban            `json:"ban,omitzero"`       // the zero value: none
	Normalize []string       `json:"normalize,omitzero"` // route.Forms that are made equal; nil: all at gateways, none elsewhere
	IPPrefix  address.Prefix `json:"ip_prefix,omitzero"` // if Per has ip

	CreatedAt time.Time `json:"-"`
	UpdatedAt time.Time `json:"-"`
}

// Match selects the requests of a limit: those that match all fields that are not empty.
type Match struct {
	Method string `json:"method,omitzero"` // as in POST
	Route  string `json:"route,omitzero"`  // a route.Pattern
	Meter  string `json:"meter,omitzero"`  // meter of one of the items
	Plan   string `json:"plan,omitzero"`
	Tenant string `json:"tenant,omitzero"`
}

// RouteCost is the cost of a request on the routes of a pattern.
type RouteCost struct {
	Route string `json:"route"`
	Cost  int64  `json:"cost"` // 1..bound.MaxAmount
}

// Shared reports whether all tenants share the limit's buckets.
func (l *Limit) Shared() bool {
	return !slices.Contains(l.Per, PerTenant) && !slices.Contains(l.Per, PerSubject)
}

// PerSubject reports whether each subject has buckets of its own.
func (l *Limit) PerSubject() bool { return slices.Contains(l.Per, PerSubject) }

// Check returns all faults of l.
func (l *Limit) Check(given body.Given) []body.Fault {
	c := checker{given: given}
	l.check(&c)
	return c.fields
}

func (l *Limit) check(c *checker) {
	c.id("rule", l.Rule)
	l.checkPer(c)
	c.within("match", l.Match.check)
	c.oneOf("kind", l.Kind, "token_bucket", kindFixedWindow, "sliding_window", "sliding_log", "leaky_bucket", KindConcurrency)
	if c.has("rate", l.Rate != "") || l.Kind != KindConcurrency {
		c.require(rateForm.MatchString(l.Rate), "rate", "must be a count per period, as in 60/s, 100/min, 5/30s, 10/day")
	} else {
		c.require(l.Burst != 0, "burst", "is required if there is no rate")
	}
	if c.has("burst", l.Burst != 0) {
		c.amount("burst", l.Burst, 1)
	}
	c.amount("debt", l.Debt, 0)
	l.checkCosts(c)
	if c.has("replaces", l.Replaces != "") {
		c.id("replaces", l.Replaces)
		c.require(l.Replaces != l.Rule, "replaces", "must name another rule")
	}
	l.checkTimezone(c)
	l.checkRequest(c)
	if c.has("mode", l.Mode != "") {
		c.oneOf("mode", l.Mode, modeEnforce, ModeShadow)
	}
	if c.has("on_backend_error", l.OnBackendError != "") {
		c.oneOf("on_backend_error", l.OnBackendError, localShare, "open", backendClosed)
	}
	if c.has("region_share", l.RegionShare != 0) {
		c.require(l.RegionShare >= 1 && l.RegionShare <= wholeRegion, "region_share", "%s", bound.MustBeInteger(1, wholeRegion))
	}
}

func (l *Limit) checkPer(c *checker) {
	const dimensions = 4 // global excludes the others
	c.require(len(l.Per) >= 1 && len(l.Per) <= dimensions, "per", "must have 1 to %d elements", dimensions)
	for i, per := range l.Per[:min(len(l.Per), dimensions)] {
		field := fmt.Sprintf("per[%d]", i)
		c.oneOf(field, per, PerTenant, PerSubject, PerRoute, PerIP, PerGlobal)
		c.require(!slices.Contains(l.Per[:i], per), field, "must appear once")
		c.require(per != PerGlobal || len(l.Per) == 1, field, "must be alone: global is one bucket for all requests")
	}
}

func (m *Match) check(c *checker) {
	if c.has("method", m.Method != "") {
		c.require(bound.Method(m.Method), "method", bound.MustBeMethod)
	}
	if c.has("route", m.Route != "") {
		c.pattern("route", m.Route)
	}
	for _, ref := range []reference{{"meter", m.Meter}, {"plan", m.Plan}, {"tenant", m.Tenant}} {
		if c.has(ref.field, ref.id != "") {
			c.id(ref.field, ref.id)
		}
	}
}

func (l *Limit) checkCosts(c *checker) {
	if c.has("cost", l.Cost != 0) {
		c.amount("cost", l.Cost, 1)
	}
	if c.has("cost_by", l.CostBy != "") {
		c.oneOf("cost_by", l.CostBy, costByRequest, CostByAmount)
		c.require(l.CostBy != CostByAmount || l.Match.Meter != "", "cost_by", "amount requires match.meter, whose amount it counts")
	}
	if l.Kind == KindConcurrency {
		c.require(len(l.Costs) == 0, "costs", "must be absent: a lease takes one of the capacity")
		c.require(l.CostBy != CostByAmount, "cost_by", "must be request: a lease takes one of the capacity")
	}
	if !c.require(len(l.Costs) <= MaxCosts, "costs", "must have at most %d elements", MaxCosts) {
		return
	}
	first := map[string]int{}
	for i := range l.Costs {
		path := fmt.Sprintf("costs[%d]", i)
		c.pattern(path+".route", l.Costs[i].Route)
		c.amount(path+".cost", l.Costs[i].Cost, 1)
		if j, twice := first[l.Costs[i].Route]; twice {
			c.require(false, path+".route", "is a duplicate of costs[%d].route", j)
		} else {
			first[l.Costs[i].Route] = i
		}
	}
}

func (l *Limit) checkTimezone(c *checker) {
	if !c.has("timezone", l.Timezone != "") {
		return
	}
	if !c.require(l.Kind == kindFixedWindow, "timezone", "must be absent: only limits of kind fixed_window follow a calendar") {
		return
	}
	if l.Timezone == ZoneOfTenant {
		c.require(!l.Shared(), "timezone", "must not be tenant if per has neither tenant nor subject: all tenants share the bucket")
		return
	}
	c.require(body.IsZone(l.Timezone), "timezone", body.MustBeZone+`, or "tenant"`)
}

// pattern checks a route with wildcards.
func (c *checker) pattern(field, text string) {
	if _, err := route.Parse(text); err != nil {
		c.require(false, field, "%v", err)
	}
}

// normalize sets defaults, so that equal limits have one form.
func (l *Limit) normalize() {
	l.CreatedAt, l.UpdatedAt = time.Time{}, time.Time{}
	if l.Burst == 0 {
		count, _, _ := strings.Cut(l.Rate, "/")
		l.Burst, _ = strconv.ParseInt(count, 10, 64) // rateForm allows 1 to 16 digits
	}
	if l.Cost == 0 {
		l.Cost = 1
	}
	if len(l.Costs) == 0 {
		l.Costs = nil
	}
	if l.CostBy == "" {
		l.CostBy = costByRequest
	}
	if l.Timezone == "" && l.Kind == kindFixedWindow {
		l.Timezone = defaultZone
	}
	if l.Mode == "" {
		l.Mode = modeEnforce
	}
	if l.OnBackendError == "" {
		l.OnBackendError = localShare
	}
	if l.RegionShare == 0 {
		l.RegionShare = wholeRegion
	}
	l.normalizeRequest()
}

// same reports whether storing l instead of o changes nothing. Both are normalized.
func (l Limit) same(o Limit) bool {
	l.CreatedAt, l.UpdatedAt = o.CreatedAt, o.UpdatedAt
	return reflect.DeepEqual(l, o)
}
