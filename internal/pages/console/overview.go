package console

import (
	"bytes"
	"context"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/quotasvc/quotasvc/client"
)

const (
	// nearPercent is the minimum used share, in percent, of the tenants on the overview. It equals the first threshold
	// that an allowance has by default.
	nearPercent = 80

	// nearHere is the maximum number of tenants on the overview. The list of tenants has all of them.
	nearHere = 10

	// barsHeight is the height of the chart of refusals, in the units of the SVG picture.
	barsHeight = 56
)

// overview is the data of the console's first page.
type overview struct {
	status part[*client.ServiceStatus]
}

// showStart shows the first page. If the key is bound to a tenant, it redirects to the page of that tenant.
func showStart(c *call) error {
	if c.key.Tenant != "" {
		return c.redirect(path("tenants", c.key.Tenant))
	}
	v := overview{status: take(c.GetStatus(c.ctx))}
	if c.partial() {
		return c.render(http.StatusOK, now(v))
	}
	return c.render(http.StatusOK, overviewPage(c, v))
}

// streamStart sends the current state of the overview every few seconds, until the session ends.
func streamStart(c *call) error {
	if c.key.Tenant != "" {
		return &failure{status: http.StatusForbidden, title: "This key may not do that", detail: "The overview is about all tenants."}
	}
	first := true
	c.console.streams.send(c.w, c.r, c.session.ID, func(ctx context.Context) (event, bool) {
		if !first {
			c.session = nil
			if err := c.enter(); err == nil && c.session == nil {
				return event{name: "ended"}, true
			} // on an error of PostgreSQL the stream goes on, because the API still knows the valid keys
		}
		first = false
		var out bytes.Buffer
		if err := now(overview{status: take(c.GetStatus(ctx))}).Render(ctx, &out); err != nil {
			return event{name: "ended"}, true
		}
		return event{"now", out.String()}, false
	})
	return nil
}

// showNear shows the tenants that have used at least nearPercent of their units. This report is slow, so the browser
// requests it after the overview was loaded.
func showNear(c *call) error {
	list := take(c.ListTenants(c.ctx, client.ListTenantsQuery{Near: nearPercent, Sort: "remaining", Limit: nearHere}))
	units, _ := c.readMeters()
	return c.render(http.StatusOK, near(units, list))
}

// rate returns the average number of requests per second as text. There were n requests from r.From to the given
// instant.
func rate(n int64, r *client.StatusRequests, at time.Time) string {
	seconds := max(at.Sub(r.From).Seconds(), 1)
	return strconv.FormatFloat(float64(n)/seconds, 'f', 1, 64)
}

// ofAll returns the number n as a percentage of the total, as text.
func ofAll(n, all int64) string {
	if all <= 0 {
		return "none"
	}
	return strconv.FormatFloat(float64(n)/float64(all)*100, 'f', 1, 64) + " %"
}

// bar is the bar of one minute in the chart of refusals.
type bar struct {
	x, y, height string
	text         string
}

// bars returns a bar for each minute with refusals. The minute with the most refusals has the highest bar.
func bars(r *client.StatusRefusals) []bar {
	whole := r.To.Sub(r.From).Minutes()
	var most int64
	for _, m := range r.Minutes {
		most = max(most, m.N)
	}
	if whole <= 0 || most <= 0 {
		return nil
	}
	var out []bar
	for _, m := range r.Minutes {
		height := math.Max(2, math.Round(float64(m.N)/float64(most)*barsHeight))
		out = append(out, bar{
			x: percent(m.Minute.Sub(r.From).Minutes() / whole * 100), y: formatFloat(barsHeight - height), height: formatFloat(height),
			text: m.Minute.UTC().Format("15:04") + " UTC: " + num(m.N),
		})
	}
	return out
}

// barsText describes the chart in words, for people who cannot see it.
func barsText(r *client.StatusRefusals) string {
	var worst client.RefusedMinute
	for _, m := range r.Minutes {
		if m.N > worst.N {
			worst = m
		}
	}
	if worst.N == 0 {
		return "No refusals in the last hour"
	}
	return num(r.Total) + " refusals in the last hour, most of them, " + num(worst.N) + ", at " + worst.Minute.UTC().Format("15:04") + " UTC"
}

// ago returns a text that says how long ago t was, for example "5 minutes ago".
func ago(t, now time.Time) string {
	d := now.Sub(t)
	switch {
	case d < time.Minute:
		return "less than a minute ago"
	case d < 2*time.Hour:
		return count(int(d.Minutes()), "minute ago", "minutes ago")
	case d < 48*time.Hour:
		return count(int(d.Hours()), "hour ago", "hours ago")
	default:
		return count(int(d.Hours()/24), "day ago", "days ago")
	}
}
