package catalog

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/catalog/check"
	"github.com/quotasvc/quotasvc/internal/kit/address"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/route"
)

// Values of the fields of a Limit. Other packages compare fields with the exported values.
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
	// MaxCosts is the largest number of costs of a limit. To find the cost of a request, the limiter may have to
	// compare the request with all of them.
	MaxCosts = 100

	// wholeRegion is the region_share, in percent, of a limit if one Redis serves all regions.
	wholeRegion = 100
)

// Limit is a rate limit.
//
// If Per has tenant or subject, each tenant has separate buckets. Otherwise all tenants share the buckets.
type Limit struct {
	Rule  string   `json:"rule"`
	Per   []string `json:"per"` // tenant, subject, route, ip: a bucket for each combination; or only global: one bucket
	Match Match    `json:"match,omitzero"`
	Kind  string   `json:"kind"`
	Rate  string   `json:"rate,omitzero"`  // as in 60/s; only a limit of kind concurrency may omit it
	Burst int64    `json:"burst,omitzero"` // the capacity in tokens, 1..bound.MaxAmount; 0: the number in Rate

	Debt int64 `json:"debt,omitzero"` // tokens that a late charge may take beyond the remaining tokens, 0..bound.MaxAmount

	Cost   int64       `json:"cost,omitzero"`    // cost of a request, 1..bound.MaxAmount; 0: 1
	Costs  []RouteCost `json:"costs,omitempty"`  // costs on some routes; the most specific pattern decides
	CostBy string      `json:"cost_by,omitzero"` // request; amount: each unit of Match.Meter costs Cost; empty: request

	// Replaces names a rule that this limit replaces. If both apply to a request, only this limit is enforced. Empty:
	// the limit replaces no rule.
	Replaces string `json:"replaces,omitzero"`

	Timezone       string `json:"timezone,omitzero"`         // zone of a fixed window's calendar, or tenant: the zone of the tenant; empty: UTC
	Mode           string `json:"mode,omitzero"`             // enforce or shadow; empty: enforce
	OnBackendError string `json:"on_backend_error,omitzero"` // local_share, open or closed; empty: local_share
	RegionShare    int64  `json:"region_share,omitzero"`     // percent of rate and burst that this region's Redis grants, 1..100; 0: 100

	Counts    string         `json:"counts,omitzero"`    // attempts or successes; empty: attempts if Per has ip or is route, or OnBackendError is closed
	RouteKey  string         `json:"route_key,omitzero"` // pattern or path, if Per has route; empty: pattern
	Ban       Ban            `json:"ban,omitzero"`       // the zero value: no ban
	Normalize []string       `json:"normalize,omitzero"` // equal spellings (route.Forms); nil: all at gateways, else none
	IPPrefix  address.Prefix `json:"ip_prefix,omitzero"` // only if Per has ip: addresses of a prefix share a bucket

	CreatedAt time.Time `json:"-"`
	UpdatedAt time.Time `json:"-"`
}

// Match selects the requests of a limit: a request must match all fields that are not empty.
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

// PerSubject reports whether each subject has separate buckets.
func (l *Limit) PerSubject() bool { return slices.Contains(l.Per, PerSubject) }

// Check returns all faults of l.
func (l *Limit) Check(given body.Given) []body.Fault {
	c := check.Checker{Given: given}
	l.check(&c)
	return c.Faults
}

func (l *Limit) check(c *check.Checker) {
	c.ID("rule", l.Rule)
	l.checkPer(c)
	c.Within("match", l.Match.check)
	c.OneOf("kind", l.Kind, "token_bucket", kindFixedWindow, "sliding_window", "sliding_log", "leaky_bucket", KindConcurrency)
	if c.Has("rate", l.Rate != "") || l.Kind != KindConcurrency {
		c.Require(rateForm.MatchString(l.Rate), "rate", "must be a count per period, as in 60/s, 100/min, 5/30s, 10/day")
	} else {
		c.Require(l.Burst != 0, "burst", "is required if there is no rate")
	}
	if c.Has("burst", l.Burst != 0) {
		c.Amount("burst", l.Burst, 1)
	}
	c.Amount("debt", l.Debt, 0)
	l.checkCosts(c)
	if c.Has("replaces", l.Replaces != "") {
		c.ID("replaces", l.Replaces)
		c.Require(l.Replaces != l.Rule, "replaces", "must name another rule")
	}
	l.checkTimezone(c)
	l.checkRequest(c)
	if c.Has("mode", l.Mode != "") {
		c.OneOf("mode", l.Mode, modeEnforce, ModeShadow)
	}
	if c.Has("on_backend_error", l.OnBackendError != "") {
		c.OneOf("on_backend_error", l.OnBackendError, localShare, "open", backendClosed)
	}
	if c.Has("region_share", l.RegionShare != 0) {
		c.Require(l.RegionShare >= 1 && l.RegionShare <= wholeRegion, "region_share", "%s", bound.MustBeInteger(1, wholeRegion))
	}
}

func (l *Limit) checkPer(c *check.Checker) {
	const dimensions = 4 // tenant, subject, route and ip; global must be alone
	c.Require(len(l.Per) >= 1 && len(l.Per) <= dimensions, "per", "must have 1 to %d elements", dimensions)
	for i, per := range l.Per[:min(len(l.Per), dimensions)] {
		field := fmt.Sprintf("per[%d]", i)
		c.OneOf(field, per, PerTenant, PerSubject, PerRoute, PerIP, PerGlobal)
		c.Require(!slices.Contains(l.Per[:i], per), field, "must appear once")
		c.Require(per != PerGlobal || len(l.Per) == 1, field, "must be alone: global is one bucket for all requests")
	}
}

func (m *Match) check(c *check.Checker) {
	if c.Has("method", m.Method != "") {
		c.Require(bound.Method(m.Method), "method", bound.MustBeMethod)
	}
	if c.Has("route", m.Route != "") {
		checkPattern(c, "route", m.Route)
	}
	for _, ref := range []reference{{"meter", m.Meter}, {"plan", m.Plan}} {
		if c.Has(ref.field, ref.id != "") {
			c.ID(ref.field, ref.id)
		}
	}
	if c.Has("tenant", m.Tenant != "") {
		c.Name("tenant", m.Tenant)
	}
}

func (l *Limit) checkCosts(c *check.Checker) {
	if c.Has("cost", l.Cost != 0) {
		c.Amount("cost", l.Cost, 1)
	}
	if c.Has("cost_by", l.CostBy != "") {
		c.OneOf("cost_by", l.CostBy, costByRequest, CostByAmount)
		c.Require(l.CostBy != CostByAmount || l.Match.Meter != "", "cost_by", "amount requires match.meter, whose amount it counts")
	}
	if l.Kind == KindConcurrency {
		c.Require(len(l.Costs) == 0, "costs", "must be absent: a lease takes one of the capacity")
		c.Require(l.CostBy != CostByAmount, "cost_by", "must be request: a lease takes one of the capacity")
	}
	if !c.Require(len(l.Costs) <= MaxCosts, "costs", "must have at most %d elements", MaxCosts) {
		return
	}
	first := map[string]int{}
	for i := range l.Costs {
		path := fmt.Sprintf("costs[%d]", i)
		checkPattern(c, path+".route", l.Costs[i].Route)
		c.Amount(path+".cost", l.Costs[i].Cost, 1)
		if j, twice := first[l.Costs[i].Route]; twice {
			c.Require(false, path+".route", "is a duplicate of costs[%d].route", j)
		} else {
			first[l.Costs[i].Route] = i
		}
	}
}

func (l *Limit) checkTimezone(c *check.Checker) {
	if !c.Has("timezone", l.Timezone != "") {
		return
	}
	if !c.Require(l.Kind == kindFixedWindow, "timezone", "must be absent: only limits of kind fixed_window follow a calendar") {
		return
	}
	if l.Timezone == ZoneOfTenant {
		c.Require(!l.Shared(), "timezone", "must not be tenant if per has neither tenant nor subject: all tenants share the bucket")
		return
	}
	c.Require(body.IsZone(l.Timezone), "timezone", body.MustBeZone+`, or "tenant"`)
}

// checkPattern checks a route with wildcards.
func checkPattern(c *check.Checker, field, text string) {
	if _, err := route.Parse(text); err != nil {
		c.Require(false, field, "%v", err)
	}
}

// normalize sets defaults, so that limits with the same meaning are equal.
func (l *Limit) normalize() {
	l.CreatedAt, l.UpdatedAt = time.Time{}, time.Time{}
	if l.Burst == 0 {
		count, _, _ := strings.Cut(l.Rate, "/")
		l.Burst, _ = strconv.ParseInt(count, 10, 64) // rateForm allows 1 to 16 digits
	}
	l.Cost = cmp.Or(l.Cost, 1)
	if len(l.Costs) == 0 {
		l.Costs = nil
	}
	l.CostBy = cmp.Or(l.CostBy, costByRequest)
	if l.Timezone == "" && l.Kind == kindFixedWindow {
		l.Timezone = defaultZone
	}
	l.Mode = cmp.Or(l.Mode, modeEnforce)
	l.OnBackendError = cmp.Or(l.OnBackendError, localShare)
	l.RegionShare = cmp.Or(l.RegionShare, wholeRegion)
	l.normalizeRequest()
}

// same reports whether storing l instead of o changes nothing. l and o must be normalized.
func (l Limit) same(o Limit) bool {
	l.CreatedAt, l.UpdatedAt = o.CreatedAt, o.UpdatedAt
	return reflect.DeepEqual(l, o)
}
