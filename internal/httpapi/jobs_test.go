package httpapi

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/httpapi/answers"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger/audit"
	"github.com/quotasvc/quotasvc/internal/ledger/audit/seal"
	"github.com/quotasvc/quotasvc/internal/report/testclock"
)

// startVerification starts a verification as soon as no other one runs.
func (s *service) startVerification(body string) (a *answer) {
	s.t.Helper()
	s.eventually("a verification starts", func() bool {
		a = s.call("POST", "/v1/verifications", body).want(202, 503)
		return a.status == 202
	})
	return a
}

// verified starts a verification, and returns it after it has ended.
func (s *service) verified(body string) client.Verification {
	s.t.Helper()
	a := s.startVerification(body)
	var started, got client.Verification
	a.into(&started)
	assert.True(s.t, a.header.Get("Location") == "/v1/verifications/"+started.VerificationID && started.Status == "running" &&
		started.FinishedAt == nil, "Location %q: %+v", a.header.Get("Location"), started)
	s.eventually("the verification has ended", func() bool {
		got = client.Verification{}
		s.call("GET", "/v1/verifications/"+started.VerificationID, "").want(200).into(&got)
		return got.Status != "running"
	})
	assert.NotNil(s.t, got.FinishedAt, got)
	return got
}

func TestVerification_ReportsDifferences(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.tenant("other")
	s.debit("k1", "acme", "calls", 4).want(200)
	s.send("/v1/refunds", "r", refundOf("k1", `,"amount":1`)).want(200)
	s.hold("h1", 2).want(201)
	s.debit("k2", "other", "calls", 3).want(200)
	for body, want := range map[string]client.Verification{
		"": {Balances: 2, Entries: 6, Grants: 2, Totals: []client.VerifiedMeter{{Meter: "calls", Issued: 20, Used: 7, Refunded: 1, Remaining: 12, Held: 2}}},
		`{"tenant":"acme"}`: {
			Tenant: "acme", Balances: 1, Entries: 4, Grants: 1,
			Totals: []client.VerifiedMeter{{Meter: "calls", Issued: 10, Used: 4, Refunded: 1, Remaining: 5, Held: 2}},
		},
	} {
		got := s.verified(body)
		want.VerificationID, want.StartedAt, want.FinishedAt = got.VerificationID, got.StartedAt, got.FinishedAt
		want.Status, want.Differences, want.Copies, want.StaleCopies = "clean", []client.Difference{}, got.Copies, got.StaleCopies
		want.UnreadBalances = []client.UnreadBalance{}
		assert.Equal(t, want, got, body)
	}
	_, err := s.pool.Exec(t.Context(), `UPDATE balances SET used = used - 1 WHERE tenant_id = 'other'`)
	require.NoError(t, err)
	got := s.verified("{}")
	require.True(t, got.Status == "drift" && got.DifferenceCount == int64(len(got.Differences)) &&
		got.DifferenceCount >= 2, got)
	tenants := map[string]bool{}
	for _, d := range got.Differences {
		tenants[d.Tenant] = true
	}
	if !tenants["other"] || !tenants[""] || tenants["acme"] { // differences of other, and of the sum over all balances
		t.Errorf("%+v", got.Differences)
	}
	got = s.verified(`{"tenant":"acme"}`)
	assert.EqualValues(t, "clean", got.Status, got)
}

func TestVerification_UnknownTenant_Refused(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.unmoved("refused", func() {
		s.call("POST", "/v1/verifications", `{"tenant":"nobody"}`).problem(404, "tenant_not_found")
		s.call("POST", "/v1/verifications", "", headerIdempotencyKey, "a b").refused(headerIdempotencyKey)
		s.call("GET", "/v1/verifications/none", "").problem(404, "not_found")
	})
}

// The report has the number of balances that a verification did not read, so that nobody believes that they were
// verified.
func TestVerification_PartOnly_SaysWhatWasNotRead(t *testing.T) {
	t.Parallel()
	s := newService(t)
	_, err := s.pool.Exec(t.Context(), `INSERT INTO verifications (verification_id, tenant_id, status, report, error, started_at, heartbeat_at, finished_at)
		VALUES ('part', '', 'failed', '{"Balances": 7, "Incremental": true, "Unchanged": 5, "Unread": 2,
			"UnreadFirst": [{"Tenant": "acme", "Meter": "calls", "Subject": "ann"}, {"Tenant": "other"}]}', '2 balances', now(), now(), now())`)
	require.NoError(t, err)
	got := decoded[client.Verification](s.call("GET", "/v1/verifications/part", "").want(200))
	want := client.Verification{
		VerificationID: "part", Status: "failed", Balances: 7, Incremental: true, Unchanged: 5, Unread: 2, Error: "2 balances",
		UnreadBalances: []client.UnreadBalance{{Tenant: "acme", Meter: "calls", Subject: "ann"}, {Tenant: "other"}},
		Totals:         []client.VerifiedMeter{}, Differences: []client.Difference{}, StartedAt: got.StartedAt, FinishedAt: got.FinishedAt,
	}
	assert.Equal(t, want, got)
}

func TestVerification_ProcessDied_Abandoned(t *testing.T) {
	t.Parallel()
	s := newService(t)
	_, err := s.pool.Exec(t.Context(), `INSERT INTO verifications (verification_id, tenant_id, status, report, started_at, heartbeat_at)
		VALUES ('lost', '', 'running', '{"Balances": 7}', now() - interval '5 minutes', now() - interval '2 minutes')`)
	require.NoError(t, err)
	got := decoded[client.Verification](s.call("GET", "/v1/verifications/lost", "").want(200))
	assert.True(t, got.Status == "abandoned" && got.Balances == 7 && got.FinishedAt == nil, got)
}

func TestVerifications_List(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	list := decoded[client.VerificationList](s.call("GET", "/v1/verifications", "").want(200))
	assert.True(t, len(list.Items) == 0 && list.NextCursor == nil, list)
	s.debit("k1", "acme", "calls", 4).want(200)
	first := s.verified("")
	_, err := s.pool.Exec(t.Context(), `UPDATE balances SET used = used - 1 WHERE tenant_id = 'acme'`)
	require.NoError(t, err)
	second := s.verified(`{"tenant":"acme"}`)
	cursor, got := "", []client.VerificationSummary{}
	for range 2 {
		list = client.VerificationList{}
		s.call("GET", "/v1/verifications?limit=1"+cursor, "").want(200).into(&list)
		got = append(got, list.Items...)
		if list.NextCursor != nil {
			cursor = "&cursor=" + *list.NextCursor
		}
	}
	want := []client.VerificationSummary{}
	for _, v := range []client.Verification{second, first} {
		want = append(want, client.VerificationSummary{
			VerificationID: v.VerificationID, Tenant: v.Tenant, Status: client.VerificationSummaryStatus(v.Status), Balances: v.Balances, Entries: v.Entries,
			Incremental: v.Incremental, DifferenceCount: v.DifferenceCount, StartedAt: v.StartedAt, FinishedAt: v.FinishedAt,
		})
	}
	require.Equal(t, want, got)
	assert.True(t, list.NextCursor == nil && got[0].DifferenceCount != 0 && got[0].Status == "drift", list.NextCursor)
	list = client.VerificationList{}
	s.call("GET", "/v1/verifications?tenant=acme", "").want(200).into(&list)
	assert.True(t, len(list.Items) == 1 && list.Items[0].VerificationID == second.VerificationID, list)
	for _, field := range []string{"tenant", "limit", "cursor"} {
		s.call("GET", "/v1/verifications?"+field+"=+", "").refused(field)
	}
	s.call("GET", "/v1/verifications?cursor=x", "").refused("cursor")
}

// An answer has the content of the file that `quotasvc seal` writes, so a saved answer can be verified like this file.
func TestSeals_ListAndFile(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.call("GET", "/v1/seals", "").want(200).into(&client.SealList{})
	owner := s.openVerifier(s.pool.Config().ConnString()) // the role of the service may not write seals
	var made []string
	days := []string{"2025-01-01", "2025-01-02", "2025-01-04"}
	for _, text := range days {
		day, err := time.Parse(time.DateOnly, text)
		s.check(err)
		sealed, err := owner.Seal(t.Context(), audit.SealOptions{Day: day})
		s.check(err)
		file, err := sealed.Encode()
		s.check(err)
		made = append(made, string(file))
	}
	for i, day := range days {
		answer := s.call("GET", "/v1/seals/"+day, "").want(200)
		got, err := seal.Parse(answer.body, nil)
		if err != nil {
			t.Errorf("%s: %v", day, err)
			continue
		}
		file, err := got.Encode()
		s.check(err)
		assert.Equal(t, made[i], string(file), day)
	}
	listed := answers.Map(pages[client.SealSummary](s, "/v1/seals?", 1), func(item *client.SealSummary) string {
		return fmt.Sprintf("%s %d", item.Day, item.Position)
	})
	assert.Equal(t, []string{"2025-01-04 2", "2025-01-02 1", "2025-01-01 0"}, listed)
	s.call("GET", "/v1/seals/2025-01-03", "").problem(404, "not_found")
	s.call("GET", "/v1/seals/2025-01-05", "").problem(404, "not_found")
	s.call("GET", "/v1/seals/yesterday", "").refused("day")
	s.call("GET", "/v1/seals?cursor=x", "").refused("cursor")
	s.call("GET", "/v1/seals?cursor=-1", "").refused("cursor")
	s.call("GET", "/v1/seals?limit=0", "").refused("limit")
}

func TestGetStatus_RequestsRefusalsJobs(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	got := decoded[client.ServiceStatus](s.call("GET", "/v1/status", "").want(200))
	assert.True(t, got.Requests.Answered != 0 && !got.Refusals.From.IsZero() && got.Refusals.Total == 0 && got.Roll.RollID == "" && got.Degraded != nil &&
		len(got.Degraded) == 0, got)
	s.call("POST", "/v1/rolls", "").want(202)
	s.eventually("the roll is there", func() bool {
		got = client.ServiceStatus{}
		s.call("GET", "/v1/status", "").want(200).into(&got)
		return got.Roll.RollID != ""
	})
	s.call("GET", "/v1/status?tenant=acme", "").want(400)
}

// newOwner returns a service whose role may create the journal's monthly partitions, as in dev.
func newOwner(t *testing.T) *service { return newOwnerOn(t, testenv.Postgres(t)) }

func newOwnerOn(t *testing.T, databaseURL string) *service {
	t.Helper()
	s := &service{t: t, owner: true}
	g, l, c := s.below(databaseURL)
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

// clockCatalogue creates plan p, and tenant acme with this plan. The plan has 10 calls a month, and a trial of 100
// credits for 14 days.
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
// created. A move could not be undone.
func TestClock_NoPartitions_DoesNotMove(t *testing.T) {
	t.Parallel()
	s := newService(t) // the role of this service may not create partitions
	s.call("POST", "/v1/test/clock", `{"advance":"400d"}`).problem(http.StatusInternalServerError, "internal")
	c := decoded[client.TestClock](s.call("GET", "/v1/test/clock", "").want(200))
	assert.Zero(t, c.OffsetSeconds, c)
}
