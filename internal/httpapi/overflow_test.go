package httpapi

import (
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/client"
)

// Credits pay 2 for each call beyond the allowance. Every answer about the use of calls says for how many.
func TestOverflow_InBalanceStatementAndUsage(t *testing.T) {
	t.Parallel()
	s := newService(t).rhythmic()
	s.call("PUT", "/v1/meters/credits", `{"unit":"credit"}`).want(201)
	s.call("PUT", "/v1/plans/flow", `{"allowances":[{"meter":"credits","amount":100,"every":"hour","anchor":"tenant"},
		{"meter":"calls","amount":10,"every":"hour","anchor":"tenant",
		"overflow":{"meter":"credits","price":2}}]}`).want(201)
	s.patch(`{"plan":"flow","apply":"now"}`).want(200)
	s.debit("k1", "acme", "calls", 14).want(200)
	before := time.Now().UTC()
	s.debit("k2", "acme", "calls", 3).want(200)
	s.send("/v1/refunds", "r", refundOf("k2", "")).want(200)

	got := s.balance("calls", "")
	assert.True(t, got.Used == 10 && got.Refunded == 0 && got.Overflow == 7 && got.Remaining == 0, "%+v", got)
	paid := s.balance("credits", "")
	assert.True(t, paid.Used == 14 && paid.Refunded == 6 && paid.Overflow == 0, "%+v", paid)
	at := "?as_of=" + before.Format(time.RFC3339Nano)
	for path, want := range map[string]string{
		"balances": `"overflow":7,`, "balances/calls" + at: `"overflow":4,`, "balances" + at: `"overflow":4,`,
		"statements": `"overflow":7,`, "statements/calls/current?format=csv": "\r\noverflow,total,7,\r\n",
	} {
		assert.Contains(t, string(s.call("GET", "/v1/tenants/acme/"+path, "").want(200).body), want, path)
	}
	open := s.statement("calls", *got.Period.Start)
	foots(t, &open)
	assert.Equal(t, int64(7), open.Overflow)

	q := url.Values{"meter": {"calls"}, "by": {"hour"}, "from": {before.Add(-time.Hour).Format(time.RFC3339Nano)}}
	q.Set("to", before.Add(time.Hour).Format(time.RFC3339Nano))
	for _, group := range []string{"", "subject"} {
		if group != "" {
			q.Set("group_by", group)
		}
		sum := client.Usage{}
		list := decoded[client.UsageList](s.call("GET", "/v1/tenants/acme/usage?"+q.Encode(), "").want(200))
		for _, u := range list.Items {
			sum.Used, sum.Overflow = sum.Used+u.Used, sum.Overflow+u.Overflow
			sum.Operations += u.Operations
		}
		assert.Equal(t, client.Usage{Used: 10, Overflow: 7, Operations: 2}, sum)
	}

	s.rewind(time.Hour)
	closed := decoded[client.Statement](s.call("GET", "/v1/tenants/acme/statements/calls/last", "").want(200))
	foots(t, &closed)
	assert.Equal(t, int64(7), closed.Overflow)
	assert.Equal(t, int64(0), s.balance("calls", "").Overflow)
}
