package httpapi

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/client"
)

// dried returns body with the member dry_run.
func dried(body string) string { return strings.TrimSuffix(body, "}") + `,"dry_run":true}` }

// facts returns the fields of an answer that a dry run must answer like the real request. It omits the operation's
// id, the instant of the decision, and the fields that depend on them.
func (a *answer) facts() map[string]any {
	a.t.Helper()
	var got map[string]any
	require.NoError(a.t, json.Unmarshal(a.body, &got))
	for _, name := range []string{"operation_id", "as_of", "dry_run", "expires_at", "grant"} {
		delete(got, name)
	}
	return got
}

// A dry run gives the same answer as the real request that follows it, allowed or refused. It changes nothing.
func TestDryRun_AnswersLikeChange_ChangesNothing(t *testing.T) {
	t.Parallel()
	s := newService(t).spendable()
	s.hold("part", 4).want(201)
	s.hold("free", 2).want(201)
	s.hold("long", 1).want(201)
	s.debit("order", "acme", "calls", 3).want(200)
	s.send("/v1/tenants/acme/grants", "gift", `{"meter":"credits","amount":7,"source":"promo","grant_id":"gift"}`).want(201)
	s.send("/v1/tenants/acme/grants", "short", `{"meter":"credits","amount":7,"source":"promo","grant_id":"short","expires_at":"2098-01-01T00:00:00Z"}`).want(201)

	for _, step := range []struct {
		name, path, body string
		status           int
	}{
		{"capture a part", "/v1/holds/part/capture", `{"tenant":"acme","items":[{"meter":"calls","amount":1}]}`, 200},
		{"capture beyond all", "/v1/holds/part/capture", `{"tenant":"acme","items":[{"meter":"calls","amount":1000}]}`, 402},
		{"capture the rest", "/v1/holds/part/capture", `{"tenant":"acme","final":true}`, 200},
		{"capture what is captured", "/v1/holds/part/capture", `{"tenant":"acme"}`, 409},
		{"release", "/v1/holds/free/release", `{"tenant":"acme"}`, 200},
		{"release twice", "/v1/holds/free/release", `{"tenant":"acme"}`, 409},
		{"release no hold", "/v1/holds/none/release", `{"tenant":"acme"}`, 404},
		{"extend", "/v1/holds/long/extend", `{"tenant":"acme","ttl_seconds":7200}`, 200},
		{"refund a part", "/v1/refunds", refundOf("order", `,"amount":1`), 200},
		{"refund more than is left", "/v1/refunds", refundOf("order", `,"amount":3`), 422},
		{"refund the rest", "/v1/refunds", refundOf("order", ""), 200},
		{"refund nothing", "/v1/refunds", refundOf("none", ""), 404},
		{"prolong", "/v1/tenants/acme/grants/short/extend", `{"expires_at":"2099-01-01T00:00:00Z","reason":"paid late"}`, 200},
		{"prolong to the same end", "/v1/tenants/acme/grants/short/extend", `{"expires_at":"2099-01-01T00:00:00Z","reason":"paid late"}`, 400},
		{"void", "/v1/tenants/acme/grants/gift/void", `{"reason":"by mistake"}`, 200},
		{"void again", "/v1/tenants/acme/grants/gift/void", `{"reason":"by mistake"}`, 409},
		{"adjust", "/v1/tenants/acme/adjustments", `{"meter":"credits","amount":-1,"reason":"counted twice"}`, 200},
	} {
		var dry *answer
		s.unmoved(step.name, func() { dry = s.call("POST", step.path, dried(step.body)) })
		done := s.send(step.path, step.name[:3]+strings.ReplaceAll(step.name, " ", "-"), step.body)
		if done.status != step.status || dry.status != step.status {
			t.Errorf("%s: %d, dry run %d, want %d\n%s\n%s", step.name, done.status, dry.status, step.status, done.body, dry.body)
			continue
		}
		if step.status >= 300 {
			var got, want client.Problem
			dry.into(&got)
			if done.into(&want); got.Code != want.Code || got.Detail != want.Detail {
				t.Errorf("%s: %s (%s), dry run %s (%s)", step.name, want.Code, want.Detail, got.Code, got.Detail)
			}
			continue
		}
		got, want := dry.facts(), done.facts()
		assert.Equal(t, want, got, "%s: dry run\n%v\nthen\n%v", step.name, got, want)
		assert.True(t, strings.Contains(string(dry.body), `"dry_run":true`) &&
			!strings.Contains(string(done.body), "dry_run"), "%s:\n%s\n%s", step.name, dry.body, done.body)
	}
}

// If the meter has denial_replay, a refused hold is stored and answered again for a repeated key, like a refused
// debit. The same holds for a refused capture of more units than its hold has.
func TestHold_DenialReplayedIfMeterSaysSo(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.call("PUT", "/v1/meters/credits", `{"unit":"credit","denial_replay":true}`).want(200)
	s.eventually("the snapshot has the meter", func() bool {
		credits := s.server.catalog.Snapshot().Meters["credits"]
		return credits != nil && credits.DenialReplay
	})
	s.send("/v1/tenants/acme/grants", "g1", `{"meter":"credits","amount":5,"source":"topup"}`).want(201)
	hold := `{"tenant":"acme","hold_id":"h","items":[{"meter":"credits","amount":9}]}`
	s.send("/v1/holds", "h", hold).problem(402, "credits_exhausted")
	s.send("/v1/holds", "small", `{"tenant":"acme","hold_id":"small","items":[{"meter":"credits","amount":5}]}`).want(201)
	beyond := `{"tenant":"acme","items":[{"meter":"credits","amount":8}]}`
	s.send("/v1/holds/small/capture", "c", beyond).problem(402, "credits_exhausted")
	s.send("/v1/tenants/acme/grants", "g2", `{"meter":"credits","amount":50,"source":"topup"}`).want(201)
	for path, body := range map[string]string{"/v1/holds": hold, "/v1/holds/small/capture": beyond} {
		key := map[bool]string{true: "h", false: "c"}[path == "/v1/holds"]
		a := s.send(path, key, body)
		a.problem(402, "credits_exhausted")
		assert.EqualValues(t, "true", a.header.Get(headerReplayed), "%s: %v", path, a.header)
	}
	s.send("/v1/holds/small/capture", "c2", beyond).want(200)
}

// A dry run with `at` is answered like a debit at that future instant. Periods that renew and grants that end before
// that instant are taken into account. The dry run changes nothing.
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
