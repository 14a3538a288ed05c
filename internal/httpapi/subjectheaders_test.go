package httpapi

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A subject's cap bounds what the subject can draw. The X-Quota headers are those of the cap if less remains of it than
// of the tenant's units: in answers of all kinds, and in replays.
func TestQuotaHeaders_OfASubject_SmallerOfCapAndTenant(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.call("PUT", "/v1/meters/calls", `{"unit":"unit"}`).want(201)
	s.call("PUT", "/v1/plans/team", `{"allowances":[
		{"meter":"calls","amount":100,"every":"year","anchor":"calendar","per_subject":60}]}`).want(201)
	s.call("PUT", "/v1/tenants/acme", `{"plan":"team"}`).want(201)
	of := func(subject string, n int64) string {
		return fmt.Sprintf(`{"tenant":"acme","subject":%q,"items":[{"meter":"calls","amount":%d}]}`, subject, n)
	}
	want := func(what string, a *answer, remaining, limit int64) {
		t.Helper()
		left, whole := a.number(headerQuotaRemaining), a.number(headerQuotaLimit)
		assert.True(t, left == remaining && whole == limit && a.header.Get(headerQuotaReset) != "",
			"%s: %d of %d remain, want %d of %d: %v", what, left, whole, remaining, limit, a.header)
	}
	want("debit", s.send("/v1/debits", "d1", of("ann", 30)).want(200), 30, 60)
	want("consume", s.send("/v1/consume", "c1", of("ann", 5)).want(200), 25, 60)
	batch := `{"debits":[{"idempotency_key":"b1",` + of("ann", 5)[1:] + `]}`
	want("batch", s.send("/v1/debits/batch", "b", batch).want(200), 20, 60)
	want("replay", s.send("/v1/debits", "d1", of("ann", 30)).want(200), 30, 60)
	want("refused", s.send("/v1/debits", "d2", of("ann", 21)).want(429), 20, 60)
	want("check", s.call("POST", "/v1/check", of("ann", 1)).want(200), 20, 60)
	dry := `{"dry_run":true,` + of("ann", 1)[1:]
	want("dry run", s.call("POST", "/v1/debits", dry).want(200), 19, 60)
	hold := `{"hold_id":"h",` + of("ann", 8)[1:]
	want("hold", s.send("/v1/holds", "h1", hold).want(201), 12, 60)
	capture := `{"tenant":"acme","items":[{"meter":"calls","amount":3}],"final":true}`
	want("capture", s.send("/v1/holds/h/capture", "h2", capture).want(200), 17, 60)
	want("replayed hold", s.send("/v1/holds", "h1", hold).want(201), 12, 60)
	want("replayed capture", s.send("/v1/holds/h/capture", "h2", capture).want(200), 17, 60)
	best := `{"mode":"best_effort",` + of("ann", 20)[1:]
	want("best effort", s.send("/v1/debits", "d3", best).want(200), 0, 60)
	want("nothing is left", s.send("/v1/debits", "d4", best).want(200), 0, 60)
	want("replay of nothing", s.send("/v1/debits", "d4", best).want(200), 0, 60)

	// The tenant has 40 units left, and bob could use 60.
	want("less than the cap", s.send("/v1/debits", "e1", of("bob", 30)).want(200), 10, 100)
	want("refused by both", s.send("/v1/debits", "e2", of("bob", 31)).want(429), 10, 100)
	want("without a subject", s.send("/v1/debits", "e3", demandOf("acme", "calls", 4)).want(200), 6, 100)
}
