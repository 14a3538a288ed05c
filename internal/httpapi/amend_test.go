package httpapi

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/client"
)

// foots checks that the figures of a statement add up, and that its lines have the same sums.
func foots(t *testing.T, s *client.Statement) {
	t.Helper()
	sum := s.Opening + s.Granted + s.Amended + s.Refunded - s.Used - s.Expired + s.Adjusted
	assert.Equal(t, s.Closing, sum, "%+v", s)
	amended := int64(0)
	for _, l := range s.Lines {
		if l.Kind == client.EntryKindAmend {
			amended += l.Amount
		}
	}
	assert.Equal(t, s.Amended, amended, "%+v", s.Lines)
}

// A change that applies now amends the open period. Its balance, statement and entries show by how much, up or down.
func TestAmended_InBalanceStatementAndEntries(t *testing.T) {
	t.Parallel()
	s := newService(t).rhythmic()
	s.call("PUT", "/v1/plans/large", `{"allowances":[
		{"meter":"calls","amount":100,"every":"hour","anchor":"tenant"}]}`).want(201)
	s.debit("k1", "acme", "calls", 4).want(200)
	start := s.balance("calls", "").Period.Start
	s.patch(`{"plan":"large","apply":"now"}`).want(200)
	got := s.balance("calls", "")
	assert.True(t, got.Granted == 10 && got.Amended == 90 && got.Used == 4 && got.Remaining == 96 && got.Limit == 100 &&
		got.Plan == "large" && got.Period.Start.Equal(*start), "%+v", got)
	s.debit("k2", "acme", "calls", 30).want(200)
	raised := time.Now().UTC()
	s.patch(`{"overrides":{"calls":20},"apply":"now"}`).want(200)
	got = s.balance("calls", "")
	assert.True(t, got.Amended == 90-66 && got.Used == 34 && got.Remaining == 0, "drawn more than the amount: %+v", got)
	s.send("/v1/refunds", "r", refundOf("k2", "")).want(200)
	got = s.balance("calls", "")
	assert.True(t, got.Amended == 90-66-14 && got.Used == 34 && got.Refunded == 30 && got.Remaining == 16,
		"the refund makes up for it first: %+v", got)

	for _, path := range []string{
		"/v1/tenants/acme/balances/calls?as_of=" + raised.Format(time.RFC3339Nano),
		"/v1/tenants/acme/balances?as_of=" + raised.Format(time.RFC3339Nano),
	} {
		assert.Contains(t, string(s.call("GET", path, "").want(200).body), `"amended":90,`)
	}
	assert.Contains(t, string(s.call("GET", "/v1/tenants/acme/balances", "").want(200).body),
		fmt.Sprintf(`"amended":%d,`, got.Amended))
	open := s.statement("calls", *start)
	foots(t, &open)
	assert.Equal(t, got.Amended, open.Amended)

	var pages []client.Entry
	for cursor := ""; ; {
		path := "/v1/tenants/acme/entries?kind=amend&limit=1" + cursor
		list := decoded[client.EntryList](s.call("GET", path, "").want(200))
		pages = append(pages, list.Items...)
		if list.NextCursor == nil {
			break
		}
		cursor = "&cursor=" + url.QueryEscape(*list.NextCursor)
	}
	sum := int64(0)
	for i, e := range pages {
		assert.Equal(t, client.EntryKindAmend, e.Kind)
		assert.Equal(t, i == 0, e.Amount > 0, "only the first change raised the amount: %+v", e)
		assert.True(t, i == 0 || e.Seq > pages[i-1].Seq, "in order: %+v", pages)
		sum += e.Amount
	}
	assert.Equal(t, got.Amended, sum)
	path := "/v1/tenants/acme/entries?kind=amend&order=desc&meter=calls&from=" + raised.Format(time.RFC3339Nano)
	newest := decoded[client.EntryList](s.call("GET", path, "").want(200)).Items
	assert.True(t, len(newest) == len(pages)-1 && newest[0].Seq == pages[len(pages)-1].Seq, "%+v", newest)
	path = "/v1/tenants/acme/operations/" + url.PathEscape(pages[0].OperationID)
	op := decoded[client.Operation](s.call("GET", path, "").want(200))
	assert.True(t, op.Kind == client.EntryKindAmend && op.Entries[0].Amount == 90, "%+v", op)
	refund := decoded[client.Operation](s.call("GET", "/v1/tenants/acme/operations/r", "").want(200))
	assert.Equal(t, client.EntryKindRefund, refund.Kind)
	s.call("GET", "/v1/tenants/acme/entries?kind=amend_up", "").refused("kind")

	s.rewind(time.Hour)
	closed := decoded[client.Statement](s.call("GET", "/v1/tenants/acme/statements/calls/last", "").want(200))
	foots(t, &closed)
	assert.Equal(t, got.Amended, closed.Amended)
	csv := string(s.call("GET", "/v1/tenants/acme/statements/calls/last?format=csv", "").want(200).body)
	assert.Contains(t, csv, fmt.Sprintf("\r\namend,allowance,%d,%d\r\n", got.Amended, len(pages)))
	assert.Contains(t, csv, fmt.Sprintf("\r\ngranted,total,10,\r\namended,total,%d,\r\n", got.Amended))
	s.debit("k3", "acme", "calls", 1).want(200) // closes the period in the tables
	list := decoded[client.StatementList](s.call("GET", "/v1/tenants/acme/statements?meter=calls", "").want(200)).Items
	assert.True(t, list[0].Amended == 0 && list[1].Closed && list[1].Amended == got.Amended && list[1].Adjusted == 0,
		"%+v", list)
	closed = decoded[client.Statement](s.call("GET", "/v1/tenants/acme/statements/calls/last", "").want(200))
	foots(t, &closed)
	assert.Equal(t, got.Amended, closed.Amended)
	s.verifyClean()
}

// A change of the interval ends the period and amends nothing: the next allowance is less by what was drawn. A reset
// amends nothing either. It gives the whole allowance anew, and the rest of the old one expires.
func TestAmended_IntervalChangedOrReset_IsZero(t *testing.T) {
	t.Parallel()
	s := newService(t).rhythmic()
	s.call("PUT", "/v1/plans/daily", `{"allowances":[
		{"meter":"calls","amount":100,"every":"day","anchor":"tenant"}]}`).want(201)
	s.debit("k1", "acme", "calls", 4).want(200)
	s.patch(`{"plan":"daily","apply":"now"}`).want(200)
	got := s.balance("calls", "")
	assert.True(t, got.Amended == 0 && *got.Carried == 4 && got.Granted == 96 && got.Used == 0 &&
		got.Remaining == 96, got)
	ended := decoded[client.Statement](s.call("GET", "/v1/tenants/acme/statements/calls/last", "").want(200))
	foots(t, &ended)
	assert.True(t, ended.Amended == 0 && ended.Used == 4 && ended.Expired == 6, ended)

	s.debit("k2", "acme", "calls", 6).want(200)
	s.patch(`{"overrides":{"calls":50},"apply":"now","usage":"reset","reason":"goodwill"}`).want(200)
	got = s.balance("calls", "")
	assert.True(t, got.Amended == 0 && *got.Carried == 0 && got.Expired == 90 && got.Granted == 146 &&
		got.Remaining == 50, got)
	open := s.statement("calls", *got.Period.Start)
	foots(t, &open)
	s.verifyClean()
}
