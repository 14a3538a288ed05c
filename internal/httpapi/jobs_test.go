package httpapi

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/httpapi/answers"
	"github.com/quotasvc/quotasvc/internal/ledger/audit"
	"github.com/quotasvc/quotasvc/internal/ledger/audit/seal"
)

// verified starts a verification, and returns it after it has ended.
func (s *service) verified(body string) client.Verification {
	s.t.Helper()
	a := s.call("POST", "/v1/verifications", body).want(202)
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
	if !tenants["other"] || !tenants["*"] || tenants["acme"] { // the balance of other, and the sum over all balances
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

// The report has the number of balances that a verification did not read, so that nobody takes them for verified.
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

// The answer equals the file that `quotasvc seal` writes, so the verification accepts a saved answer, too.
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
