package console

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/quotasvc/quotasvc/client"
)

// tenantsPerPage is the number of tenants on a page of the list. They fill one or two screens.
const tenantsPerPage = 50

// tenantsView is the data of a page with a list of tenants.
type tenantsView struct {
	prefix, plan, status, near, meter, sort, cursor string

	query   client.ListTenantsQuery
	tenants []client.Tenant
	next    string
	units   map[string]string // units by meter, if balances are shown
	plans   []string          // the plans that the filter suggests
	meters  []string
	problem *failure
}

// withBalances reports whether the list shows one balance of each tenant.
func (v *tenantsView) withBalances() bool {
	return v.near != "" || v.meter != "" || v.sort == "remaining"
}

// filtered reports whether the list has a filter in addition to the prefix.
func (v *tenantsView) filtered() bool { return v.plan != "" || v.status != "" || v.withBalances() }

// link returns the path of this list with the same filters. The list starts at the cursor.
func (v *tenantsView) link(cursor string) string {
	return with(path("tenants"), "q", v.prefix, "plan", v.plan, "status", v.status, "near", v.near, "meter", v.meter, "sort", v.sort, "cursor", cursor)
}

// csv returns the path at which the list can be downloaded as a CSV file.
func (v *tenantsView) csv() string {
	return with(path("tenants.csv"), "q", v.prefix, "plan", v.plan, "status", v.status, "near", v.near, "meter", v.meter, "sort", v.sort)
}

// readTenants reads a page of the list of tenants, with the filters in the URL.
func (c *call) readTenants(limit int64) (*tenantsView, error) {
	given := c.r.URL.Query()
	get := func(name string) string { return strings.TrimSpace(given.Get(name)) }
	v := &tenantsView{prefix: get("q"), plan: get("plan"), status: get("status"), near: get("near"), meter: get("meter"), sort: get("sort"), cursor: get("cursor")}
	if v.sort == "tenant" {
		v.sort = ""
	}
	if v.prefix != "" { // a search by prefix covers all tenants, so the other filters are cleared
		v.plan, v.status, v.near, v.meter, v.sort = "", "", "", "", ""
	}
	v.query = client.ListTenantsQuery{Limit: limit, Cursor: v.cursor, Prefix: v.prefix, Plan: v.plan, Status: v.status, Meter: v.meter, Sort: v.sort}
	if v.near != "" {
		percent, err := strconv.ParseInt(v.near, 10, 64)
		if err != nil || percent < 1 || percent > 100 {
			return v, &failure{
				status: http.StatusBadRequest, title: "The share is not a percentage", detail: "Nothing was changed. Enter a whole number from 1 to 100.",
				fields: []client.FieldError{{Field: "near", Message: "is " + strconv.Quote(clip(v.near))}},
			}
		}
		v.query.Near = percent
	}
	if v.withBalances() {
		v.units, _ = c.readMeters()
	}
	return v, v.read(c)
}

// read reads the page of tenants at the cursor of v.query.
func (v *tenantsView) read(c *call) error {
	list, err := c.ListTenants(c.ctx, v.query)
	if err != nil {
		return err
	}
	v.tenants, v.next = list.Items, orEmpty(list.NextCursor)
	return nil
}

// showTenants shows a page of the list of tenants. The list can be filtered by a prefix of the ids, or by plan,
// status and used percentage.
func showTenants(c *call) error {
	v, err := c.readTenants(tenantsPerPage)
	status := http.StatusOK
	if err != nil {
		v.problem = explain(err)
		status = v.problem.status
	}
	if c.partial() {
		return c.render(status, tenantRows(v))
	}
	v.plans, v.meters = c.planNames(perCatalogue), c.meterNames()
	return c.render(status, tenantsPage(c, v))
}

// planNames returns the first plans of the catalogue. It returns no names if the catalogue cannot be read.
func (c *call) planNames(limit int64) (names []string) {
	if list, err := c.ListPlans(c.ctx, client.ListPlansQuery{Limit: limit}); err == nil {
		for i := range list.Items {
			names = append(names, list.Items[i].Plan)
		}
	}
	return names
}

// meterNames returns the meters of the catalogue. It returns no names if the catalogue cannot be read.
func (c *call) meterNames() (names []string) {
	if list, err := c.ListMeters(c.ctx, client.ListMetersQuery{Limit: perCatalogue}); err == nil {
		for i := range list.Items {
			names = append(names, list.Items[i].Meter)
		}
	}
	return names
}
