package gate

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/price"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// putIncompleteBalances puts acme on a plan whose balances have incomplete copies: the meter "calls" overflows into
// "credits", "other" has overage, and "seats" has a cap per subject. It uses units of each meter, so that copies
// exist. It uses up the cap of u1.
func (in *instance) putIncompleteBalances() {
	in.t.Helper()
	in.putMeters("calls", "credits", "other", "seats")
	calls, other, seats := yearly("calls", 10), yearly("other", 5), yearly("seats", 6)
	calls.Overflow = &catalog.Overflow{Meter: "credits", Price: price.Whole(3)}
	other.Overage = &catalog.Overage{Policy: "allow", Cap: new(int64(4))}
	seats.PerSubject = new(int64(2))
	in.putPlan(catalog.Plan{ID: "pro", Allowances: []catalog.Allowance{calls, other, seats, noCredits}})
	in.putTenant(catalog.Tenant{ID: "acme", Plan: "pro"})
	in.topUp("paid", "credits", 9)
	keys := []ledger.BalanceKey{{Tenant: "acme", Meter: "calls"}, {Tenant: "acme", Meter: "other"}, {Tenant: "acme", Meter: "seats"}}
	in.copies.Reads(keys, nil) // as checks do, because a commit publishes only balances that checks read
	for meter, amount := range map[string]int64{"calls": 1, "other": 1, "seats": 2} {
		in.debits("", meter, forSubject("u1", request("first-"+meter, meter, amount)))
	}
	testenv.Eventually(in.t, func() bool {
		copies, err := in.copies.Stored(in.t.Context(), keys)
		notMarked := func(c *ledger.BalanceCopy) bool { return c == nil || !c.Beyond }
		return err == nil && !slices.ContainsFunc(copies, notMarked)
	}, "redis has the copies, marked incomplete")
}

func forSubject(subject string, req Request) Request {
	req.Subject = subject
	return req
}

func TestCheck_IncompleteCopy_ReadsPostgres(t *testing.T) {
	t.Parallel()
	in := newShared(t)
	in.putIncompleteBalances()
	for name, tc := range map[string]struct {
		req   Request
		code  errcode.Code
		level string
		most  int64
	}{
		"own units":                    {request("", "calls", 9), "", "", 12},
		"overflow pays the rest":       {request("", "calls", 12), "", "", 12},
		"beyond what overflow pays":    {request("", "calls", 13), errcode.QuotaExceeded, "tenant", 12},
		"overage":                      {request("", "other", 8), "", "", 8},
		"beyond the cap of overage":    {request("", "other", 9), errcode.QuotaExceeded, "tenant", 8},
		"nobody in particular":         {request("", "seats", 4), "", "", 4},
		"a subject whose cap is used":  {forSubject("u1", request("", "seats", 1)), errcode.QuotaExceeded, "subject", 0},
		"a subject within its cap":     {forSubject("u2", request("", "seats", 2)), "", "", 2},
		"a subject above its cap":      {forSubject("u2", request("", "seats", 3)), errcode.CreditsExhausted, "subject", 2},
		"a subject where none has cap": {forSubject("u1", request("", "calls", 12)), "", "", 12},
	} {
		got, err := in.Check(t.Context(), tc.req)
		if err != nil || got.Code != tc.code || got.Source != SourceLedger || got.Items[0].MaxAllowedNow != tc.most {
			t.Errorf("%s: %+v, %v; want %q, at most %d, from the ledger", name, got, err, tc.code, tc.most)
			continue
		}
		assert.False(t, got.Limiting != nil && got.Limiting.Level != tc.level,
			"%s: limiting %+v, want level %q", name, got.Limiting, tc.level)
		dry := dryRun(tc.req)
		dry.Key = "dry"
		in.debits(tc.code, name+": debit", dry)
	}
}

func TestOutage_IncompleteCopy_AnswersOnlyWhatItProves(t *testing.T) {
	t.Parallel()
	url, end := breakable(t, testenv.Postgres(t))
	in := newInstance(t, url, patientClient(testenv.Redis(t)))
	in.putIncompleteBalances()
	in.awaitAnnouncements(url)
	in.checks(request("", "calls", 1)) // puts the tenant into memory
	end()
	got, err := in.Check(t.Context(), request("", "calls", 9))
	assert.True(t, err == nil && got.Allowed && got.Degraded, "own units: %+v, %v", got, err)
	for name, req := range map[string]Request{
		"overflow might pay": request("", "calls", 10), "overage might": request("", "other", 5), "a cap might be used": forSubject("u1", request("", "seats", 1)),
	} {
		got, err := in.Check(t.Context(), req)
		assert.True(t, CodeOf(err) == errcode.Unavailable, "%s: %+v, %v; want no answer", name, got, err)
	}
}
