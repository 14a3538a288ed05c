package catalog

import (
	"fmt"
	"slices"

	"github.com/quotasvc/quotasvc/internal/catalog/check"
	"github.com/quotasvc/quotasvc/internal/kit/address"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/route"
)

// Values of the fields that say which requests are charged to a limit, and to which bucket.
const (
	// CountsAttempts means that every request is charged, even a request that is refused afterwards, a request with
	// an unknown tenant, or a replay.
	CountsAttempts  = "attempts"
	countsSuccesses = "successes"
	// RouteKeyPattern means one bucket for all routes that match Match.Route. RouteKeyPath means one bucket for each
	// route.
	RouteKeyPattern = "pattern"
	RouteKeyPath    = "path"
)

// Ban is a rule for a bucket. After the bucket has denied After requests within the time Within, it denies all
// requests for the time For. The times are written as 90s, 10m or 24h.
type Ban struct {
	After  int64  `json:"after"`
	Within string `json:"within"`
	For    string `json:"for"`
}

// checkRequest checks the fields that say which requests are charged to the limit, and to which bucket.
func (l *Limit) checkRequest(c *check.Checker) {
	if c.Has("counts", l.Counts != "") {
		c.OneOf("counts", l.Counts, CountsAttempts, countsSuccesses)
		c.Require(l.Kind != KindConcurrency, "counts", "must be absent: a lease is no attempt")
	}
	if c.Has("route_key", l.RouteKey != "") {
		c.OneOf("route_key", l.RouteKey, RouteKeyPattern, RouteKeyPath)
		c.Require(slices.Contains(l.Per, PerRoute), "route_key", "must be absent if per does not have route")
	}
	forms := route.FormNames()
	c.Require(len(l.Normalize) <= len(forms), "normalize", "must have at most %d elements", len(forms))
	for i, form := range l.Normalize[:min(len(l.Normalize), len(forms))] {
		field := fmt.Sprintf("normalize[%d]", i)
		c.OneOf(field, form, forms...)
		c.Require(!slices.Contains(l.Normalize[:i], form), field, "must appear once")
	}
	if c.Has("ban", l.Ban != Ban{}) {
		c.Require(l.Ban.After != 0, "ban.after", "is required, and must be at least 1")
	}
	if c.Has("ip_prefix", l.IPPrefix != address.Prefix{}) {
		c.Require(slices.Contains(l.Per, PerIP), "ip_prefix", "must be absent if per does not have ip")
		c.Within("ip_prefix", func(c *check.Checker) { checkPrefix(c, l.IPPrefix) })
	}
}

func checkPrefix(c *check.Checker, p address.Prefix) {
	if c.Has("v4", p.V4 != 0) {
		c.Require(p.V4 >= 1 && p.V4 <= address.MaxV4, "v4", "%s", bound.MustBeInteger(1, address.MaxV4))
	}
	if c.Has("v6", p.V6 != 0) {
		c.Require(p.V6 >= 1 && p.V6 <= address.MaxV6, "v6", "%s", bound.MustBeInteger(1, address.MaxV6))
	}
}

// normalizeRequest sets the defaults of the fields that checkRequest checks.
func (l *Limit) normalizeRequest() {
	if l.Kind == KindConcurrency {
		return
	}
	perRoute := slices.Contains(l.Per, PerRoute)
	if l.Counts == "" {
		l.Counts = countsSuccesses
		if slices.Contains(l.Per, PerIP) || perRoute && l.Shared() || l.OnBackendError == backendClosed {
			l.Counts = CountsAttempts
		}
	}
	if l.RouteKey == "" && perRoute {
		l.RouteKey = RouteKeyPattern
	}
	if (l.IPPrefix != address.Prefix{} || slices.Contains(l.Per, PerIP)) {
		l.IPPrefix = l.IPPrefix.WithDefaults()
	}
}
