package pg

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// A tenant pays for calls with credits, 1 for 1,000. Its first grant has one credit, its second has twenty.
func (b *bundle) paying() *bundle {
	b.meter("credits")
	b.allowance("pro", "api_calls", 0, "month", "ratio_meter = 'credits', ratio_units = 1, ratio_per = 1000")
	b.signUp("acme", "pro")
	for i, amount := range []int64{1, 20} {
		g := topupOf("acme", fmt.Sprint("g", i+1), "credits", amount)
		g.GrantID, g.Priority = g.Key, new(int32(i))
		mustDo(b, g)
	}
	return b
}

// The refund of the second capture returns the credit that the first capture took. The credit goes to a grant that is
// used up. No entry of the second capture names this grant.
func TestHold_AtRatio_RefundsFollowFromAllCaptures(t *testing.T) {
	t.Parallel()
	b := newBundle(t).paying()
	mustDo(b, holdOf("acme", "k1", "h1", 3000))
	mustDo(b, capture("c1", 999))
	mustDo(b, capture("c2", 1))
	mustDo(b, changeOf("c3", ledger.ActionRelease))
	b.wantSums("acme", "credits", ledger.Sums{Granted: 21, Used: 1})
	refund := func(of string) ledger.RefundItem {
		r := &ledger.Refund{Tenant: "acme", Key: "r-" + of, OperationID: of}
		foreseen := mustDo(b, r, DryRun(true)).Items[0]
		done := mustDo(b, r).Items[0]
		require.Equal(t, foreseen, done)
		return done
	}
	require.Empty(t, refund("c1").Draws, "one call still costs one credit")
	credit := ledger.Draw{Grant: "g1", Source: ledger.SourceTopup, Meter: "credits", Amount: 1}
	require.Equal(t, []ledger.Draw{credit}, refund("c2").Draws)
	b.wantSums("acme", "credits", ledger.Sums{Granted: 21, Refunded: 1, Used: 1})
	b.mustVerify()
}

func TestHold_AtRatio_ExpiryTakesDeferredCredit(t *testing.T) {
	t.Parallel()
	b := newBundle(t).paying()
	h := holdOf("acme", "k1", "h1", 2000)
	h.TTL = 10 * time.Minute
	mustDo(b, h)
	mustDo(b, capture("c1", 1500))
	b.wantSums("acme", "credits", ledger.Sums{Granted: 21, Used: 1, Held: 1})
	b.mustVerify()
	b.rewindHolds(time.Hour)
	b.wantSums("acme", "credits", ledger.Sums{Granted: 21, Used: 2})
	b.mustDebit(&ledger.Debit{Tenant: "acme", Key: "d1", Items: []ledger.Item{{Meter: "credits", Amount: 19}}})
	b.mustVerify()
}

// A capture exceeds the hold. Its additional units are part of the hold's sum, even after the hold's other captures
// were refunded.
func TestHold_AtRatio_CapturedBeyond_IsRoundedWithTheRest(t *testing.T) {
	t.Parallel()
	b := newBundle(t).paying()
	h := holdOf("acme", "k1", "h1", 500)
	h.Items = append(h.Items, ledger.Item{Meter: "credits", Amount: 1}) // the hold stays active
	mustDo(b, h)
	mustDo(b, capture("c1", 600))
	mustDo(b, capture("c2", 900))
	b.wantSums("acme", "credits", ledger.Sums{Granted: 21, Used: 2, Held: 1})
	mustDo(b, &ledger.Refund{Tenant: "acme", Key: "r1", OperationID: "c1", Amount: 500})
	b.wantSums("acme", "credits", ledger.Sums{Granted: 21, Refunded: 1, Used: 2, Held: 1})
	mustDo(b, capture("c3", 100))
	mustDo(b, changeOf("c4", ledger.ActionRelease))
	b.wantSums("acme", "credits", ledger.Sums{Granted: 21, Refunded: 1, Used: 3})
	b.mustVerify()
}

// A hold, a capture of it and another capture of more than is held are one batch: the rows of new lines have all that
// the batch changed in them.
// The price changes while a hold is open. Its reserved units keep their price. Units beyond the hold have the new one.
func TestHold_AtRatio_CapturedBeyondAtAnotherPrice_AddsUp(t *testing.T) {
	t.Parallel()
	b := newBundle(t).paying()
	b.allowance("late", "api_calls", 0, "month", "ratio_meter = 'credits', ratio_units = 1, ratio_per = 100")
	mustDo(b, holdOf("acme", "k1", "h1", 1500))
	b.changeNow("acme", "late", b.now())
	c := capture("c1", 1600)
	c.Final = true
	mustDo(b, c)
	b.wantSums("acme", "credits", ledger.Sums{Granted: 21, Used: 3})
	b.mustVerify()
}

func TestHold_AtRatio_CreatedAndCapturedInOneBatch(t *testing.T) {
	t.Parallel()
	b := newBundle(t).paying()
	h := holdOf("acme", "k1", "h1", 2000)
	h.TTL = 10 * time.Minute
	require.NoError(t, h.Validate())
	calls := []*ledger.Call{ledger.NewCall(h), ledger.NewCall(capture("c1", 1500))}
	b.runBatches(t.Context(), newPlan(calls))
	for _, c := range calls {
		require.NoError(t, c.Err)
	}
	b.wantSums("acme", "credits", ledger.Sums{Granted: 21, Used: 1, Held: 1})
	b.rewindHolds(time.Hour)
	b.wantSums("acme", "credits", ledger.Sums{Granted: 21, Used: 2})
	b.mustVerify()
}

// A hold expires whose only reserved credit pays for what was captured: nothing comes back, and the event says so.
func TestHold_AtRatio_ExpiresWithNothingToReturn_Told(t *testing.T) {
	t.Parallel()
	b := newBundle(t).paying()
	h := holdOf("acme", "k1", "h1", 1000)
	h.TTL = 10 * time.Minute
	mustDo(b, h)
	mustDo(b, capture("c1", 999))
	b.rewindHolds(time.Hour)
	b.mustDebit(&ledger.Debit{Tenant: "acme", Key: "d1", Items: []ledger.Item{{Meter: "credits", Amount: 1}}})
	b.wantTold("acme grant.created credits g1 1", "acme grant.created credits g2 20", "acme hold.expired credits h1 0")
}

// Two instances capture one hold and refund the captures, all at once. Each request is sent to both instances with the
// same key. In the end the credits taken are the cost of the calls that stay.
func TestHold_AtRatio_TwoInstancesAtOnce_CostsCallsThatStay(t *testing.T) {
	t.Parallel()
	b := newBundle(t).paying()
	both := []*Ledger{b.Ledger, openLedger(t, b.url)}
	mustDo(b, holdOf("acme", "k1", "h1", 9000))
	stay := int64(0)
	var all sync.WaitGroup
	for i := range 30 {
		n := int64(i*37%290 + 1)
		key := fmt.Sprint("c", i)
		for _, l := range both {
			all.Go(func() {
				assert.NoError(t, errOf(Do(t.Context(), l, capture(key, n))))
				refund := &ledger.Refund{Tenant: "acme", Key: "r-" + key, OperationID: key, Amount: n}
				if i%3 == 0 {
					assert.NoError(t, errOf(Do(t.Context(), l, refund)))
				}
			})
		}
		if i%3 > 0 {
			stay += n
		}
	}
	all.Wait()
	mustDo(b, changeOf("end", ledger.ActionRelease))
	credits := b.mustBalance("acme", "credits")
	require.Equal(t, (stay+999)/1000, credits.Used-credits.Refunded)
	require.Zero(t, credits.Held)
	b.mustVerify()
}

// A release that takes the credit which the captures had put off has no use of its own to refund.
func TestRefund_OfReleaseThatTookACredit_NamesTheCaptures(t *testing.T) {
	t.Parallel()
	b := newBundle(t).paying()
	mustDo(b, holdOf("acme", "k1", "h1", 1000))
	mustDo(b, capture("c1", 999))
	mustDo(b, changeOf("c2", ledger.ActionRelease))
	e := wantRefusal(b, errcode.InvalidArgument, &ledger.Refund{Tenant: "acme", Key: "r1", OperationID: "c2"})
	require.Contains(t, e.Detail, "refund the captures of the hold")
}
