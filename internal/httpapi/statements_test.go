package httpapi

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/ledger/history"
)

// thisYear returns the start of the present year, when the period of a yearly calendar allowance begins.
func thisYear() string { return fmt.Sprintf("%d-01-01T00:00:00Z", time.Now().UTC().Year()) }

// storied creates a history of acme's calls. The plan grants 10 calls, and 5 are bought. Of these, 12 are used and 3
// refunded, then 2 are held and 1 is removed.
func (s *service) storied() *service {
	s.t.Helper()
	s.catalogue()
	s.send("/v1/tenants/acme/grants", "g", `{"meter":"calls","amount":5,"source":"topup","grant_id":"sold"}`).want(201)
	s.debit("d", "acme", "calls", 12).want(200)
	s.send("/v1/refunds", "r", refundOf("d", `,"amount":3`)).want(200)
	s.hold("h", 2).want(201)
	s.send("/v1/tenants/acme/adjustments", "a", `{"meter":"calls","amount":-1,"reason":"x"}`).want(200)
	return s
}

func TestGetStatement_Foots(t *testing.T) {
	t.Parallel()
	s := newService(t).storied()
	got := decoded[client.Statement](s.call("GET", "/v1/tenants/acme/statements/calls/"+thisYear(), "").want(200))
	start, err := time.Parse(time.RFC3339, thisYear())
	require.NoError(t, err)
	want := client.Statement{
		Tenant: "acme", Meter: "calls", Plan: "basic", PlanVersion: 1, AsOf: got.AsOf,
		Period:  client.BalancePeriod{Start: &start, End: new(start.AddDate(1, 0, 0))},
		Granted: 15, Used: 12, Refunded: 3, Adjusted: -1, Held: 2, Closing: 5,
		Lines: []client.StatementLine{
			{Kind: "adjust_down", Source: "allowance", Amount: 1, Entries: 1},
			{Kind: "debit", Source: "allowance", Amount: 10, Entries: 1},
			{Kind: "debit", Source: "topup", Amount: 2, Entries: 1},
			{Kind: "grant", Source: "allowance", Amount: 10, Entries: 1},
			{Kind: "grant", Source: "topup", Amount: 5, Entries: 1},
			{Kind: "hold", Source: "topup", Amount: 2, Entries: 1},
			{Kind: "refund", Source: "allowance", Amount: 1, Entries: 1},
			{Kind: "refund", Source: "topup", Amount: 2, Entries: 1},
		},
	}
	assert.True(t, got.Opening+got.Granted+got.Amended+got.Refunded-got.Used-got.Expired+got.Adjusted == got.Closing,
		"%+v does not foot", got)
	got.Lines, want.Lines = withoutHolds(got.Lines), withoutHolds(want.Lines)
	assert.Equal(t, want, got)
}

// withoutHolds removes the lines of holds and adjustments, because their sources depend on the order in which grants
// are drawn after a refund.
func withoutHolds(lines []client.StatementLine) (out []client.StatementLine) {
	for _, l := range lines {
		if l.Kind != "hold" && !strings.HasPrefix(string(l.Kind), "adjust") {
			out = append(out, l)
		}
	}
	return out
}

func TestGetStatement_CSV(t *testing.T) {
	t.Parallel()
	s := newService(t).storied()
	path := "/v1/tenants/acme/statements/calls/" + thisYear()
	byFormat := s.call("GET", path+"?format=csv", "").want(200)
	byAccept := s.call("GET", path, "", "Accept", "text/csv").want(200)
	assert.Equal(t, string(byFormat.body), string(byAccept.body), "%s\n%s", byAccept.body, byFormat.body)
	rows := strings.Split(string(byFormat.body), "\r\n")
	assert.True(t, rows[0] == "kind,source,amount,entries" && rows[len(rows)-1] == "", "%q", rows)
	text := strings.Join(rows, "\n")
	for _, want := range []string{
		"\ndebit,allowance,10,1\n", "\ndebit,topup,2,1\n",
		"\nopening,total,0,\ngranted,total,15,\namended,total,0,\nrefunded,total,3,\nused,total,12,\nexpired,total,0,\nadjusted,total,-1,\nclosing,total,5,\nheld,total,2,\noverage,total,0,\noverflow,total,0,\n",
	} {
		assert.Contains(t, text, want, "no %q in\n", want)
	}
	wantName := `attachment; filename="statement_acme_calls_` + strings.NewReplacer("-", "", ":", "").Replace(thisYear()) + `.csv"`
	assert.Equal(t, wantName, byFormat.header.Get("Content-Disposition"))
	for _, a := range []*answer{
		s.call("GET", path, "", "Accept", "application/json, text/csv;q=0.5"), s.call("GET", path+"?format=json", "", "Accept", "text/csv"),
		s.call("GET", path, "", "Accept"),
	} {
		got := a.want(200).header.Get("Content-Type")
		assert.True(t, got == typeJSON && a.header.Get("Vary") == "Accept", "%s: %s", got, a.body)
	}
}

func TestGetStatement_Unknown_Refused(t *testing.T) {
	t.Parallel()
	s := newService(t).storied()
	get := func(path string) *answer { return s.call("GET", "/v1/tenants/"+path, "") }
	year := time.Now().UTC().Year()
	s.unmoved("reading", func() {
		for _, start := range []string{
			fmt.Sprintf("%d-01-01T00:00:00Z", year-1), fmt.Sprintf("%d-01-01T00:00:00Z", year+1), fmt.Sprintf("%d-01-01T00:00:00.000001Z", year),
			fmt.Sprintf("%d-01-01T00:00:00-01:00", year), "0002-01-01T00:00:00Z", "9997-12-31T23:59:59Z",
		} {
			p := get("acme/statements/calls/"+start).problem(404, "not_found")
			assert.Equal(t, "period_start", p.Errors[0].Field, "%s: %+v", start, p)
		}
		for _, start := range []string{"now", "2026", "2026-01-01", "2026-02-30T00:00:00Z", "2026-01-01T00:00:00", "9999-01-01T00:00:00Z", "0001-01-01T00:00:00Z"} {
			get("acme/statements/calls/" + url.PathEscape(start)).refused("period_start")
		}
		get("acme/statements/none/"+thisYear()).problem(404, "not_found")
		get("nobody/statements/calls/"+thisYear()).problem(404, "tenant_not_found")
		get("acme/statements/other/"+thisYear()).problem(403, "meter_not_in_plan")
		get("acme/statements/calls/" + thisYear() + "?format=xml").refused("format")
		get("acme/statements/calls/" + thisYear() + "?format=").refused("format")
		get("acme/statements/calls/" + thisYear() + "?subject=a%20b").refused("subject")
		get("acme/statements/calls/" + thisYear() + "?meter=calls").refused("meter")
	})
	get("acme/statements/calls/" + fmt.Sprintf("%d-12-31T23:00:00-01:00", year-1)).want(200) // the same instant
}

func TestPrefersCSV_ByAcceptHeader(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]bool{
		"": false, "*/*": false, "application/json": false, "text/csv": true, "TEXT/CSV; charset=utf-8": true, "text/csv, */*;q=0.1": true,
		"text/csv;q=0.5, application/json;q=0.4": true, "text/csv, application/json": false, "text/*, application/json;q=0.9": true,
		"text/csv;q=0": false, "text/csv;q=x": false, "text/html": false, "text/csv;;": false, "text/html, text/csv": true,
	} {
		assert.Equal(t, want, prefersCSV([]string{accept}), "%q", accept)
	}
	assert.True(t, prefersCSV([]string{"application/json;q=0.1", "text/csv"}), "the second header is not read")
}

func TestGetBalance_AsOf(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	born := time.Now().UTC()
	var first, second client.DebitAnswer
	s.debit("k1", "acme", "calls", 3).want(200).into(&first)
	s.debit("k2", "acme", "calls", 4).want(200).into(&second)
	past := func(at time.Time) string { return "as_of=" + at.UTC().Format(time.RFC3339Nano) }
	for at, used := range map[time.Time]int64{first.AsOf: 3, second.AsOf.Add(-time.Microsecond): 3, second.AsOf: 7} {
		var b client.Balance
		a := s.call("GET", "/v1/tenants/acme/balances/calls?"+past(at), "").want(200)
		if a.into(&b); b.Used != used || b.Remaining != 10-used || !b.AsOf.Equal(at) || len(b.Grants) != 0 || a.header.Get(headerETag) != "" {
			t.Errorf("%s: %+v", at, b)
		}
		list := decoded[client.BalanceList](s.call("GET", "/v1/tenants/acme/balances?"+past(at), "").want(200))
		assert.True(t, len(list.Items) == 2 && list.Items[0].Meter == "calls" && list.Items[0].Used == used,
			"%s: %+v", at, list)
	}
	s.unmoved("reading", func() {
		for _, path := range []string{"/v1/tenants/acme/balances/calls?", "/v1/tenants/acme/balances?"} {
			s.call("GET", path+past(time.Now().Add(time.Hour)), "").refused("as_of")
		}
		long := born.AddDate(-5, 0, 0)
		p := s.call("GET", "/v1/tenants/acme/balances/calls?"+past(long), "").problem(404, "not_found")
		assert.Equal(t, "as_of", p.Errors[0].Field, p)
		list := decoded[client.BalanceList](s.call("GET", "/v1/tenants/acme/balances?"+past(long), "").want(200))
		assert.Empty(t, list.Items, list)
		s.call("GET", "/v1/tenants/nobody/balances/calls?"+past(born), "").problem(404, "tenant_not_found")
		s.call("GET", "/v1/tenants/nobody/balances?"+past(born), "").problem(404, "tenant_not_found")
		s.call("GET", "/v1/tenants/acme/balances/none?"+past(born), "").problem(404, "not_found")
		s.call("PUT", "/v1/meters/unplanned", `{"unit":"call"}`).want(201)
		for _, at := range []string{"", past(second.AsOf), past(long)} { // no period has an allowance of this meter
			s.call("GET", "/v1/tenants/acme/balances/unplanned?"+at, "").problem(403, "meter_not_in_plan")
		}
	})
}

func TestListBalances_OfSubject(t *testing.T) {
	t.Parallel()
	s := newService(t).spendable()
	var d client.DebitAnswer
	s.send("/v1/debits", "k", `{"tenant":"acme","items":[{"meter":"seats","amount":1}],"subject":"u1"}`).want(200).into(&d)
	b := decoded[client.Balance](s.call("GET", "/v1/tenants/acme/balances/seats?subject=u1", "").want(200))
	assert.True(t, b.Subject == "u1" && b.Used == 1 && b.Limit == 2, b)
	s.call("GET", "/v1/tenants/acme/balances/seats?subject=u1&as_of="+d.AsOf.Format(time.RFC3339Nano), "").want(200).into(&b)
	assert.True(t, b.Subject == "u1" && b.Used == 1, b)
	list := decoded[client.BalanceList](s.call("GET", "/v1/tenants/acme/balances?subject=u1", "").want(200))
	for _, b := range list.Items {
		assert.EqualValues(t, "u1", b.Subject, b)
	}
	entries := decoded[client.EntryList](s.call("GET", "/v1/tenants/acme/entries?subject=u1", "").want(200))
	owners := map[string]bool{}
	for _, e := range entries.Items {
		owners[e.Subject] = true
		assert.False(t, e.Subject != "u1" && e.OperationSubject != "u1", e)
	}
	if !owners["u1"] || !owners[""] { // entries of the cap of u1, and of the tenant's balance
		t.Errorf("%+v", entries.Items)
	}
	var statement client.Statement
	s.call("GET", "/v1/tenants/acme/statements/seats/"+thisYear()+"?subject=u1", "").want(200).into(&statement)
	assert.True(t, statement.Subject == "u1" && statement.Used == 1, statement)
	a := s.call("GET", "/v1/tenants/acme/statements/seats/"+thisYear()+"?subject=u1&format=csv", "")
	assert.Contains(t, a.header.Get("Content-Disposition"), "_seats_u1_", a.header)
}

func TestUsage_PerHourAndDay(t *testing.T) {
	t.Parallel()
	s := newService(t).storied()
	now := time.Now().UTC()
	span := func(from, to time.Time) string {
		return "meter=calls&from=" + from.Format(time.RFC3339) + "&to=" + to.Format(time.RFC3339)
	}
	around := span(now.Add(-24*time.Hour), now.Add(24*time.Hour))
	for _, by := range []string{"", "&by=day", "&by=hour", "&by=day&timezone=Asia/Kathmandu"} {
		got := decoded[client.UsageList](s.call("GET", "/v1/tenants/acme/usage?"+around+by, "").want(200))
		var sum client.Usage
		for _, u := range got.Items {
			sum.Used, sum.Refunded, sum.Overage, sum.Operations = sum.Used+u.Used, sum.Refunded+u.Refunded, sum.Overage+u.Overage, sum.Operations+u.Operations
		}
		assert.True(t, sum.Used == 12 && sum.Refunded == 3 && sum.Overage == 0 && sum.Operations >= 1 &&
			len(got.Items) <= 2, "%q: %+v", by, got)
		if by == "&by=day&timezone=Asia/Kathmandu" && got.Items[0].Start.Minute() != 15 { // midnight there is 18:15 UTC
			t.Errorf("%+v", got)
		}
	}
	var none client.UsageList
	s.call("GET", "/v1/tenants/acme/usage?"+span(now.AddDate(-1, 0, 0), now.AddDate(0, -1, 0)), "").want(200).into(&none)
	assert.Empty(t, none.Items, none)
	s.call("GET", "/v1/tenants/nobody/usage?"+around, "").problem(404, "tenant_not_found")
	day := 24 * time.Hour
	s.call("GET", "/v1/tenants/acme/usage?by=hour&"+span(now, now.Add(31*day)), "").want(200)
	s.call("GET", "/v1/tenants/acme/usage?by=day&"+span(now, now.Add(366*day)), "").want(200)
	for query, field := range map[string]string{
		"by=hour&" + span(now, now.Add(31*day+time.Second)): "to", "by=day&" + span(now, now.Add(366*day+time.Second)): "to", span(now, now): "to",
		span(now, now.Add(-time.Second)): "to", "by=week&" + around: "by", "by=&" + around: "by", "timezone=Mars/Base&" + around: "timezone",
		"timezone=&" + around: "timezone", "subject=a%20b&" + around: "subject", "meter=calls&from=" + thisYear(): "to", "meter=calls&to=" + thisYear(): "from",
		strings.TrimPrefix(around, "meter=calls&"): "meter", "meter=calls&from=x&to=" + thisYear(): "from", "meter=calls&from=" + thisYear() + "&to=2026-13-01T00:00:00Z": "to",
	} {
		s.call("GET", "/v1/tenants/acme/usage?"+query, "").refused(field)
	}
}

func TestGetStatement_NamedPeriods_AndTheirList(t *testing.T) {
	t.Parallel()
	s := newService(t).storied()
	var exact, current, within client.Statement
	s.call("GET", "/v1/tenants/acme/statements/calls/"+thisYear(), "").want(200).into(&exact)
	s.call("GET", "/v1/tenants/acme/statements/calls/current", "").want(200).into(&current)
	s.call("GET", "/v1/tenants/acme/statements/calls/at:"+time.Now().UTC().Format(time.RFC3339), "").want(200).into(&within)
	current.AsOf, within.AsOf = exact.AsOf, exact.AsOf
	assert.Equal(t, exact, current)
	assert.Equal(t, exact, within)
	s.call("GET", "/v1/tenants/acme/statements/calls/last", "").problem(404, "not_found")
	for _, name := range []string{"newest", "at:", "at:noon", "2026", "at:2999-01-01T00:00:00Z"} {
		s.call("GET", "/v1/tenants/acme/statements/calls/"+name, "").refused("period_start")
	}
	list := decoded[client.StatementList](s.call("GET", "/v1/tenants/acme/statements?meter=calls", "").want(200))
	assert.True(t, len(list.Items) == 1 && list.Items[0].Closing == exact.Closing && list.NextCursor == nil, list)
	s.call("GET", "/v1/tenants/acme/statements?limit=0", "").refused("limit")
	s.call("GET", "/v1/tenants/acme/statements?meter=calls&cursor=x", "").refused("cursor")
	s.call("GET", "/v1/tenants/nobody/statements", "").problem(404, "tenant_not_found")
}

// grouped is the use of one value of a group, summed over all intervals.
type grouped struct{ used, overage, refunded, operations int64 }

// usageOf returns acme's use for each value of a group, and the sum over all values.
func (s *service) usageOf(query, group string) (by map[string]grouped, all grouped) {
	s.t.Helper()
	now := time.Now().UTC()
	var list client.UsageList
	s.call("GET", fmt.Sprintf("/v1/tenants/acme/usage?meter=calls&from=%s&to=%s%s", now.Add(-24*time.Hour).Format(time.RFC3339), now.Add(24*time.Hour).Format(time.RFC3339), query), "").
		want(200).into(&list)
	by = map[string]grouped{}
	for _, item := range list.Items {
		value, given := item.Group[group]
		assert.True(s.t, given == (group != "") && len(item.Group) <= 1, "group %v", item.Group)
		for _, g := range []*grouped{&all} {
			*g = grouped{g.used + item.Used, g.overage + item.Overage, g.refunded + item.Refunded, g.operations + item.Operations}
		}
		g := by[value]
		by[value] = grouped{g.used + item.Used, g.overage + item.Overage, g.refunded + item.Refunded, g.operations + item.Operations}
	}
	return by, all
}

// dimensioned creates meter calls with the dimensions model and feature. It also creates tenant acme, who has 1,000
// calls a year and may use 50 calls more as overage.
func (s *service) dimensioned() {
	s.t.Helper()
	s.call("PUT", "/v1/meters/calls", `{"unit":"call","dimensions":["model","feature"]}`).want(201)
	s.call("PUT", "/v1/plans/p", `{"allowances":[{"meter":"calls","amount":1000,"every":"year","anchor":"calendar","overage":{"policy":"allow","cap":50}}]}`).want(201)
	s.call("PUT", "/v1/tenants/acme", `{"plan":"p"}`).want(201)
	s.eventually("the snapshot has the meter", func() bool {
		m := s.server.catalog.Snapshot().Meters["calls"]
		return m != nil && len(m.Dimensions) == 2
	})
}

// The sum of the use over all values of a dimension equals the total use. This holds for debits, captures, overage and
// refunds. A capture has the same value of the dimension as its hold.
func TestUsage_ByDimension_FootsWithTheTotal(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.dimensioned()
	debit := func(key string, amount int, metadata, more string) {
		s.send("/v1/debits", key, fmt.Sprintf(`{"tenant":"acme","items":[{"meter":"calls","amount":%d}],"metadata":%s%s}`, amount, metadata, more)).want(200)
	}
	debit("a", 10, `{"model":"small"}`, "")
	debit("b", 20, `{"model":"large","feature":"chat"}`, `,"subject":"ann"`)
	debit("c", 30, `{"feature":"chat"}`, "")
	debit("d", 40, `{"model":7}`, "")
	debit("e", 50, `{"model":{"a":1}}`, "")
	s.send("/v1/debits", "f", `{"tenant":"acme","items":[{"meter":"calls","amount":60}]}`).want(200)
	s.send("/v1/holds", "h", `{"tenant":"acme","hold_id":"h","subject":"ann","items":[{"meter":"calls","amount":100}],"metadata":{"model":"small"}}`).want(201)
	s.send("/v1/holds/h/capture", "h1", `{"tenant":"acme","items":[{"meter":"calls","amount":70}],"final":false}`).want(200)
	s.send("/v1/holds/h/capture", "h2", `{"tenant":"acme","items":[{"meter":"calls","amount":5}],"final":true}`).want(200)
	s.send("/v1/refunds", "r", `{"tenant":"acme","operation_id":"b","amount":8}`).want(200)
	debit("g", 750, `{"model":"large"}`, "") // more than the remaining units, so a part is overage
	by, all := s.usageOf("&group_by=metadata.model", "model")
	assert.Equal(t, map[string]grouped{
		"small": {85, 0, 0, 3}, "large": {743, 27, 0, 2}, "7": {40, 0, 0, 1}, "": {140, 0, 8, 4},
	}, by)
	for _, step := range []string{"", "&by=hour", "&by=month"} {
		_, total := s.usageOf(step, "")
		for query, group := range map[string]string{"&group_by=metadata.model": "model", "&group_by=metadata.feature": "feature", "&group_by=subject": "subject"} {
			_, sum := s.usageOf(step+query, group)
			assert.True(t, sum == total, "%s%s: %+v, want %+v", step, query, sum, total)
		}
		assert.True(t, all == total, "%s: %+v, want %+v", step, total, all)
	}
	_, anns := s.usageOf("&subject=ann", "")
	by, sum := s.usageOf("&subject=ann&group_by=metadata.model", "model")
	assert.True(t, sum == anns && by["small"].used == 75 && by["large"].used == 20, "%+v, want %+v in all", by, anns)
	s.verifyClean()
}

// If a dimension has many values, the answer has the most used values, and adds up the others as (other).
func TestUsage_ManyValues_TheRestIsOther(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.dimensioned()
	const values = history.UsageValuesMax + 20
	for i := range values {
		amount := 5
		if i >= history.UsageValuesMax {
			amount = 1
		}
		s.send("/v1/debits", fmt.Sprint("k", i), fmt.Sprintf(`{"tenant":"acme","items":[{"meter":"calls","amount":%d}],"metadata":{"model":"m%d"}}`, amount, i)).want(200)
	}
	by, all := s.usageOf("&group_by=metadata.model", "model")
	if len(by) != history.UsageValuesMax+1 || by["(other)"] != (grouped{20, 0, 0, 20}) || by["m7"].used != 5 || all.used != 5*history.UsageValuesMax+20 {
		t.Errorf("%d values, others %+v, %+v in all", len(by), by["(other)"], all)
	}
}

func TestUsage_GroupThatIsNoDimension_Refused(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.dimensioned()
	for _, group := range []string{"metadata.user", "metadata.", "model", "metadata.model%27", "plan", ""} {
		s.call("GET", "/v1/tenants/acme/usage?meter=calls&from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z&group_by="+group, "").refused("group_by")
	}
	for body, field := range map[string]string{
		`{"unit":"u","dimensions":["a","b","c","d","e","f"]}`: "dimensions", `{"unit":"u","dimensions":["a b"]}`: "dimensions[0]",
		`{"unit":"u","dimensions":["a","a"]}`: "dimensions[1]", `{"unit":"u","dimensions":"a"}`: "dimensions", `{"unit":"u","dimensions":[""]}`: "dimensions[0]",
	} {
		s.call("PUT", "/v1/meters/bad", body).refused(field)
	}
	s.call("PUT", "/v1/meters/calls", `{"unit":"call"}`).want(200) // the meter no longer has dimensions
	m := decoded[client.Meter](s.call("GET", "/v1/meters/calls", "").want(200))
	assert.Empty(t, m.Dimensions, m.Dimensions)
}
