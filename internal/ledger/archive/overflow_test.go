package archive

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/history"
	"github.com/quotasvc/quotasvc/internal/ledger/journal"
)

// What other meters paid for stays right in periods of which old months are archived, and leaves with the periods that
// are archived.
func TestArchive_Overflow_StaysWithItsPeriod(t *testing.T) {
	t.Parallel()
	now := journal.MonthOf(time.Now())
	begin := now - 5
	b := newBundle(t, begin)
	b.catalogue()
	b.exec("INSERT INTO meters (meter, unit) VALUES ('mails', 'mail')")
	b.exec(`INSERT INTO plan_allowances (plan, version, meter, ordinal, amount, every, anchor)
		VALUES ('basic', 1, 'mails', 1, 5, 'year', 'tenant')`)
	b.exec("UPDATE plan_allowances SET overflow_meter = 'credits', overflow_price = 2")
	b.exec("UPDATE plan_allowances SET rollover_max = NULL, rollover_min = NULL")
	b.tenant("acme")
	b.topup("acme", 1000)
	for m := begin; m <= now; m++ {
		b.clock(m.Start().Add(24 * time.Hour))
		if m == now {
			b.clock(time.Now())
		}
		b.debit("acme", "calls", 103)
		b.debit("acme", "mails", 7)
	}
	ctx, border := t.Context(), (begin + 3).Start()
	read := func() map[string]int64 {
		out := map[string]int64{}
		for _, meter := range []string{"calls", "mails"} {
			balance, err := b.Balance(ctx, "acme", meter, "")
			b.check(err)
			past, err := b.history.BalanceAsOf(ctx, "acme", meter, "", border.Add(48*time.Hour))
			b.check(err)
			s, err := b.history.StatementAt(ctx, "acme", meter, "", border)
			b.check(err)
			out[meter], out[meter+" past"] = balance.Overflow, past.Overflow
			out[meter+" statement"] = s.Overflow
		}
		use, err := b.history.Usage(ctx, history.UsageQuery{
			Tenant: "acme", Meter: "mails", From: border, To: now.Start().AddDate(0, 1, 0), Step: history.UsageByMonth,
		})
		b.check(err)
		for _, u := range use {
			out["use"] += u.Overflow
		}
		return out
	}
	want := map[string]int64{
		"calls": 3, "calls past": 3, "calls statement": 3,
		"mails": 6*7 - 5, "mails past": 4*7 - 5, "mails statement": 6*7 - 5, "use": 3 * 7,
	}
	assert.Equal(t, want, read())
	b.run(b.options(begin+3, filepath.Join(t.TempDir(), "a")))
	assert.Equal(t, want, read())
	const rows = "SELECT count(*) FROM overflows WHERE meter = 'calls' AND quarter = 'epoch'"
	assert.Equal(t, int64(4), b.count(rows), "of the months that are kept, and of the newest archived one")
	b.check(b.verify(ctx))
	again := b.debit("acme", "mails", 2)
	do(b, &ledger.Refund{Tenant: "acme", Key: b.key(), OperationID: again})
	for _, figure := range []string{"mails", "mails statement", "use"} {
		want[figure] += 2
	}
	assert.Equal(t, want, read())
	b.check(b.verify(ctx))
	b.run(b.options(begin+4, filepath.Join(t.TempDir(), "b")))
	b.check(b.verify(ctx))
}
