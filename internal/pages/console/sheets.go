package console

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/client"
)

// list is a table of the tenant's page that can be downloaded as a CSV file.
type list struct {
	header []string
	// rows returns the rows of the table. It stops when there are more than csvRowsMax rows.
	rows func(*call, *tenantView) ([][]string, error)
}

// lists returns the tables that can be downloaded, keyed by their names in paths.
func lists() map[string]list {
	return map[string]list{
		"grants":   {[]string{"grant", "meter", "unit", "source", "amount", "remaining", "status", "effective_at", "expires_at", "reason"}, grantRows},
		"holds":    {[]string{"hold", "subject", "meter", "unit", "held", "status", "expires_at"}, holdRows},
		"periods":  {[]string{"start", "end", "local_start", "timezone", "meter", "unit", "allowance"}, periodRows},
		"refusals": {[]string{"at", "code", "meter", "rule", "subject", "route", "required", "available", "request_id"}, refusalRows},
		"subjects": {[]string{"subject", "from", "to", "meter", "unit", "used", "refunded", "operations", "overflow"}, subjectRows},
		"terms":    {[]string{"effective_at", "plan", "apply", "usage", "timezone", "reason"}, termRows},
	}
}

// csv returns the path at which a table can be downloaded.
func (v *tenantView) csv(name string) string {
	return with(path("tenants", v.Tenant.Tenant, "lists", name+".csv"), "meter", v.meter, "by", v.by)
}

// sendList sends a table of the tenant's page as a CSV file.
func sendList(c *call) error {
	name, isCSV := strings.CutSuffix(c.r.PathValue("list"), ".csv")
	found, ok := lists()[name]
	if !ok || !isCSV {
		return showNowhere(c)
	}
	v, err := c.readTenant()
	if err != nil {
		return err
	}
	v.readBalances(c)
	rows, err := found.rows(c, v) // read before the first byte is sent, so that an error can be a page
	if err != nil {
		return err
	}
	return c.sendRows(v.Tenant.Tenant+"-"+name, found.header, rows)
}

// sendRows sends rows as a CSV file. It sends at most csvRowsMax of them. If rows are missing, the last row says so.
func (c *call) sendRows(name string, header []string, rows [][]string) error {
	w := c.sheet(name + ".csv")
	_ = w.Write(header)
	for _, row := range rows[:min(len(rows), csvRowsMax)] {
		for i := range row {
			if _, err := strconv.ParseInt(row[i], 10, 64); err != nil { // a number with a minus sign is not a formula
				row[i] = cell(row[i])
			}
		}
		_ = w.Write(row)
	}
	if len(rows) > csvRowsMax {
		_ = w.Write([]string{"cut here: narrow the filters to get the rest"})
	}
	w.Flush()
	return nil
}

// instantCell returns an instant in RFC 3339 form, for a cell that programs read. It returns the empty string if
// there is no instant.
func instantCell(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return machine(*t)
}

func grantRows(c *call, v *tenantView) (rows [][]string, err error) {
	for g, err := range c.AllGrants(c.ctx, v.Tenant.Tenant, client.ListGrantsQuery{Meter: c.r.URL.Query().Get("meter"), Limit: 500}) {
		if err != nil {
			return nil, err
		}
		rows = append(rows, []string{
			g.GrantID, g.Meter, v.unit(g.Meter), string(g.Source), formatInt(g.Amount), formatInt(g.Remaining), string(g.Status), machine(g.EffectiveAt), instantCell(g.ExpiresAt), g.Reason,
		})
		if len(rows) > csvRowsMax {
			break
		}
	}
	return rows, nil
}

func holdRows(c *call, v *tenantView) (rows [][]string, err error) {
	for h, err := range c.AllHolds(c.ctx, v.Tenant.Tenant, client.ListHoldsQuery{Status: string(client.HoldStatusActive), Limit: 500}) {
		if err != nil {
			return nil, err
		}
		for _, p := range h.Items {
			rows = append(rows, []string{h.HoldID, h.Subject, p.Meter, v.unit(p.Meter), formatInt(p.Held), string(h.Status), machine(h.ExpiresAt)})
		}
		if len(rows) > csvRowsMax {
			break
		}
	}
	return rows, nil
}

func periodRows(c *call, v *tenantView) (rows [][]string, err error) {
	if v.meter == "" {
		return nil, nil
	}
	got, err := c.ListPeriods(c.ctx, v.Tenant.Tenant, client.ListPeriodsQuery{Meter: v.meter, Next: periodsNext})
	if err != nil {
		return nil, err
	}
	for _, p := range got.Items {
		rows = append(rows, []string{machine(p.Start), instantCell(p.End), p.LocalStart, v.Timezone, v.meter, v.unit(v.meter), formatInt(p.Allowance)})
	}
	return rows, nil
}

func refusalRows(c *call, v *tenantView) (rows [][]string, err error) {
	q := client.ListDenialsQuery{Limit: 100}
	asked := c.r.URL.Query()
	if q.From, err = dayIn("from", asked.Get("from"), v.zone); err != nil {
		return nil, err
	}
	if q.To, err = dayIn("to", asked.Get("to"), v.zone); err != nil {
		return nil, err
	}
	got, err := c.ListDenials(c.ctx, v.Tenant.Tenant, q)
	if err != nil {
		return nil, err
	}
	for _, d := range got.Items {
		required, available := "", ""
		if d.Available != nil {
			required, available = formatInt(d.Required), formatInt(*d.Available)
		}
		rows = append(rows, []string{machine(d.At), string(d.Code), d.Meter, d.Rule, d.Subject, d.Route, required, available, d.RequestID})
	}
	return rows, nil
}

func subjectRows(c *call, v *tenantView) (rows [][]string, err error) {
	if v.meter == "" {
		return nil, nil
	}
	got, err := c.ListUsage(c.ctx, v.Tenant.Tenant, client.ListUsageQuery{Meter: v.meter, From: v.from, To: v.to, By: "month", GroupBy: "subject", Timezone: v.Timezone})
	if err != nil {
		return nil, err
	}
	v.users = part[*client.UsageList]{value: got}
	for _, u := range v.everySubject() {
		rows = append(rows, []string{u.Group["subject"], machine(v.from), machine(v.to), v.meter, v.unit(v.meter), formatInt(u.Used), formatInt(u.Refunded), formatInt(u.Operations), formatInt(u.Overflow)})
	}
	return rows, nil
}

func termRows(c *call, v *tenantView) (rows [][]string, err error) {
	for t, err := range c.AllTerms(c.ctx, v.Tenant.Tenant, client.ListTermsQuery{Limit: 500}) {
		if err != nil {
			return nil, err
		}
		rows = append(rows, []string{machine(t.EffectiveAt), t.Plan, string(t.Apply), string(t.Usage), t.Timezone, t.Reason})
		if len(rows) > csvRowsMax {
			break
		}
	}
	return rows, nil
}

// sendUsage sends the tenant's use per hour, day or month as a CSV file.
func sendUsage(c *call, v *tenantView) error {
	v.readBalances(c)
	got, err := c.ListUsage(c.ctx, v.Tenant.Tenant, client.ListUsageQuery{Meter: v.meter, From: v.from, To: v.to, By: v.by, Timezone: v.Timezone})
	if err != nil {
		return err
	}
	v.usage = part[*client.UsageList]{value: got}
	var rows [][]string
	for _, s := range v.intervals() {
		rows = append(rows, []string{s.label, v.Timezone, v.meter, v.unit(v.meter), formatInt(s.use.Used), formatInt(s.use.Overage), formatInt(s.use.Refunded), formatInt(s.use.Operations), formatInt(s.use.Overflow)})
	}
	return c.sendRows(v.Tenant.Tenant+"-"+v.meter+"-use", []string{v.by, "timezone", "meter", "unit", "used", "overage", "refunded", "operations", "overflow"}, rows)
}

const (
	// tenantsPerFilePage is the number of tenants that one API call returns for a file. It is the maximum that the API
	// permits.
	tenantsPerFilePage = 500

	// tenantPagesMax is the maximum number of these API calls for one file. standingPagesMax is the maximum for a list
	// with balances. It is lower, because the API then reads the balance of each tenant.
	tenantPagesMax   = csvRowsMax / tenantsPerFilePage
	standingPagesMax = 10
)

// sendTenants sends the list of tenants as a CSV file, with the filters of the page.
func sendTenants(c *call) error {
	v, err := c.readTenants(tenantsPerFilePage)
	if err != nil {
		return err
	}
	var rows [][]string
	pages := tenantPagesMax
	if v.withBalances() {
		pages = standingPagesMax
	}
	for ; pages > 0; pages-- {
		for i := range v.tenants {
			t := &v.tenants[i]
			row := []string{t.Tenant, t.Plan, string(t.Status), t.Timezone, machine(t.CreatedAt)}
			if v.withBalances() {
				row = append(row, t.Standing.Meter, unitOf(v.units, t.Standing.Meter), formatInt(int64(t.Standing.Percent)), formatInt(t.Standing.Used), formatInt(t.Standing.Remaining))
			}
			rows = append(rows, row)
		}
		if v.next == "" || pages == 1 {
			break
		}
		v.query.Cursor = v.next
		if err := v.read(c); err != nil {
			v.next = ""
			rows = append(rows, []string{"cut here: " + explain(err).title})
			break
		}
	}
	if v.next != "" {
		rows = append(rows, []string{"cut here: narrow the filters to get the rest"})
	}
	header := []string{"tenant", "plan", "status", "timezone", "created_at", "meter", "unit", "percent_used", "used", "remaining"}
	if !v.withBalances() {
		header = slices.Clip(header[:5])
	}
	return c.sendRows("tenants", header, rows)
}
