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

// remainingTokens returns the remaining tokens of the rule two.
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
		if err == nil && (got.Result.Items[0].Remaining != 7-3*int64(i) || got.Limits[0].Remaining != 1-int64(i)) {
			t.Errorf("consume %d left %d units and %d tokens", i, got.Result.Items[0].Remaining, got.Limits[0].Remaining)
		}
		if refused, ok := errors.AsType[*RateLimited](err); ok {
			assert.True(t, len(refused.Violated) == 1 && refused.Violated[0] == "two" && refused.RetryAfter > 0 &&
				refused.RetryAfter <= 24*time.Hour, "refused with %+v", refused)
		}
	}
	assert.EqualValues(t, 4, in.remaining("calls"), "units are left, want 4: a request that a limit denied was debited")
}

func TestConsume_DebitRefused_CostsNoTokens(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue(twoADay)
	for i := range 5 {
		got, err := in.Consume(t.Context(), request(fmt.Sprint("k", i), "calls", 11))
		in.expectCode(errcode.QuotaExceeded, "more than there is", err)
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
		assert.False(t, err == nil && got.Result.Replayed != (i > 0),
			"sending %d: replayed = %v", i, got.Result.Replayed)
	}
	assert.EqualValues(t, 1, in.remainingTokens(), "tokens are left")
	assert.EqualValues(t, 7, in.remaining("calls"), "units are left")
}

func TestConsume_DryRun_ChangesNothing(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue(twoADay)
	for i := range 5 {
		req := request(fmt.Sprint("k", i), "calls", 3)
		req.DryRun = true
		got, err := in.Consume(t.Context(), req)
		in.expectCode("", "dry run", err)
		assert.False(t, err == nil && got.Result.Items[0].Remaining != 7,
			"after a dry run %d would be left, want 7", got.Result.Items[0].Remaining)
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
	_, err := in.Debit(t.Context(), request("first", "calls", 1)) // creates the row of the balance
	in.expectCode("", "first", err)

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
	err, _ = testenv.Receive(t, gone)
	in.expectCode(errcode.Unavailable, "consume behind a blocked batch", err)
	rows.release()
	in.expectCode("", "the blocked debit", <-blocked)
	assert.EqualValues(t, 2, in.remainingTokens(), "tokens are left")
}

func TestDebit_SuspendedTenant_OnlyReplaysPass(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue()
	_, err := in.Debit(t.Context(), request("before", "calls", 1))
	in.expectCode("", "before", err)
	in.putTenant(catalog.Tenant{ID: "acme", Plan: "basic", Status: catalog.StatusSuspended})
	_, err = in.Debit(t.Context(), request("after", "calls", 1))
	in.expectCode(errcode.TenantSuspended, "while suspended", err)
	got, err := in.Debit(t.Context(), request("before", "calls", 1))
	in.expectCode("", "a replay while suspended", err)
	assert.False(t, err == nil && !got.Result.Replayed, "the replay was debited again")
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
		_, err = in.Debit(t.Context(), request("key-"+tc.meter, tc.meter, 20))
		in.expectCode(tc.after, tc.meter+" after a top-up", err)
	}
}

func TestDebit_KeyOfConsume_IsRefused(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue()
	_, err := in.Consume(t.Context(), request("key", "calls", 1))
	in.expectCode("", "consume", err)
	_, err = in.Debit(t.Context(), request("key", "calls", 1))
	in.expectCode(errcode.IdempotencyKeyReused, "debit with the key of a consume", err)
}

func TestConsume_Mode_ReachesTheLedger(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue()
	req := request("k", "calls", 12)
	req.Mode = ledger.ModeBestEffort
	got, err := in.Consume(t.Context(), req)
	in.expectCode("", "best effort", err)
	assert.False(t, err == nil && (got.Result.Items[0].Charged != 10 || got.Result.Items[0].Shortfall != 2),
		"best effort: %+v", got.Result.Items[0])
}

func TestDebitBatch_AnswersEachInOrder(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue()
	odd := request("c", "calls", 1)
	odd.Mode = "nonsense"
	stranger := request("d", "calls", 1)
	stranger.Tenant = "nobody"
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
		assert.False(t, err == nil && got.Result.Replayed != (i > 0),
			"request %d: replayed = %v", i, got.Result.Replayed)
	}
	tokens, units := in.remainingTokens(), in.remaining("calls")
	assert.True(t, tokens == 0 && units == 7, "%d tokens and %d units are left, want 0 and 7", tokens, units)
}

func TestConsume_Forwarded_KeyIsGoodForOneRequest(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue()
	_, err := in.Consume(t.Context(), forwarded("key", "GET /a"))
	in.expectCode("", "the first request", err)
	for _, other := range []string{"GET /b", "POST /a", "GET /a?x=1", ""} {
		_, err := in.Consume(t.Context(), forwarded("key", other))
		in.expectCode(errcode.IdempotencyKeyReused, "another request: "+other, err)
	}
	assert.EqualValues(t, 7, in.remaining("calls"), "units are left")
}
