package pg

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
)

// A dry run for a future instant gets the answer that the debit will get at that instant. The dry run writes nothing.
func TestDryRunAt_AnswersAsTheDebitWillBe(t *testing.T) {
	t.Parallel()
	b := newBundle(t).hourly("acme", 10)
	b.mustDebit(debitOf("acme", "k1", 7))
	at := time.Now().Add(90 * time.Minute)
	simulated := mustDo(b, debitOf("acme", "k2", 4), DryRunAt(at))
	b.rewind("", 90*time.Minute) // the 90 minutes pass
	came := b.mustDebit(debitOf("acme", "k2", 4))
	wantEqual(t, "remaining", simulated.Items[0].Remaining, came.Items[0].Remaining)
	wantEqual(t, "charged", simulated.Items[0].Charged, came.Items[0].Charged)
	b.mustVerify()
}

// Nearly 10,000 hourly periods are between now and the instant of a dry run a year ahead. Such a dry run must not
// need much CPU time.
func TestDryRunAt_YearOfHourlyPeriods_IsQuick(t *testing.T) {
	t.Parallel()
	b := newBundle(t).hourly("acme", 10)
	b.mustDebit(debitOf("acme", "k1", 7))
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // an idle machine needs about 50 ms
	defer cancel()
	got, err := Do(ctx, b.Ledger, debitOf("acme", "k2", 10), DryRunAt(began.Add(simulatedMax-time.Minute)))
	assert.True(t, err == nil && got.Items[0].Remaining == 0, "%+v, %v", got, err)
	wantRefusal(b, errcode.InvalidArgument, debitOf("acme", "k2", 10), DryRunAt(began.Add(simulatedMax+time.Hour)))
	wantRefusal(b, errcode.InvalidArgument, debitOf("acme", "k2", 10), DryRunAt(began.Add(-time.Second)))
}
