package httpapi

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/client"
)

// A dry run with `at` is answered like a debit at that future instant, after the periods that have renewed and the
// grants that have ended by then. It changes nothing.
func TestDebit_DryRunAt_AnswersForThatInstant(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.call("PUT", "/v1/plans/basic", `{"allowances":[{"meter":"calls","amount":10,"every":"month","anchor":"tenant"},{"meter":"credits","amount":0,"every":"once","anchor":"tenant"}]}`).want(200)
	s.call("PATCH", "/v1/tenants/acme", `{"plan":"basic","apply":"now"}`).want(200)
	at := func(when time.Time) string { return when.UTC().Format(time.RFC3339) }
	now := time.Now()
	s.send("/v1/tenants/acme/grants", "gift", `{"meter":"credits","amount":500,"source":"promo","grant_id":"weekend","expires_at":"`+at(now.Add(48*time.Hour))+`"}`).want(201)
	ask := func(meter, amount, when string) *answer {
		return s.call("POST", "/v1/debits", `{"tenant":"acme","items":[{"meter":"`+meter+`","amount":`+amount+`}],"dry_run":true,"at":"`+when+`"}`)
	}
	s.debit("all", "acme", "calls", 10).want(200)
	s.unmoved("dry", func() {
		ask("calls", "1", at(now.Add(time.Second*30))).problem(http.StatusTooManyRequests, "quota_exceeded")
		var renewed client.DebitAnswer
		when := now.AddDate(0, 2, 0).UTC().Truncate(time.Second)
		ask("calls", "4", at(when)).want(200).into(&renewed)
		assert.True(t, len(renewed.Items) == 1 && renewed.Items[0].Remaining == 6 && renewed.Items[0].Draws[0].Source == "allowance" && renewed.AsOf.Equal(when) &&
			renewed.DryRun, "in two months: %+v", renewed)
		ask("credits", "500", at(now.Add(47*time.Hour))).want(200)
		ask("credits", "500", at(now.Add(49*time.Hour))).problem(http.StatusPaymentRequired, "credits_exhausted")
	})
	for when, why := range map[string]string{
		at(now.Add(-time.Hour)):    "must lie in the next 400 days",
		at(now.AddDate(0, 0, 402)): "must lie in the next 400 days",
		"tomorrow":                 "RFC 3339",
	} {
		got := ask("calls", "1", when)
		got.refused("at")
		assert.Contains(t, string(got.body), why, "at %s: %s", when, got.body)
	}
	s.send("/v1/debits", "k", `{"tenant":"acme","items":[{"meter":"calls","amount":1}],"at":"`+at(now.Add(time.Hour))+`"}`).refused("at")
}
