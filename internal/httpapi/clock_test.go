package httpapi

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/report/testclock"
)

// newOwner returns a service whose role may create the journal's monthly partitions, as in dev.
func newOwner(t *testing.T) *service {
	t.Helper()
	s := &service{t: t, owner: true}
	g, l, c := s.below(testenv.Postgres(t))
	s.serve(g, l, c, nil)
	return s
}

// advance moves the ledger's time forward by a duration such as 13d.
func (s *service) advance(by string) client.TestClock {
	s.t.Helper()
	var c client.TestClock
	s.call("POST", "/v1/test/clock", fmt.Sprintf(`{"advance":%q}`, by)).want(http.StatusOK).into(&c)
	return c
}

// verifyClean fails the test unless a verification finds that all stored data agrees with the journal.
func (s *service) verifyClean() {
	s.t.Helper()
	v := s.verified("")
	assert.True(s.t, v.Status == client.VerificationStatusClean && v.Entries != 0,
		"the verification is %s after %d entries: %v", v.Status, v.Entries, v.Differences)
}

// clockCatalogue creates plan p, and tenant acme with this plan. The plan has 10 calls a month, and for 14 days 100
// credits as a trial.
func (s *service) clockCatalogue() *service {
	s.t.Helper()
	s.call("PUT", "/v1/meters/calls", `{"unit":"call"}`).want(201)
	s.call("PUT", "/v1/meters/credits", `{"unit":"credit"}`).want(201)
	s.call("PUT", "/v1/plans/p", `{"allowances":[{"meter":"calls","amount":10,"every":"month","anchor":"tenant"},
		{"meter":"credits","amount":100,"every":"once","anchor":"tenant","expires_in_days":14}]}`).want(201)
	s.call("PUT", "/v1/tenants/acme", `{"plan":"p"}`).want(201)
	return s
}

func TestClock_Advance_ClosesMonthsAndEndsTrialsAndGrants(t *testing.T) {
	t.Parallel()
	s := newOwner(t).clockCatalogue()
	s.debit("first", "acme", "calls", 7).want(200)
	now := time.Now().UTC()
	s.call("POST", "/v1/tenants/acme/grants", fmt.Sprintf(`{"meter":"calls","amount":5,"source":"promo","expires_at":%q}`, now.AddDate(0, 0, 20).Format(time.RFC3339)),
		headerIdempotencyKey, "promo").want(201)
	for _, step := range []struct {
		by             string
		calls, credits int64
	}{
		{"13d", 8, 100}, // nothing is due yet
		{"36h", 8, 0},   // the trial of 14 days has ended
		{"6d", 3, 0},    // the promo of 20 days has ended; the 3 calls are of the allowance
		{"12d", 10, 0},  // the next month has begun
		{"365d", 10, 0}, // twelve months without use
	} {
		c := s.advance(step.by)
		if calls, credits := s.remaining("acme", "calls"), s.remaining("acme", "credits"); calls != step.calls || credits != step.credits {
			t.Errorf("%s further, at %s: %d calls and %d credits, want %d and %d", step.by, c.Now, calls, credits, step.calls, step.credits)
		}
	}
	a := s.debit("second", "acme", "calls", 4).want(200)
	reset := a.header.Get("X-Quota-Reset")
	assert.True(t, reset != "" && len(reset) <= len("2678400"), "X-Quota-Reset is %q seconds", reset)
	var check client.CheckAnswer
	s.call("POST", "/v1/check", `{"tenant":"acme","items":[{"meter":"calls","amount":7}]}`).want(200).into(&check)
	assert.True(t, !check.Allowed && check.Items[0].Remaining == 6 &&
		!check.Items[0].WouldSucceedAt.Before(now.AddDate(1, 0, 0)), "a check says %+v", check)
	s.verifyClean()
}

func TestClock_Advance_ExpiresHoldsAndForgetsKeys(t *testing.T) {
	t.Parallel()
	s := newOwner(t).clockCatalogue()
	s.call("POST", "/v1/holds", `{"tenant":"acme","hold_id":"h","items":[{"meter":"calls","amount":6}],"ttl_seconds":3600}`, headerIdempotencyKey, "h").want(201)
	s.debit("k", "acme", "calls", 1).want(200)
	assert.EqualValues(t, 3, s.remaining("acme", "calls"), "remain beside the hold")
	s.advance("59m")
	assert.EqualValues(t, 3, s.remaining("acme", "calls"), "remain before the hold's end")
	s.advance("2m")
	assert.EqualValues(t, 9, s.remaining("acme", "calls"), "remain after the hold's end")
	s.call("POST", "/v1/holds/h/capture", `{"tenant":"acme"}`, headerIdempotencyKey, "late").problem(http.StatusConflict, "hold_not_active")
	assert.EqualValues(t, "true", s.debit("k", "acme", "calls", 1).want(200).header.Get(headerReplayed),
		"the key is forgotten after an hour")
	s.advance("70d")
	assert.Empty(t, s.debit("k", "acme", "calls", 1).want(200).header.Get(headerReplayed),
		"the key is known after 70 days")
	s.verifyClean()
}

func TestClock_OutOfBounds_RefusedByField(t *testing.T) {
	t.Parallel()
	testenv.NotOnCitus(t, "the partitions of ten years take minutes there")
	s := newOwner(t)
	for _, body := range []string{
		`{}`, `{"advance":""}`, `{"advance":"-1h"}`, `{"advance":"0s"}`, `{"advance":"999ms"}`, `{"advance":"3654d"}`, `{"advance":"31"}`, `{"advance":"d"}`, `{"advance":"1.5d"}`,
		`{"advance":"1d-1h"}`, `{"advance":"-1d"}`, `{"advance":"1h1d"}`, `{"advance":"9999999999999999d"}`, `{"advance":"106751d24h"}`, `{"advance":"1y"}`, `{"advance":3600}`, `{"advance":null}`,
		`{"advance":"2562047h47m16.854775807s"}`,
	} {
		p := s.call("POST", "/v1/test/clock", body).problem(http.StatusBadRequest, "invalid_argument")
		assert.True(t, len(p.Errors) == 1 && p.Errors[0].Field == "advance", "%s: %+v", body, p.Errors)
	}
	c := decoded[client.TestClock](s.call("GET", "/v1/test/clock", "").want(200))
	assert.Zero(t, c.OffsetSeconds, "it has moved by %d s", c.OffsetSeconds)
	c = s.advance("3652d")
	want := time.Now().Add(3652 * 24 * time.Hour)
	assert.True(t, c.OffsetSeconds == 3652*24*3600 && !c.Now.Before(want.Add(-time.Minute)) && !c.Now.After(want), c)
	p := s.call("POST", "/v1/test/clock", `{"advance":"25h"}`).problem(http.StatusBadRequest, "invalid_argument")
	assert.True(t, len(p.Errors) == 1 && p.Errors[0].Field == "advance", p.Errors)
	c = s.advance("24h")
	assert.True(t, time.Duration(c.OffsetSeconds)*time.Second == testclock.Most, c)
}

func TestClock_SameKey_MovesOnce(t *testing.T) {
	t.Parallel()
	s := newOwner(t)
	var c client.TestClock
	for i := range 2 {
		a := s.call("POST", "/v1/test/clock", `{"advance":"2h"}`, headerIdempotencyKey, "once").want(200)
		a.into(&c)
		replayed := a.header.Get(headerReplayed) == "true"
		assert.True(t, c.OffsetSeconds == 7200 && replayed == (i == 1), "%d: %+v, replayed %t", i, c, replayed)
	}
	c = s.advance("1h")
	assert.EqualValues(t, 10800, c.OffsetSeconds, c)
	audit := decoded[client.AuditList](s.call("GET", "/v1/audit?action=clock.advance", "").want(200))
	assert.Len(t, audit.Items, 2, "lines in the audit log")
}

func TestClock_NotDev_IsNotFound(t *testing.T) {
	t.Parallel()
	s := newService(t, func(cfg *Config) { cfg.TestClock = nil })
	for _, method := range []string{"GET", "POST", "HEAD"} {
		a := s.call(method, "/v1/test/clock", `{"advance":"1h"}`)
		assert.True(t, a.status == http.StatusNotFound, "%s: %d", method, a.status)
	}
}

// TestClock_NoPartitions_DoesNotMove: the time does not move if the journal's partitions for the new time cannot be
// created, because the time could not be moved back.
func TestClock_NoPartitions_DoesNotMove(t *testing.T) {
	t.Parallel()
	s := newService(t) // the role of this service may not create partitions
	s.call("POST", "/v1/test/clock", `{"advance":"400d"}`).problem(http.StatusInternalServerError, "internal")
	c := decoded[client.TestClock](s.call("GET", "/v1/test/clock", "").want(200))
	assert.Zero(t, c.OffsetSeconds, c)
}
