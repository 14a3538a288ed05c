package console

import (
	"net/http"

	"github.com/quotasvc/quotasvc/client"
)

// statementsView is the data of the page with the statements of a meter, one for each period.
type statementsView struct {
	*tenantView

	page *client.StatementList
}

// showStatements lists the statements of a meter, newest first.
func showStatements(c *call, t *tenantView) error {
	if c.r.PathValue("meter") == "" {
		return c.firstStatements(t)
	}
	v := &statementsView{tenantView: t}
	v.meter = c.r.PathValue("meter")
	var err error
	v.page, err = c.ListStatements(c.ctx, t.Tenant.Tenant, client.ListStatementsQuery{Meter: v.meter, Cursor: c.r.URL.Query().Get("cursor"), Limit: 50})
	if err != nil {
		return err
	}
	return c.render(http.StatusOK, statementsPage(c, v))
}

// firstStatements redirects to the statements of the tenant's first meter.
func (c *call) firstStatements(t *tenantView) error {
	if t.readBalances(c); t.balance.err != nil {
		return t.balance.err
	}
	if t.meter == "" {
		return &failure{status: http.StatusNotFound, title: "There is no statement", detail: "The plan " + t.Plan + " grants nothing of any meter, and nothing was topped up. A statement is of a meter's period."}
	}
	return c.redirect(path("tenants", t.Tenant.Tenant, "statements", t.meter))
}

// statementView is the data of the page that shows the statement of one period.
type statementView struct {
	*tenantView

	s *client.Statement
}

// showStatement shows the statement of a period in a form that can be printed.
func showStatement(c *call, t *tenantView) error {
	v := &statementView{tenantView: t}
	v.meter = c.r.PathValue("meter")
	var err error
	v.s, err = c.GetStatement(c.ctx, t.Tenant.Tenant, v.meter, c.r.PathValue("period"), client.GetStatementQuery{Subject: c.r.URL.Query().Get("subject")})
	if err != nil {
		return err
	}
	return c.render(http.StatusOK, statementPage(c, v))
}

// sum is one step of the calculation from the opening to the closing balance of a period.
type sum struct {
	name, note string
	amount     int64
}

// sums returns the steps of the calculation. It omits overage, because no grant paid for the units of overage.
func (v *statementView) sums() []sum {
	s := v.s
	return []sum{
		{"Granted", "by the plan, top-ups and promos", s.Granted},
		{"Amended", "changes of terms within the period", s.Amended},
		{"Refunded", "returned by refunds", s.Refunded},
		{"Adjusted", "corrections by people", s.Adjusted},
		{"Used", "paid by grants", -s.Used},
		{"Expired", "not used in time", -s.Expired},
	}
}

// foots reports whether the opening balance plus all steps equals the closing balance.
func (v *statementView) foots() bool {
	total := v.s.Opening
	for _, s := range v.sums() {
		total += s.amount
	}
	return total == v.s.Closing
}

// sendStatement sends the CSV file of a statement, as the API returns it.
func sendStatement(c *call) error {
	tenant, meter, period := c.r.PathValue("tenant"), c.r.PathValue("meter"), c.r.PathValue("period")
	text, err := c.GetStatementCSV(c.ctx, tenant, meter, period, client.GetStatementQuery{Subject: c.r.URL.Query().Get("subject")})
	if err != nil {
		return err
	}
	h := c.w.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="`+cleanName(tenant+"-"+meter+"-statement.csv")+`"`)
	_, _ = c.w.Write(text)
	return nil
}
