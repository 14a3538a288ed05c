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
func (s *service) spendable() {
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
			s := newService(t)
			s.catalogue()
			spend := func(key, mode string, amount int64) (status int, item client.DebitedItem) {
				a := s.send(path, key, wrap(key, inMode(mode, "acme", "calls", amount))).want(200, 429)
				if !strings.HasSuffix(path, "batch") {
					if a.status == 200 {
						var got client.DebitAnswer
						a.into(&got)
						item = got.Items[0]
					}
					return a.status, item
				}
				var got client.DebitBatchAnswer
				a.into(&got)
				if got.Results[0].Status == 200 {
					item = got.Results[0].Items[0]
				}
				return got.Results[0].Status, item
			}
			if status, _ := spend("normal", "normal", 12); status != 429 {
				t.Errorf("normal: %d", status)
			}
			for _, replay := range []bool{false, true} {
				_, item := spend("best", "best_effort", 7)
				if item.Charged != 7 || item.Shortfall != 0 || item.Remaining != 3 {
					t.Errorf("best effort, replay %v: %+v", replay, item)
				}
			}
			for range 2 {
				if _, item := spend("drain", "drain", 8); item.Requested != 8 || item.Charged != 3 || item.Shortfall != 5 || item.Remaining != 0 {
					t.Errorf("drain: %+v", item)
				}
			}
			if _, item := spend("nothing", "best_effort", 2); item.Charged != 0 || item.Shortfall != 2 || len(item.Draws) != 0 {
				t.Errorf("best effort of nothing: %+v", item)
			}
			var b client.Balance
			s.call("GET", "/v1/tenants/acme/balances/calls", "").want(200).into(&b)
			if b.Used != 10 || b.Overage != 5 || b.Remaining != 0 {
				t.Errorf("%+v", b)
			}
		})
	}
}

func TestDebit_DryRunInAnyMode_ChangesNothing(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.catalogue()
	before := s.state()
	for mode, charged := range map[string]int64{"best_effort": 10, "drain": 10} {
		var got client.DebitAnswer
		body := strings.TrimSuffix(inMode(mode, "acme", "calls", 12), "}") + `,"dry_run":true}`
		if s.call("POST", "/v1/debits", body).want(200).into(&got); got.Items[0].Charged != charged || got.Items[0].Shortfall != 2 {
			t.Errorf("%s: %+v", mode, got)
		}
	}
	if after := s.state(); after != before {
		t.Errorf("stored before: %s, after: %s", before, after)
	}
}

func TestDebit_ModeIsPartOfFingerprint(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.catalogue()
	s.send("/v1/debits", "k", inMode("best_effort", "acme", "calls", 3)).want(200)
	s.send("/v1/debits", "k", inMode("drain", "acme", "calls", 3)).problem(422, "idempotency_key_reused")
	s.send("/v1/debits", "k2", demandOf("acme", "calls", 1)).want(200)
	if a := s.send("/v1/debits", "k2", inMode("normal", "acme", "calls", 1)).want(200); a.header.Get(headerReplayed) != "true" {
		t.Errorf("headers: %v", a.header)
	}
}

func TestDebit_ShowsOverflowAndOverage(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.spendable()
	drawsOf := func(a *answer) []client.Draw {
		var got client.DebitAnswer
		a.want(200).into(&got)
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
	if p := s.debit("k3", "acme", "jobs", 3).problem(429, "quota_exceeded"); *p.Available != 2 {
		t.Errorf("%+v", p)
	}
}

func TestDebit_SubjectCap_NamesSubject(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.spendable()
	seats := func(key, subject string, amount int64) *answer {
		return s.send("/v1/debits", key, fmt.Sprintf(`{"tenant":"acme","items":[{"meter":"seats","amount":%d}],"subject":%q}`, amount, subject))
	}
	seats("k1", "u1", 2).want(200)
	a := seats("k2", "u1", 1)
	p := a.problem(429, "quota_exceeded")
	if want := (client.Limiting{Kind: "allowance", Meter: "seats", Subject: "u1", Level: "subject"}); *p.Limiting != want || *p.Available != 0 {
		t.Errorf("%s", a.body)
	}
	if a.number(headerQuotaLimit) != 2 || a.number(headerQuotaRemaining) != 0 {
		t.Errorf("headers: %v", a.header)
	}
	var c client.CheckAnswer
	if s.call("POST", "/v1/check", `{"tenant":"acme","items":[{"meter":"seats","amount":1}],"subject":"u1"}`).want(200).into(&c); c.Allowed || c.Limiting.Level != "subject" {
		t.Errorf("%+v", c)
	}
	seats("k3", "u2", 1).want(200)
	if got := s.remaining("acme", "seats"); got != 3 {
		t.Errorf("%d remain", got)
	}
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
		p, q := first.problem(429, "quota_exceeded"), again.problem(429, "quota_exceeded")
		p.RequestID, q.RequestID = "", ""
		assert.Equal(t, p, q, path)
		if first.header.Get(headerReplayed) != "" || again.header.Get(headerReplayed) != "true" || again.number(headerQuotaRemaining) != first.number(headerQuotaRemaining) {
			t.Errorf("%s: %v, again %v", path, first.header, again.header)
		}
		s.send(path, path, demandOf("acme", "money", 7)).problem(422, "idempotency_key_reused")
	}
	batch := `{"debits":[{"idempotency_key":"b",` + demandOf("acme", "money", 6)[1:] + `]}`
	for _, replayed := range []bool{false, true} {
		var got client.DebitBatchAnswer
		if s.call("POST", "/v1/debits/batch", batch).want(200).into(&got); got.Results[0].Status != 429 || got.Results[0].Replayed != replayed {
			t.Errorf("%+v", got.Results)
		}
	}
	s.send("/v1/debits", "paid", demandOf("acme", "money", 5)).want(200)
}
