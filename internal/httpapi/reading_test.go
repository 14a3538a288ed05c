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
)

func TestGetBalance_RemainderAndGrants(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.debit("k", "acme", "calls", 3).want(200)
	s.call("POST", "/v1/tenants/acme/grants", `{"meter":"calls","amount":5,"source":"topup","grant_id":"g1"}`, headerIdempotencyKey, "g").want(201)
	got := decoded[client.Balance](s.call("GET", "/v1/tenants/acme/balances/calls", "").want(200))
	assert.True(t, got.Limit == 15 && got.Granted == 15 && got.Used == 3 && got.Held == 0 && got.Remaining == 12 && got.Overage == 0 && got.Plan == "basic" &&
		got.PlanVersion == 1, got)
	year := got.AsOf.Year()
	period := client.BalancePeriod{Start: new(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)), End: new(time.Date(year+1, 1, 1, 0, 0, 0, 0, time.UTC))}
	assert.Equal(t, period, got.Period)
	assert.True(t, len(got.Grants) == 2 && got.Grants[0].Source == "allowance" && got.Grants[0].Remaining == 7 && got.Grants[1].GrantID == "g1" &&
		got.Grants[1].ExpiresAt == nil, got.Grants)
	list := decoded[client.BalanceList](s.call("GET", "/v1/tenants/acme/balances", "").want(200))
	assert.True(t, len(list.Items) == 2 && list.Items[0].Meter == "calls" && list.Items[0].Remaining == 12 && list.Items[1].Meter == "credits" &&
		list.NextCursor == nil, list)
	assert.True(t, list.Items[1].Period.End == nil, "an endless period ends at %s", list.Items[1].Period.End)
	s.call("GET", "/v1/tenants/acme/balances/other", "").problem(403, "meter_not_in_plan")
	s.call("GET", "/v1/tenants/acme/balances/nothing", "").problem(404, "not_found")
	s.call("GET", "/v1/tenants/nobody/balances/calls", "").problem(404, "tenant_not_found")
	s.call("GET", "/v1/tenants/nobody/balances", "").problem(404, "tenant_not_found")
}

func TestListEntries_GetOperationByKey(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.call("POST", "/v1/debits", `{"tenant":"acme","items":[{"meter":"calls","amount":2}],"subject":"u1","metadata":{"b":[1,{"c":null}],"a":"é"}}`, headerIdempotencyKey, "k1").want(200)
	list := decoded[client.EntryList](s.call("GET", "/v1/tenants/acme/entries?meter=calls&kind=debit", "").want(200))
	require.Len(t, list.Items, 1, list)
	e := list.Items[0]
	assert.True(t, e.OperationID == "k1" && e.Amount == 2 && e.RemainingAfter == 8 && e.OperationSubject == "u1" && e.Subject == "" &&
		e.EffectiveAt.IsZero(), e)
	metadata := e.Metadata
	err := metadata.Compact()
	assert.True(t, err == nil && string(metadata) == `{"a":"é","b":[1,{"c":null}]}`, "metadata %s: %v", metadata, err)
	op := decoded[client.Operation](s.call("GET", "/v1/tenants/acme/operations/k1", "").want(200))
	assert.True(t, op.OperationID == "k1" && op.Tenant == "acme" && op.Kind == "debit" && len(op.Entries) >= 1 &&
		op.CreatedAt.Equal(e.CreatedAt), op)
	count := func(query string) int {
		list := decoded[client.EntryList](s.call("GET", "/v1/tenants/acme/entries?meter=calls&"+query, "").want(200))
		return len(list.Items)
	}
	at := func(d time.Duration) string { return url.QueryEscape(e.CreatedAt.Add(d).Format(time.RFC3339Nano)) }
	all := count("")
	for query, want := range map[string]int{
		"from=" + at(0): all, "from=" + at(time.Microsecond): 0, "to=" + at(0): 0, "to=" + at(time.Microsecond): all, "kind=refund": 0,
	} {
		assert.Equal(t, want, count(query), "entries of %s", query)
	}
	// The entries have the ids of operations that the ledger itself has started. Each such id names an operation.
	s.call("GET", "/v1/tenants/acme/entries?meter=calls", "").want(200).into(&list)
	for _, e := range list.Items {
		s.call("GET", "/v1/tenants/acme/operations/"+url.PathEscape(e.OperationID), "").want(200)
	}
	s.call("GET", "/v1/tenants/acme/operations/none", "").problem(404, "operation_not_found")
	s.call("GET", "/v1/tenants/nobody/operations/k1", "").problem(404, "tenant_not_found")
}

func TestEntry_Actor_ShownWhereThereIsOne(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.debit("k1", "acme", "calls", 1)
	s.debit("k2", "acme", "calls", 1)
	_, err := s.pool.Exec(t.Context(), "UPDATE entries SET actor = CASE operation_id WHEN 'k1' THEN 'key_1' END")
	s.check(err)
	for path, want := range map[string]int{"entries?meter=calls&kind=debit": 1, "operations/k1": 1, "operations/k2": 0} {
		got := string(s.call("GET", "/v1/tenants/acme/"+path, "").want(200).body)
		assert.True(t, strings.Count(got, `"actor":"key_1"`) == want && strings.Count(got, `"actor"`) == want,
			"%s: %s, want %d entries with an actor", path, got, want)
	}
}

// The entries of an operation have the id of the API key that sent the request. The audit log has the grants of
// administrators.
func TestGrant_KeyOfTheRequest_InEntriesAndAuditLog(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	const body = `{"meter":"credits","amount":50,"source":"topup","grant_id":"g1","reason":"order 17"}`
	s.call("POST", "/v1/tenants/acme/grants", body, headerIdempotencyKey, "k1", "X-Request-Id", "r1").want(201)
	s.call("POST", "/v1/tenants/acme/grants", body, headerIdempotencyKey, "k1", "X-Request-Id", "r2").want(201)
	s.call("POST", "/v1/tenants/acme/grants", `{"meter":"credits","amount":1,"source":"topup","dry_run":true}`).want(201, 200)
	op := decoded[client.Operation](s.call("GET", "/v1/tenants/acme/operations/k1", "").want(200))
	assert.EqualValues(t, "bootstrap", op.Entries[0].Actor, op.Entries[0])
	log := decoded[client.AuditList](s.call("GET", "/v1/audit?tenant=acme&action=grant.create", "").want(200))
	assert.True(t, len(log.Items) == 1 && log.Items[0].Object.ID == "g1" && log.Items[0].RequestID == "r1" && log.Items[0].Reason == "order 17" &&
		log.Items[0].Actor.KeyID == "bootstrap", log.Items)
}

func TestGetOperation_AnyKeyInPath(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	keys := []string{
		"a/b", "/", "//", "a%2Fb", "%", "100%", "%41", "%zz", "a?b=c&d", "#", "{a}", "[x]", `"q"`, `\`, "a+b", ";", ":", "..", ".", "a=b,c", "~!$'()*@|^`<>",
		strings.Repeat("/", 255),
	}
	for i, key := range keys {
		tenant := fmt.Sprintf("t%d", i)
		s.tenant(tenant)
		s.debit(key, tenant, "calls", 1).want(200)
		path := "/v1/tenants/" + tenant + "/operations/"
		op := decoded[client.Operation](s.call("GET", path+url.PathEscape(key), "").want(200))
		assert.True(t, op.OperationID == key, "%q was found as %q", key, op.OperationID)
		// The same path, with every byte of the key escaped as some clients do it.
		var full strings.Builder
		for _, c := range []byte(key) {
			fmt.Fprintf(&full, "%%%02X", c)
		}
		s.call("GET", path+full.String(), "").want(200)
	}
	for _, id := range []string{"%00", "a%00b", "%ff", strings.Repeat("x", 1025)} {
		s.call("GET", "/v1/tenants/t0/operations/"+id, "").refused("operation_id")
	}
	for _, id := range []string{"%20", "%0a", "%C3%A9", strings.Repeat("x", 256), strings.Repeat("x", 1024)} {
		s.call("GET", "/v1/tenants/t0/operations/"+id, "").problem(404, "operation_not_found")
	}
}

func TestListPeriods_AnchoredOn31st(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.call("PUT", "/v1/plans/monthly", `{"allowances":[{"meter":"calls","amount":10,"every":"month","anchor":"tenant"},
		{"meter":"credits","amount":3,"every":"once","anchor":"tenant"}]}`).want(201)
	s.call("PUT", "/v1/tenants/t", `{"plan":"monthly","anchor":"2026-01-31T00:00:00Z","timezone":"Europe/Berlin"}`).want(201)
	periods := func(query string) []client.Period {
		list := decoded[client.PeriodList](s.call("GET", "/v1/tenants/t/periods?"+query, "").want(200))
		return list.Items
	}
	got := periods("meter=calls")
	require.Len(t, got, 12, "periods by default")
	for i, p := range got {
		assert.True(t, p.Allowance == 10 && p.End != nil && (i <= 0 || p.Start.Equal(*got[i-1].End)), p)
		start, err := time.Parse(time.RFC3339, p.LocalStart)
		assert.True(t, err == nil && start.Equal(p.Start) && (i <= 0 || start.Day() == min(31, daysIn(start))),
			"a period begins at %s, %s: %v", p.Start, p.LocalStart, err)
	}
	assert.Len(t, periods("meter=calls&next=100"), 100, "periods")
	once := periods("meter=credits&next=5")
	assert.True(t, len(once) == 1 && once[0].End == nil && once[0].LocalEnd == nil, once)
	s.call("GET", "/v1/tenants/t/periods?meter=other", "").problem(403, "meter_not_in_plan")
	s.call("GET", "/v1/tenants/t/periods?meter=nothing", "").problem(404, "not_found")
	s.call("GET", "/v1/tenants/nobody/periods?meter=calls", "").problem(404, "tenant_not_found")
}

func daysIn(t time.Time) int {
	return time.Date(t.Year(), t.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day()
}
