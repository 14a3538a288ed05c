package gate

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// twoADay is a limit of two requests. Its bucket does not refill while a test runs.
var twoADay = catalog.Limit{Rule: "two", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "2/day"}

// remainingTokens returns the remaining tokens of the limit twoADay.
func (in *instance) remainingTokens() int64 {
	in.t.Helper()
	got, err := in.Check(in.t.Context(), request("", "calls", 1))
	require.NoError(in.t, err)
	for _, v := range got.Limits {
		if v.Rule == "two" {
			return v.Remaining
		}
	}
	in.t.Fatalf("rule two is not among %+v", got.Limits)
	return 0
}

func TestConsume_ChargesLimitsAndUnits_OrNeither(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue(twoADay)
	for i, want := range []errcode.Code{"", "", CodeRateLimited} {
		got, err := in.Consume(t.Context(), request(fmt.Sprint("k", i), "calls", 3))
		in.expectCode(want, fmt.Sprint("consume ", i), err)
		if refused, ok := errors.AsType[*RateLimited](err); ok {
			assert.True(t, len(refused.Violated) == 1 && refused.Violated[0] == "two" && refused.RetryAfter > 0 &&
				refused.RetryAfter <= 24*time.Hour, "refused with %+v", refused)
		}
		if err != nil {
			continue
		}
		units, tokens := got.Result.Items[0].Remaining, got.Limits[0].Remaining
		assert.True(t, units == 7-3*int64(i) && tokens == 1-int64(i), "consume %d left %d and %d", i, units, tokens)
	}
	assert.EqualValues(t, 4, in.remaining("calls"), "units are left, want 4: a request that a limit denied was debited")
}

func TestConsume_DebitRefused_CostsNoTokens(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue(twoADay)
	for i := range 5 {
		got := in.consumes(errcode.CreditsExhausted, "more than there is", request(fmt.Sprint("k", i), "calls", 11))
		assert.Len(t, got.Limits, 1, "a denial carries the limits %+v, want the one that applied", got.Limits)
	}
	assert.EqualValues(t, 2, in.remainingTokens(), "tokens are left after denials")
}

func TestConsume_Replay_CostsNoTokens(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue(twoADay)
	for i := range 5 {
		got, err := in.Consume(t.Context(), request("same", "calls", 3))
		in.expectCode("", "the same request", err)
		if err == nil {
			assert.Equal(t, i > 0, got.Result.Replayed, "sending %d: replayed", i)
		}
	}
	assert.EqualValues(t, 1, in.remainingTokens(), "tokens are left")
	assert.EqualValues(t, 7, in.remaining("calls"), "units are left")
}

func TestConsume_DryRun_ChangesNothing(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue(twoADay)
	for i := range 5 {
		got, err := in.Consume(t.Context(), dryRun(request(fmt.Sprint("k", i), "calls", 3)))
		in.expectCode("", "dry run", err)
		if err == nil {
			assert.EqualValues(t, 7, got.Result.Items[0].Remaining, "after a dry run would be left")
		}
	}
	tokens, units := in.remainingTokens(), in.remaining("calls")
	assert.True(t, tokens == 2 && units == 10, "%d tokens and %d units are left, want 2 and 10", tokens, units)
}

// A caller's request ends while its debit is queued. Its tokens are refunded, although the context of the request has
// ended.
func TestConsume_CallerGaveUpInQueue_CostsNoTokens(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	in := newInstance(t, url, patientClient(testenv.Redis(t))).catalogue(twoADay)
	in.debits("", "first", request("first", "calls", 1)) // creates the row of the balance

	rows := lockRows(t, url, "SELECT FROM balances WHERE tenant_id = 'acme' FOR UPDATE")
	blocked := make(chan error, 1)
	go func() {
		_, err := in.Debit(t.Context(), request("blocked", "calls", 1))
		blocked <- err
	}()
	rows.awaitWaiter(1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	gone := make(chan error, 1)
	go func() {
		_, err := in.Consume(ctx, request("gone", "calls", 1))
		gone <- err
	}()
	testenv.Eventually(t, func() bool { return in.remainingTokens() == 1 }, "the consume has taken its token")
	cancel()
	err, _ := testenv.Receive(t, gone)
	in.expectCode(errcode.Unavailable, "consume behind a blocked batch", err)
	rows.release()
	in.expectCode("", "the blocked debit", <-blocked)
	assert.EqualValues(t, 2, in.remainingTokens(), "tokens are left")
}

func TestDebit_SuspendedTenant_OnlyReplaysPass(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue()
	in.debits("", "before", request("before", "calls", 1))
	in.putTenant(catalog.Tenant{ID: "acme", Plan: "basic", Status: catalog.StatusSuspended})
	in.debits(errcode.TenantSuspended, "while suspended", request("after", "calls", 1))
	got := in.debits("", "a replay while suspended", request("before", "calls", 1))
	assert.True(t, got.Result.Replayed, "the replay was debited again")
	in.topUp("bail", "calls", 5) // a suspended tenant can be granted units
}

func TestDebit_DenialReplay_StoresDenials(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue()
	_, _, err := in.tenants.catalog.PutMeter(t.Context(), catalog.Meter{ID: "credits", Unit: "unit", DenialReplay: true})
	require.NoError(t, err)
	testenv.Eventually(t, func() bool { return in.tenants.catalog.Snapshot().Meters["credits"].DenialReplay }, "the meter is in the snapshot")
	for _, tc := range []struct {
		meter string
		after errcode.Code // the result of the same request after a top-up
	}{{"credits", errcode.CreditsExhausted}, {"calls", ""}} {
		_, err := in.Debit(t.Context(), request("key-"+tc.meter, tc.meter, 20))
		require.Error(t, err, "%s: a debit of 20 succeeded", tc.meter)
		in.topUp("topup-"+tc.meter, tc.meter, 100)
		in.debits(tc.after, tc.meter+" after a top-up", request("key-"+tc.meter, tc.meter, 20))
	}
}

func TestDebit_KeyOfConsume_IsRefused(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue()
	in.consumes("", "consume", request("key", "calls", 1))
	in.debits(errcode.IdempotencyKeyReused, "debit with the key of a consume", request("key", "calls", 1))
}

func TestConsume_Mode_ReachesTheLedger(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue()
	req := request("k", "calls", 12)
	req.Mode = ledger.ModeBestEffort
	item := in.consumes("", "best effort", req).Result.Items[0]
	assert.True(t, item.Charged == 10 && item.Shortfall == 2, "best effort: %+v", item)
}

func TestDebitBatch_AnswersEachInOrder(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue()
	odd := request("c", "calls", 1)
	odd.Mode = "nonsense"
	stranger := forTenant("nobody", request("d", "calls", 1))
	got := in.DebitBatch(t.Context(), []Request{request("a", "calls", 6), request("b", "calls", 6), odd, stranger, request("a", "calls", 6)})
	for i, want := range []errcode.Code{"", errcode.QuotaExceeded, errcode.InvalidArgument, errcode.TenantNotFound, ""} {
		in.expectCode(want, fmt.Sprint("debit ", i), got[i].Err)
		assert.True(t, (got[i].Result == nil) == (want != ""),
			"debit %d: result %+v with error %v", i, got[i].Result, got[i].Err)
	}
	assert.True(t, got[4].Result.Replayed, "the duplicate in the same batch is not a replay")
}

// forwarded returns a request that a gateway forwards.
func forwarded(key, what string) Request {
	req := request(key, "calls", 3)
	req.Forwarded = what
	return req
}

// A client that repeats its key is debited once, but its limits are charged each time.
func TestConsume_ForwardedReplay_CostsTokensNotUnits(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue(twoADay)
	for i, want := range []errcode.Code{"", "", CodeRateLimited} {
		got, err := in.Consume(t.Context(), forwarded("same", "GET /a"))
		in.expectCode(want, fmt.Sprint("request ", i), err)
		if err == nil {
			assert.Equal(t, i > 0, got.Result.Replayed, "request %d: replayed", i)
		}
	}
	tokens, units := in.remainingTokens(), in.remaining("calls")
	assert.True(t, tokens == 0 && units == 7, "%d tokens and %d units are left, want 0 and 7", tokens, units)
}

func TestConsume_Forwarded_KeyIsGoodForOneRequest(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue()
	in.consumes("", "the first request", forwarded("key", "GET /a"))
	for _, other := range []string{"GET /b", "POST /a", "GET /a?x=1", ""} {
		in.consumes(errcode.IdempotencyKeyReused, "another request: "+other, forwarded("key", other))
	}
	assert.EqualValues(t, 7, in.remaining("calls"), "units are left")
}
