package console

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/client"
)

// shadowsTime bounds the time in which one page reads the reports of the shadow rules. The report of one rule covers
// all tenants.
const shadowsTime = 8 * time.Second

// shadowTopHere bounds the tenants that are named for each interval.
const shadowTopHere = 5

// shadowView is the data of the page with the requests that shadow rules would have denied.
type shadowView struct {
	pairs  []shadowPair
	left   int // shadow rules that were not read
	limits part[*client.LimitList]
}

// showShadows shows the requests that shadow rules would have denied, with the requests that live rules denied. The
// catalogue's page requests it after that page was loaded.
func showShadows(c *call) error {
	v := &shadowView{limits: take(c.ListLimits(c.ctx, client.ListLimitsQuery{Limit: perCatalogue}))}
	if v.limits.value != nil {
		v.pairs = shadowPairs(v.limits.value.Items)
		v.left = max(0, len(v.pairs)-shadowsAsked)
		v.pairs = v.pairs[:len(v.pairs)-v.left]
	}
	ctx, cancel := context.WithTimeout(c.ctx, shadowsTime)
	defer cancel()
	for i := range v.pairs {
		v.pairs[i].counts = take(c.GetLimitShadow(ctx, v.pairs[i].shadow.Rule))
	}
	return c.render(http.StatusOK, shadowsPage(c, v))
}

// spanText returns the name of an interval.
func spanText(span string) string { return "last " + span }

// shadowDenies returns a text with the number of requests that a rule would have denied, and the number of their
// tenants.
func shadowDenies(s *client.LimitShadowSpan) string {
	if s.WouldDeny == 0 {
		return "none"
	}
	return count(int(s.WouldDeny), "request", "requests") + " of " + count(int(s.Tenants), "tenant", "tenants")
}

// shadowLimits returns, for each live rule, its denials of requests that the shadow rule also decided. It includes
// live rules without a denial.
func (p *shadowPair) shadowLimits(s *client.LimitShadowSpan) []client.LimitShadowLimit {
	list := slices.Clone(s.Limits)
	for _, l := range p.live {
		if !slices.ContainsFunc(list, func(of client.LimitShadowLimit) bool { return of.Rule == l.Rule }) {
			list = append(list, client.LimitShadowLimit{Rule: l.Rule})
		}
	}
	return list
}

// liveText describes the requests that a live rule denied.
func liveText(l *client.LimitShadowLimit) string {
	if l.Denied == 0 {
		return "none"
	}
	return num(l.Denied) + ": " + num(l.WouldDeny) + " it would deny as well, " + num(l.WouldPass) + " it would let pass"
}
