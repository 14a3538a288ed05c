package pg

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// fill issues grants of one unit of credits to acme, with the ids g<from> to g<to-1>.
func (b *bundle) fill(from, to int, until time.Time) {
	b.t.Helper()
	calls := make([]*ledger.Call, 0, to-from)
	for i := from; i < to; i++ {
		g := topupOf("acme", fmt.Sprint("key-g", i), "credits", 1)
		g.GrantID, g.ExpiresAt = fmt.Sprint("g", i), until
		require.NoError(b.t, g.Validate())
		calls = append(calls, ledger.NewCall(g))
	}
	b.runQueued(b.t.Context(), []group{{calls: calls, by: time.Now().Add(time.Minute)}})
	for _, c := range calls {
		require.True(b.t, c.Err == nil, c.Err)
	}
}

// wantNear requires that balance.grants_near_limit was emitted with these numbers of open grants, in this order.
func (b *bundle) wantNear(want ...string) {
	b.t.Helper()
	got := list[string](b, `SELECT concat_ws(' ', meter, nullif(subject, ''), data->>'open_grants',
		data->>'open_grants_max')
		FROM events WHERE type = 'balance.grants_near_limit' ORDER BY at`)
	assert.Equal(b.t, append([]string{}, want...), got, "near the bound of open grants")
}

func (b *bundle) voidGrant(id string) {
	b.t.Helper()
	mustDo(b, &ledger.GrantChange{
		Action: ledger.VoidGrant, Tenant: "acme", Key: "void-" + id, GrantID: id, Reason: "test",
	})
}

// near is the text of an event at the given number of open grants of acme's credits.
func near(open int) string { return fmt.Sprintf("credits %d %d", open, ledger.GrantsOpenMax) }

// The balance rises from 799 to 800 open grants by each way on which grants come, and falls to 799 again.
func TestGrants_RiseTo800_IsToldOnEveryWay_AgainAfterTheyWereFewer(t *testing.T) {
	t.Parallel()
	b, moved := newMovedBundle(t)
	b.simple("acme", 100).meter("credits")
	soon := time.Now().Add(10 * 24 * time.Hour)
	b.fill(0, 790, time.Time{})
	b.fill(790, 799, soon)
	var want []string
	b.wantNear(want...)
	rise := func(times int, way string, rises func()) {
		t.Helper()
		rises()
		for range times {
			want = append(want, near(ledger.GrantsOpenNear))
		}
		b.wantNear(want...)
	}
	rise(1, "a grant", func() { b.fill(1000, 1001, time.Time{}) })
	rise(0, "one more", func() { b.fill(1001, 1002, time.Time{}); b.voidGrant("g1001") })
	b.voidGrant("g1000")
	rise(1, "an adjustment", func() {
		mustDo(b, &ledger.Adjust{Tenant: "acme", Key: "up", Meter: "credits", Amount: 1, Reason: "test"})
	})
	b.mustDebit(&ledger.Debit{Tenant: "acme", Key: "use", Items: []ledger.Item{{Meter: "credits", Amount: 1}}})
	rise(1, "a grant that comes back by a refund", func() {
		mustDo(b, &ledger.Refund{Tenant: "acme", Key: "back", OperationID: "use"})
	})
	b.voidGrant("g0")
	rise(1, "a grant of the future", func() {
		g := topupOf("acme", "later", "credits", 1)
		g.GrantID, g.EffectiveAt = "later", time.Now().Add(5*24*time.Hour)
		mustDo(b, g)
	})
	moved.Advance(6 * 24 * time.Hour)
	rise(0, "it takes effect", func() { b.roll() })

	// The grants g790 to g798 end while a hold keeps their units. So 791 are open when the units come back.
	moved.Advance(4*24*time.Hour - time.Hour)
	credits := []ledger.Item{{Meter: "credits", Amount: 9}}
	mustDo(b, &ledger.Hold{Tenant: "acme", Key: "h", HoldID: "h", TTL: 4 * time.Hour, Items: credits})
	moved.Advance(2 * time.Hour)
	rise(1, "a release with regrant", func() {
		mustDo(b, &ledger.HoldChange{
			Action: ledger.ActionRelease, Tenant: "acme", Key: "r", HoldID: "h",
			Return: ledger.ReturnRegrant,
		})
	})
	b.mustVerify()
}

func TestGrants_RiseTo800_ByARollover_IsTold(t *testing.T) {
	t.Parallel()
	b, moved := newMovedBundle(t)
	at := time.Now().Add(-time.Hour).UTC()
	b.plan("pro", 1, at, "credits 10 month calendar")
	b.exec("UPDATE plan_allowances SET rollover_min = 0")
	b.tenant("acme", "pro", at, at, "UTC")
	b.fill(0, ledger.GrantsOpenNear-2, time.Time{}) // and the allowance
	moved.Advance(32 * 24 * time.Hour)
	b.roll()
	b.wantNear(near(ledger.GrantsOpenNear))
	b.mustVerify()
}

func TestGrants_1001st_IsRefusedByACodeOfItsOwn_RegrantGoesBeyond(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 100).meter("credits")
	soon := time.Now().Add(time.Hour)
	b.fill(0, ledger.GrantsOpenMax-1, time.Time{})
	b.fill(ledger.GrantsOpenMax-1, ledger.GrantsOpenMax, soon)
	b.wantNear(near(ledger.GrantsOpenNear))

	next := topupOf("acme", "next", "credits", 1)
	e := wantRefusal(b, errcode.TooManyGrants, next)
	assert.Equal(t, "meter", e.Field())
	up := &ledger.Adjust{Tenant: "acme", Key: "up", Meter: "credits", Amount: 1, Reason: "test"}
	wantRefusal(b, errcode.TooManyGrants, up)
	again := topupOf("acme", "again", "credits", 1)
	again.GrantID = "g7"
	wantRefusal(b, errcode.Conflict, again) // it was credited before: this is what the caller has to hear
	again.Amount, again.Key = ledger.MaxAmount, "much"
	wantRefusal(b, errcode.InvalidArgument, again)

	// The debit draws the last unit of the head alone, and reads no grants.
	b.mustDebit(&ledger.Debit{Tenant: "acme", Key: "use", Items: []ledger.Item{{Meter: "credits", Amount: 1}}})
	b.mustGrant("acme", "fits", "credits", 1)
	b.rewind("acme", 2*time.Hour)
	mustDo(b, &ledger.Refund{Tenant: "acme", Key: "back", OperationID: "use", Return: ledger.ReturnRegrant})
	wantEqual(t, "open grants", len(b.mustBalance("acme", "credits").Grants), ledger.GrantsOpenMax+1)
	wantRefusal(b, errcode.TooManyGrants, topupOf("acme", "next2", "credits", 1))
	b.wantNear(near(ledger.GrantsOpenNear))
	b.mustVerify()
}
