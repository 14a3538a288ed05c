package console

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/client"
)

// shadowsTime bounds the time in which one page reads what shadow rules would have denied. Each is a report about all
// tenants.
const shadowsTime = 8 * time.Second

// shadowTopHere bounds the tenants that are named for each span.
const shadowTopHere = 5

// shadowView is what the shadow rules would have denied.
type shadowView struct {
	pairs  []shadowPair
	left   int // shadow rules that were not read
	limits part[*client.LimitList]
}

// showShadows shows what shadow rules would have denied, beside what live ones did. The catalogue's page requests it
// after it is loaded.
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

// spanText names a span.
func spanText(span string) string { return "last " + span }

// shadowDenies returns the text about how many requests a rule would have denied, and of how many tenants.
func shadowDenies(s *client.LimitShadowSpan) string {
	if s.WouldDeny == 0 {
		return "none"
	}
	return count(int(s.WouldDeny), "request", "requests") + " of " + count(int(s.Tenants), "tenant", "tenants")
}

// shadowLimits returns what the live rules denied of the requests that the shadow rule also decided, including rules
// without a denial.
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
