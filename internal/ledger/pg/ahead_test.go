package pg

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// At a month's end nearly every debit closes the period of its balance. Such a debit takes two round trips, like any
// other debit. After a few such debits, the round trip that locks the balance also reads the rows that they need.
func TestDebit_WhosePeriodHasEnded_TakesTwoRoundTrips(t *testing.T) {
	testenv.NotOnCitus(t, "batches have further statements there")
	t.Parallel()
	b := newBundle(t)
	sent := b.trace(&b.writers)
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
		assert.False(t, slices.Contains(got, b.sql["InsertPlainDebits"]),
			"debit %d: its entries take two statements", i)
		assert.True(t, got[0] == "round trip" && !slices.Contains(got[second+1:], "round trip") && terms >= 0 && terms <= second && wish >= 0 &&
			wish <= second, "debit %d: want two round trips, and terms and wishes read in the first:\n%s", i, strings.Join(got, "\n"))
	}
	// When debits no longer need these rows, the ledger soon stops reading them in advance.
	var got []string
	for i := range learned {
		sent.take()
		b.debit("acme", fmt.Sprint("k", i), 1)
		got = sent.take()
	}
	wantEqual(t, "statements of a debit that needs nothing", got, b.sentByPlainDebit())
	b.mustVerify()
}

// If this version cannot read the terms of a tenant, only the debits that need these terms fail. Debits of other
// tenants in the batch succeed, and debits within an open period succeed, too.
func TestDebit_TermsOfATenantUnreadable_OthersAreServed(t *testing.T) {
	t.Parallel()
	b := newBundle(t).backlog(30, 5)
	b.simple("acme", 100)
	b.debit("acme", "first", 1)
	b.debit("acme", "terms", 1)
	b.exec("UPDATE tenant_terms SET timezone = 'Mars/Tharsis' WHERE tenant_id IN ('acme', 'idle-0000007')")
	var all sync.WaitGroup
	for i := range 30 {
		all.Go(func() {
			began := time.Now()
			_, err := Do(t.Context(), b.Ledger, debitOf(fmt.Sprintf("idle-%07d", i+1), "k", 1))
			if i+1 == 7 {
				assert.True(t, errcode.Of(err) == errcode.Internal,
					"a debit that needs terms in an unknown time zone: %v after %s", err, time.Since(began))
			} else if err != nil {
				t.Errorf("tenant %d: %v", i+1, err)
			}
		})
		if i%10 == 9 {
			all.Wait()
			b.debit("acme", fmt.Sprint("k", i), 1)
		}
	}
	roll := b.roll()
	assert.True(t, roll.Status == RollDone && roll.SetAside == 1 && roll.Processed == 0, "the roll: %+v", roll)
}
