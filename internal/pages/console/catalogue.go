package console

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/quotasvc/quotasvc/client"
)

// perCatalogue is the maximum number of meters, of plans and of limits on the catalogue's page.
const perCatalogue = 500

// plansBeside is the maximum number of plans that the page shows side by side. If there are more plans, it shows them
// as a list.
const plansBeside = 8

// shadowsAsked is the maximum number of limits in shadow mode for which one page reads reports from the API.
const shadowsAsked = 10

// catalogueView is the data of the catalogue's page.
type catalogueView struct {
	meters part[*client.MeterList]
	plans  part[*client.PlanList]
	limits part[*client.LimitList]
	units  map[string]string
	tops   map[string]part[*client.LimitTop] // by the name of a limit in shadow mode
}

// showCatalogue shows the page with the meters, plans and limits.
func showCatalogue(c *call) error {
	v := &catalogueView{
		meters: take(c.ListMeters(c.ctx, client.ListMetersQuery{Limit: perCatalogue})), plans: take(c.ListPlans(c.ctx, client.ListPlansQuery{Limit: perCatalogue})),
		limits: take(c.ListLimits(c.ctx, client.ListLimitsQuery{Limit: perCatalogue})), units: map[string]string{},
	}
	if v.meters.value != nil {
		for _, m := range v.meters.value.Items {
			v.units[m.Meter] = m.Unit
		}
	}
	v.readTops(c)
	return c.render(http.StatusOK, cataloguePage(c, v))
}

// readTops reads the fullest buckets of the first limits in shadow mode. If the key is bound to a tenant,
// readTops reads nothing, because such a key may not read them.
func (v *catalogueView) readTops(c *call) {
	v.tops = map[string]part[*client.LimitTop]{}
	if v.limits.value == nil || c.key.Tenant != "" {
		return
	}
	for i := range v.limits.value.Items {
		l := &v.limits.value.Items[i]
		if l.Mode == client.LimitModeShadow && l.Kind != client.LimitKindConcurrency && len(v.tops) < shadowsAsked {
			v.tops[l.Rule] = take(c.GetLimitTop(c.ctx, l.Rule, client.GetLimitTopQuery{Limit: 3}))
		}
	}
}

// planMeters returns the ids of the meters for which a plan has an allowance, in alphabetical order.
func (v *catalogueView) planMeters() []string {
	meters := map[string]bool{}
	for i := range v.plans.value.Items {
		for j := range v.plans.value.Items[i].Allowances {
			meters[v.plans.value.Items[i].Allowances[j].Meter] = true
		}
	}
	return slices.Sorted(maps.Keys(meters))
}

// allowanceOf returns a plan's allowance of a meter. It returns nil if the plan has no such allowance.
func allowanceOf(p *client.Plan, meter string) *client.Allowance {
	for i := range p.Allowances {
		if p.Allowances[i].Meter == meter {
			return &p.Allowances[i]
		}
	}
	return nil
}

// everyText returns a text that says how often an allowance is granted, for example "a month" or "once".
func everyText(a *client.Allowance) string {
	switch a.Every {
	case "":
		return "" // an allowance of a gauge is not granted per period
	case client.AllowanceEveryOnce:
		return "once"
	case client.AllowanceEveryHour:
		return "an hour"
	default:
		return "a " + string(a.Every)
	}
}

// featuresText returns a text with the features of a plan.
func featuresText(p *client.Plan) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(p.Features)) {
		value, _ := json.Marshal(p.Features[name]) // true, false or a number
		list = append(list, name+": "+string(value))
	}
	return cmp.Or(strings.Join(list, ", "), "none")
}

// planLimits returns one text for each limit of a plan, with the name and the rate of the limit.
func planLimits(p *client.Plan) []string {
	list := make([]string, len(p.Limits))
	for i := range p.Limits {
		list[i] = p.Limits[i].Rule + " " + p.Limits[i].Rate
	}
	return list
}

// shadowPair is a limit in shadow mode (shadow), with the enforced limits that decide the same requests (live).
type shadowPair struct {
	shadow *client.Limit
	live   []*client.Limit
	top    part[*client.LimitTop]
	counts part[*client.LimitShadow]
}

// shadowPairs returns a pair for each limit in shadow mode, with the limit's fullest buckets.
func (v *catalogueView) shadowPairs() []shadowPair {
	pairs := shadowPairs(v.limits.value.Items)
	for i := range pairs {
		pairs[i].top = v.tops[pairs[i].shadow.Rule]
	}
	return pairs
}

// shadowPairs returns a pair for each limit in shadow mode among limits.
func shadowPairs(limits []client.Limit) []shadowPair {
	var pairs []shadowPair
	for i := range limits {
		shadow := &limits[i]
		if shadow.Mode != client.LimitModeShadow {
			continue
		}
		p := shadowPair{shadow: shadow}
		for j := range limits {
			if live := &limits[j]; live.Mode == client.LimitModeEnforce && live.Match == shadow.Match && slices.Equal(live.Per, shadow.Per) {
				p.live = append(p.live, live)
			}
		}
		pairs = append(pairs, p)
	}
	return pairs
}

// rateText returns a text that says how many requests a limit lets pass.
func rateText(l *client.Limit) string {
	if l.Rate == "" {
		return num(l.Burst) + " at once"
	}
	return l.Rate + ", burst " + num(l.Burst)
}

// fullest returns a text about the fullest buckets of a limit. If a bucket is full, the text says that the limit would
// deny requests.
func fullest(top *client.LimitTop) string {
	if top == nil {
		return ""
	}
	var list []string
	for i := range top.Items {
		b := &top.Items[i]
		who := cmp.Or(b.Tenant, "all tenants")
		if b.Subject != "" {
			who += " / " + b.Subject
		}
		if b.IP != "" {
			who += " " + b.IP
		}
		text := who + ": " + num(b.Used) + " of " + num(b.Limit)
		if b.Used >= b.Limit {
			text += ", it would deny"
		}
		list = append(list, text)
	}
	return cmp.Or(strings.Join(list, "; "), "all buckets are empty")
}

// extras returns a text with the options of an allowance, for example its rollover and its overage.
func extras(a *client.Allowance) string {
	var list []string
	if a.Rollover != nil {
		list = append(list, "up to "+num(a.Rollover.Max)+" roll over")
	}
	if a.Overage != nil && a.Overage.Policy == client.OveragePolicyAllow {
		text := "overage without a cap"
		if a.Overage.Cap != nil {
			text = "overage up to " + num(*a.Overage.Cap)
		}
		list = append(list, text)
	}
	if a.Overflow != nil {
		list = append(list, "then "+a.Overflow.Meter+" pays")
	}
	if a.PerSubject != nil {
		list = append(list, "at most "+num(*a.PerSubject)+" per subject")
	}
	if a.ExpiresInDays != nil {
		list = append(list, "ends after "+count(int(*a.ExpiresInDays), "day", "days"))
	}
	return strings.Join(list, "; ")
}

// appliesTo returns a text that says which requests a limit counts.
func appliesTo(m *client.LimitMatch) string {
	var list []string
	for _, p := range [][2]string{{"route ", m.Route}, {"method ", m.Method}, {"meter ", m.Meter}, {"plan ", m.Plan}, {"tenant ", m.Tenant}} {
		if p[1] != "" {
			list = append(list, p[0]+p[1])
		}
	}
	if len(list) == 0 {
		return "every request"
	}
	return strings.Join(list, ", ")
}
