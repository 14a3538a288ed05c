package portal

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

const (
	// limitsMax is the maximum number of limits on the page. The state of each limit may need a request to Redis.
	limitsMax = 20

	// limitsRead is the maximum number of general limits that a page reads. Only some of them apply to the tenant.
	limitsRead = 1000
)

// limitRow is a limit that applies to the tenant, as the page shows it.
type limitRow struct {
	rule  string
	match client.LimitMatch
	per   []client.LimitPer
	rate  string
	burst int64
	state *client.LimitState // nil: there are several buckets, or the state cannot be read
}

// readLimits reads the limits that apply to the tenant: the limits of its plan, and the general limits that the plan
// does not replace.
func (o *overview) readLimits(v *visit) {
	ctx := v.r.Context()
	plan, err := v.GetPlan(ctx, o.Plan)
	if err != nil {
		o.failed.limits = true
		return
	}
	own := map[string]bool{}
	for _, l := range plan.Limits {
		own[l.Rule] = true
		if l.Mode != client.LimitModeShadow {
			o.addLimit(limitRow{rule: l.Rule, match: l.Match, per: l.Per, rate: l.Rate, burst: l.Burst})
		}
	}
	looked := 0
	for l, err := range v.AllLimits(ctx, client.ListLimitsQuery{Limit: 500}) {
		if err != nil {
			o.failed.limits = true
			return
		}
		if looked++; looked > limitsRead || len(o.limits) >= limitsMax {
			break
		}
		if l.Mode != client.LimitModeShadow && !own[l.Rule] {
			o.addLimit(limitRow{rule: l.Rule, match: l.Match, per: l.Per, rate: l.Rate, burst: l.Burst})
		}
	}
	for i := range o.limits {
		l := &o.limits[i]
		if len(l.per) != 1 || l.per[0] != client.LimitPerTenant {
			continue
		}
		if state, err := v.GetLimitState(ctx, l.rule, client.GetLimitStateQuery{Tenant: v.link.Tenant}); err == nil {
			l.state = state
		}
	}
}

// addLimit adds a limit to the page if it applies to the tenant. It omits a limit that all tenants share, because the
// state of that limit does not depend on this tenant.
func (o *overview) addLimit(l limitRow) {
	m := l.match
	elsewhere := m.Tenant != "" && m.Tenant != o.Tenant.Tenant || m.Plan != "" && m.Plan != o.Plan
	if elsewhere || len(o.limits) >= limitsMax || slices.Contains(l.per, client.LimitPerGlobal) {
		return
	}
	o.limits = append(o.limits, l)
}

// whatText returns a text that says to which requests a limit applies.
func (v *visit) whatText(l *limitRow) string {
	text := v.say("limits.any")
	switch {
	case l.match.Route != "":
		text = v.say("limits.route", "route", strings.TrimSpace(l.match.Method+" "+l.match.Route))
	case l.match.Meter != "":
		text = v.say("limits.meter", "meter", l.match.Meter)
	}
	for _, per := range l.per {
		if per == client.LimitPerSubject || per == client.LimitPerRoute || per == client.LimitPerIP {
			text += ", " + v.say("limits.each."+string(per))
		}
	}
	return text
}

// rateText returns a text that says how much a limit allows.
func (v *visit) rateText(l *limitRow) string {
	rate, err := rule.ParseRate(l.rate)
	if err != nil { // a limit of kind concurrency has no rate
		return v.say("limits.together", "n", v.lang.number(l.burst))
	}
	return v.say("limits.rates", "n", v.lang.number(rate.Count), "time", v.timeText(rate))
}

// timeText returns the period of a rate as text, for example the period of 10/day.
func (v *visit) timeText(rate rule.Rate) string {
	if rate.Month {
		return v.say("time.month")
	}
	for _, u := range []struct {
		key    string
		length time.Duration
	}{{"time.week", 7 * 24 * time.Hour}, {"time.day", 24 * time.Hour}, {"time.hour", time.Hour}, {"time.minute", time.Minute}, {"time.second", time.Second}} {
		if rate.Period >= u.length && rate.Period%u.length == 0 {
			return v.lang.count(u.key, int64(rate.Period/u.length))
		}
	}
	return strconv.FormatInt(rate.Period.Milliseconds(), 10) + " ms"
}

// nowText returns a text that says how many tokens of a limit remain.
func (v *visit) nowText(l *limitRow) string {
	if l.state == nil {
		return v.say("limits.own")
	}
	return v.say("limits.of", "left", v.lang.number(max(0, l.state.Remaining)), "all", v.lang.number(l.state.Limit))
}
