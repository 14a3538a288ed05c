package console

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/client"
)

// shadowsTime is the maximum time in which one page reads the reports of the limits in shadow mode. A report covers all
// tenants, so it may be slow.
const shadowsTime = 8 * time.Second

// shadowTopHere is the maximum number of tenants that are named for one time span.
const shadowTopHere = 5

// shadowView is the data of the page with the requests that limits in shadow mode would have denied.
type shadowView struct {
	pairs  []shadowPair
	left   int // number of limits in shadow mode whose reports were not read
	limits part[*client.LimitList]
}

// showShadows shows the requests that limits in shadow mode would have denied, beside the requests that enforced
// limits denied. The browser requests this section after the catalogue's page was loaded.
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

// shadowDenies returns a text with the number of requests that a limit in shadow mode would have denied, and the number
// of tenants that sent these requests.
func shadowDenies(s *client.LimitShadowSpan) string {
	if s.WouldDeny == 0 {
		return "none"
	}
	return count(int(s.WouldDeny), "request", "requests") + " of " + count(int(s.Tenants), "tenant", "tenants")
}

// shadowLimits returns the denials of each enforced limit that decides the same requests as the limit in shadow mode.
// It includes limits without a denial.
func (p *shadowPair) shadowLimits(s *client.LimitShadowSpan) []client.LimitShadowLimit {
	list := slices.Clone(s.Limits)
	for _, l := range p.live {
		if !slices.ContainsFunc(list, func(of client.LimitShadowLimit) bool { return of.Rule == l.Rule }) {
			list = append(list, client.LimitShadowLimit{Rule: l.Rule})
		}
	}
	return list
}

// liveText returns a text about the requests that an enforced limit denied: how many of them the limit in shadow mode
// would deny, and how many it would let pass.
func liveText(l *client.LimitShadowLimit) string {
	if l.Denied == 0 {
		return "none"
	}
	return num(l.Denied) + ": " + num(l.WouldDeny) + " it would deny as well, " + num(l.WouldPass) + " it would let pass"
}
