package console

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/client"
)

const (
	// refusalsHere, limitsHere, gaugesHere and capsHere are the maximum numbers of refusals, limits, gauges and caps
	// on a tenant's page. Each limit, gauge and cap needs a call of the API.
	refusalsHere = 5
	limitsHere   = 20
	gaugesHere   = 20
	capsHere     = 10
)

// granted is the data about a tenant's features, gauges and limits, and about the caps of the tenant's subjects.
type granted struct {
	features part[*client.TenantFeatures]
	gauges   []gauged
	limits   []limited
	more     int // the number of limits that the page does not show
	cap      *int64
	caps     map[string]part[*client.Balance] // by subject
}

// gauged is a meter of kind gauge, for example seats. It has the tenant's value and limit, or the error of the API
// call.
type gauged struct {
	meter string
	part[*client.Gauge]
}

// limited is a limit that may apply to the tenant, as texts for the page.
type limited struct {
	rule, kind, mode, applies, per string
	part[*client.LimitState]       // the bucket's state; empty if the tenant has several buckets
}

// readGranted reads the data for v.granted from the API.
func (v *tenantView) readGranted(c *call) {
	id := v.Tenant.Tenant
	v.granted.features = take(c.GetFeatures(c.ctx, id))
	for _, meter := range v.gaugeMeters {
		if len(v.granted.gauges) == gaugesHere {
			break
		}
		g := take(c.GetGauge(c.ctx, id, meter, client.GetGaugeQuery{}))
		if g.err != nil && (g.err.status == http.StatusNotFound || g.err.status == http.StatusForbidden) {
			continue // the plan does not have this gauge
		}
		v.granted.gauges = append(v.granted.gauges, gauged{meter, g})
	}
	plan, err := c.GetPlan(c.ctx, v.Plan)
	if err != nil {
		plan = &client.Plan{} // without a plan, the page shows no limits and caps
	}
	v.readLimits(c, plan)
	if i := slices.IndexFunc(plan.Allowances, func(a client.Allowance) bool { return a.Meter == v.meter }); i >= 0 {
		v.granted.cap = plan.Allowances[i].PerSubject
	}
}

// readLimits reads the limits that may apply to the tenant. It reads the state of a limit only if the tenant has
// exactly one bucket of it.
func (v *tenantView) readLimits(c *call, plan *client.Plan) {
	var all []limited
	add := func(rule string, kind client.LimitKind, mode client.LimitMode, match *client.LimitMatch, per []client.LimitPer) {
		own := slices.Equal(per, []client.LimitPer{client.LimitPerTenant})
		all = append(all, limited{rule: rule, kind: words(kind), mode: string(cmp.Or(mode, client.LimitModeEnforce)), applies: appliesTo(match), per: joined(per)})
		if own && len(all) <= limitsHere {
			all[len(all)-1].part = take(c.GetLimitState(c.ctx, rule, client.GetLimitStateQuery{Tenant: v.Tenant.Tenant}))
		}
	}
	own := map[string]bool{}
	for i := range plan.Limits {
		l := &plan.Limits[i]
		own[l.Rule] = true
		add(l.Rule, l.Kind, l.Mode, &l.Match, l.Per)
	}
	list, err := c.ListLimits(c.ctx, client.ListLimitsQuery{Limit: perCatalogue})
	if err != nil {
		v.granted.limits = append(all, limited{rule: "others", part: part[*client.LimitState]{err: explain(err)}})
		return
	}
	for i := range list.Items {
		l := &list.Items[i]
		if !own[l.Rule] && (l.Match.Tenant == "" || l.Match.Tenant == v.Tenant.Tenant) && (l.Match.Plan == "" || l.Match.Plan == v.Plan) {
			add(l.Rule, l.Kind, l.Mode, &l.Match, l.Per)
		}
	}
	v.granted.limits, v.granted.more = all[:min(len(all), limitsHere)], max(0, len(all)-limitsHere)
}

// readCaps reads the balances of the subjects with the most use. Each balance shows the units that remain under the
// subject's cap.
func (v *tenantView) readCaps(c *call) {
	if v.granted.cap == nil {
		return
	}
	v.granted.caps = map[string]part[*client.Balance]{}
	for _, u := range v.subjects() {
		if who := u.Group["subject"]; who != "" && len(v.granted.caps) < capsHere {
			v.granted.caps[who] = take(c.GetBalance(c.ctx, v.Tenant.Tenant, v.meter, client.GetBalanceQuery{Subject: who}))
		}
	}
}

// featureNames returns the names of the tenant's features in alphabetical order.
func (g *granted) featureNames() []string {
	if g.features.value == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(g.features.value.Features))
}

// featureText returns a feature's value as text.
func (g *granted) featureText(name string) string {
	switch value := g.features.value.Features[name].(type) {
	case bool:
		if value {
			return "yes"
		}
		return "no"
	case float64:
		return formatFloat(value)
	default:
		return fmt.Sprint(value)
	}
}

// overridden reports whether the tenant overrides a feature of its plan.
func (g *granted) overridden(name string) bool {
	return slices.Contains(g.features.value.Overridden, name)
}

// level returns the used share of a bucket in percent.
func level(s *client.LimitState) int {
	if s.Limit <= 0 {
		return 0
	}
	return int(min(max(0, (s.Limit-s.Remaining)*100/s.Limit), 100))
}

// back returns a text that says when a bucket will be full of tokens again.
func back(s *client.LimitState) string {
	if s.ResetAfterMs <= 0 {
		return ""
	}
	wait, step := time.Duration(s.ResetAfterMs)*time.Millisecond, 100*time.Millisecond
	if wait >= 10*time.Second {
		step = time.Second
	}
	return "full again in " + wait.Round(step).String()
}
