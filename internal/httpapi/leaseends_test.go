package httpapi

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/client"
)

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
	// Ids without a signature, as older versions made them: for tenants that do or do not exist, and with the flag of
	// a lease that Redis may not have.
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
