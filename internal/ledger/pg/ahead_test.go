package pg

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quotasvc/quotasvc/internal/testenv"
)

// At a month's end nearly every debit works off the end of its balance's period. It then takes two round trips, as any other does: what it needs
// for that is read with the lock, once the debits before have needed it as well.
func TestDebit_WhosePeriodHasEnded_TakesTwoRoundTrips(t *testing.T) {
	testenv.NotOnCitus(t, "batches have further statements there")
	t.Parallel()
	b := newBundle(t)
	sent := b.traceWriters()
	const learned = 5
	b.backlog(learned+10, 5)
	b.simple("acme", 100)
	b.debit("acme", "first", 1)
	b.debit("acme", "terms", 1)
	isWish := func(sql string) bool { return strings.Contains(sql, "FROM webhooks") }
	for i := range learned + 10 {
		sent.take()
		b.debit(fmt.Sprintf("idle-%07d", i+1), "k", 1)
		got := sent.take()
		if i < learned {
			continue
		}
		second := slices.Index(got[1:], "round trip") + 1
		terms, wish := slices.Index(got, b.sql["TenantTerms"]), slices.IndexFunc(got, isWish)
		if slices.Contains(got, b.sql["InsertPlainDebits"]) {
			t.Errorf("debit %d: its entries take two statements", i)
		}
		if got[0] != "round trip" || slices.Contains(got[second+1:], "round trip") || terms < 0 || terms > second || wish < 0 || wish > second {
			t.Errorf("debit %d: want two round trips, and terms and wishes read in the first:\n%s", i, strings.Join(got, "\n"))
		}
	}
	// What nobody needs any more is not read for long.
	var got []string
	for i := range learned {
		sent.take()
		b.debit("acme", fmt.Sprint("k", i), 1)
		got = sent.take()
	}
	q := b.sql
	wantEqual(t, "statements of a debit that needs nothing", got, []string{
		"round trip", "BEGIN ISOLATION LEVEL READ COMMITTED", q["LockBalances"], q["Clock"], q["StoredEntries"],
		"round trip", q["InsertPlainDebits"], q["UpdateDrawnBalances"], "COMMIT",
	})
	b.mustVerify()
}
