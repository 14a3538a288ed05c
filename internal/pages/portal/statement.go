package portal

import (
	"net/http"
	"time"

	"github.com/quotasvc/quotasvc/client"
)

// statementList is the data of the page that lists the statements of a meter, one for each period.
type statementList struct {
	*overview

	page *client.StatementList
}

// showStatements lists the statements of a meter, newest first.
func showStatements(v *visit, o *overview) error {
	o.meter = v.r.PathValue("meter")
	page, err := v.ListStatements(v.r.Context(), v.link.Tenant, client.ListStatementsQuery{Meter: o.meter, Cursor: v.r.URL.Query().Get("cursor"), Limit: 50})
	if err != nil {
		return err
	}
	return v.render(http.StatusOK, statementsPage(v, &statementList{o, page}))
}

// statementView is the data of the page that shows the statement of one period.
type statementView struct {
	*overview

	s *client.Statement
}

// showStatement shows the statement of a period in a form that can be printed.
func showStatement(v *visit, o *overview) error {
	o.meter = v.r.PathValue("meter")
	s, err := v.GetStatement(v.r.Context(), v.link.Tenant, o.meter, v.r.PathValue("period"), client.GetStatementQuery{})
	if err != nil {
		return err
	}
	return v.render(http.StatusOK, statementPage(v, &statementView{o, s}))
}

// sum is one step of the calculation from the opening to the closing balance of a period.
type sum struct {
	key    string
	amount int64
}

// sums returns the steps of the calculation in the order in which the page shows them.
func (s *statementView) sums() []sum {
	return []sum{
		{"statement.granted", s.s.Granted},
		{"statement.amended", s.s.Amended},
		{"statement.refunded", s.s.Refunded},
		{"statement.adjusted", s.s.Adjusted},
		{"statement.used", -s.s.Used},
		{"statement.expired", -s.s.Expired},
	}
}

// signed returns an amount as text, with a plus sign if it is positive.
func (v *visit) signed(n int64) string {
	if n > 0 {
		return "+" + v.lang.number(n)
	}
	return v.lang.number(n)
}

// periodText returns a text with the start and the end of a period, in the tenant's zone.
func (v *visit) periodText(o *overview, start, end *time.Time) string {
	switch {
	case start == nil:
		return ""
	case end == nil:
		return v.say("statement.open", "from", v.lang.moment(start.In(o.zone)))
	default:
		return v.say("statement.from", "from", v.lang.moment(start.In(o.zone)), "to", v.lang.moment(end.In(o.zone)))
	}
}
