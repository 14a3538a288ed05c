package console

import (
	"net/http"
	"strings"

	"github.com/quotasvc/quotasvc/client"
)

// perCatalogue bounds what each part of the catalogue's page shows.
const perCatalogue = 500

// catalogueView is the catalogue.
type catalogueView struct {
	meters part[*client.MeterList]
	plans  part[*client.PlanList]
	limits part[*client.LimitList]
	units  map[string]string
}

// showCatalogue shows meters, plans and limits.
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
	return c.render(http.StatusOK, cataloguePage(c, v))
}

// extras says what an allowance has besides its amount.
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

// appliesTo says what a limit counts, and for whom.
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

// perText names what has a bucket of its own.
func perText(per []client.LimitPer) string {
	list := make([]string, len(per))
	for i, p := range per {
		list[i] = string(p)
	}
	return strings.Join(list, ", ")
}
