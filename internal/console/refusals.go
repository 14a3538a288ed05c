package console

import (
	"net/http"
	"time"

	"github.com/quotasvc/quotasvc/client"
)

// refusalsView is what a tenant was refused in a time.
type refusalsView struct {
	*tenantView

	from, to string // as they were entered
	list     *client.DenialList
}

// showRefusals shows why a tenant was refused.
func showRefusals(c *call) error {
	t, err := c.readTenant()
	if err != nil {
		return err
	}
	v := &refusalsView{tenantView: t, from: c.r.URL.Query().Get("from"), to: c.r.URL.Query().Get("to")}
	q := client.ListDenialsQuery{Limit: 100}
	if q.From, err = dayIn("from", v.from, t.zone); err != nil {
		return err
	}
	if q.To, err = dayIn("to", v.to, t.zone); err != nil {
		return err
	}
	if v.list, err = c.ListDenials(c.ctx, t.Tenant.Tenant, q); err != nil {
		return err
	}
	return c.render(http.StatusOK, refusalsPage(c, v))
}

// why says in words why a request was refused.
func (v *refusalsView) why(d *client.Denial) string {
	numbers := ""
	if d.Required > 0 {
		numbers = " It needed " + num(d.Required) + " " + v.unit(d.Meter) + ", and " + num(d.Available) + " were available."
	}
	switch d.Code {
	case client.ProblemCodeCreditsExhausted:
		return "There were not enough units of " + d.Meter + "; only a grant brings more." + numbers
	case client.ProblemCodeQuotaExceeded:
		return "There were not enough units of " + d.Meter + " then; waiting helps." + numbers
	case client.ProblemCodeRateLimited:
		return "The rate limit " + d.Rule + " was full; its units come back by themselves."
	case client.ProblemCodeTenantSuspended:
		return "The tenant was suspended."
	case client.ProblemCodeMeterNotInPlan:
		return "The tenant's plan does not have " + d.Meter + "."
	case client.ProblemCodeForbidden:
		return "A block forbade it."
	case client.ProblemCodeCostExceedsCapacity:
		return "It cost more than the rate limit " + d.Rule + " ever holds." + numbers
	default:
		return "It was refused with " + string(d.Code) + "." + numbers
	}
}

// clock writes the time of day of a refusal.
func (v *refusalsView) clock(t time.Time) string {
	return t.In(v.zone).Format("2006-01-02 15:04:05")
}
