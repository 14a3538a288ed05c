package console

import (
	"net/http"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/client"
)

// refusalsView is the data of the page with a tenant's refusals in a time range.
type refusalsView struct {
	*tenantView

	day, at  string // as entered; if the person entered only a time, day is the last day with that time
	from, to string // as the person entered them
	list     *client.DenialList
}

// refusalsShown is the maximum number of refusals that a page shows.
const refusalsShown = 100

// showRefusals shows the refusals of a tenant with their reasons.
func showRefusals(c *call, t *tenantView) error {
	q := c.r.URL.Query()
	v := &refusalsView{tenantView: t, day: q.Get("day"), at: strings.TrimSpace(q.Get("at")), from: q.Get("from"), to: q.Get("to")}
	ask := client.ListDenialsQuery{Limit: refusalsShown}
	var err error
	if v.day != "" || v.at != "" {
		v.from, v.to = "", ""
		ask.From, ask.To, err = v.moment(c)
	} else if ask.From, err = dayIn("from", v.from, t.zone); err == nil {
		ask.To, err = dayIn("to", v.to, t.zone)
	}
	if err != nil {
		return err
	}
	if v.list, err = c.ListDenials(c.ctx, t.Tenant.Tenant, ask); err != nil {
		return err
	}
	return c.render(http.StatusOK, refusalsPage(c, v))
}

// moment returns the start and the end of the minute or the day that a person has entered. If the person entered only
// a time, it is the last minute with that time of day.
func (v *refusalsView) moment(c *call) (from, to time.Time, err error) {
	if v.at == "" {
		if from, err = dayIn("day", v.day, v.zone); err != nil {
			return from, to, err
		}
		year, month, day := from.Date()
		return time.Date(year, month, day, 0, 0, 0, 0, v.zone), time.Date(year, month, day+1, 0, 0, 0, 0, v.zone), nil
	}
	clock, err := time.Parse("15:04", v.at)
	if err != nil {
		return from, to, &failure{
			status: http.StatusBadRequest, title: "This is not a time of day", detail: "Enter hours and minutes such as 14:05, in " + v.Timezone + ".",
			fields: []client.FieldError{{Field: "at", Message: "is not a time of day: " + clip(v.at)}},
		}
	}
	if v.day != "" {
		if from, err = dayIn("day", v.day, v.zone); err != nil {
			return from, to, err
		}
	} else {
		newest, err := c.ListDenials(c.ctx, v.Tenant.Tenant, client.ListDenialsQuery{Limit: 1}) // the list ends at the present minute of the ledger's clock
		if err != nil {
			return from, to, err
		}
		if from = newest.To.In(v.zone); !minuteOf(from, clock).Before(newest.To) {
			from = from.AddDate(0, 0, -1)
		}
	}
	from = minuteOf(from, clock)
	v.day, v.at = from.Format(time.DateOnly), from.Format("15:04")
	return from, from.Add(time.Minute), nil
}

// minuteOf returns an instant with the date and the zone of `day`, and with the hour and the minute of `clock`.
func minuteOf(day, clock time.Time) time.Time {
	year, month, date := day.Date()
	return time.Date(year, month, date, clock.Hour(), clock.Minute(), 0, 0, day.Location())
}

// link returns the path of the page with the refusals between two instants.
func (v *refusalsView) link(from, to time.Time) string {
	const entered = "2006-01-02T15:04"
	return with(path("tenants", v.Tenant.Tenant, "refusals"), "from", from.In(v.zone).Format(entered), "to", to.In(v.zone).Format(entered))
}

// refusalsAt returns the path of the page with a tenant's refusals in a minute.
func refusalsAt(tenant string, minute time.Time, zone *time.Location) string {
	local := minute.In(zone)
	return with(path("tenants", tenant, "refusals"), "day", local.Format(time.DateOnly), "at", local.Format("15:04"))
}

// why returns a sentence with the reason of a refusal.
func (v *tenantView) why(d *client.Denial) string {
	numbers := ""
	if d.Available != nil {
		numbers = ": " + num(d.Required) + " " + v.unit(d.Meter) + " needed, " + num(*d.Available) + " left"
	}
	switch d.Code {
	case client.ProblemCodeCreditsExhausted:
		return "Not enough " + d.Meter + numbers + ". Only a top-up helps."
	case client.ProblemCodeQuotaExceeded:
		return "Not enough " + d.Meter + numbers + ". Waiting helps."
	case client.ProblemCodeRateLimited:
		return "Rate limit " + d.Rule + " was reached. It refills by itself."
	case client.ProblemCodeTenantSuspended:
		return "The tenant was suspended."
	case client.ProblemCodeMeterNotInPlan:
		return "The tenant's plan does not have " + d.Meter + "."
	case client.ProblemCodeForbidden:
		return "A block refused it."
	case client.ProblemCodeCostExceedsCapacity:
		return "It cost more than the rate limit " + d.Rule + " can hold" + numbers + "."
	default:
		return "Refused with " + string(d.Code) + numbers + "."
	}
}
