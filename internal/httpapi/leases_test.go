package httpapi

import (
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
// server then refreshes its copy of the catalogue. A name of no limit does not cause a refresh.
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
