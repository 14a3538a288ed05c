package model

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/kit/price"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// till is a tenant without an allowance of tokens. Its credits pay for tokens at a price.
type till struct {
	t      *rapid.T
	memory *Memory
	now    time.Time
	price  price.Ratio
	serial int
	credit int64 // the amount at the start
}

// openTill returns a till with a random price and a random amount of credits. Both may be small or large.
func openTill(t *rapid.T) *till {
	amount := rapid.OneOf(rapid.Int64Range(1, 12), rapid.Int64Range(1, 5000), rapid.Int64Range(ledger.MaxAmount-9, ledger.MaxAmount))
	s := &till{t: t, memory: newMemory(), now: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}
	s.price = price.Ratio{Units: amount.Draw(t, "units"), Per: amount.Draw(t, "per")}
	once := ledger.Allowance{Every: period.Once, Anchor: period.Calendar}
	tokens := once
	tokens.OverflowMeter, tokens.OverflowPrice = "credits", s.price
	s.memory.Plans["ai"] = []ledger.PlanVersion{{Version: 1, CreatedAt: s.now, Allowances: map[string]ledger.Allowance{"tokens": tokens, "credits": once}}}
	s.memory.History = []ledger.TenantTerms{{Since: s.now, Plan: "ai", AnchorAt: s.now, Zone: time.UTC}}
	for range rapid.IntRange(1, 3).Draw(t, "grants") {
		n := amount.Draw(t, "credits")
		if s.do(&ledger.Grant{Tenant: Tenant, Key: s.key(), Meter: "credits", Amount: n, Source: ledger.SourceTopup}) == nil {
			s.credit += n
		}
	}
	return s
}

func (s *till) key() string {
	s.serial++
	return fmt.Sprint("k", s.serial)
}

// do runs an operation and returns its error.
func (s *till) do(op ledger.Operation) error {
	c := ledger.NewCall(op)
	if err := op.Validate(); err != nil {
		return err
	}
	s.memory.run(s.t, []*ledger.Call{c}, s.now, false)
	if c.Err != nil {
		return c.Err
	}
	return nil
}

// taken returns the number of credits that are no longer in the balance. The remaining and held credits may never be
// below zero or above the grant.
func (s *till) taken() int64 {
	credits := s.memory.balances[ledger.BalanceKey{Tenant: Tenant, Meter: "credits"}]
	left := credits.Remaining() + credits.Held
	require.True(s.t, left >= 0 && left <= s.credit && credits.Remaining() >= 0 && credits.Held >= 0,
		"of %d credits there are %d, and %d held", s.credit, credits.Remaining(), credits.Held)
	return s.credit - left
}

// After each partial refund, of any size, the credits taken equal the price of the units not yet refunded. Together
// the partial refunds of a debit return exactly the credits that it took.
func TestPrice_PartsOfRefundsComeToTheWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := openTill(t)
		reach := min(s.price.MaxUnits(s.credit), ledger.MaxAmount)
		if reach == 0 {
			return
		}
		units := rapid.OneOf(rapid.Int64Range(1, reach), rapid.Just(reach)).Draw(t, "debit")
		debit := s.key()
		require.NoError(t, s.do(&ledger.Debit{Tenant: Tenant, Key: debit, Items: []ledger.Item{{Meter: "tokens", Amount: units}}}))
		require.True(t, s.taken() == s.price.Cost(units), "%d tokens at %v took %d credits", units, s.price, s.taken())
		for left := units; left > 0; {
			part := rapid.Int64Range(1, left).Draw(t, "part")
			if rapid.IntRange(0, 5).Draw(t, "all?") == 0 {
				part = left
			}
			left -= part
			require.NoError(t, s.do(&ledger.Refund{Tenant: Tenant, Key: s.key(), OperationID: debit, Amount: part}),
				"%d of %d", part, left+part)
			require.True(t, s.taken() == s.price.Cost(left),
				"%d tokens at %v are left and keep %d credits", left, s.price, s.taken())
		}
		require.Error(t, s.do(&ledger.Refund{Tenant: Tenant, Key: s.key(), OperationID: debit, Amount: 1}),
			"one more token was refunded")
	})
}

// A hold is captured (also beyond its units), refunded, and released or expired, in any order. In total, it takes the
// price of the units that stay captured, rounded up once. While the hold is active, it may take one credit less, which
// is still reserved.
func TestPrice_HoldCostsItsUnitsInAnyOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := openTill(t)
		reach := min(s.price.MaxUnits(s.credit), ledger.MaxAmount)
		if reach == 0 {
			return
		}
		h := priced{till: s, held: rapid.Int64Range(1, reach).Draw(t, "hold"), active: true}
		require.NoError(t, s.do(&ledger.Hold{
			Tenant: Tenant, Key: s.key(), HoldID: "h", TTL: time.Hour, Items: []ledger.Item{{Meter: "tokens", Amount: h.held}},
		}))
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			h.step()
			h.check()
		}
		h.end()
		for _, c := range h.captures {
			_ = s.do(&ledger.Refund{Tenant: Tenant, Key: s.key(), OperationID: c})
		}
		require.Zero(t, s.taken(), "all was refunded, and %d credits are gone", s.taken())
	})
}

// priced is a hold of tokens that credits pay for.
type priced struct {
	*till

	held     int64 // tokens that the hold reserved at first
	captured int64
	refunded int64
	captures []string
	active   bool
}

// step captures, refunds or ends the hold.
func (h *priced) step() {
	switch rapid.SampledFrom([]string{"capture", "capture", "refund", "end"}).Draw(h.t, "step") {
	case "capture":
		h.capture(rapid.Int64Range(1, max(1, h.held/2)).Draw(h.t, "amount"), rapid.IntRange(0, 9).Draw(h.t, "final?") == 0)
	case "refund":
		if len(h.captures) > 0 {
			c := rapid.SampledFrom(h.captures).Draw(h.t, "of")
			n := rapid.Int64Range(1, max(1, h.captured)).Draw(h.t, "part")
			if h.do(&ledger.Refund{Tenant: Tenant, Key: h.key(), OperationID: c, Amount: n}) == nil {
				h.refunded += n
			}
		}
	case "end":
		if rapid.IntRange(0, 4).Draw(h.t, "now?") == 0 {
			h.end()
		}
	}
}

func (h *priced) capture(n int64, final bool) {
	key, before := h.key(), h.captured
	err := h.do(&ledger.HoldChange{
		Tenant: Tenant, Key: key, HoldID: "h", Action: ledger.ActionCapture, Final: final, Items: []ledger.Item{{Meter: "tokens", Amount: n}},
	})
	if err == nil {
		require.True(h.t, h.active, "a hold that has ended was captured")
		h.captured += n
		h.captures = append(h.captures, key)
		h.active = !final && h.captured < h.held
	}
	enough := h.price.Cost(before+n-h.refunded)-h.taken() <= h.credit-h.taken()-h.reserved()
	require.False(h.t, h.active && err != nil && before+n <= h.held && enough, "capture of %d, %d of %d: %v", n, before, h.held, err)
}

// reserved returns the credits that the hold reserves.
func (h *priced) reserved() int64 {
	return h.memory.balances[ledger.BalanceKey{Tenant: Tenant, Meter: "credits"}].Held
}

// end releases the hold or lets it expire.
func (h *priced) end() {
	if h.active && rapid.Bool().Draw(h.t, "release?") {
		require.NoError(h.t, h.do(&ledger.HoldChange{Tenant: Tenant, Key: h.key(), HoldID: "h", Action: ledger.ActionRelease}))
	} else if h.active {
		h.now = h.now.Add(2 * time.Hour)
		h.memory.sweep(h.t, h.now)
	}
	h.active = false
	h.check()
}

func (h *priced) check() {
	cost := h.price.Cost(h.captured - h.refunded)
	if taken := h.taken(); taken > cost || taken < cost-1 || !h.active && taken != cost {
		h.t.Fatalf("%d of %d tokens at %v were captured and %d refunded: %d credits are taken, not %d (active: %v)",
			h.captured, h.held, h.price, h.refunded, taken, cost, h.active)
	}
	require.True(h.t, h.active || h.reserved() == 0, "%d credits are still reserved", h.reserved())
}
