package httpapi

import (
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// rewind moves all stored times into the past, as if the duration `by` had passed. It adds a few seconds to `by`,
// because the id of an allowance contains the start of its period. After a move by whole periods, a new allowance
// would have the id of an old one.
func (s *service) rewind(by time.Duration) {
	s.t.Helper()
	by += 7 * time.Second
	_, err := s.pool.Exec(s.t.Context(), "UPDATE plans SET created_at = created_at - $1::interval", by)
	s.check(err)
	for _, statement := range slices.Concat(testenv.Rewind(testenv.OfTenant), testenv.Rewound) {
		_, err := s.pool.Exec(s.t.Context(), statement, "", by)
		s.check(err)
	}
}

func (s *service) balance(meter, subject string) (b client.Balance) {
	s.t.Helper()
	query := ""
	if subject != "" {
		query = "?subject=" + subject
	}
	s.call("GET", "/v1/tenants/acme/balances/"+meter+query, "").want(200).into(&b)
	return b
}

// statement returns the statement of a period. It fails the test unless the opening balance and the changes add up to
// the closing balance.
func (s *service) statement(meter string, start time.Time) (got client.Statement) {
	s.t.Helper()
	s.call("GET", "/v1/tenants/acme/statements/"+meter+"/"+startOf(start), "").want(200).into(&got)
	assert.True(s.t, got.Opening+got.Granted+got.Amended+got.Refunded-got.Used-got.Expired+got.Adjusted == got.Closing,
		"%+v does not foot", got)
	return got
}

func startOf(t time.Time) string { return url.PathEscape(t.UTC().Format(time.RFC3339Nano)) }

// rhythmic creates the meters calls, jobs and seats, and plan hourly, which has allowances of all three. It puts acme
// on this plan.
func (s *service) rhythmic() *service {
	s.t.Helper()
	for _, meter := range []string{"calls", "jobs", "seats"} {
		s.call("PUT", "/v1/meters/"+meter, `{"unit":"unit"}`).want(201)
	}
	s.call("PUT", "/v1/plans/hourly", `{"allowances":[{"meter":"calls","amount":10,"every":"hour","anchor":"tenant"},
		{"meter":"jobs","amount":5,"every":"hour","anchor":"tenant"},{"meter":"seats","amount":20,"every":"hour","anchor":"tenant","per_subject":8}]}`).want(201)
	s.call("PUT", "/v1/tenants/acme", `{"plan":"hourly"}`).want(201)
	return s
}

func TestTrial_EndsThenPaidPlan(t *testing.T) {
	t.Parallel()
	s := newService(t).rhythmic()
	s.call("PUT", "/v1/plans/trial", `{"allowances":[{"meter":"calls","amount":100,"every":"once","anchor":"calendar","expires_in_days":14}]}`).want(201)
	s.patch(`{"plan":"trial","apply":"now"}`).want(200)
	s.debit("k1", "acme", "calls", 30).want(200)
	b := s.balance("calls", "")
	assert.True(t, len(b.Grants) == 1 && b.Grants[0].ExpiresAt.Equal(b.Grants[0].EffectiveAt.AddDate(0, 0, 14)) &&
		b.Period.End == nil, b)
	s.rewind(14*24*time.Hour - time.Hour)
	got := s.balance("calls", "")
	assert.True(t, got.Remaining == 70, "an hour before the end: %+v", got)
	s.rewind(time.Hour)
	p := s.debit("k2", "acme", "calls", 1).problem(402, "credits_exhausted")
	assert.True(t, *p.Available == 0 && p.ResetAt == nil, p)
	start := *s.balance("calls", "").Period.Start
	trial := s.statement("calls", start)
	assert.True(t, !trial.Closed && trial.Plan == "trial" && trial.Granted == 100 && trial.Used == 30 && trial.Expired == 70 &&
		trial.Closing == 0, trial)
	s.patch(`{"plan":"trial","apply":"now"}`).want(200)
	assert.Zero(t, s.remaining("acme", "calls"), "the trial came again")
	s.patch(`{"plan":"hourly"}`).want(200) // the period of a trial has no end
	paid := s.balance("calls", "")
	assert.True(t, paid.Plan == "hourly" && paid.Granted == 10 && paid.Remaining == 10 && paid.Period.End != nil, paid)
	s.debit("k3", "acme", "calls", 4).want(200)
	trial = s.statement("calls", start)
	assert.True(t, trial.Closed && trial.Period.End.Equal(*paid.Period.Start) && trial.Closing == 0 &&
		trial.Expired == 70, trial)
	s.verifyClean()
}

// What is left of a trial stays until its own end, whatever plan follows.
func TestTrial_Upgrade_RestStays(t *testing.T) {
	t.Parallel()
	s := newService(t).rhythmic()
	s.call("PUT", "/v1/plans/trial", `{"allowances":[{"meter":"calls","amount":100,"every":"once","anchor":"calendar","expires_in_days":1}]}`).want(201)
	s.patch(`{"plan":"trial","apply":"now"}`).want(200)
	s.send("/v1/tenants/acme/grants", "g", `{"meter":"calls","amount":5,"source":"topup"}`).want(201)
	s.debit("k1", "acme", "calls", 30).want(200)
	s.patch(`{"plan":"hourly","apply":"now","reason":"upgraded"}`).want(200)
	got := s.balance("calls", "")
	assert.True(t, got.Opening == 75 && got.Granted == 10 && got.Remaining == 85, got)
	s.debit("k2", "acme", "calls", 85).want(200)
	s.verifyClean()
}

func TestOverride_NextPeriodOrNow(t *testing.T) {
	t.Parallel()
	s := newService(t).rhythmic()
	s.debit("k1", "acme", "calls", 4).want(200)
	s.debit("k2", "acme", "jobs", 4).want(200)
	s.send("/v1/tenants/acme/grants", "g", `{"meter":"calls","amount":3,"source":"topup"}`).want(201)
	s.patch(`{"overrides":{"calls":50,"jobs":7}}`).want(200)
	got := s.balance("calls", "")
	assert.True(t, got.Granted == 13 && got.Remaining == 9, "the open period: %+v", got)
	s.rewind(time.Hour)
	got = s.balance("calls", "")
	assert.True(t, got.Opening == 3 && got.Granted == 50 && got.Remaining == 53, "the next period: %+v", got)
	s.debit("k3", "acme", "calls", 40).want(200)
	s.debit("k4", "acme", "jobs", 7).want(200)
	s.debit("k5", "acme", "jobs", 1).problem(429, "quota_exceeded")

	const now = `{"overrides":{"calls":60},"apply":"now","usage":"reset","reason":"sold anew"}`
	s.patch(now, headerIdempotencyKey, "anew").want(200)
	got = s.balance("calls", "")
	assert.True(t, got.Granted == 110 && got.Expired == 10 && got.Used == 40 && got.Remaining == 63, "at once: %+v", got)
	s.debit("k6", "acme", "calls", 60).want(200)
	s.patch(now, headerIdempotencyKey, "anew").want(200)
	got = s.balance("calls", "")
	assert.True(t, got.Used == 100 && got.Remaining == 3, "a retry renewed it: %+v", got)
	s.patch(`{"plan":"hourly","apply":"now","usage":"reset","reason":"sold again"}`).want(200)
	got = s.balance("calls", "")
	assert.True(t, got.Granted == 170 && got.Used == 100 && got.Remaining == 63, "the same terms: %+v", got)
	s.patch(`{"overrides":{"calls":null,"jobs":9}}`).want(200)
	s.patch(`{"overrides":{"jobs":9},"apply":"now","usage":"reset","reason":"what waits, now"}`).want(200)
	calls, jobs := s.balance("calls", ""), s.balance("jobs", "")
	assert.True(t, calls.Granted == 170 && calls.Remaining == 63 && jobs.Remaining == 9, "%+v %+v", calls, jobs)
	s.rewind(time.Hour)
	calls = s.balance("calls", "")
	assert.True(t, calls.Granted == 10 && calls.Remaining == 13, "the change that waited: %+v", calls)
	s.verifyClean()
}

func TestOverride_BelowUsed_NextPeriod(t *testing.T) {
	t.Parallel()
	s := newService(t).rhythmic()
	seat := func(key string, amount int) *answer {
		return s.send("/v1/debits", key, fmt.Sprintf(`{"tenant":"acme","items":[{"meter":"seats","amount":%d}],"subject":"ann"}`, amount))
	}
	seat("k1", 6).want(200)
	capped := func(limit int) {
		t.Helper()
		s.call("PUT", "/v1/plans/hourly", fmt.Sprintf(`{"allowances":[{"meter":"calls","amount":10,"every":"hour","anchor":"tenant"},
			{"meter":"seats","amount":20,"every":"hour","anchor":"tenant","per_subject":%d}]}`, limit)).want(200)
	}
	capped(3)
	got := s.balance("seats", "ann")
	assert.True(t, got.Used == 6 && got.Remaining == 2, "the open period: %+v", got)
	seat("k2", 1).want(200)
	s.rewind(time.Hour)
	got = s.balance("seats", "ann")
	assert.True(t, got.Used == 0 && got.Limit == 3 && got.Remaining == 3, "the next period: %+v", got)
	seat("k3", 2).want(200)
	capped(1)
	s.patch(`{"plan":"hourly","apply":"now","usage":"reset","reason":"a new cap"}`).want(200)
	p := seat("k4", 2).problem(402, "credits_exhausted")
	assert.True(t, p.Limiting.Level == "subject" && *p.Available == 1, p)
	got = s.balance("seats", "ann")
	assert.True(t, got.Limit == 3 && got.Used == 2 && got.Remaining == 1, "now: %+v", got)
	capped(0)
	s.patch(`{"plan":"hourly","apply":"now"}`).want(200)
	seat("k5", 1).want(429, 402)
	s.call("POST", "/v1/check", `{"tenant":"acme","items":[{"meter":"seats","amount":1}],"subject":"ann"}`).want(200)
	s.send("/v1/debits", "k6", `{"tenant":"acme","items":[{"meter":"seats","amount":1}]}`).want(200)
	s.verifyClean()
}

func TestGetStatement_ClosedPeriodStays(t *testing.T) {
	t.Parallel()
	s := newService(t).rhythmic()
	s.send("/v1/tenants/acme/grants", "g", `{"meter":"calls","amount":5,"source":"promo"}`).want(201)
	s.debit("k1", "acme", "calls", 8).want(200)
	s.rewind(2 * time.Hour) // two periods have ended, the first with use, the second without
	first := *s.balance("calls", "").Period.Start
	first = first.Add(-2 * time.Hour)
	second, third := first.Add(time.Hour), first.Add(2*time.Hour)
	for _, when := range []string{"closed by nobody yet", "closed"} {
		got := s.statement("calls", first)
		assert.True(t, got.Closed && got.Granted == 15 && got.Used == 8 && got.Expired == 2 && got.Closing == 5 && got.Period.End.Equal(second) &&
			len(got.Lines) == 4, "%s: %+v", when, got)
		got = s.statement("calls", second)
		assert.True(t, got.Closed && got.Opening == 5 && got.Granted == 10 && got.Expired == 10 && got.Closing == 5, "%s: %+v", when, got)
		got = s.statement("calls", third)
		assert.True(t, !got.Closed && got.Opening == 5 && got.Granted == 10, "%s: %+v", when, got)
		csv := s.call("GET", "/v1/tenants/acme/statements/calls/"+startOf(first)+"?format=csv", "").want(200)
		for _, row := range []string{"expire,allowance,2,1", "used,total,8,", "closing,total,5,"} {
			assert.Contains(t, string(csv.body), "\r\n"+row+"\r\n", "%s: no %s in %s", when, row, csv.body)
		}
		for _, start := range []time.Time{first.Add(-time.Hour), first.Add(time.Microsecond), first.Add(30 * time.Minute), second.Add(-time.Microsecond), third.Add(time.Hour)} {
			p := s.call("GET", "/v1/tenants/acme/statements/calls/"+startOf(start), "").problem(404, "not_found")
			assert.Equal(t, "period_start", p.Errors[0].Field, "%s: %+v", start, p)
		}
		var periods client.PeriodList
		s.call("GET", "/v1/tenants/acme/periods?meter=calls&next=3", "").want(200).into(&periods)
		assert.True(t, len(periods.Items) == 3 && periods.Items[0].Start.Equal(third) &&
			periods.Items[2].Start.Equal(third.Add(2*time.Hour)), "%s: %+v", when, periods)
		s.debit("k2", "acme", "calls", 1).want(200)
	}
	s.send("/v1/refunds", "r", refundOf("k1", "")).want(200)
	got := s.statement("calls", first)
	assert.True(t, got.Used == 8 && got.Refunded == 0, "a refund reopened a closed period: %+v", got)
	s.verifyClean()
}
