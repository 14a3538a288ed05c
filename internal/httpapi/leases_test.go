package httpapi

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/client"
)

// leasing creates tenants acme and other, and limit exports with 2 leases.
func (s *service) leasing() *service {
	s.t.Helper()
	s.catalogue()
	s.tenant("other")
	s.limit("exports", `{"per":["tenant"],"kind":"concurrency","burst":2}`)
	return s
}

// limit stores a limit. It returns when the server enforces the limit.
func (s *service) limit(rule, body string) {
	s.t.Helper()
	n := len(s.server.catalog.Snapshot().Limits)
	s.call("PUT", "/v1/limits/"+rule, body).want(201)
	s.eventually("the snapshot has "+rule, func() bool { return len(s.server.catalog.Snapshot().Limits) > n })
}

func (s *service) acquire(body string, extra ...string) *answer {
	s.t.Helper()
	return s.call("POST", "/v1/leases", body, extra...)
}

// TestLease_LimitPutJustNow_IsKnown: a client that has stored a limit can use it with its next request, because the
// server then refreshes its copy of the catalogue. If no limit has the requested name, there is no refresh.
func TestLease_LimitPutJustNow_IsKnown(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	for i := range 50 {
		rule := fmt.Sprintf("jobs-%d", i)
		s.call("PUT", "/v1/limits/"+rule, `{"per":["tenant"],"kind":"concurrency","burst":2}`).want(201)
		s.acquire(`{"rule":"` + rule + `","tenant":"acme"}`).want(201)
		s.call("PUT", "/v1/limits/r"+rule, `{"per":["tenant"],"kind":"token_bucket","rate":"5/s","match":{"route":"/`+rule+`"}}`).want(201)
		s.call("GET", "/v1/limits/r"+rule+"/state?tenant=acme", "").want(200)
		s.call("POST", "/v1/limits/charge", `{"tenant":"acme","route":"/`+rule+`","rules":["r`+rule+`"]}`).want(200)
		s.acquire(`{"rule":"none","tenant":"acme"}`).problem(404, "not_found")
	}
}

func TestLease_AcquireRenewRelease(t *testing.T) {
	t.Parallel()
	s := newService(t).leasing()
	body := `{"rule":"exports","tenant":"acme","ttl_seconds":90}`
	var first, again, dry client.LeaseAnswer
	began := time.Now()
	a := s.acquire(body, headerIdempotencyKey, "job-1").want(201)
	a.into(&first)
	assert.True(t, first.LeaseID != "" && first.Rule == "exports" && first.Limit == 2 && *first.InUse == 1 && *first.Remaining == 1 &&
		first.ExpiresInMs == 90_000, "%s", a.body)
	earliest, latest := began.Add(89*time.Second), time.Now().Add(91*time.Second)
	if end := first.ExpiresAt; end.Before(earliest) || end.After(latest) {
		t.Errorf("ends at %s, not between %s and %s", end, earliest, latest)
	}
	assert.EqualValues(t, `"exports";q=2;qu="concurrent-requests"`, a.header.Get("RateLimit-Policy"))
	assert.True(t, a.header.Get("RateLimit") == `"exports";r=1` && a.header.Get(headerReplayed) == "", a.header)
	a = s.acquire(body, headerIdempotencyKey, "job-1").want(201)
	a.into(&again)
	assert.True(t, again.LeaseID == first.LeaseID && *again.InUse == 1 && a.header.Get(headerReplayed) == "true",
		"the same key: %s %v", a.body, a.header)
	s.acquire(`{"rule":"exports","tenant":"acme","dry_run":true}`).want(200).into(&dry)
	assert.True(t, dry.LeaseID == "" && dry.ExpiresAt.IsZero() && *dry.InUse == 1 && dry.DryRun, dry)
	s.acquire(body).want(201) // without an idempotency key, this is another lease
	a = s.acquire(body)
	p := a.problem(429, "rate_limited")
	assert.True(t, p.Type == typeQuotaExceeded && len(p.ViolatedPolicies) == 1 && p.ViolatedPolicies[0] == "exports" && p.RetryAfterMs >= 1 &&
		p.RetryAfterMs <= 5000, "%s", a.body)
	rule, left, wait := a.limit()
	assert.True(t, rule == "exports" && left == 0 && wait <= a.number(headerRetryAfter), a.header)
	s.acquire(`{"rule":"exports","tenant":"acme","dry_run":true}`).problem(429, "rate_limited")
	s.acquire(`{"rule":"exports","tenant":"other"}`).want(201)

	renew := func() *answer { return s.call("POST", "/v1/leases/"+first.LeaseID+"/renew", `{"ttl_seconds":3600}`) }
	renew().want(200).into(&again)
	assert.True(t, again.LeaseID == first.LeaseID && again.ExpiresInMs == 3_600_000 && *again.InUse == 2, again)
	for range 2 {
		s.call("DELETE", "/v1/leases/"+first.LeaseID, "").want(204)
	}
	renew().problem(404, "lease_not_found")
	s.acquire(body).want(201)
}

func TestLease_WrongLimit_Refused(t *testing.T) {
	t.Parallel()
	s := newService(t).leasing()
	s.limit("per-subject", `{"per":["subject"],"kind":"concurrency","rate":"1/30s"}`)
	s.limit("calls", `{"per":["tenant"],"kind":"token_bucket","rate":"5/s"}`)
	s.acquire(`{"rule":"none","tenant":"acme"}`).problem(404, "not_found")
	s.acquire(`{"rule":"exports","tenant":"nobody"}`).problem(404, "tenant_not_found")
	s.acquire(`{"rule":"calls","tenant":"acme"}`).refused("rule")
	s.acquire(`{"rule":"per-subject","tenant":"acme"}`).refused("subject")
	s.acquire(`{"rule":"exports","tenant":"acme"}`, headerIdempotencyKey, "with blank ").refused(headerIdempotencyKey)
	lease := decoded[client.LeaseAnswer](s.acquire(`{"rule":"per-subject","tenant":"acme","subject":"ann"}`).want(201))
	assert.EqualValues(t, 30_000, lease.ExpiresInMs, "%+v: the rate's period is how long a lease lasts", lease)
	s.acquire(`{"rule":"per-subject","tenant":"acme","subject":"ann"}`).problem(429, "rate_limited")
	s.acquire(`{"rule":"per-subject","tenant":"acme","subject":"bob"}`).want(201)
	s.call("PATCH", "/v1/tenants/acme", `{"status":"suspended"}`).want(200)
	s.eventually("acme is suspended", func() bool { return s.acquire(`{"rule":"exports","tenant":"acme"}`).status == 403 })
	s.acquire(`{"rule":"exports","tenant":"acme"}`).problem(403, "tenant_suspended")
}

// TestLease_ForgedID_404: a forged id is answered with 404 and changes nothing.
func TestLease_ForgedID_404(t *testing.T) {
	t.Parallel()
	s := newService(t).leasing()
	var held client.LeaseAnswer
	s.acquire(`{"rule":"exports","tenant":"acme"}`, headerIdempotencyKey, "k").want(201).into(&held)
	id := held.LeaseID
	swap := func(at int) string { // a different character of base64url
		c := byte('A')
		if id[at] == 'A' {
			c = 'B'
		}
		return id[:at] + string(c) + id[at+1:]
	}
	for _, forged := range []string{
		"x", "..", "-", id[1:], id[:len(id)-4], id + "AAAA", id + "=", id + " ", " " + id, id + "\n", id + "\x00", swap(0), swap(1), swap(len(id) - 8),
		strings.ToLower(id), strings.Repeat("A", 512), strings.Repeat("A", 5000), "acme|exports||member", "\xff", "a/b", "{acme}",
	} {
		path := "/v1/leases/" + url.PathEscape(forged)
		s.call("POST", path+"/renew", `{}`).problem(404, "lease_not_found")
		a := s.call("DELETE", path, "")
		assert.False(t, a.status != 204 && a.status != 404, "DELETE %q: %d %s", forged, a.status, a.body)
	}
	n := decoded[client.LeaseAnswer](s.acquire(`{"rule":"exports","tenant":"acme","dry_run":true}`).want(200))
	assert.True(t, *n.InUse == 1, "%d are held, want the one", *n.InUse)
	s.call("POST", "/v1/leases/"+id+"/renew", `{}`).want(200)
}

// held acquires the only lease of limit slots and returns its id.
func (s *service) held() string {
	s.t.Helper()
	var lease client.LeaseAnswer
	s.acquire(`{"rule":"slots","tenant":"acme","subject":"bot","ip":"192.0.2.77"}`).want(201).into(&lease)
	return lease.LeaseID
}

func (s *service) renew(id string) *answer {
	s.t.Helper()
	return s.call("POST", "/v1/leases/"+id+"/renew", `{}`)
}

// TestLease_BlockedOrSuspended_EndsAtItsRenewal: a block or a suspension refuses new leases. It also ends a held
// lease when its holder renews it. Another caller can then acquire a lease.
func TestLease_BlockedOrSuspended_EndsAtItsRenewal(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.limit("slots", `{"per":["tenant"],"kind":"concurrency","burst":1}`)
	refuse := func(how string) { s.call("PATCH", "/v1/tenants/acme", `{"status":"`+how+`"}`).want(200) }
	for _, tc := range []struct {
		name, code   string
		refuse, lift func()
	}{
		{"subject", "forbidden", s.blocking("subject/bot", `"tenant":"acme",`), s.lifting("subject/bot?tenant=acme")},
		{"address", "forbidden", s.blocking("ip/192.0.2.0%2F24", ""), s.lifting("ip/192.0.2.0%2F24")},
		{"tenant", "forbidden", s.blocking("tenant/acme", ""), s.lifting("tenant/acme")},
		{"suspended", "tenant_suspended", func() { refuse("suspended") }, func() { refuse("active") }},
	} {
		id := s.held()
		s.renew(id).want(200)
		tc.refuse()
		s.eventually(tc.name+": it is known here", func() bool {
			return s.acquire(`{"rule":"slots","tenant":"acme","subject":"bot","ip":"192.0.2.77","dry_run":true}`).status == 403
		})
		s.renew(id).problem(403, tc.code)
		tc.lift()
		s.eventually(tc.name+": it is lifted", func() bool {
			return s.acquire(`{"rule":"slots","tenant":"acme","subject":"bot","ip":"192.0.2.77","dry_run":true}`).status == 200
		})
		s.renew(id).problem(404, "lease_not_found")
		s.call("DELETE", "/v1/leases/"+s.held(), "").want(204)
	}
}

func (s *service) blocking(what, more string) func() {
	return func() { s.call("PUT", "/v1/blocks/"+what, `{`+more+`"action":"block"}`).want(201) }
}

func (s *service) lifting(what string) func() {
	return func() { s.call("DELETE", "/v1/blocks/"+what, "").want(204) }
}

// TestLease_EveryForgedBit_404: if any bit of a lease's id is changed, the id names no lease.
func TestLease_EveryForgedBit_404(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.tenant("other")
	s.limit("slots", `{"per":["tenant"],"kind":"concurrency","burst":1}`)
	id := s.held()
	raw, err := base64.RawURLEncoding.DecodeString(id)
	s.check(err)
	for i := range raw {
		forged := append([]byte(nil), raw...)
		forged[i] ^= 1 << (i % 8)
		text := base64.RawURLEncoding.EncodeToString(forged)
		s.renew(text).problem(404, "lease_not_found")
		s.call("DELETE", "/v1/leases/"+text, "").problem(404, "lease_not_found")
	}
	// Older versions created ids without a signature. The ids here are for tenants that exist and for a tenant that
	// does not exist. Half of them have the flag of a lease that Redis may not have.
	for _, head := range []string{"\x10", "\x12"} {
		for _, tenant := range []string{"acme", "other", "ghost"} {
			old := head + string(rune(len(tenant))) + tenant + "\x05slots\x00" + "0123456789abcdef"
			text := base64.RawURLEncoding.EncodeToString([]byte(old))
			s.renew(text).problem(404, "lease_not_found")
			s.call("DELETE", "/v1/leases/"+text, "").problem(404, "lease_not_found")
		}
	}
	n := decoded[client.LeaseAnswer](s.acquire(`{"rule":"slots","tenant":"other","dry_run":true}`).want(200))
	assert.Zero(t, *n.InUse, "leases of another tenant are held")
	s.renew(id).want(200)
}
