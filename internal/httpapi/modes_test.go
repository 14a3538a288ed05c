package httpapi

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/client"
)

// spendable creates plan pro, and puts tenant acme on it with 7 credits. The plan has 10 calls a year. More calls are
// paid with 3 credits each. It also has 5 jobs with at most 4 jobs of overage, and 6 seats, of which one subject may
// use 2.
func (s *service) spendable() *service {
	s.t.Helper()
	for _, meter := range []string{"calls", "credits", "jobs", "seats", "other"} {
		s.call("PUT", "/v1/meters/"+meter, `{"unit":"unit"}`).want(201)
	}
	const terms = `"every":"year","anchor":"calendar"`
	s.call("PUT", "/v1/plans/pro", `{"allowances":[
		{"meter":"calls","amount":10,`+terms+`,"overflow":{"meter":"credits","price":3}},
		{"meter":"credits","amount":0,"every":"once","anchor":"calendar"},
		{"meter":"jobs","amount":5,`+terms+`,"overage":{"policy":"allow","cap":4}},
		{"meter":"seats","amount":6,`+terms+`,"per_subject":2}]}`).want(201)
	s.call("PUT", "/v1/tenants/acme", `{"plan":"pro"}`).want(201)
	s.send("/v1/tenants/acme/grants", "credits", `{"meter":"credits","amount":7,"source":"topup","grant_id":"paid"}`).want(201)
	return s
}

// send sends a POST with a body and an idempotency key.
func (s *service) send(path, key, body string, extra ...string) *answer {
	s.t.Helper()
	return s.call("POST", path, body, append([]string{headerIdempotencyKey, key}, extra...)...)
}

func inMode(mode, tenant, meter string, amount int64) string {
	return strings.TrimSuffix(demandOf(tenant, meter, amount), "}") + fmt.Sprintf(`,"mode":%q}`, mode)
}

func TestDebit_EveryModeOnEveryEndpoint(t *testing.T) {
	t.Parallel()
	for path, wrap := range map[string]func(key, body string) string{
		"/v1/debits":  func(_, body string) string { return body },
		"/v1/consume": func(_, body string) string { return body },
		"/v1/debits/batch": func(key, body string) string {
			return fmt.Sprintf(`{"debits":[{"idempotency_key":%q,%s]}`, key, body[1:])
		},
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			s := newService(t).catalogue()
			spend := func(key, mode string, amount int64) (status int, item client.DebitedItem) {
				a := s.send(path, key, wrap(key, inMode(mode, "acme", "calls", amount))).want(200, 402)
				if !strings.HasSuffix(path, "batch") {
					if a.status == 200 {
						got := decoded[client.DebitAnswer](a)
						item = got.Items[0]
					}
					return a.status, item
				}
				got := decoded[client.DebitBatchAnswer](a)
				if got.Results[0].Status == 200 {
					item = got.Results[0].Items[0]
				}
				return got.Results[0].Status, item
			}
			status, _ := spend("normal", "normal", 12)
			assert.True(t, status == 402, "normal: %d", status)
			for _, replay := range []bool{false, true} {
				_, item := spend("best", "best_effort", 7)
				assert.True(t, item.Charged == 7 && item.Shortfall == 0 && item.Remaining == 3,
					"best effort, replay %v: %+v", replay, item)
			}
			for range 2 {
				_, item := spend("drain", "drain", 8)
				assert.True(t, item.Requested == 8 && item.Charged == 3 && item.Shortfall == 5 && item.Remaining == 0, "drain: %+v", item)
			}
			if _, item := spend("nothing", "best_effort", 2); item.Charged != 0 || item.Shortfall != 2 || len(item.Draws) != 0 {
				t.Errorf("best effort of nothing: %+v", item)
			}
			b := decoded[client.Balance](s.call("GET", "/v1/tenants/acme/balances/calls", "").want(200))
			assert.True(t, b.Used == 10 && b.Overage == 5 && b.Remaining == 0, b)
		})
	}
}

func TestDebit_DryRunInAnyMode_ChangesNothing(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	before := s.state()
	for mode, charged := range map[string]int64{"best_effort": 10, "drain": 10} {
		var got client.DebitAnswer
		body := strings.TrimSuffix(inMode(mode, "acme", "calls", 12), "}") + `,"dry_run":true}`
		s.call("POST", "/v1/debits", body).want(200).into(&got)
		assert.True(t, got.Items[0].Charged == charged && got.Items[0].Shortfall == 2, "%s: %+v", mode, got)
	}
	assert.Equal(t, before, s.state())
}

func TestDebit_ModeIsPartOfFingerprint(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.send("/v1/debits", "k", inMode("best_effort", "acme", "calls", 3)).want(200)
	s.send("/v1/debits", "k", inMode("drain", "acme", "calls", 3)).problem(422, "idempotency_key_reused")
	s.send("/v1/debits", "k2", demandOf("acme", "calls", 1)).want(200)
	a := s.send("/v1/debits", "k2", inMode("normal", "acme", "calls", 1)).want(200)
	assert.EqualValues(t, "true", a.header.Get(headerReplayed), "headers: %v", a.header)
}

func TestDebit_ShowsOverflowAndOverage(t *testing.T) {
	t.Parallel()
	s := newService(t).spendable()
	drawsOf := func(a *answer) []client.Draw {
		got := decoded[client.DebitAnswer](a.want(200))
		return got.Items[0].Draws
	}
	draws := drawsOf(s.debit("k1", "acme", "calls", 12))
	want := []client.Draw{
		{Grant: draws[0].Grant, Source: client.SourceAllowance, Meter: "calls", Amount: 10}, {Grant: "paid", Source: client.SourceTopup, Meter: "credits", Amount: 6},
	}
	assert.Equal(t, want, draws)
	draws = drawsOf(s.debit("k2", "acme", "jobs", 7))
	want = []client.Draw{{Grant: draws[0].Grant, Source: client.SourceAllowance, Meter: "jobs", Amount: 5}, {Source: client.SourceOverage, Meter: "jobs", Amount: 2}}
	assert.Equal(t, want, draws)
	p := s.debit("k3", "acme", "jobs", 3).problem(429, "quota_exceeded")
	assert.True(t, *p.Available == 2, p)
}

func TestDebit_SubjectCap_NamesSubject(t *testing.T) {
	t.Parallel()
	s := newService(t).spendable()
	seats := func(key, subject string, amount int64) *answer {
		return s.send("/v1/debits", key, fmt.Sprintf(`{"tenant":"acme","items":[{"meter":"seats","amount":%d}],"subject":%q}`, amount, subject))
	}
	seats("k1", "u1", 2).want(200)
	a := seats("k2", "u1", 1)
	p := a.problem(429, "quota_exceeded")
	assert.True(t, *p.Limiting == (client.Limiting{Kind: "allowance", Meter: "seats", Subject: "u1", Level: "subject"}) && *p.Available == 0,
		"%s", a.body)
	assert.True(t, a.number(headerQuotaLimit) == 2 && a.number(headerQuotaRemaining) == 0, "headers: %v", a.header)
	var c client.CheckAnswer
	s.call("POST", "/v1/check", `{"tenant":"acme","items":[{"meter":"seats","amount":1}],"subject":"u1"}`).want(200).into(&c)
	assert.True(t, !c.Allowed && c.Limiting.Level == "subject", c)
	seats("k3", "u2", 1).want(200)
	assert.EqualValues(t, 3, s.remaining("acme", "seats"), "remain")
}

func TestDebit_StoredDenial_ReplayedByEveryEndpoint(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.call("PUT", "/v1/meters/money", `{"unit":"cent","denial_replay":true}`).want(201)
	s.call("PUT", "/v1/plans/basic", `{"allowances":[{"meter":"money","amount":5,"every":"year","anchor":"calendar"}]}`).want(201)
	s.tenant("acme")
	s.eventually("the snapshot has the meter", func() bool { return s.server.catalog.Snapshot().Meters["money"] != nil })
	for _, path := range []string{"/v1/debits", "/v1/consume"} {
		first, again := s.send(path, path, demandOf("acme", "money", 6)), s.send(path, path, demandOf("acme", "money", 6))
		p, q := first.problem(402, "credits_exhausted"), again.problem(402, "credits_exhausted")
		p.RequestID, q.RequestID = "", ""
		assert.Equal(t, p, q, path)
		assert.True(t, first.header.Get(headerReplayed) == "" && again.header.Get(headerReplayed) == "true" &&
			again.number(headerQuotaRemaining) == first.number(headerQuotaRemaining), "%s: %v, again %v", path, first.header, again.header)
		s.send(path, path, demandOf("acme", "money", 7)).problem(422, "idempotency_key_reused")
	}
	batch := `{"debits":[{"idempotency_key":"b",` + demandOf("acme", "money", 6)[1:] + `]}`
	for _, replayed := range []bool{false, true} {
		got := decoded[client.DebitBatchAnswer](s.call("POST", "/v1/debits/batch", batch).want(200))
		assert.True(t, got.Results[0].Status == 402 && got.Results[0].Replayed == replayed, got.Results)
	}
	s.send("/v1/debits", "paid", demandOf("acme", "money", 5)).want(200)
}
