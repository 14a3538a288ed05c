package httpapi

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// movesWithTerms has what a change of terms moves, as in the table of docs/spending.md (What moves with a change of
// terms). Each row returns a text of the state that it sees on one instance. before is the text under the plan pro,
// after the one under the plan free.
var movesWithTerms = []row{
	{"plan in GET", "pro", "free", func(s *service) string { return s.readTenant("dora").Plan }},
	{
		"own features",
		"true",
		"<nil>",
		func(s *service) string { return fmt.Sprint(s.readTenant("dora").Features["beta"]) },
	},
	{"time zone", "UTC", "Asia/Tokyo", func(s *service) string { return s.readTenant("dora").Timezone }},
	{
		"overrides",
		"map[]",
		"map[calls:7]",
		func(s *service) string { return fmt.Sprint(s.readTenant("dora").Overrides) },
	},
	{"features of the plan", "true", "false", func(s *service) string {
		return fmt.Sprint(
			decoded[client.CheckAnswer](
				s.call("POST", "/v1/check", `{"tenant":"dora","feature":"sso"}`).want(200),
			).Allowed,
		)
	}},
	{"list of features", "pro", "free", func(s *service) string {
		return decoded[client.TenantFeatures](s.call("GET", "/v1/tenants/dora/features", "").want(200)).Plan
	}},
	{"allowance", "1000", "7", func(s *service) string {
		return fmt.Sprint(decoded[client.Balance](s.call("GET", "/v1/tenants/dora/balances/calls", "").want(200)).Limit)
	}},
	{"list of balances", "calls jobs", "calls extras", func(s *service) string {
		var meters []string
		for _, b := range decoded[client.BalanceList](s.call("GET", "/v1/tenants/dora/balances", "").want(200)).Items {
			if b.Plan != "" {
				meters = append(meters, b.Meter)
			}
		}
		return strings.Join(meters, " ")
	}},
	{"grants of a new meter", "0", "1", func(s *service) string {
		a := s.call("GET", "/v1/tenants/dora/grants?meter=extras", "").want(200)
		return fmt.Sprint(len(decoded[client.GrantList](a).Items))
	}},
	{"allowance in a check", "1000", "7", func(s *service) string {
		a := s.call("POST", "/v1/check", `{"tenant":"dora","items":[{"meter":"calls","amount":1}]}`).want(200)
		return fmt.Sprint(decoded[client.CheckAnswer](a).Items[0].Remaining)
	}},
	{"debit", "200", "402", func(s *service) string {
		const body = `{"tenant":"dora","items":[{"meter":"calls","amount":8}],"dry_run":true}`
		return fmt.Sprint(s.send("/v1/debits", "try", body).status)
	}},
	{"gauge", "10", "2", func(s *service) string {
		return fmt.Sprint(decoded[client.Gauge](s.call("GET", "/v1/tenants/dora/gauges/seats", "").want(200)).Limit)
	}},
	{"gauge of a new subject", "4", "1", func(s *service) string {
		return fmt.Sprint(
			decoded[client.Gauge](s.call("GET", "/v1/tenants/dora/gauges/seats?subject=new", "").want(200)).Limit,
		)
	}},
	{"list of gauges", "10", "2", func(s *service) string {
		return fmt.Sprint(
			decoded[client.GaugeList](s.call("GET", "/v1/tenants/dora/gauges", "").want(200)).Items[0].Limit,
		)
	}},
	{"rate limit of the plan", "1000", "1", func(s *service) string { return capacity(s, "rps") }},
	{"match.plan", "50", "", func(s *service) string { return capacity(s, "only-pro") }},
	{"filter by plan", "dora ", " dora", func(s *service) string {
		list := func(plan string) string {
			return strings.Join(
				idsOf(decoded[client.TenantList](s.call("GET", "/v1/tenants?plan="+plan, "").want(200)).Items),
				"",
			)
		}
		return list("pro") + " " + list("free")
	}},
	{"events", "plan.change_scheduled", "plan.changed", func(s *service) (last string) {
		require.NoError(s.t, s.server.store.AdvanceTenants(s.t.Context()))
		err := s.pool.QueryRow(
			s.t.Context(),
			"SELECT type FROM events WHERE tenant_id = 'dora' AND type LIKE 'plan.%' ORDER BY at DESC LIMIT 1",
		).Scan(
			&last,
		)
		require.NoError(s.t, err)
		return last
	}},
}

func idsOf(list []client.Tenant) (ids []string) {
	for i := range list {
		ids = append(ids, list[i].Tenant)
	}
	return ids
}

// capacity returns the largest cost that a limit allows for the tenant, or "" if the limit does not apply.
func capacity(s *service, rule string) string {
	s.t.Helper()
	a := s.call("POST", "/v1/limits/charge", `{"tenant":"dora","cost":1,"dry_run":true}`)
	a.want(200, 429)
	got := decoded[client.ChargeAnswer](a)
	for _, l := range got.Limits {
		if l.Rule == rule {
			return fmt.Sprint(l.Limit)
		}
	}
	return ""
}

// A change that waits moves nothing before its instant, and everything at it, on two instances.
func TestPending_MovesEverythingTogether_OnTwoInstances(t *testing.T) {
	t.Parallel()
	t.Run("at the end of the billing period", func(t *testing.T) { movesTogether(t, "") })
	t.Run("inside a period", func(t *testing.T) {
		movesTogether(t, fmt.Sprintf(`,"effective_at":%q`, time.Now().Add(2*time.Hour).UTC().Format(time.RFC3339)))
	})
}

// movesTogether asks for a change that waits, with more members of the request, and walks the table before and after
// its instant.
func movesTogether(t *testing.T, more string) {
	t.Parallel()
	url := testenv.Postgres(t)
	here, there := newOwnerOn(t, url), newOwnerOn(t, url)
	here.call("PUT", "/v1/meters/calls", `{"unit":"call"}`).want(201)
	here.call("PUT", "/v1/meters/jobs", `{"unit":"job"}`).want(201)
	here.call("PUT", "/v1/meters/extras", `{"unit":"extra"}`).want(201)
	here.call("PUT", "/v1/meters/seats", `{"unit":"seat","kind":"gauge"}`).want(201)
	here.call("PUT", "/v1/plans/pro", `{"allowances":[{"meter":"calls","amount":1000,"every":"month","anchor":"tenant"},
		{"meter":"jobs","amount":5,"every":"month","anchor":"tenant"},{"meter":"seats","amount":10,"per_subject":4}],
		"features":{"sso":true},
		"limits":[{"rule":"rps","per":["tenant"],"kind":"token_bucket","rate":"1000/s","burst":1000}]}`).want(201)
	here.call("PUT", "/v1/plans/free", `{"allowances":[{"meter":"calls","amount":10,"every":"month","anchor":"tenant"},
		{"meter":"extras","amount":3,"every":"month","anchor":"tenant"},{"meter":"seats","amount":2,"per_subject":1}],
		"limits":[{"rule":"rps","per":["tenant"],"kind":"token_bucket","rate":"1/min","burst":1}]}`).want(201)
	here.call(
		"PUT",
		"/v1/limits/only-pro",
		`{"per":["tenant"],"kind":"token_bucket","rate":"50/s","burst":50,"match":{"plan":"pro"}}`,
	).want(
		201,
	)
	here.call("PUT", "/v1/tenants/dora", `{"plan":"pro","features":{"beta":true}}`).want(201)
	here.send("/v1/debits", "d", `{"tenant":"dora","items":[{"meter":"jobs","amount":1}]}`).want(200)
	both := []*service{here, there}
	walk := func(when string, want func(i int) string) {
		t.Helper()
		for n, s := range both {
			for i, row := range movesWithTerms {
				assert.Equal(t, want(i), row.see(s), "%s, instance %d: %s", when, n, row.name)
			}
		}
	}
	for _, s := range both {
		testenv.Eventually(t, func() bool {
			return s.server.catalog.Snapshot().Plans["free"] != nil && len(s.server.catalog.Snapshot().Limits) == 1
		})
	}
	patch := func() *answer {
		body := `{"plan":"free","timezone":"Asia/Tokyo","overrides":{"calls":7},"features":{"beta":null}` + more + `}`
		return here.call("PATCH", "/v1/tenants/dora", body, headerIdempotencyKey, "k").want(200)
	}
	patch()
	pending := here.readTenant("dora").Pending
	require.NotNil(t, pending)
	assert.True(
		t,
		pending.Plan == "free" && (pending.Apply == client.PendingChangeApplyNextPeriod) == (more == "") &&
			pending.PlanVersion == 1,
		pending,
	)
	for _, s := range both { // so that both have the change in memory before its instant
		testenv.Eventually(t, func() bool {
			f, err := s.server.catalog.Tenant(t.Context(), "dora")
			return err == nil && f.Waits()
		})
	}
	walk("after the request", func(i int) string { return movesWithTerms[i].before })
	move := func(by time.Duration, key string) { // the second instance follows the step of the first
		for _, s := range both {
			s.call("POST", "/v1/test/clock", fmt.Sprintf(`{"advance":%q}`, by), headerIdempotencyKey, key).want(200)
		}
	}
	move(time.Until(pending.From)-time.Hour, "an-hour-before")
	walk("an hour before", func(i int) string { return movesWithTerms[i].before })
	move(2*time.Hour, "an-hour-after")
	walk("an hour after", func(i int) string { return movesWithTerms[i].after })
	assert.Equal(t, "true", patch().header.Get(headerReplayed), "a late retry")
	assert.Nil(t, here.readTenant("dora").Pending)
	here.verifyClean()
}
