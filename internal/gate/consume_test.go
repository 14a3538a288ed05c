package gate

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/testenv"
)

// twoADay lets two requests pass, and for the time of a test no more.
var twoADay = catalog.Limit{Rule: "two", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "2/day"}

// tokens is what rule two has left.
func (in *instance) tokens() int64 {
	in.t.Helper()
	got, err := in.Check(in.t.Context(), ask("", "calls", 1))
	if err != nil {
		in.t.Fatal(err)
	}
	for _, v := range got.Limits {
		if v.Rule == "two" {
			return v.Remaining
		}
	}
	in.t.Fatalf("rule two is not among %+v", got.Limits)
	return 0
}

func TestConsume_ChargesLimitsAndUnitsOrNeither(t *testing.T) {
	t.Parallel()
	in := newShared(t)
	in.catalogue(twoADay)
	for i, want := range []ledger.Code{"", "", CodeRateLimited} {
		got, err := in.Consume(t.Context(), ask(fmt.Sprint("k", i), "calls", 3))
		in.expect(want, fmt.Sprint("consume ", i), err)
		if err == nil && (got.Result.Items[0].Remaining != 7-3*int64(i) || got.Limits[0].Remaining != 1-int64(i)) {
			t.Errorf("consume %d left %d units and %d tokens", i, got.Result.Items[0].Remaining, got.Limits[0].Remaining)
		}
		if refused, ok := errors.AsType[*RateLimited](err); ok {
			if len(refused.Violated) != 1 || refused.Violated[0] != "two" || refused.RetryAfter <= 0 || refused.RetryAfter > 24*time.Hour {
				t.Errorf("refused with %+v", refused)
			}
		}
	}
	if got := in.remaining("calls"); got != 4 {
		t.Errorf("%d units are left, want 4: a request that a limit denied was debited", got)
	}
}

func TestConsume_ADebitTheLedgerRefusesCostsNoTokens(t *testing.T) {
	t.Parallel()
	in := newShared(t)
	in.catalogue(twoADay)
	for i := range 5 {
		got, err := in.Consume(t.Context(), ask(fmt.Sprint("k", i), "calls", 11))
		in.expect(ledger.CodeQuotaExceeded, "more than there is", err)
		if len(got.Limits) != 1 {
			t.Errorf("a denial carries the limits %+v, want the one that applied", got.Limits)
		}
	}
	if got := in.tokens(); got != 2 {
		t.Errorf("%d tokens are left after denials, want 2", got)
	}
}

func TestConsume_AReplayCostsNoTokens(t *testing.T) {
	t.Parallel()
	in := newShared(t)
	in.catalogue(twoADay)
	for i := range 5 {
		got, err := in.Consume(t.Context(), ask("same", "calls", 3))
		in.expect("", "the same request", err)
		if err == nil && got.Result.Replayed != (i > 0) {
			t.Errorf("sending %d: replayed = %v", i, got.Result.Replayed)
		}
	}
	if got := in.tokens(); got != 1 {
		t.Errorf("%d tokens are left, want 1", got)
	}
	if got := in.remaining("calls"); got != 7 {
		t.Errorf("%d units are left, want 7", got)
	}
}

func TestConsume_ADryRunChangesNothing(t *testing.T) {
	t.Parallel()
	in := newShared(t)
	in.catalogue(twoADay)
	for i := range 5 {
		req := ask(fmt.Sprint("k", i), "calls", 3)
		req.DryRun = true
		got, err := in.Consume(t.Context(), req)
		in.expect("", "dry run", err)
		if err == nil && got.Result.Items[0].Remaining != 7 {
			t.Errorf("a dry run says %d would be left, want 7", got.Result.Items[0].Remaining)
		}
	}
	if tokens, units := in.tokens(), in.remaining("calls"); tokens != 2 || units != 10 {
		t.Errorf("%d tokens and %d units are left, want 2 and 10", tokens, units)
	}
}

// A caller who gives up while its debit is queued gets its tokens back, although its context has ended.
func TestConsume_ACallerWhoGaveUpInTheQueueCostsNoTokens(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	in := newInstance(t, url, patient(testenv.Redis(t)))
	in.catalogue(twoADay)
	_, err := in.Debit(t.Context(), ask("first", "calls", 1)) // makes the row
	in.expect("", "first", err)

	rows := block(t, url, "SELECT FROM balances FOR UPDATE")
	blocked := make(chan error, 1)
	go func() {
		_, err := in.Debit(t.Context(), ask("blocked", "calls", 1))
		blocked <- err
	}()
	rows.awaitWaiter(1)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = in.Consume(ctx, ask("gone", "calls", 1))
	in.expect(ledger.CodeUnavailable, "consume behind a blocked batch", err)
	rows.release()
	in.expect("", "the blocked debit", <-blocked)
	if got := in.tokens(); got != 2 {
		t.Errorf("%d tokens are left, want 2", got)
	}
}

func TestDebit_ASuspendedTenantIsRefusedButItsReplaysAreNot(t *testing.T) {
	t.Parallel()
	in := newShared(t)
	in.catalogue()
	_, err := in.Debit(t.Context(), ask("before", "calls", 1))
	in.expect("", "before", err)
	in.putTenant(catalog.Tenant{ID: "acme", Plan: "basic", Status: catalog.StatusSuspended})
	_, err = in.Debit(t.Context(), ask("after", "calls", 1))
	in.expect(ledger.CodeTenantSuspended, "while suspended", err)
	got, err := in.Debit(t.Context(), ask("before", "calls", 1))
	in.expect("", "a replay while suspended", err)
	if err == nil && !got.Result.Replayed {
		t.Error("the replay was debited again")
	}
	in.topUp("bail", "calls", 5) // suspended tenants can be granted units
}

func TestDebit_AMeterWithDenialReplayStoresItsDenials(t *testing.T) {
	t.Parallel()
	in := newShared(t)
	in.catalogue()
	if _, _, err := in.terms.catalog.PutMeter(t.Context(), catalog.Meter{ID: "credits", Unit: "unit", DenialReplay: true}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the meter is in the snapshot", func() bool { return in.terms.catalog.Snapshot().Meters["credits"].DenialReplay })
	for _, tc := range []struct {
		meter string
		after ledger.Code // the same request after a top-up
	}{{"credits", ledger.CodeCreditsExhausted}, {"calls", ""}} {
		_, err := in.Debit(t.Context(), ask("key-"+tc.meter, tc.meter, 20))
		if err == nil {
			t.Fatalf("%s: a debit of 20 succeeded", tc.meter)
		}
		in.topUp("topup-"+tc.meter, tc.meter, 100)
		_, err = in.Debit(t.Context(), ask("key-"+tc.meter, tc.meter, 20))
		in.expect(tc.after, tc.meter+" after a top-up", err)
	}
}

func TestDebit_AKeyOfConsumeIsNotARetryOfDebit(t *testing.T) {
	t.Parallel()
	in := newShared(t)
	in.catalogue()
	_, err := in.Consume(t.Context(), ask("key", "calls", 1))
	in.expect("", "consume", err)
	_, err = in.Debit(t.Context(), ask("key", "calls", 1))
	in.expect(ledger.CodeIdempotencyKeyReused, "debit with the key of a consume", err)
}

func TestConsume_TheModeReachesTheLedger(t *testing.T) {
	t.Parallel()
	in := newShared(t)
	in.catalogue()
	req := ask("k", "calls", 12)
	req.Mode = ledger.ModeBestEffort
	got, err := in.Consume(t.Context(), req)
	in.expect("", "best effort", err)
	if err == nil && (got.Result.Items[0].Charged != 10 || got.Result.Items[0].Shortfall != 2) {
		t.Errorf("best effort: %+v", got.Result.Items[0])
	}
}

func TestDebitBatch_AnswersEachInOrder(t *testing.T) {
	t.Parallel()
	in := newShared(t)
	in.catalogue()
	odd := ask("c", "calls", 1)
	odd.Mode = "nonsense"
	stranger := ask("d", "calls", 1)
	stranger.Tenant = "nobody"
	got := in.DebitBatch(t.Context(), []Request{ask("a", "calls", 6), ask("b", "calls", 6), odd, stranger, ask("a", "calls", 6)})
	for i, want := range []ledger.Code{"", ledger.CodeQuotaExceeded, ledger.CodeInvalidArgument, ledger.CodeTenantNotFound, ""} {
		in.expect(want, fmt.Sprint("debit ", i), got[i].Err)
		if (got[i].Result == nil) != (want != "") {
			t.Errorf("debit %d: result %+v with error %v", i, got[i].Result, got[i].Err)
		}
	}
	if !got[4].Result.Replayed {
		t.Error("the twin in the same batch is not a replay")
	}
}
