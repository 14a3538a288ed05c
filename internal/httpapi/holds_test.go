package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/client"
)

// books returns a checksum of all rows of the ledger. If two checksums are equal, nothing has changed between them.
func (s *service) books() string {
	s.t.Helper()
	var out string
	s.check(s.pool.QueryRow(s.t.Context(), `
		SELECT concat_ws(' ', (SELECT md5(string_agg(t::text, ',' ORDER BY t::text)) FROM balances t),
			(SELECT md5(string_agg(t::text, ',' ORDER BY t::text)) FROM grants t), (SELECT md5(string_agg(t::text, ',' ORDER BY t::text)) FROM holds t),
			(SELECT md5(string_agg(t::text, ',' ORDER BY t::text)) FROM hold_lines t), (SELECT md5(string_agg(t::text, ',' ORDER BY t::text)) FROM refunds t),
			(SELECT md5(string_agg(t::text, ',' ORDER BY t::text)) FROM entries t))`).Scan(&out))
	return out
}

// unmoved fails the test if the function do changes any row of the ledger.
func (s *service) unmoved(what string, do func()) {
	s.t.Helper()
	before := s.books()
	do()
	assert.Equal(s.t, before, s.books(), what)
}

// holdOf returns the body of a hold of acme's calls.
func holdOf(id string, amount int64) string {
	return fmt.Sprintf(`{"tenant":"acme","hold_id":%q,"items":[{"meter":"calls","amount":%d}]}`, id, amount)
}

func (s *service) hold(id string, amount int64) *answer {
	s.t.Helper()
	return s.send("/v1/holds", "hold-"+id, holdOf(id, amount))
}

func holdIn(a *answer) (h client.HoldAnswer) {
	a.t.Helper()
	a.into(&h)
	return h
}

func TestCaptureHold_InParts_RestReturns(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	first := s.hold("h1", 6).want(201)
	h := holdIn(first)
	grant := h.Items[0].Draws[0].Grant
	want := client.HoldAnswer{
		OperationID: "hold-h1", HoldID: "h1", Tenant: "acme", Status: client.HoldStatusActive, AsOf: h.AsOf, ExpiresAt: h.AsOf.Add(time.Hour),
		Items: []client.HeldItem{{Meter: "calls", Amount: 6, Held: 6, Remaining: 4, Draws: []client.Draw{{Grant: grant, Source: client.SourceAllowance, Meter: "calls", Amount: 6}}}},
	}
	assert.Equal(t, want, h)
	assert.True(t, first.number(headerQuotaLimit) == 10 && first.number(headerQuotaRemaining) == 4 &&
		first.number(headerQuotaReset) >= 1, "headers: %v", first.header)
	again := s.hold("h1", 6).want(201)
	assert.True(t, again.header.Get(headerReplayed) == "true" && string(again.body) == string(first.body),
		"%v: %s, first %s", again.header, again.body, first.body)

	capture := func(key, more string) client.HoldAnswer {
		a := s.send("/v1/holds/h1/capture", key, `{"tenant":"acme"`+more+`}`).want(200)
		assert.True(t, a.number(headerQuotaRemaining) >= 4, "headers: %v", a.header)
		return holdIn(a)
	}
	for _, replay := range []bool{false, true} {
		h = capture("c1", `,"items":[{"meter":"calls","amount":2}]`)
		if it := h.Items[0]; h.Status != client.HoldStatusActive || it.Captured != 2 || it.Held != 4 || it.Remaining != 4 || it.Draws[0].Amount != 2 {
			t.Errorf("replay %v: %+v", replay, h)
		}
	}
	h = capture("c2", `,"items":[{"meter":"calls","amount":1}],"final":true`)
	it := h.Items[0]
	assert.True(t, h.Status == client.HoldStatusCaptured && it.Captured == 3 && it.Held == 0 && it.Remaining == 7, h)
	b := decoded[client.Balance](s.call("GET", "/v1/tenants/acme/balances/calls", "").want(200))
	assert.True(t, b.Used == 3 && b.Held == 0 && b.Remaining == 7, b)
}

func TestCaptureHold_NoItems_TakesAll(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.hold("h1", 6).want(201)
	h := holdIn(s.send("/v1/holds/h1/capture", "c", `{"tenant":"acme"}`).want(200))
	assert.True(t, h.Status == client.HoldStatusCaptured && h.Items[0].Captured == 6, h)
	assert.EqualValues(t, 4, s.remaining("acme", "calls"), "remain")
}

func TestReleaseHold_Returns_ExtendHold_Extends(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	taken := holdIn(s.hold("h1", 6).want(201))
	h := holdIn(s.send("/v1/holds/h1/extend", "e1", `{"tenant":"acme","ttl_seconds":86400}`).want(200))
	assert.True(t, h.ExpiresAt.Equal(h.AsOf.Add(24*time.Hour)) && h.Items[0].Held == 6, h)
	shorter := holdIn(s.send("/v1/holds/h1/extend", "e2", `{"tenant":"acme","ttl_seconds":1}`).want(200))
	assert.False(t, shorter.ExpiresAt.Before(h.ExpiresAt), "taken %s, extended to %s, then to %s", taken.AsOf, h.ExpiresAt, shorter.ExpiresAt)
	for range 2 {
		h = holdIn(s.send("/v1/holds/h1/release", "r1", `{"tenant":"acme"}`).want(200))
		assert.True(t, h.Status == client.HoldStatusReleased && h.Items[0].Held == 0 && h.Items[0].Remaining == 10 &&
			len(h.Items[0].Draws) == 0, h)
	}
}

func TestHold_TTL1SecondTo1Day(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.hold("open", 1).want(201)
	hold := func(id, ttl string) *answer {
		return s.send("/v1/holds", "k-"+id, strings.TrimSuffix(holdOf(id, 1), "}")+`,"ttl_seconds":`+ttl+`}`)
	}
	s.unmoved("refused", func() {
		for _, ttl := range []string{"0", "86401", "-1", "1.5", `"60"`, "9007199254740992"} {
			hold("bad", ttl).refused("ttl_seconds")
			s.send("/v1/holds/open/extend", "k", `{"tenant":"acme","ttl_seconds":`+ttl+`}`).refused("ttl_seconds")
		}
	})
	h := holdIn(hold("day", "86400").want(201))
	assert.True(t, h.ExpiresAt.Sub(h.AsOf) == 24*time.Hour, h)
	h = holdIn(hold("second", "1").want(201))
	assert.True(t, h.ExpiresAt.Sub(h.AsOf) == time.Second, h)
	s.eventually("the hold of one second ends", func() bool { return s.remaining("acme", "calls") == 8 })
	p := s.send("/v1/holds/second/capture", "late", `{"tenant":"acme"}`).problem(409, "hold_not_active")
	assert.True(t, len(p.Errors) == 1 && p.Errors[0].Field == "hold_id" && strings.Contains(p.Detail, "expired"), p)
}

func TestHold_Ended_409(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.hold("released", 2).want(201)
	s.hold("captured", 2).want(201)
	s.send("/v1/holds/released/release", "r", `{"tenant":"acme"}`).want(200)
	s.send("/v1/holds/captured/capture", "c", `{"tenant":"acme"}`).want(200)
	s.unmoved("changes of holds that are over", func() {
		for _, id := range []string{"released", "captured"} {
			for action, more := range map[string]string{"capture": "", "release": "", "extend": `,"ttl_seconds":60`} {
				p := s.send("/v1/holds/"+id+"/"+action, id+action, `{"tenant":"acme"`+more+`}`).problem(409, "hold_not_active")
				assert.True(t, p.Errors[0].Field == "hold_id" && strings.Contains(p.Detail, id),
					"%s %s: %+v", action, id, p)
			}
		}
	})
}

func TestHold_IDUniquePerTenant(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.tenant("other")
	s.hold("h1", 2).want(201)
	s.unmoved("refused", func() {
		for action, more := range map[string]string{"capture": "", "release": "", "extend": `,"ttl_seconds":60`} {
			for tenant, id := range map[string]string{"other": "h1", "acme": "none", "nobody": "h1"} {
				p := s.send("/v1/holds/"+id+"/"+action, "k", fmt.Sprintf(`{"tenant":%q%s}`, tenant, more)).problem(404, "hold_not_found")
				assert.Equal(t, "hold_id", p.Errors[0].Field, p)
			}
		}
		if p := s.send("/v1/holds", "another key", holdOf("h1", 2)); p.status != 400 { // a key must not contain a space
			t.Errorf("%s", p.body)
		}
		p := s.send("/v1/holds", "another-key", holdOf("h1", 2)).problem(409, "precondition_failed")
		assert.Equal(t, "hold_id", p.Errors[0].Field, p)
		s.send("/v1/holds", "hold-h1", holdOf("h1", 3)).problem(422, "idempotency_key_reused")
		s.send("/v1/holds/h1/release", "hold-h1", `{"tenant":"acme"}`).problem(422, "idempotency_key_reused")
		s.debit("hold-h1", "acme", "calls", 2).problem(422, "idempotency_key_reused")
		s.send("/v1/holds/h1/capture", "k", `{"tenant":"acme","items":[{"meter":"credits","amount":1}]}`).refused("items[0].meter")
		s.send("/v1/holds/h1/capture", "k", `{"tenant":"acme","items":[{"meter":"calls","amount":1},{"meter":"calls","amount":1}]}`).refused("items[1].meter")
	})
}

func TestHold_NotPayable_DeniedLikeDebit(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.tenant("frozen")
	s.hold("h1", 8).want(201)
	s.call("PATCH", "/v1/tenants/frozen", `{"status":"suspended"}`).want(200)
	hold := func(tenant, meter string, amount int64) *answer {
		return s.send("/v1/holds", "k", `{"hold_id":"h2",`+demandOf(tenant, meter, amount)[1:])
	}
	s.eventually("the suspension is known", func() bool { return hold("frozen", "credits", 1).status == 403 })
	hold("acme", "credits", 1).want(402) // the balance is opened because its period begins, not because of the hold
	hold("acme", "other", 1).want(403)
	hold("frozen", "calls", 1).want(403)
	s.unmoved("denied", func() {
		a := hold("acme", "calls", 3)
		p := a.problem(429, "quota_exceeded")
		assert.True(t, *p.Required == 3 && *p.Available == 2 && a.number(headerQuotaRemaining) == 2 && a.number(headerRetryAfter) >= 1, "%v %s", a.header, a.body)
		hold("acme", "credits", 1).problem(402, "credits_exhausted")
		hold("acme", "other", 1).problem(403, "meter_not_in_plan")
		hold("acme", "nothing", 1).problem(404, "not_found")
		hold("nobody", "calls", 1).problem(404, "tenant_not_found")
		hold("frozen", "calls", 1).problem(403, "tenant_suspended")
		two := `{"tenant":"acme","hold_id":"h2","items":[{"meter":"calls","amount":1},{"meter":"credits","amount":1}]}`
		s.send("/v1/holds", "k", two).problem(402, "credits_exhausted")
	})
}

func TestHold_SuspendedTenant_CanFinish(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.hold("h1", 2).want(201)
	s.hold("h2", 2).want(201)
	s.call("PATCH", "/v1/tenants/acme", `{"status":"suspended"}`).want(200)
	s.eventually("the suspension is known", func() bool { return s.debit("k", "acme", "calls", 1).status == 403 })
	s.hold("h3", 1).problem(403, "tenant_suspended")
	s.hold("h1", 2).want(201) // a replay
	s.send("/v1/holds/h1/capture", "more", `{"tenant":"acme","items":[{"meter":"calls","amount":3}]}`).problem(403, "tenant_suspended")
	s.send("/v1/holds/h1/capture", "c", `{"tenant":"acme"}`).want(200)
	s.send("/v1/holds/h2/release", "r", `{"tenant":"acme"}`).want(200)
}

func TestCaptureHold_BeyondHold_DecidedLikeDebit(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.hold("h1", 4).want(201)
	capture := func(key string, amount int64) *answer {
		return s.send("/v1/holds/h1/capture", key, fmt.Sprintf(`{"tenant":"acme","items":[{"meter":"calls","amount":%d}]}`, amount))
	}
	s.unmoved("more than there is", func() {
		a := capture("c1", 11)
		p := a.problem(402, "credits_exhausted")
		assert.True(t, *p.Required == 7 && *p.Available == 6, "%s", a.body)
	})
	h := holdIn(capture("c1", 7).want(200))
	assert.True(t, h.Status == client.HoldStatusCaptured && h.Items[0].Captured == 7 && h.Items[0].Remaining == 3, h)
}

func TestHold_QuotaHeadersOfMinRemaining(t *testing.T) {
	t.Parallel()
	s := newService(t).spendable()
	a := s.send("/v1/holds", "k", `{"tenant":"acme","hold_id":"h","items":[{"meter":"calls","amount":1},{"meter":"jobs","amount":4}]}`).want(201)
	assert.True(t, a.number(headerQuotaLimit) == 5 && a.number(headerQuotaRemaining) == 1, "headers: %v", a.header)
	a = s.send("/v1/holds", "k2", `{"tenant":"acme","hold_id":"h2","items":[{"meter":"jobs","amount":2}]}`)
	if p := a.problem(429, "quota_exceeded"); *p.Available != 1 { // overage cannot be held
		t.Errorf("%s", a.body)
	}
}

func TestHold_DryRun_NeedsNoKey(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.debit("k", "acme", "calls", 1).want(200)
	dry := func(amount int64) *answer {
		return s.call("POST", "/v1/holds", strings.TrimSuffix(holdOf("h1", amount), "}")+`,"dry_run":true}`)
	}
	s.unmoved("dry", func() {
		h := holdIn(dry(9).want(200))
		assert.True(t, h.DryRun && h.Items[0].Remaining == 0 && h.OperationID == dryRunKey, h)
		dry(10).problem(429, "quota_exceeded")
	})
}

// keyed returns the paths that require an idempotency key, each with a valid body.
func keyed() map[string]string {
	out := map[string]string{}
	for name, good := range fullBodies() {
		switch name {
		case "hold", "captureHold", "releaseHold", "extendHold", "refund", "voidGrant", "extendGrant", "adjust":
			out[good.path] = good.body
		}
	}
	return out
}

func TestIdempotencyKey_RequiredOnHoldsRefundsCorrections(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.materials()
	operations := keyed()
	assert.Len(t, operations, 8, "operations")
	for path, body := range operations {
		s.unmoved(path, func() {
			s.call(http.MethodPost, path, body).problem(400, "idempotency_key_missing")
			for _, key := range []string{"", "a b", "é", strings.Repeat("k", 256)} {
				s.send(path, key, body).refused(headerIdempotencyKey)
			}
		})
	}
	for path, body := range operations {
		key := path[max(0, len(path)-200):]
		first := s.send(path, key, body).want(200, 201)
		again := s.send(path, key, body).want(first.status)
		assert.True(t, again.header.Get(headerReplayed) == "true" && string(again.body) == string(first.body),
			"%s: %v %s, first %s", path, again.header, again.body, first.body)
	}
}

func TestListHolds_ByStatus(t *testing.T) {
	t.Parallel()
	s := newService(t).spendable()
	hold := func(id, more string) {
		s.send("/v1/holds", "hold-"+id, fmt.Sprintf(`{"tenant":"acme","hold_id":%q,%s}`, id, more)).want(201)
	}
	hold("a-over", `"subject":"u1","items":[{"meter":"calls","amount":11},{"meter":"jobs","amount":2}]`) // credits pay for one call
	hold("b-part", `"items":[{"meter":"jobs","amount":2}]`)
	hold("c-gone", `"items":[{"meter":"credits","amount":1}]`)
	hold("d-back", `"items":[{"meter":"credits","amount":1}]`)
	s.send("/v1/holds/a-over/capture", "c1", `{"tenant":"acme","items":[{"meter":"calls","amount":4}]}`).want(200)
	s.send("/v1/holds/b-part/capture", "c2", `{"tenant":"acme","items":[{"meter":"jobs","amount":1}],"final":true}`).want(200)
	s.send("/v1/holds/d-back/release", "r1", `{"tenant":"acme"}`).want(200)
	for _, table := range []string{"holds", "hold_lines"} { // the hold has expired, and no request has noticed it yet
		_, err := s.pool.Exec(t.Context(), `UPDATE `+table+` SET expires_at = now() - interval '1 minute' WHERE hold_id = 'c-gone'`)
		require.NoError(t, err)
	}
	want := []client.Hold{
		{HoldID: "a-over", Subject: "u1", Status: "active", Items: []client.HoldPart{{Meter: "calls", Amount: 11, Captured: 4, Held: 7}, {Meter: "jobs", Amount: 2, Held: 2}}},
		{HoldID: "b-part", Status: "captured", Items: []client.HoldPart{{Meter: "jobs", Amount: 2, Captured: 1}}},
		{HoldID: "c-gone", Status: "expired", Items: []client.HoldPart{{Meter: "credits", Amount: 1}}},
		{HoldID: "d-back", Status: "released", Items: []client.HoldPart{{Meter: "credits", Amount: 1}}},
	}
	s.unmoved("reading", func() {
		got := pages[client.Hold](s, "/v1/tenants/acme/holds?", 3)
		for i := range got {
			assert.False(t, !got[i].ExpiresAt.After(got[i].CreatedAt) && got[i].HoldID != "c-gone", got[i])
			want[i].CreatedAt, want[i].ExpiresAt = got[i].CreatedAt, got[i].ExpiresAt
		}
		assert.Equal(t, want, got)
		for i, status := range []string{"active", "captured", "expired", "released"} {
			page := decoded[client.HoldList](s.call("GET", "/v1/tenants/acme/holds?status="+status, "").want(200))
			assert.Equal(t, want[i:i+1], page.Items, status)
		}
		one := decoded[client.Hold](s.call("GET", "/v1/tenants/acme/holds/a-over", "").want(200))
		assert.Equal(t, want[0], one)
		s.call("GET", "/v1/tenants/acme/holds/none", "").problem(404, "hold_not_found")
		s.call("GET", "/v1/tenants/nobody/holds", "").problem(404, "tenant_not_found")
		s.call("GET", "/v1/tenants/nobody/holds/a-over", "").problem(404, "tenant_not_found")
		s.call("GET", "/v1/tenants/acme/holds?status=lost", "").refused("status")
		s.call("GET", "/v1/tenants/acme/holds?limit=501", "").refused("limit")
		s.call("GET", "/v1/tenants/acme/holds?cursor=x", "").refused("cursor")
	})
}
