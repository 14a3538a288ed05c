package ledger

import (
	"fmt"
	"testing"
	"time"
)

func (s *Statement) foots() bool {
	return s.Opening+s.Granted+s.Refunded-s.Used-s.Expired+s.Adjusted == s.Closing
}

func (s *Statement) sum(kind string, source Source) int64 {
	for _, l := range s.Lines {
		if l.Kind == kind && l.Source == source {
			return l.Amount
		}
	}
	return 0
}

func TestStatementsFootAndTellPaidFromPromotional(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.hourly("acme", 10)
	b.mustGrant("acme", "g1", "api_calls", 20)
	promo := topupOf("acme", "g2", "api_calls", 5)
	promo.Source = SourcePromo
	if _, err := b.Grant(t.Context(), promo); err != nil {
		t.Fatal(err)
	}
	b.mustDebit(debitOf("acme", "k1", 18))
	if _, err := b.Refund(t.Context(), &Refund{Tenant: "acme", Key: "r1", OperationID: "k1", Amount: 4}); err != nil {
		t.Fatal(err)
	}
	open := b.mustBalance("acme", "api_calls")
	s, err := b.Statement(t.Context(), "acme", "api_calls", "", open.PeriodStart)
	if err != nil {
		t.Fatal(err)
	}
	if !s.foots() || s.Closed || s.sum("debit", SourceAllowance) != 10 || s.sum("debit", SourcePromo) != 5 || s.sum("debit", SourceTopup) != 3 ||
		s.sum("refund", SourceTopup) != 3 || s.sum("refund", SourcePromo) != 1 {
		t.Errorf("got %+v", s)
	}
	b.rewind("acme", 2*time.Hour)
	now := b.mustBalance("acme", "api_calls")
	for written := range 2 { // first closed in memory only, then in the tables
		for back := range 3 {
			start := now.PeriodStart.Add(-time.Duration(back) * time.Hour)
			s, err := b.Statement(t.Context(), "acme", "api_calls", "", start)
			if err != nil {
				t.Fatal(err)
			}
			lines := int64(0)
			for _, l := range s.Lines {
				lines += map[string]int64{"grant": 1, "refund": 1, "debit": -1, "expire": -1}[l.Kind] * l.Amount
			}
			if !s.foots() || s.Opening+lines != s.Closing || s.Closed != (back > 0) {
				t.Errorf("written %d, %d periods back: lines sum to %d, statement %+v", written, back, lines, s)
			}
		}
		b.mustDebit(debitOf("acme", "k2", 1))
	}
	_, err = b.Statement(t.Context(), "acme", "api_calls", "", now.PeriodStart.Add(time.Minute))
	wantCode(t, err, CodeNotFound)
	_, err = b.Statement(t.Context(), "acme", "api_calls", "", now.PeriodStart.Add(-50*time.Hour))
	wantCode(t, err, CodeNotFound)
}

func TestBalanceAsOfAnyPastInstantIsWhatItWasThen(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.hourly("acme", 10)
	type moment struct {
		at   time.Time
		want Balance
	}
	var moments []moment
	note := func() {
		got := b.mustBalance("acme", "api_calls")
		moments = append(moments, moment{got.AsOf, *got})
	}
	b.mustGrant("acme", "g1", "api_calls", 20)
	note()
	b.mustDebit(debitOf("acme", "k1", 12))
	note()
	if _, err := b.Hold(t.Context(), holdOf("acme", "k2", "h1", 5)); err != nil {
		t.Fatal(err)
	}
	note()
	if _, err := b.Refund(t.Context(), &Refund{Tenant: "acme", Key: "r1", OperationID: "k1", Amount: 2}); err != nil {
		t.Fatal(err)
	}
	note()
	const by = 3*time.Hour + 7*time.Second
	b.rewindHolds(by - 7*time.Second)
	b.mustDebit(debitOf("acme", "k3", 1))
	for i, m := range moments {
		got, err := b.BalanceAsOf(t.Context(), "acme", "api_calls", "", m.at.Add(-by))
		if err != nil {
			t.Fatal(err)
		}
		if got.Remaining != m.want.Remaining || got.Used != m.want.Used || got.Held != m.want.Held || got.Refunded != m.want.Refunded ||
			got.Seq != m.want.Seq || !got.PeriodStart.Equal(m.want.PeriodStart.Add(-by)) {
			t.Errorf("moment %d: got %+v, it was %+v", i, got, m.want)
		}
	}
	_, err := b.BalanceAsOf(t.Context(), "acme", "api_calls", "", time.Now().Add(time.Hour))
	wantCode(t, err, CodeInvalidArgument)
	_, err = b.BalanceAsOf(t.Context(), "acme", "api_calls", "", time.Now().Add(-90*time.Hour))
	wantCode(t, err, CodeNotFound)
	between, err := b.BalanceAsOf(t.Context(), "acme", "api_calls", "", time.Now().Add(-90*time.Minute))
	if err != nil || between.Granted != 10 || between.Used != 0 {
		t.Errorf("an idle period: %+v, %v", between, err)
	}
	b.mustVerify()
}

func TestUsageSumsByHourAndDay(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.simple("acme", 1000)
	total := int64(0)
	for i := range 20 {
		b.mustDebit(debitOf("acme", fmt.Sprint("k", i), int64(i+1)))
		total += int64(i + 1)
	}
	now := time.Now().UTC()
	for _, step := range []UsageStep{UsageByHour, UsageByDay} {
		got, err := b.Usage(t.Context(), UsageQuery{Tenant: "acme", Meter: "api_calls", From: now.Add(-48 * time.Hour), To: now.Add(time.Hour), Step: step, Zone: "Asia/Kathmandu"})
		if err != nil {
			t.Fatal(err)
		}
		sum, operations := int64(0), int64(0)
		for _, u := range got {
			sum, operations = sum+u.Used, operations+u.Operations
		}
		if sum != total || operations != 20 {
			t.Errorf("by %s: used %d in %d operations, want %d in 20", step, sum, operations, total)
		}
	}
	_, err := b.Usage(t.Context(), UsageQuery{Tenant: "acme", Meter: "api_calls", From: now.Add(-800 * time.Hour), To: now, Step: UsageByHour})
	wantCode(t, err, CodeInvalidArgument)
}
