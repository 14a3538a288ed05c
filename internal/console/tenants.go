package console

import (
	"net/http"
	"strings"

	"github.com/quotasvc/quotasvc/client"
)

// tenantsPerPage is what a screen or two show.
const tenantsPerPage = 50

// tenantsView is a page of tenants.
type tenantsView struct {
	prefix, cursor string
	tenants        []client.Tenant
	next           string
}

// showTenants lists tenants in order of their ids.
func showTenants(c *call) error {
	q := c.r.URL.Query()
	v := tenantsView{prefix: strings.TrimSpace(q.Get("q")), cursor: q.Get("cursor")}
	list, err := c.ListTenants(c.ctx, client.ListTenantsQuery{Limit: tenantsPerPage, Cursor: v.cursor, Prefix: v.prefix})
	if err != nil {
		return err
	}
	v.tenants = list.Items
	if list.NextCursor != nil {
		v.next = *list.NextCursor
	}
	if c.partial() {
		return c.render(http.StatusOK, tenantRows(v))
	}
	return c.render(http.StatusOK, tenantsPage(c, v))
}

