package history

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

func (s *Statement) foots() bool {
	return s.Opening+s.Granted+s.Refunded-s.Used-s.Expired+s.Adjusted == s.Closing
}

func (s *Statement) sum(kind ledger.EntryKind, source ledger.Source) int64 {
	for _, l := range s.Lines {
		if l.Kind == kind && l.Source == source {
			return l.Amount
		}
	}
	return 0
}

// checkStatement returns an error if the sums of s do not add up to its closing balance, or if its lines do not add
// up to its sums.
func checkStatement(s *Statement) error {
	var sum ledger.Sums
	for _, l := range s.Lines {
		sum.Apply(l.Kind, l.Amount)
	}
	switch {
	case !s.foots():
		return errors.New("the statement does not foot")
	case sum.Granted != s.Granted || sum.Refunded != s.Refunded || sum.Used != s.Used || sum.Expired != s.Expired || sum.Adjusted != s.Adjusted || sum.Overage != s.Overage:
		return errors.New("the lines do not add up to the statement")
	}
	return nil
}

func TestStatement_Foots_SeparatesPaidFromPromotional(t *testing.T) {
	t.Parallel()
	b := newBundle(t).hourly("acme", 10)
	must(b, topupOf("acme", "g1", "api_calls", 20))
	promo := topupOf("acme", "g2", "api_calls", 5)
	promo.Source = ledger.SourcePromo
	must(b, promo)
	must(b, debitOf("acme", "k1", 18))
	must(b, &ledger.Refund{Tenant: "acme", Key: "r1", OperationID: "k1", Amount: 4})
	open := b.mustBalance("acme", "api_calls")
	s, err := b.Statement(t.Context(), "acme", "api_calls", "", open.PeriodStart)
	require.NoError(t, err)
	type use struct{ Allowance, Promo, Topup int64 }
	sums := func(kind ledger.EntryKind) use {
		return use{s.sum(kind, ledger.SourceAllowance), s.sum(kind, ledger.SourcePromo), s.sum(kind, ledger.SourceTopup)}
	}
	wantEqual(t, "debits", sums(ledger.EntryDebit), use{Allowance: 10, Promo: 5, Topup: 3})
	wantEqual(t, "refunds", sums(ledger.EntryRefund), use{Promo: 1, Topup: 3})
	assert.True(t, s.foots() && !s.Closed, "an open statement must foot: %+v", s)
	b.rewind(2 * time.Hour)
	now := b.mustBalance("acme", "api_calls")
	for written := range 2 { // in the first run the period is closed only in memory, in the second in the tables
		for back := range 3 {
			start := now.PeriodStart.Add(-time.Duration(back) * time.Hour)
			s, err := b.Statement(t.Context(), "acme", "api_calls", "", start)
			require.NoError(t, err)
			lines := int64(0)
			for _, l := range s.Lines {
				lines += map[ledger.EntryKind]int64{"grant": 1, "refund": 1, "debit": -1, "expire": -1}[l.Kind] * l.Amount
			}
			assert.True(t, s.foots() && s.Opening+lines == s.Closing && s.Closed == (back > 0),
				"written %d, %d periods back: lines sum to %d, statement %+v", written, back, lines, s)
		}
		must(b, debitOf("acme", "k2", 1))
	}
	for _, start := range []time.Time{now.PeriodStart.Add(time.Minute), now.PeriodStart.Add(-50 * time.Hour)} {
		wantCode(t, errOf(b.Statement(t.Context(), "acme", "api_calls", "", start)), errcode.NotFound)
	}
}

func TestBalanceAsOf_PastInstant_IsWhatItWasThen(t *testing.T) {
	t.Parallel()
	b := newBundle(t).hourly("acme", 10)
	type moment struct {
		at   time.Time
		want ledger.Balance
	}
	var moments []moment
	note := func() {
		got := b.mustBalance("acme", "api_calls")
		moments = append(moments, moment{got.AsOf, *got})
	}
	must(b, topupOf("acme", "g1", "api_calls", 20))
	note()
	must(b, debitOf("acme", "k1", 12))
	note()
	must(b, &ledger.Hold{Tenant: "acme", Key: "k2", HoldID: "h1", Items: []ledger.Item{{Meter: "api_calls", Amount: 5}}})
	note()
	must(b, &ledger.Refund{Tenant: "acme", Key: "r1", OperationID: "k1", Amount: 2})
	note()
	const by = 3*time.Hour + 7*time.Second
	b.rewind(by - 7*time.Second)
	must(b, debitOf("acme", "k3", 1))
	for i, m := range moments {
		got, err := b.BalanceAsOf(t.Context(), "acme", "api_calls", "", m.at.Add(-by))
		require.NoError(t, err)
		wantSums(t, got, m.want.Sums)
		wantEqual(t, fmt.Sprintf("seq at moment %d", i), got.Seq, m.want.Seq)
		wantEqual(t, fmt.Sprintf("start of the period at moment %d", i), got.PeriodStart, m.want.PeriodStart.Add(-by))
	}
	later, earlier := time.Now().Add(time.Hour), time.Now().Add(-90*time.Hour)
	wantCode(t, errOf(b.BalanceAsOf(t.Context(), "acme", "api_calls", "", later)), errcode.InvalidArgument)
	wantCode(t, errOf(b.BalanceAsOf(t.Context(), "acme", "api_calls", "", earlier)), errcode.NotFound)
	between, err := b.BalanceAsOf(t.Context(), "acme", "api_calls", "", time.Now().Add(-90*time.Minute))
	require.NoError(t, err)
	wantEqual(t, "granted in an idle period", between.Granted, 10)
	wantEqual(t, "used in an idle period", between.Used, 0)
	b.mustVerify()
}

func TestBalanceAsOf_ShowsPeriodEndedWithoutEntry(t *testing.T) {
	t.Parallel()
	b := newBundle(t).allowance("pro", "api_calls", 10, "once", "tenant")
	signed := time.Now().UTC().Add(-time.Minute)
	b.tenant("acme", "pro", signed, signed)
	must(b, topupOf("acme", "g1", "api_calls", 3))
	was := b.mustBalance("acme", "api_calls")
	// The new plan does not have the meter, so the endless period of the trial ends. Nothing expires and nothing is
	// granted, so no entry records the end of the period.
	b.exec("INSERT INTO plans (plan, version, created_at) VALUES ('none', 1, now() - interval '4 days')")
	b.exec(`INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone) SELECT tenant_id, clock_timestamp(), 'none', anchor, timezone FROM tenants`)
	b.exec("UPDATE balances SET next_event_at = now(), roll_at = now()")
	b.roll()
	now := b.mustBalance("acme", "api_calls")
	wantSums(t, now, ledger.Sums{Opening: 13})
	wantEqual(t, "seq", now.Seq, was.Seq)
	got, err := b.BalanceAsOf(t.Context(), "acme", "api_calls", "", was.AsOf)
	require.NoError(t, err)
	wantSums(t, got, ledger.Sums{Granted: 13})
	wantEqual(t, "start of the period", got.PeriodStart, was.PeriodStart)
	b.mustVerify()
}

// A balance as of a past instant needs two reads: one of the balance and one of its entries. A statement needs the same
// reads. A roll may close the period between the reads, and the answer must be right nevertheless.
func TestBalanceAsOf_PeriodClosedMeanwhile_StaysRight(t *testing.T) {
	t.Parallel()
	b := newBundle(t).hourly("acme", 10)
	must(b, debitOf("acme", "k1", 3))
	then := b.mustBalance("acme", "api_calls")
	must(b, debitOf("acme", "k2", 1))
	const by = 2*time.Hour + 7*time.Second
	k := ledger.BalanceKey{Tenant: "acme", Meter: "api_calls"}
	book, _, err := b.ledger.View(t.Context(), k, then.AsOf)
	require.NoError(t, err)
	b.rewind(by - 7*time.Second)
	closing, now, err := b.ledger.View(t.Context(), k, time.Time{})
	require.NoError(t, err)
	b.roll()
	book.Start = book.Start.Add(-by)
	got, err := b.report().bookAsOf(t.Context(), book, then.AsOf.Add(-by))
	require.NoError(t, err)
	wantSums(t, got, ledger.Sums{Granted: 10, Used: 3})
	wantEqual(t, "seq", got.Seq, then.Seq)
	for i := range closing.Closed {
		s := statementOf(&closing.Closed[i])
		require.NoError(t, b.report().fillLines(t.Context(), closing, s))
		assert.NoError(t, checkStatement(s), "closed period %d: %+v", i, s)
	}
	s, err := b.report().openStatement(t.Context(), closing, now, closing.Start)
	assert.True(t, err == nil && checkStatement(s) == nil, "open period: %v, %v: %+v", err, checkStatement(s), s)
}

func TestUsage_SumsByHourAndDay(t *testing.T) {
	t.Parallel()
	b := newBundle(t).monthly("acme", 1000)
	total := int64(0)
	for i := range 20 {
		must(b, debitOf("acme", fmt.Sprint("k", i), int64(i+1)))
		total += int64(i + 1)
	}
	now := time.Now().UTC()
	for _, step := range []UsageStep{UsageByHour, UsageByDay} {
		got, err := b.Usage(t.Context(), UsageQuery{Tenant: "acme", Meter: "api_calls", From: now.Add(-48 * time.Hour), To: now.Add(time.Hour), Step: step, Zone: "Asia/Kathmandu"})
		require.NoError(t, err)
		sum, operations := int64(0), int64(0)
		for _, u := range got {
			sum, operations = sum+u.Used, operations+u.Operations
		}
		assert.True(t, sum == total && operations == 20,
			"by %s: used %d in %d operations, want %d in 20", step, sum, operations, total)
	}
	long := UsageQuery{Tenant: "acme", Meter: "api_calls", From: now.Add(-800 * time.Hour), To: now, Step: UsageByHour}
	wantCode(t, errOf(b.Usage(t.Context(), long)), errcode.InvalidArgument)
}
